"""What is kept, what is left alone, and what its user is told."""

from __future__ import annotations

import asyncio
import ctypes
import os
import shutil
import stat
import sys
import threading
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from crow import Agent, NullClient, Session, hook, tool
from crow.core.ports.client import Question
from crow.events import Notice, ToolProgress
from crow.extensions import PermissionsHook, PersistenceHook, RewindHook
from crow.hooks import LAST
from crow.testing import ScriptedModel, call
from crow.tools import Location

OLD = 1_700_000_000


class User(NullClient):
    """Somebody who answers with what was prepared, and remembers what was said."""

    answers = True

    def __init__(self, *choices: str) -> None:
        self.choices = [*choices]
        self.asked: list[Question] = []
        self.told: list[str] = []

    async def ask(self, session_id: str, question: Question) -> Any:
        self.asked.append(question)
        wanted = self.choices.pop(0)
        return next(each for each in question.choices if each.startswith(wanted))

    async def update(self, session_id: str, event: Any) -> None:
        if isinstance(event, Notice):
            self.told.append(event.text)


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


def keeper_in(tmp_path: Path, **options: Any) -> RewindHook:
    return RewindHook(directory=tmp_path / "kept", **{"patience": 60.0, **options})


async def lines(keeper: RewindHook, session: Session, since: float = 0.0) -> list[str]:
    return (await keeper.plan_rewind(session, since)).lines(session.cwd)


async def test_the_store_is_for_its_user_alone(
    tmp_path: Path, work: Path, store: PersistenceHook
) -> None:
    keeper = keeper_in(tmp_path)
    model = ScriptedModel(call("Write", file_path="a", content="x"), "done")
    async with Agent(model, hooks=[store, keeper]) as agent:
        await agent.run("Go", session=await agent.new_session(cwd=str(work)))
        for path in (tmp_path / "kept").iterdir():
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE((tmp_path / "kept").stat().st_mode) == 0o700


async def test_a_tool_that_names_its_files_has_these_kept_and_no_others(
    tmp_path: Path, work: Path, store: PersistenceHook
) -> None:
    @tool(locations=lambda args, cwd: (Location(f"{cwd}/named"),))
    async def scribble() -> str:
        """Write."""
        (work / "named").write_bytes(b"\0new")
        (work / "other").write_text("new", "utf-8")
        return "done"

    (work / "named").write_bytes(b"\0old")
    (work / "named").chmod(0o640)
    keeper = keeper_in(tmp_path)
    async with Agent(
        ScriptedModel(call("scribble"), "done"), tools=[scribble], hooks=[store, keeper]
    ) as agent:
        session = await agent.new_session(cwd=str(work))
        await agent.run("Go", session=session)
        plan = await keeper.plan_rewind(session, 0.0)
        assert plan.lines(session.cwd) == ["restore  named"]
        await keeper.carry_out_rewind(session, plan)
    assert (work / "named").read_bytes() == b"\0old"
    assert stat.S_IMODE((work / "named").stat().st_mode) == 0o640
    assert (work / "other").read_text("utf-8") == "new"


async def test_what_others_changed_is_left_alone_unless_the_user_says_otherwise(
    tmp_path: Path, work: Path, store: PersistenceHook
) -> None:
    (work / "a").write_text("old", "utf-8")
    keeper = keeper_in(tmp_path)
    model = ScriptedModel(call("Bash", command="echo new > a; echo b > b"), "done")
    async with Agent(model, hooks=[store, keeper]) as agent:
        session = await agent.new_session(cwd=str(work))
        await agent.run("Go", session=session)
        (work / "a").write_text("mine", "utf-8")
        plan = await keeper.plan_rewind(session, 0.0)
        assert plan.lines(session.cwd) == [
            "leave    a  (somebody else changed it since)",
            "delete   b",
        ]
        await keeper.carry_out_rewind(session, plan)
        assert (work / "a").read_text("utf-8") == "mine"
        assert not (work / "b").exists()
        plan = await keeper.plan_rewind(session, 0.0)
        outcome = await keeper.carry_out_rewind(session, plan, overwrite=True)
        assert (work / "a").read_text("utf-8") == "old"
        back = await keeper.plan_rewind(session, outcome.since)
        await keeper.carry_out_rewind(session, back)
        assert (work / "a").read_text("utf-8") == "mine"


async def test_what_is_too_large_is_told_once_and_left_alone(
    tmp_path: Path, work: Path, store: PersistenceHook
) -> None:
    (work / "large").write_bytes(b"x" * 2000)
    keeper, user = keeper_in(tmp_path, largest=1000), User()
    command = call("Bash", command="echo more >> large; echo a > small; sleep 0.05")
    async with Agent(ScriptedModel(command, command, "done"), hooks=[store, keeper]) as agent:
        session = await agent.new_session(cwd=str(work), client=user)
        await agent.run("Go", session=session)
        assert await lines(keeper, session) == [
            "leave    large  (what it was is not kept)",
            "delete   small",
        ]
    assert len(user.told) == 1
    assert "files of more than 1,000 bytes are not kept" in user.told[0]


async def test_what_is_too_large_is_not_told_where_nobody_changes_it(
    tmp_path: Path, work: Path, store: PersistenceHook
) -> None:
    (work / "large").write_bytes(b"x" * 2000)
    keeper, user = keeper_in(tmp_path, largest=1000), User()
    model = ScriptedModel(
        call("Write", file_path=str(work / "a"), content="a"),
        call("Bash", command="cat large; touch b; sleep 0.05"),
        call("Read", file_path=str(work / "large")),
        "done",
    )
    async with Agent(model, hooks=[store, keeper]) as agent:
        session = await agent.new_session(cwd=str(work), client=user)
        await agent.run("Go", session=session)
        assert await lines(keeper, session) == ["delete   a", "delete   b"]
    assert user.told == []


async def test_a_folder_with_too_many_files_is_told_and_not_watched(
    tmp_path: Path, work: Path, store: PersistenceHook
) -> None:
    for number in range(6):
        (work / str(number)).touch()
    keeper, user = keeper_in(tmp_path, files=5), User()
    calls = [call("Bash", command="echo a > 1"), call("Write", file_path="b", content="b")]
    async with Agent(ScriptedModel(*calls, "done"), hooks=[store, keeper]) as agent:
        session = await agent.new_session(cwd=str(work), client=user)
        await agent.run("Go", session=session)
        assert await lines(keeper, session) == ["delete   b"]
    assert ["more than 5 files" in each for each in user.told] == [True]


@pytest.mark.slow
async def test_a_call_waits_only_so_long_for_a_store_that_another_process_has_locked(
    tmp_path: Path, work: Path, store: PersistenceHook
) -> None:
    keeper, user = keeper_in(tmp_path, patience=2.0), User()
    hold = (
        "import sqlite3, sys; held = sqlite3.connect(sys.argv[1], isolation_level=None);"
        "held.execute('BEGIN EXCLUSIVE'); print(flush=True); sys.stdin.read()"
    )
    a, b, c = (call("Bash", command=f"echo more >> {name}") for name in "abc")
    model = ScriptedModel(a, b, "done", c, "done")
    async with Agent(model, hooks=[store, keeper]) as agent:
        session = await agent.new_session(cwd=str(work), client=user)
        assert await keeper.rewinds(session) == []
        other = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", hold, str(keeper.store.path)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        try:
            assert other.stdout
            await other.stdout.readline()
            begun = time.monotonic()
            await agent.run("Go", session=session)
            assert time.monotonic() - begun < 9
        finally:
            other.kill()
            await other.wait()
        await agent.run("Go on", session=session)
        assert sorted(each.name for each in work.iterdir()) == ["a", "b", "c"]
    assert any("takes more than 2 s" in each for each in user.told)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="swaps with renameat2(2)")
async def test_a_link_that_is_put_in_a_folders_place_meanwhile_leads_nowhere(
    tmp_path: Path, work: Path, store: PersistenceHook
) -> None:
    keeper, outside = keeper_in(tmp_path), tmp_path / "outside"
    for folder in (work / "d", outside):
        folder.mkdir()
        for number in range(800):
            (folder / str(number)).write_text("after\n" if folder == outside else "before\n")
    (work / "l").symlink_to(outside)
    swap = ctypes.CDLL(None).renameat2, (-100, bytes(work / "d"), -100, bytes(work / "l"), 2)
    done = threading.Event()

    def swapping() -> None:
        while not done.wait(0.0005):
            for _ in range(2):
                swap[0](*swap[1])

    model = ScriptedModel(call("Bash", command="for f in d/*; do echo after > $f; done"), "done")
    async with Agent(model, hooks=[store, keeper]) as agent:
        session = await agent.new_session(cwd=str(work))
        await agent.run("Go", session=session)
        plan = await keeper.plan_rewind(session, 0.0)
        assert len(plan.steps) == 800
        other = threading.Thread(target=swapping)
        other.start()
        outcome = await keeper.carry_out_rewind(session, plan)
        done.set()
        other.join()
    assert outcome.done
    assert {each.read_text() for each in outside.iterdir()} == {"after\n"}
    assert len([*outside.iterdir()]) == 800


async def test_a_file_that_gave_way_to_a_pipe_is_named(
    tmp_path: Path, work: Path, store: PersistenceHook
) -> None:
    (work / "a").write_text("text")
    keeper = keeper_in(tmp_path)
    model = ScriptedModel(call("Bash", command="rm a; mkfifo a other"), "done")
    async with Agent(model, hooks=[store, keeper]) as agent:
        session = await agent.new_session(cwd=str(work))
        await agent.run("Go", session=session)
        assert await lines(keeper, session) == ["leave    a  (it is no file, folder or link)"]


@pytest.mark.parametrize("path", ["a\0b", "\ud800"])
async def test_a_path_that_no_file_can_have_is_the_tools_to_refuse(
    tmp_path: Path, work: Path, path: str, store: PersistenceHook
) -> None:
    @tool(kind="edit", locations=lambda args, _: (Location(args["path"]),))
    def look_at(path: str) -> str:
        """Change a file."""
        return "there is none"

    keeper = keeper_in(tmp_path)
    model = ScriptedModel(call("look_at", path=path), "done")
    async with Agent(model, hooks=[store, keeper], tools=[look_at]) as agent:
        session = await agent.new_session(cwd=str(work))
        await agent.run("Go", session=session)
        assert session.messages[-2]["content"] == "there is none"


async def test_what_a_command_brought_from_elsewhere_is_not_deleted(
    tmp_path: Path, work: Path, store: PersistenceHook
) -> None:
    (work / "node_modules").mkdir()
    for place in (tmp_path / "outside", work / "node_modules/inside"):
        place.write_text("precious", "utf-8")
        os.utime(place, (OLD, OLD))
    command = f"mv {tmp_path}/outside . && mv node_modules/inside ."
    keeper = keeper_in(tmp_path)
    async with Agent(
        ScriptedModel(call("Bash", command=command), "done"), hooks=[store, keeper]
    ) as agent:
        session = await agent.new_session(cwd=str(work))
        await agent.run("Go", session=session)
        plan = await keeper.plan_rewind(session, 0.0)
        assert [step.action for step in plan.steps] == ["leave", "leave"]
        await keeper.carry_out_rewind(session, plan)
    assert (work / "outside").exists()
    assert (work / "inside").exists()


async def test_repositories_inside_stay_whole_when_their_git_folder_goes(
    tmp_path: Path, work: Path, store: PersistenceHook
) -> None:
    (work / "sub/.git").mkdir(parents=True)
    (work / "sub/mine").write_text("mine", "utf-8")
    os.utime(work / "sub/mine", (OLD, OLD))
    keeper = keeper_in(tmp_path)
    calls = call("Bash", command="echo 1 > a"), call("Bash", command="rm -r sub/.git")
    async with Agent(ScriptedModel(*calls, "done"), hooks=[store, keeper]) as agent:
        session = await agent.new_session(cwd=str(work))
        await agent.run("Go", session=session)
        plan = await keeper.plan_rewind(session, 0.0)
        await keeper.carry_out_rewind(session, plan)
    assert (work / "sub/mine").read_text("utf-8") == "mine"
    assert not (work / "a").exists()


async def test_calls_at_the_same_time_do_not_take_others_changes_for_theirs(
    tmp_path: Path, work: Path, store: PersistenceHook
) -> None:
    (work / "mine").write_text("old", "utf-8")
    keeper = keeper_in(tmp_path)
    both = [
        call("Write", file_path="w", content="w"),
        call("Bash", command="sleep 0.05; echo a > a"),
    ]
    model = ScriptedModel(call("Bash", command="true > t"), "done", both, "done")
    async with Agent(model, hooks=[store, keeper]) as agent:
        session = await agent.new_session(cwd=str(work))
        await agent.run("Look", session=session)
        (work / "mine").write_text("new", "utf-8")
        await agent.run("Go", session=session)
        assert await lines(keeper, session) == ["delete   a", "delete   t", "delete   w"]


async def test_what_a_cancelled_command_did_can_be_taken_back(
    tmp_path: Path, work: Path, store: PersistenceHook
) -> None:
    keeper = keeper_in(tmp_path)
    model = ScriptedModel(call("Bash", command="echo a > a; echo ready; sleep 60"), "done")

    class Impatient(NullClient):
        async def update(self, session_id: str, event: Any) -> None:
            if isinstance(event, ToolProgress) and "ready" in event.text:
                agent.cancel(session)

    async with Agent(model, hooks=[store, keeper]) as agent:
        session = await agent.new_session(cwd=str(work), client=Impatient())
        await agent.run("Go", session=session)
        assert await lines(keeper, session) == ["delete   a"]


class Gate:
    """Holds who reads one folder, until it is opened; counts the folders that were read."""

    def __init__(self) -> None:
        self.held: Path | None = None
        self.read = 0
        self._loop = asyncio.get_running_loop()
        self._reached, self._opened = asyncio.Event(), threading.Event()
        sys.addaudithook(self._hear)

    def _hear(self, event: str, args: tuple[Any, ...]) -> None:
        if self.held is not None and event == "os.scandir":
            self.read += 1
            if str(args[0]) == str(self.held):
                self._loop.call_soon_threadsafe(self._reached.set)
                self._opened.wait(60)

    async def reached(self) -> None:
        async with asyncio.timeout(50):
            await self._reached.wait()

    def open(self) -> None:
        self._opened.set()


@pytest.fixture
async def gate() -> AsyncIterator[Gate]:
    made = Gate()
    yield made
    made.held = None  # such a hook of Python's cannot be taken away
    made.open()


async def test_who_cancels_waits_for_no_look_and_what_the_command_did_can_be_taken_back(
    tmp_path: Path, work: Path, store: PersistenceHook, gate: Gate, caplog: pytest.LogCaptureFixture
) -> None:
    """The hook would be left behind after half a second, and that would be logged."""
    running = asyncio.Event()

    class Watching(User):
        async def update(self, session_id: str, event: Any) -> None:
            await super().update(session_id, event)
            if isinstance(event, ToolProgress):
                running.set()

    keeper, user = keeper_in(tmp_path), Watching()
    model = ScriptedModel(call("Bash", command="mkdir new; echo a > new/a; echo on; sleep 60"))
    async with Agent(model, hooks=[store, keeper]) as agent:
        session = await agent.new_session(cwd=str(work), client=user)
        prompt = asyncio.create_task(agent.prompt(session, "Go"))
        await running.wait()
        gate.held = work / "new"
        agent.cancel(session)
        assert (await prompt).stop_reason == "cancelled"
        planned = asyncio.create_task(lines(keeper, session))
        await gate.reached()
        assert not planned.done()
        gate.open()
        assert await planned == ["delete   new/a"]
    assert (user.told, caplog.text) == ([], "")


async def test_a_session_that_ends_does_not_wait_for_the_first_look(
    tmp_path: Path, work: Path, store: PersistenceHook, gate: Gate
) -> None:
    for number in range(3000):
        (work / f"folder{number}").mkdir()
    keeper = keeper_in(tmp_path)

    @hook("on_session_end", order=LAST)
    async def before_keeper() -> None:
        """Let the look go on when the keeper, whose turn is next, has been told of the end."""
        asyncio.get_running_loop().call_soon(gate.open)

    model = ScriptedModel(call("Bash", command="touch a"), "done")
    async with Agent(model, hooks=[store, before_keeper, keeper]) as agent:
        session = await agent.new_session(cwd=str(work))
        gate.held = work
        prompt = asyncio.create_task(agent.prompt(session, "Go"))
        await gate.reached()
        await agent.close_session(session)
        assert (await prompt).stop_reason == "cancelled"
    assert gate.read < 3000
    assert [*work.glob("a")] == []


async def test_the_command_brings_back_files_and_conversation_and_undoes_that(
    tmp_path: Path, work: Path, store: PersistenceHook
) -> None:
    (work / "a").write_text("old", "utf-8")
    keeper = keeper_in(tmp_path)
    model = ScriptedModel(
        *("Hello.", call("Bash", command="echo new > a"), "Done.", "Again."),
    )
    user = User("2.", "Files and conversation", "Files alone")
    async with Agent(model, hooks=[store, keeper]) as agent:
        session = await agent.new_session(cwd=str(work), client=user)
        await agent.run("Hi", session=session)
        await agent.run("Change it", session=session)
        reply = await agent.run("/rewind", session=session)
        assert "Files brought back: 1" in reply.text
        assert user.asked[1].detail == "- restore `a`"
        assert (work / "a").read_text("utf-8") == "old"
        assert [each["content"] for each in session.messages] == ["Hi", "Hello."]
        await agent.run("/rewind back", session=session)
        assert (work / "a").read_text("utf-8") == "new\n"


async def test_only_what_can_be_done_is_offered_and_a_long_list_is_cut(
    tmp_path: Path, work: Path, store: PersistenceHook
) -> None:
    keeper = keeper_in(tmp_path)
    many = call("Bash", command="for n in $(seq 40); do echo $n > $n; done")
    user = User("Nothing", "Nothing")
    async with Agent(ScriptedModel(many, "Done."), hooks=[store, keeper]) as agent:
        session = await agent.new_session(cwd=str(work), client=user)
        await agent.run("Change it", session=session)
        await agent.run("/rewind 1", session=session)
        for each in work.iterdir():
            each.write_text("mine", "utf-8")
        await agent.run("/rewind 1", session=session)
    first, second = user.asked
    assert first.detail.splitlines()[-1] == "- … and 10 more"
    assert first.choices[:2] == ("Files and conversation", "Files alone")
    over = "Files and conversation, over what others changed"
    assert second.choices == ("Conversation alone", over, "Nothing")


async def test_a_fork_can_go_back_to_before_what_it_was_forked_from(
    tmp_path: Path, work: Path, store: PersistenceHook
) -> None:
    (work / "a").write_text("old", "utf-8")
    keeper = keeper_in(tmp_path)
    model = ScriptedModel(call("Bash", command="echo new > a"), "Done.", "Again.")
    async with Agent(model, hooks=[store, keeper]) as agent:
        session = await agent.new_session(cwd=str(work))
        await agent.run("Change it", session=session)
        fork = await agent.load_session(await store.store.fork(session.id), source="fork")
        assert await lines(keeper, fork) == ["restore  a"]
        await keeper.carry_out_rewind(fork, await keeper.plan_rewind(fork, 0.0))
        assert (work / "a").read_text("utf-8") == "old"
        assert await lines(keeper, session) == []


async def test_deleting_a_session_forgets_what_was_kept_of_it(
    tmp_path: Path, work: Path, store: PersistenceHook
) -> None:
    keeper = keeper_in(tmp_path)
    model = ScriptedModel(call("Write", file_path="a", content="x"), "done")
    async with Agent(model, hooks=[store, keeper]) as agent:
        session = await agent.new_session(cwd=str(work))
        await agent.run("Go", session=session)
        await agent.close_session(session)
        await agent.delete_session(session.id)
        assert await lines(keeper, Session(id=session.id)) == []


async def test_a_file_with_a_key_that_crow_uses_lies_in_no_second_place(
    tmp_path: Path, work: Path, store: PersistenceHook
) -> None:
    (work / "plain").write_text("first", "utf-8")
    (work / "key").write_text("TOKEN=sk-12345678", "utf-8")
    keeper = keeper_in(tmp_path)
    model = ScriptedModel(call("Bash", command="echo x | tee plain > key"), "done")
    async with Agent(model, hooks=[store, keeper]) as agent:
        agent.known_secrets = frozenset({"sk-12345678"})
        session = await agent.new_session(cwd=str(work))
        await agent.run("Go", session=session)
        assert await lines(keeper, session) == [
            "leave    key  (what it was is not kept)",
            "restore  plain",
        ]
    for path in (tmp_path / "kept").iterdir():
        assert b"sk-12345678" not in path.read_bytes()


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel tells nothing")
@pytest.mark.parametrize("count", [20, pytest.param(20_000, marks=pytest.mark.slow)])
async def test_what_the_kernel_tells_is_what_a_look_at_everything_finds(
    tmp_path: Path, work: Path, count: int, store: PersistenceHook
) -> None:
    for name in ("kept/below/a", "moved/b", "gone/c", "inner/.git/HEAD", "inner/d"):
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_text(name, "utf-8")
    commands = [
        "true",
        "mkdir -p new/deep && echo 1 > new/deep/e && echo 2 > inner/d",
        "mv moved elsewhere && echo 3 > elsewhere/b && rm -r gone",
        "mkdir gone && echo 4 > gone/c && rm -r new/deep && mkdir new/deep && echo 5 > new/deep/f",
        "rm -r inner/.git && echo 6 > inner/d",
        "mkdir node_modules && echo 7 > node_modules/g && git init -q sub; echo 8 > sub/h",
        f"for n in $(seq {count}); do echo > kept/below/$n; done",
        "rm kept/below/[0-9]* && echo 9 > kept/below/a",
    ]
    found: dict[bool, list[str]] = {}
    for inotify in (True, False):
        folder = tmp_path / f"work{inotify}"
        shutil.copytree(work, folder)
        keeper = RewindHook(directory=tmp_path / f"kept{inotify}", inotify=inotify, patience=60)
        script = [each for one in commands for each in (call("Bash", command=one), "done")]
        async with Agent(ScriptedModel(*script), hooks=[store, keeper]) as agent:
            session = await agent.new_session(cwd=str(folder))
            for _ in commands:
                await agent.run("Go", session=session)
            found[inotify] = await lines(keeper, session)
    assert found[True] == found[False]
    assert "restore  kept/below/a" in found[True]


async def test_commands_that_only_read_are_not_looked_at_where_nothing_holds_them_either(
    tmp_path: Path, work: Path, store: PersistenceHook
) -> None:
    keeper = keeper_in(tmp_path)
    model = ScriptedModel(call("Bash", command="ls; cat pipe"), "done")
    os.mkfifo(work / "pipe")

    class Other(NullClient):
        async def update(self, session_id: str, event: Any) -> None:
            if isinstance(event, ToolProgress) and not (work / "mine").exists():
                (work / "mine").write_text("made while it reads", "utf-8")
                (work / "pipe").write_text("go on", "utf-8")

    hooks = [store, PermissionsHook(mode="bypassPermissions"), keeper]
    async with Agent(model, hooks=hooks) as agent:
        session = await agent.new_session(cwd=str(work), client=Other())
        await agent.run("Go", session=session)
        assert (work / "mine").exists()
        assert await lines(keeper, session) == []
