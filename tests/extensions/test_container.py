"""Commands of a session run in a container that commands of the settings make and enter."""

from __future__ import annotations

import asyncio
import io
import os
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.processes import is_alive

from crow import Agent
from crow.extensions.container import Container, ContainerError, ContainerHook
from crow.keys import SANDBOX
from crow.testing import ScriptedModel, call
from crow.tools import builtin

ENTERED = {"start": "true", "exec": "setsid -w env -C $cwd $env", "variable": "$variable"}
"""What enters as ``docker exec`` does: what it has started goes on when it is killed itself."""


def agent_of(*script: Any, **options: Any) -> Agent:
    made: dict[str, Any] = {**ENTERED, **options}
    hook = ContainerHook(**made)
    return Agent(ScriptedModel(*script), hooks=[hook], tools=builtin())


async def answers(agent: Agent, folder: Path) -> list[str]:
    """What the calls of a run have said."""
    async with agent:
        session = await agent.new_session(str(folder))
        await agent.prompt(session, "Go")
        return [str(m["content"]) for m in session.messages if m["role"] == "tool"]


async def test_a_command_runs_inside_with_what_is_passed_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WANTED", "x y")
    run = call("Bash", command='pwd; echo "$WANTED"; env | grep CROW_COMMAND')
    (said,) = await answers(agent_of(run, "ok", environment=["WANTED"]), tmp_path)
    assert said.splitlines()[:2] == [str(tmp_path), "x y"]
    assert "CROW_COMMAND=" in said


async def test_it_is_made_once_found_again_and_removed(tmp_path: Path) -> None:
    log, there = tmp_path / "log", tmp_path / "there"
    options = {
        "start": f"sh -c 'echo start $$0 >> {log}; touch {there}' $name",
        "exec": f"""sh -c 'test -e {there} && exec "$$@"' sh""",
        "stop": f"sh -c 'echo stop >> {log}; rm -f {there}'",
    }
    runs = [call("Bash", command="echo one"), call("Bash", command="echo two"), "ok"]
    agent = agent_of(*runs, **options)
    assert [each.strip() for each in await answers(agent, tmp_path)] == ["one", "two"]
    stop, start, last = log.read_text().splitlines()
    assert (stop, last) == ("stop", "stop")  # the first for one that has ended with this name
    assert start.startswith("start crow-")
    assert not there.exists()


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"start": "sh -c 'echo no such image >&2; exit 125'"}, "exit code 125: no such image"),
        ({"start": "nowhere-at-all"}, "nowhere-at-all: [Errno 2]"),
        (
            {"start": "run $imge"},
            "the container's start has $imge, which is none of $name, $folder",
        ),
        ({"start": "run 'it"}, "the container's start is no command line: No closing quotation"),
        ({"exec": "false", "seconds": 1.0}, "false true: exit code 1: it said nothing, for 1 s"),
    ],
)
async def test_what_cannot_be_entered_runs_nowhere_and_says_why(
    tmp_path: Path, options: dict[str, Any], told: str
) -> None:
    if "exec" not in options:
        options = {**options, "exec": "false"}
    (said,) = await answers(agent_of(call("Bash", command="touch ran"), "ok", **options), tmp_path)
    assert said.startswith("The container cannot be had: ")
    assert told in said
    assert not (tmp_path / "ran").exists()


async def test_words_of_a_task_are_words_and_nothing_more(tmp_path: Path) -> None:
    folder = tmp_path / "a b; touch $(pwned)"
    folder.mkdir()
    recipe = ContainerHook(
        start="run $mounts $image", exec="in", mount="-v $path:$path:$mode", image="i j"
    )
    container = Container(recipe, "n", str(folder), shown=["/mirror"])
    mounts = ["-v", f"{folder}:{folder}:rw", "-v", "/mirror:/mirror:ro"]
    assert container.words("start") == ["run", *mounts, "i j"]
    with pytest.raises(ContainerError, match=r"write \$\$ for a \$"):
        Container(ContainerHook(start="run $ 5", exec="in"), "n").words("start")


async def test_what_is_cut_off_ends_inside(tmp_path: Path) -> None:
    script = "echo $$ > pid; (sleep 300 & echo $! > child; wait)"
    agent = agent_of(call("Bash", command=script), "ok")
    async with agent:
        session = await agent.new_session(str(tmp_path))
        running = asyncio.create_task(agent.prompt(session, "Go"))
        while not (tmp_path / "child").exists() or not (tmp_path / "child").read_text():  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        agent.cancel(session)
        await running
    for name in ("pid", "child"):
        pid = int((tmp_path / name).read_text())
        while is_alive(pid):  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def test_what_a_process_has_left_running_there_that_died_ends_before_another_goes_on(
    tmp_path: Path,
) -> None:
    agent = agent_of(call("Bash", command="echo here"), "ok")
    async with agent:
        session = await agent.new_session(str(tmp_path))
        left, other = [
            await asyncio.create_subprocess_exec(
                "sleep", "300", env={**os.environ, "CROW_COMMAND": of}
            )
            for of in (f"crow-{session.id}/x", "crow-another/x")
        ]
        await agent.prompt(session, "Go")
        assert "here" in str(session.messages[-2]["content"])
        assert await left.wait() == -9
        assert other.returncode is None
        other.kill()
        await other.wait()


async def test_one_that_was_taken_away_is_made_anew(tmp_path: Path) -> None:
    there = tmp_path / "there"
    options = {
        "start": f"touch {there}",
        "exec": f"""sh -c 'test -e {there} && exec "$$@"' sh""",
        "stop": "true",
    }
    runs = [call("Bash", command=each) for each in (f"rm {there}", "echo lost", "echo found")]
    *_, lost, found = await answers(agent_of(*runs, "ok", **options), tmp_path)
    assert lost.startswith("Exit code 1")
    assert found.strip() == "found"


async def test_a_command_that_times_out_is_asked_to_end_inside(tmp_path: Path) -> None:
    script = "trap 'echo asked > asked; exit' TERM; while :; do sleep 0.01; done"
    (said,) = await answers(agent_of(call("Bash", command=script, timeout=300), "ok"), tmp_path)
    assert "timed out" in said or "Timed out" in said, said
    while not (tmp_path / "asked").exists():  # noqa: ASYNC110
        await asyncio.sleep(0.01)


async def test_judges_that_count_on_the_sandbox_are_not_deceived(tmp_path: Path) -> None:
    class Held:
        name = "bubblewrap"
        unasked = True

    def on_session_start(ctx: Any) -> None:
        SANDBOX.set(ctx, Held())  # type: ignore[arg-type]

    made: dict[str, Any] = {**ENTERED}
    hook = ContainerHook(**made)
    model = ScriptedModel(call("Bash", command="touch ran"), "ok")
    agent = Agent(model, hooks=[hook, on_session_start], tools=builtin())
    (said,) = await answers(agent, tmp_path)
    assert 'put "sandbox" into extensions.disable' in said
    assert not (tmp_path / "ran").exists()


async def test_the_model_is_told_what_its_commands_run_in(tmp_path: Path) -> None:
    from crow.extensions import SystemPromptHook

    model = ScriptedModel("ok")
    made: dict[str, Any] = {**ENTERED, "image": "python:3.13"}
    hooks = [SystemPromptHook(), ContainerHook(**made)]
    async with Agent(model, hooks=hooks, tools=builtin()) as agent:
        await agent.run("Hi")
    assert "in a container of the image python:3.13" in str(model.asked[0]["messages"][0])


# a real one


CONF = """
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "none"
[containers]
default_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]
"""
STORAGE = """
[storage]
driver = "vfs"
graphroot = "{0}/images"
runroot = "{0}/run"
"""
IMAGE = "localhost/crow-test:1"
PODMAN = {
    "image": IMAGE,
    "start": "podman run -d --name $name --network host $mounts -w $folder $image sleep 1000",
    "exec": "podman exec -i -w $cwd $env $name",
    "stop": "podman rm -f -t 0 $name",
    "list": "podman ps -a --filter name=^crow- --format {{.Names}}",
    "mount": "-v $path:$path:$mode",
    "variable": "-e $variable",
    "shell": "sh",
}


@pytest.fixture
def podman(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """The options for podman, with an image that is busybox and no more."""
    if not (shutil.which("podman") and shutil.which("runc") and shutil.which("busybox")):
        pytest.skip("needs podman, runc and busybox")
    conf = tmp_path / "containers.conf"
    conf.write_text(CONF)
    monkeypatch.setenv("CONTAINERS_CONF", str(conf))
    storage = tmp_path / "storage.conf"
    storage.write_text(STORAGE.format(tmp_path))
    monkeypatch.setenv("CONTAINERS_STORAGE_CONF", str(storage))
    image = io.BytesIO()
    with tarfile.open(fileobj=image, mode="w") as tar:
        tar.add(shutil.which("busybox") or "", "bin/busybox")
        for applet in ("sh", "env", "grep", "kill", "sleep", "true", "ls", "cat", "touch"):
            link = tarfile.TarInfo(f"bin/{applet}")
            link.type, link.linkname = tarfile.SYMTYPE, "busybox"
            tar.addfile(link)
    for argv in (["podman", "import", "-", IMAGE], ["podman", "run", "--rm", IMAGE, "true"]):
        command = [*argv[:2], *["--network=host"] * (argv[1] == "run"), *argv[2:]]
        done = subprocess.run(command, input=image.getvalue(), capture_output=True)
        if done.returncode:
            pytest.skip(f"podman does not work here: {done.stderr.decode()}")
    yield PODMAN
    subprocess.run(["podman", "rm", "-f", "-a", "-t", "0"], capture_output=True)


@pytest.mark.slow
async def test_a_session_works_in_a_container_of_podman(
    tmp_path: Path, podman: dict[str, Any]
) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "a").write_text("here\n")
    script = [
        call("Bash", command="cat a; ls /; touch made"),
        call("Bash", command="echo on > on; sleep 200", timeout=1500),
        call("Bash", command="grep -c . /proc/[0-9]*/cmdline; cat on"),
        "ok",
    ]
    hook = ContainerHook(**podman)
    agent = Agent(ScriptedModel(*script), hooks=[hook], tools=builtin())
    first, second, third = await answers(agent, folder)
    assert first.split()[0] == "here"
    assert "home" not in first.split()
    assert "timed out" in second.lower()
    assert third.split()[-1] == "on"
    assert (folder / "made").exists()
    ps = ["podman", "ps", "-a", "--format", "{{.Names}}"]
    left = await asyncio.to_thread(lambda: subprocess.run(ps, capture_output=True))
    assert b"crow-" not in left.stdout
