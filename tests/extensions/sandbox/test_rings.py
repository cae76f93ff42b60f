"""What a command finds in a ring: the good things that still work, and what is not there."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.extensions.sandbox.conftest import Command, Confined, backend, run

from crow.extensions.sandbox.backend import Backend
from crow.extensions.sandbox.bubblewrap import Bubblewrap
from crow.extensions.sandbox.policy import Limits, Policy
from crow.extensions.sandbox.probe import everyone, find_backend
from crow.extensions.sandbox.probe_cache import remembered
from crow.extensions.sandbox.protected import protected_paths
from crow.extensions.sandbox.seccomp import INTERNET, Filter, assemble

Workspace = Callable[..., Policy]


async def test_a_command_works_in_its_workspace(
    any_backend: Backend, root: Path, workspace: Workspace
) -> None:
    command = "echo out; echo err >&2; mkdir d; echo x > d/f; mv d/f g; cat g; pwd; exit 3"
    ran = await run(any_backend, workspace(), command)
    assert ran.code == 3
    assert sorted(ran.output.split()) == sorted(["out", "err", "x", str(root)])
    assert (root / "g").read_text() == "x\n"


async def test_a_reading_command_writes_nothing_but_its_temporary_folder(
    any_backend: Backend, root: Path
) -> None:
    (root / "a").write_text("here\n")
    policy = Policy("reading", (str(root),))
    command = 'cat a; (echo x > b) 2>/dev/null; echo x > "$TMPDIR/t"; cat "$TMPDIR/t"'
    assert (await run(any_backend, policy, command)).output == "here\nx\n"
    assert [each.name for each in root.iterdir()] == ["a"]


async def test_the_temporary_folder_of_a_session_is_there_for_its_next_command(
    any_backend: Backend, root: Path, workspace: Workspace, tmp_path: Path
) -> None:
    policy = workspace(tmp=str(tmp_path))
    await run(any_backend, policy, 'echo kept > "$TMPDIR/file"')
    ran = await run(any_backend, policy, 'cat "$TMPDIR/file"')
    assert ran.output == "kept\n"
    assert (tmp_path / "file").read_text() == "kept\n"


async def test_secrets_are_not_there_and_what_is_excepted_is(
    any_backend: Backend, root: Path
) -> None:
    work, home = root / "work", root / "home"
    for path in ("work/x", "home/.aws/credentials", "home/.aws/config", "home/.netrc", "home/ok"):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(f"{path}\n")
    masked = (f"{home}/.aws", f"{home}/.netrc", f"{home}/absent")
    for ring in ("reading", "workspace"):
        policy = Policy(ring, (str(work),), masked=masked, readable=(f"{home}/.aws/config",))
        ran = await run(
            any_backend, policy, f"cd {home}; cat ok .aws/config .aws/credentials .netrc"
        )
        assert "home/ok" in ran.output
        assert "home/.aws/config\n" in ran.output
        assert "home/.netrc\n" not in ran.output
        assert "home/.aws/credentials\n" not in ran.output


async def test_a_workspace_in_a_masked_folder_works(any_backend: Backend, root: Path) -> None:
    work = root / "secret" / "work"
    work.mkdir(parents=True)
    (root / "secret" / "key").write_text("key")
    policy = Policy("workspace", (str(work),), masked=(f"{root}/secret",))
    ran = await run(any_backend, policy, "echo x > f; cat f; cat ../key")
    assert ran.output.startswith("x\n")
    assert "key\n" not in ran.output.splitlines()
    assert "keykey" not in ran.output


async def test_what_may_not_be_written_wins_over_what_may(any_backend: Backend, root: Path) -> None:
    for name in ("work", "cache/deep", "cache/other"):
        (root / name).mkdir(parents=True)
    kept = (f"{root}/cache/deep",)
    writable = (f"{root}/cache/other", f"{root}/cache/deep/more")
    (root / "cache" / "deep" / "more").mkdir()
    policy = Policy("workspace", (f"{root}/work",), writable=writable, read_only=kept)
    await run(any_backend, policy, f"cd {root}/cache; touch other/x deep/y deep/more/z")
    assert (root / "cache" / "other" / "x").exists()
    assert [each.name for each in (root / "cache" / "deep").rglob("*")] == ["more"]


async def test_a_server_of_its_own_is_reached_from_inside(workspace: Workspace) -> None:
    code = (
        "import socket; s = socket.create_server(('127.0.0.1', 0));"
        "c = socket.create_connection(s.getsockname()); c.send(b'hi'); print(s.accept()[0].recv(9))"
    )
    ran = await run(backend("bubblewrap"), workspace(), f'{sys.executable} -c "{code}"')
    assert ran.output == "b'hi'\n"


async def test_the_kernel_keeps_the_limits_of_each_process(
    any_backend: Backend, workspace: Workspace
) -> None:
    limits = Limits(open_files=50, file_size=1_000_000)
    command = f"""
        {sys.executable} -c 'x = [open("/dev/null") for _ in range(60)]' 2>&1 | tail -1
        head -c 2000000 /dev/zero > big; wc -c < big; ulimit -c
    """
    ran = await run(any_backend, workspace(limits=limits), command)
    assert "Too many open files" in ran.output.splitlines()[0]
    sizes = [int(line) for line in ran.output.splitlines() if line.strip().isdigit()]
    assert sizes == [999_936, 0]


@pytest.mark.parametrize("ring", ["reading", "workspace"])
async def test_a_descriptor_of_the_agent_is_not_inherited(
    any_backend: Backend, root: Path, ring: str
) -> None:
    with (root / "open").open("w") as file:
        os.set_inheritable(file.fileno(), True)
        policy = Policy(ring, (str(root),))  # type: ignore[arg-type]
        ran = await run(any_backend, policy, f"ls -l /proc/self/fd; echo x >&{file.fileno()}")
    assert "open" not in ran.output.replace("opendir", "").split()
    assert (root / "open").read_text() == ""


@pytest.mark.parametrize("name", ["bubblewrap", "landlock", "none"])
async def test_a_command_is_ended_with_all_that_it_started(
    name: str, root: Path, workspace: Workspace
) -> None:
    process = Command(f"CROW_COMMAND={os.urandom(8).hex()}")
    sleep = f"sleep {(seconds := nobodys())}"
    argv = ["/bin/sh", "-c", f"setsid {sleep} & (env -i setsid {sleep} &) ; echo up; {sleep}"]
    launcher = Confined(backend(name), workspace())
    await process.start(argv, str(root), {"PATH": os.environ["PATH"]}, launcher=launcher)
    await wait_for(lambda: b"up" in process.output)
    await process.stop(0.1)
    process.close()
    await wait_for(lambda: not running(seconds))


async def test_a_command_that_is_ended_may_clean_up(any_backend: Backend, root: Path) -> None:
    process = Command()
    launcher = Confined(any_backend, Policy("workspace", (str(root),)))
    clean = "trap 'echo cleaned; exit 0' TERM; echo up; while :; do sleep 0.02; done"
    argv = ["/bin/sh", "-c", clean]
    await process.start(argv, str(root), {"PATH": os.environ["PATH"]}, launcher=launcher)
    await wait_for(lambda: b"up" in process.output)
    await process.stop(20)
    await process.settle(1)
    process.close()
    assert process.output.splitlines()[-1] == b"cleaned"
    assert process.code == 0


async def test_one_that_is_ended_and_does_not_want_to_is_ended_all_the_same(
    any_backend: Backend, root: Path
) -> None:
    process = Command()
    launcher = Confined(any_backend, Policy("workspace", (str(root),)))
    sleep = f"sleep {(seconds := nobodys())}"
    argv = ["/bin/sh", "-c", f"trap '' TERM; echo up; {sleep}"]
    await process.start(argv, str(root), {"PATH": os.environ["PATH"]}, launcher=launcher)
    await wait_for(lambda: b"up" in process.output)
    await process.stop(0.1)
    process.close()
    await wait_for(lambda: not running(seconds))


@pytest.mark.skipif(sys.platform != "linux", reason="the limit is Linux's")
def test_nobody_else_is_taken_for_marked_however_low_the_limit_is_that_tells() -> None:
    """It is lower in each agent that another one has started; at the end there is none left."""
    code = "import resource; resource.setrlimit(10, ({0}, {0}));"
    code += "from crow.process.child import marked; from crow.process import limit_of;"
    code += "print(limit_of('CROW_COMMAND=x') < {0}, marked('CROW_COMMAND=x'))"
    for most in (1 << 61, 1 << 40, 1 << 20, 0):
        argv = [sys.executable, "-c", code.format(most)]
        told = subprocess.run(argv, capture_output=True, text=True, check=True)
        assert told.stdout == f"{most > 0} []\n"


@pytest.mark.slow
async def test_nothing_outlives_an_agent_that_is_killed(root: Path) -> None:
    """Of bubblewrap: its namespace ends with it."""
    backend("bubblewrap")
    seconds = nobodys()
    code = f"""
import asyncio, os
from tests.extensions.sandbox.conftest import *
async def main():
    policy = Policy("workspace", ({str(root)!r},))
    command = "for i in 1 2 3; do setsid nohup sleep {seconds} >/dev/null 2>&1 & done; echo > up; wait"
    await run(find_backend("bubblewrap"), policy, command)
asyncio.run(main())
"""
    agent = subprocess.Popen([sys.executable, "-c", code])  # noqa: ASYNC220
    try:
        await wait_for(lambda: (root / "up").exists() and len(running(seconds)) == 3)
    finally:
        agent.send_signal(signal.SIGKILL)
        agent.wait()
    await wait_for(lambda: not running(seconds))


@pytest.mark.parametrize("ring", ["reading", "workspace"])
async def test_a_named_pipe_outside_is_not_written_and_files_move_as_ever(
    any_backend: Backend, root: Path, ring: str
) -> None:
    if "pipes" not in any_backend.holds:
        pytest.skip("there is no perl, or no Landlock")
    os.mkfifo(pipe := root / "pipe")
    (work := root / "work").mkdir()
    command = (
        f"cd $TMPDIR; mkdir a b; echo kept >a/f; mv a/f b/f; ln b/f a/g; cat a/g; echo x >{pipe}"
    )
    listening = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        ran = await run(any_backend, Policy(ring, (str(work),)), command)  # type: ignore[arg-type]
        assert os.read(listening, 10) == b""
    finally:
        os.close(listening)
    assert ran.output.splitlines()[0] == "kept"
    assert "Permission denied" in ran.output.splitlines()[-1]


async def test_a_program_that_is_not_there_ends_as_in_a_shell(root: Path) -> None:
    found = backend("bubblewrap")
    process = Command()
    launcher = Confined(found, Policy("workspace", (str(root),)))
    env = {"PATH": "/usr/bin", "LC_ALL": "xx_XX.UTF-8"}  # of whose lack perl would tell
    await process.start(["/nowhere/x"], str(root), env, launcher=launcher)
    assert await process.wait(20)
    process.close()
    assert process.code == 127
    assert process.output.count(b"\n") == 1
    assert b"/nowhere/x" in process.output


@pytest.mark.parametrize("command", ["setsid sleep 97 & exit 3", "setsid sleep 97 & sleep 97"])
def test_no_command_leaves_a_process_to_whoever_takes_orphans(root: Path, command: str) -> None:
    """Of bubblewrap: in a container the first process often waits for none, and they stay."""
    backend("bubblewrap")
    agent = f"""
import asyncio
from tests.extensions.sandbox.conftest import *
async def main():
    policy = Policy("workspace", ({str(root)!r},))
    await asyncio.gather(*(run(find_backend("bubblewrap"), policy, {command!r}, 0.3) for _ in range(3)))
asyncio.run(main())
"""
    first = f"""
import os, subprocess, sys
from crow.extensions.sandbox.orphans import adopt, children
adopt(True)
agent = subprocess.run([sys.executable, "-c", {agent!r}])
print(agent.returncode, children())
"""
    told = subprocess.run([sys.executable, "-c", first], capture_output=True, check=False)
    assert (told.stdout, told.stderr) == (b"0 []\n", b"")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["bubblewrap", "landlock", "none"])
def test_nothing_outlives_an_agent_that_is_killed_while_a_command_starts(
    name: str, root: Path
) -> None:
    """Two of three would: what bwrap starts is bound to it only once it has a session of its own."""
    backend(name)
    seconds = nobodys()
    code = f"""
import asyncio, os
from tests.extensions.sandbox.conftest import *
from crow.process import ProcessReaper
async def main():
    launcher = Confined(find_backend({name!r}), Policy("workspace", ({str(root)!r},)))
    process = ChildProcess(ProcessReaper(), f"CROW_COMMAND={{os.getpid()}}")
    print("now", flush=True)
    argv = ["/bin/sh", "-c", "env -i setsid sleep {seconds}"]
    await process.start(argv, {str(root)!r}, {{"PATH": os.environ["PATH"]}}, launcher=launcher)
    await process.wait(50)
asyncio.run(main())
"""
    for milliseconds in (*range(0, 24, 2), 300):
        agent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
        with agent:
            assert agent.stdout is not None
            agent.stdout.readline()
            with pytest.raises(subprocess.TimeoutExpired):
                agent.wait(milliseconds / 1000)
            agent.kill()
    asyncio.run(wait_for(lambda: not running(seconds)))


async def wait_for(happened: Callable[[], object]) -> None:
    async with asyncio.timeout(50):
        while not happened():  # noqa: ASYNC110
            await asyncio.sleep(0.02)


def nobodys() -> str:
    """Seconds that nobody else sleeps for, nor do tests of another checkout on this machine."""
    return f"97.{os.getpid()}"


def running(word: str) -> list[int]:
    found: list[int] = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if path.read_bytes().split(b"\0")[:2] == [b"sleep", word.encode()]:
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


def test_the_answer_is_remembered_until_the_machine_changes(home: Path) -> None:
    first = find_backend()
    if first.name == "none":
        pytest.skip("nothing to remember")
    known = remembered()
    assert known is not None
    assert known.name == first.name
    assert find_backend().name == first.name
    [path] = home.rglob("sandbox.json")
    path.write_text(path.read_text().replace('"for": ["', '"for": ["another '))
    assert remembered() is None
    path.write_text("{")
    assert find_backend().name == first.name


def test_looking_for_a_back_end_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder that it lends is taken back by a thread that still may."""
    code = "from crow.extensions.sandbox.probe import everyone; everyone()"
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    subprocess.run([sys.executable, "-c", code], check=True)
    assert list(tmp_path.iterdir()) == []


def test_a_back_end_that_does_not_work_says_why() -> None:
    with pytest.raises(OSError, match="there is none of this name"):
        find_backend("jail")
    assert find_backend("none").holds == frozenset()
    answers = {each.name: each for each in everyone()}
    assert "macOS" in answers["seatbelt"].why_not or sys.platform == "darwin"


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
@pytest.mark.parametrize("families", [(), INTERNET])
def test_the_filter_ends_on_every_path(machine: str, families: tuple[int, ...]) -> None:
    """Played instruction by instruction, for each number of a system call."""
    for wanted in (Filter(families), Filter(families, attributes=True, shared=True)):
        code = assemble(wanted, machine)
        assert len(code) // 8 < 4096
        answers = {play(code, number, machine) for number in range(600)}
        assert answers == {0x7FFF0000, 0x00050001, 0x00050026}
        assert play(code, 41 if machine == "x86_64" else 198, machine, 2) == (
            0x7FFF0000 if families else 0x00050001
        )
        other = "aarch64" if machine == "x86_64" else "x86_64"
        assert play(code, 0, other) == 0x80000000


def play(code: bytes, number: int, machine: str, *args: int) -> int:
    arch = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}[machine]
    seen = struct.pack("=IIQ6Q", number, arch, 0, *args, *[0] * (6 - len(args)))
    value, at = 0, 0
    while True:
        step, then, other, operand = struct.unpack_from("=HBBI", code, at * 8)
        at += 1
        match step:
            case 0x20:
                [value] = struct.unpack_from("=I", seen, operand)
            case 0x54:
                value &= operand
            case 0x15:
                at += then if value == operand else other
            case 0x35:
                at += then if value >= operand else other
            case 0x06:
                return operand
            case _:
                raise AssertionError(step)


async def test_a_link_made_inside_leads_no_rule_out_of_the_workspace(
    any_backend: Backend, root: Path
) -> None:
    """What may be written, read or is a root of its own below another one can be a link by now."""
    work, out = root / "work", root / "out"
    for folder in (work / "made", work / "inner", work / "seen", out / "secret"):
        folder.mkdir(parents=True)
    (out / "secret/key").write_text("key")
    (out / "file").write_text("intact")
    policy = Policy(
        "workspace",
        (str(work), f"{work}/inner"),
        writable=(f"{work}/made",),
        masked=(f"{out}/secret",),
        readable=(f"{work}/seen",),
    )
    change = (
        "rmdir made inner seen; ln -s ../out made; ln -s ../out inner; ln -s ../out/secret seen"
    )
    await run(any_backend, policy, change)
    ran = await run(any_backend, policy, f"cat {out}/secret/key seen/key; echo x > {out}/file")
    assert "key\n" not in ran.output
    assert ran.code
    assert (out / "file").read_text() == "intact"


async def test_a_secret_of_the_workspace_is_not_moved_from_where_it_is_masked(root: Path) -> None:
    (root / "conf").mkdir()
    (root / "conf/key").write_text("secret")
    policy = Policy("workspace", (str(root),), masked=(f"{root}/conf/key",))
    for command in ("mv conf other; cat other/key", "cat other/key conf/key"):
        ran = await run(backend("bubblewrap"), policy, command)
        assert "secret" not in ran.output


SWAP = """
import ctypes, os, sys, time
for name in ("objects", "refs"): os.makedirs("one/.git/" + name)
open("one/.git/HEAD", "w").write("ref: refs/heads/x"); open("one/.git/config", "w").close()
os.symlink("../out", "two")
call = ctypes.CDLL(None).syscall
until = time.monotonic() + 60
while time.monotonic() < until and not os.path.exists("stop"):
    for _ in range(1000): call({"x86_64": 316}.get(os.uname().machine, 276), -100, b"one", -100, b"two", 2)
"""


@pytest.mark.slow
async def test_no_folder_is_mounted_that_a_link_takes_the_place_of_meanwhile(root: Path) -> None:
    """bwrap resolves names while another command exchanges what they stand for."""
    work, out = root / "work", root / "out"
    work.mkdir()
    for name in ("objects", "refs"):
        (out / ".git" / name).mkdir(parents=True)
    (out / ".git/HEAD").write_text("ref: refs/heads/x")
    (out / ".git/config").write_text("")
    (out / "file").write_text("intact")
    (work / "swap.py").write_text(SWAP)
    found = backend("bubblewrap")

    def policy() -> Policy:
        return Policy("workspace", (str(work),), read_only=protected_paths(str(work)))

    swapping = asyncio.create_task(run(found, policy(), f"{sys.executable} swap.py", seconds=90))
    while not (work / "one").exists():  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    for _ in range(12):
        await run(found, policy(), f"echo x > {out}/file; echo x > one/file; echo x > two/file")
    (work / "stop").touch()
    await swapping
    assert (out / "file").read_text() == "intact"


async def test_a_command_beside_another_one_starts_as_ever(
    any_backend: Backend, root: Path, workspace: Workspace
) -> None:
    (root / ".vscode").mkdir()
    await run(any_backend, Policy("workspace", (str(root),)), "git init -q .")
    beside = asyncio.create_task(
        run(any_backend, workspace(), "touch on; while [ -e on ]; do sleep .01; done")
    )
    while not (root / "on").exists():  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    ran = await run(any_backend, workspace(), "echo x > f; cat f; rm on")
    assert ran.found == []
    assert (await beside).code == 0
    assert ran.output == "x\n"


HELD_UP = """#!/bin/bash
(
    for file in /proc/self/fd/*; do
        ((${{file##*/}} > 2)) && eval "exec ${{file##*/}}>&-"
    done
    exec {strace} -f -qq -p $$ -e trace=mount -e inject=mount:delay_exit=200000:when=1+3
) > /dev/null 2>&1 &
until grep -q "TracerPid:.*[1-9]" /proc/$$/status; do sleep 0.01; done
exec {bwrap} "$@"
"""
"""Starts bwrap with every third mount held up for a fifth of a second."""


@pytest.mark.slow
async def test_a_sandbox_that_is_long_in_the_making_keeps_no_command_from_its_start(
    root: Path, tmp_path: Path, workspace: Workspace
) -> None:
    """As on a machine that has too much to do; each mount is held up from outside here."""
    found, late = backend("bubblewrap"), backend("bubblewrap")
    assert isinstance(late, Bubblewrap)
    strace = shutil.which("strace")
    if strace is None:
        pytest.skip("holds mounts up with strace")
    slow = tmp_path / "bwrap"
    slow.write_text(HELD_UP.format(strace=strace, bwrap=late.program))
    slow.chmod(0o755)
    late.program = str(slow)
    beside = asyncio.create_task(
        run(found, workspace(), "touch on; while [ -e on ]; do sleep .01; done")
    )
    while not (root / "on").exists():  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    began = time.monotonic()
    ran = await run(late, workspace(), "echo here; rm on", 60)
    assert (ran.output, ran.code, ran.found) == ("here\n", 0, [])
    assert time.monotonic() - began > 3, "it was not held up"
    await beside
