"""Whatever a session and others do to the same files: going back loses nothing of the others'."""

from __future__ import annotations

import asyncio
import shlex
import shutil
import stat
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.postgres import Server
from tests.properties import examples

from crow import Agent
from crow.extensions import PersistenceHook, RewindHook
from crow.extensions.rewind.plan import UNKEPT
from crow.testing import ScriptedModel, call

NAMES = ("a", "b", "bin", "d", "d/x", "d/y", "d/e/z", "new", "new/w")
STEPS = st.lists(
    st.tuples(
        st.sampled_from(("session", "session", "others")),
        st.sampled_from(
            ("write", "append", "bytes", "remove", "move", "link", "hard", "mode", "tool")
        ),
        st.sampled_from(NAMES),
        st.sampled_from(NAMES),
    ),
    min_size=1,
    max_size=7,
)


def begin(folder: Path) -> None:
    (folder / "d/e").mkdir(parents=True)
    (folder / ".git").mkdir()
    (folder / ".git/index").write_bytes(b"git's own")
    (folder / ".gitignore").write_text("b\nbin\n", "utf-8")
    for name in ("a", "b", "d/x", "d/e/z"):
        (folder / name).write_text(f"first {name}\n", "utf-8")
    (folder / "bin").write_bytes(bytes(range(256)))
    (folder / "d/y").symlink_to("../a")


def seen(folder: Path) -> dict[str, tuple[Any, ...]]:
    """Every path but git's, with all that is to be brought back."""
    found: dict[str, tuple[Any, ...]] = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        status = path.lstat()
        mode = stat.S_IMODE(status.st_mode)
        if stat.S_ISLNK(status.st_mode):
            found[name] = ("link", str(path.readlink()))
        elif stat.S_ISDIR(status.st_mode):
            found[name] = ("folder",)
        else:
            found[name] = ("file", mode, path.read_bytes())
    return found


def contents(tree: dict[str, tuple[Any, ...]]) -> set[bytes]:
    return {each[2] for each in tree.values() if each[0] == "file"}


def command_of(what: str, one: str, other: str, mark: str) -> str:
    """A step as a command line. What it writes nobody else does."""
    one, other = shlex.quote(one), shlex.quote(other)
    return {
        "write": f"mkdir -p $(dirname {one}); echo {mark} > {one}",
        "append": f"echo {mark} >> {one}",
        "bytes": rf"printf '{mark}\0\377\200' > {one}",
        "remove": f"rm -rf {one}",
        "move": f"mv {one} {other}",
        "hard": f"ln -f {one} {other}",
        "link": f"ln -sfn {mark} {one}",
        "mode": f"chmod 751 {one}",
        "tool": f"echo {mark} > {one}",
    }[what]


def asked(folder: Path, steps: list[tuple[str, str, str, str]]) -> list[Any]:
    """What the model says: a call for each step of the session's."""
    script: list[Any] = []
    for number, (who, what, one, other) in enumerate(steps):
        if who == "others":
            continue
        if what == "tool":
            script.append(call("Write", file_path=str(folder / one), content=f"{who}{number}"))
        else:
            script.append(call("Bash", command=command_of(what, one, other, f"{who}{number}")))
        script.append("done")
    return script


async def play(
    folder: Path, steps: list[tuple[str, str, str, str]], *stores: Any, **options: Any
) -> None:
    keeper = RewindHook(directory=folder.parent / "kept", **options)
    async with Agent(ScriptedModel(*asked(folder, steps)), hooks=[*stores, keeper]) as agent:
        session = await agent.new_session(cwd=str(folder))
        first, since = seen(folder), time.time()
        touched: set[str] = set()
        theirs: set[bytes] = set()
        for number, (who, what, one, other) in enumerate(steps):
            mark, before = f"{who}{number}", seen(folder)
            command = command_of(what, one, other, mark)
            if who == "others":
                process = await asyncio.create_subprocess_shell(
                    command, cwd=folder, stderr=asyncio.subprocess.DEVNULL
                )
                await process.wait()
                after = seen(folder)
                touched |= {
                    n for n in before.keys() | after.keys() if before.get(n) != after.get(n)
                }
                theirs |= contents(after) - contents(before)
                continue
            await agent.run("Go on", session=session)
        last = seen(folder)
        plan = await keeper.plan_rewind(session, since)
        assert seen(folder) == last, "a plan touches nothing"
        outcome = await keeper.carry_out_rewind(session, plan)
        now = seen(folder)
        not_the_sessions = contents(last) & (contents(first) | theirs)
        if all(what != "hard" for _, what, _, _ in steps):  # or the session has made a copy
            assert not_the_sessions <= contents(now)
        assert now[".git/index"] == first[".git/index"]
        was_late = any(step.reason == UNKEPT for step in plan.steps)
        assert not (was_late and options["patience"])
        if not touched and not was_late:
            assert {n: e for n, e in now.items() if e != ("folder",)} == {
                n: e for n, e in first.items() if e != ("folder",)
            }
            assert not outcome.failed
        left = {step.path for step in plan.steps if step.action == "leave"}
        for name in touched:
            if str(folder / name) in left:
                assert now.get(name) == last.get(name)
        back = await keeper.plan_rewind(session, outcome.since)
        assert not [step for step in back.steps if step.action == "leave"]
        await keeper.carry_out_rewind(session, back)
        assert seen(folder) == last


def played(steps: list[tuple[str, str, str, str]], *stores: Any, **options: Any) -> None:
    """Play it in a folder of its own."""
    made = Path(tempfile.mkdtemp()).resolve()
    try:
        (made / "work").mkdir()
        begin(made / "work")
        asyncio.run(play(made / "work", steps, *stores, **options))
    finally:
        shutil.rmtree(made)


@settings(max_examples=examples(120))
@given(STEPS, st.booleans(), st.sampled_from((0.0, 60.0)))
@example(
    [
        ("session", "remove", "d", "a"),
        ("others", "write", "d", "a"),
        ("session", "remove", "d", "a"),
    ],
    False,
    0.0,
)
@example([("session", "move", "d", "new"), ("others", "write", "d", "a")], False, 0.0)
@example([("session", "move", "a", "b"), ("others", "write", "a", "a")], True, 60.0)
@example(
    [("session", "write", "b", "a"), ("others", "write", "b", "a"), ("session", "move", "b", "a")],
    True,
    60.0,
)
@example(
    [
        ("others", "link", "new", "a"),
        ("session", "remove", "new", "a"),
        ("session", "write", "new/w", "a"),
    ],
    True,
    60.0,
)
@example([("session", "tool", "new/w", "a"), ("session", "move", "a", "new")], True, 60.0)
@example([("session", "hard", "a", "b"), ("session", "hard", "bin", "a")], True, 60.0)
@example([("session", "hard", "a", "b"), ("session", "write", "a", "a")], True, 60.0)
def test_going_back_loses_nothing_of_others_and_going_back_twice_is_where_one_was(
    steps: list[tuple[str, str, str, str]], inotify: bool, patience: float
) -> None:
    played(steps, inotify=inotify, patience=patience)


@pytest.mark.slow
@settings(max_examples=examples(60))
@given(STEPS)
def test_so_it_is_where_machines_share_what_is_kept(
    postgres: Server, steps: list[tuple[str, str, str, str]]
) -> None:
    played(steps, PersistenceHook(postgres.database()), patience=60.0)
