"""Bash: real commands, their ends, their output; the faults T01 to T08 and T10 by name."""

from __future__ import annotations

import asyncio
import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tests.processes import is_alive, until

from crow.process import run
from crow.tools.declarations import bash
from crow.tools.process import Process
from crow.tools.shells import Shells
from crow.tools.spool import Spool


async def demand_gone(pid: int) -> None:
    await until(lambda: not is_alive(pid))


async def test_output_is_returned_in_claudes_shape(bench: Any) -> None:
    result = await bench.use("Bash", command="echo out; echo err >&2", description="Speak")
    assert not result.error
    assert result.text == "out\nerr"
    assert result.data == {
        "stdout": "out\n",
        "stderr": "err\n",
        "interrupted": False,
        "isImage": False,
    }


async def test_a_failure_begins_with_its_exit_code(bench: Any) -> None:
    result = await bench.use("Bash", command="echo half; exit 3")
    assert result.error
    assert result.text == "Exit code 3\nhalf"


async def test_every_command_starts_in_the_sessions_directory(bench: Any) -> None:
    await bench.use("Bash", command="cd / && export A=1")
    result = await bench.use("Bash", command='pwd; echo "[$A]"')
    assert result.text == f"{bench.cwd}\n[]"


async def test_silence_is_said(bench: Any) -> None:
    assert (await bench.use("Bash", command="true")).text == "(no output)"


async def test_output_is_shown_while_the_command_runs(bench: Any) -> None:
    fifo = bench.path("go")
    os.mkfifo(fifo)
    running = asyncio.create_task(bench.use("Bash", command=f"echo first; read x <{fifo}; echo $x"))
    await asyncio.wait_for(bench.printed.wait(), 50)
    assert bench.shown == ["first\n"]
    await asyncio.to_thread(fifo.write_text, "second\n")
    assert (await running).text == "first\nsecond"
    assert "".join(bench.shown) == "first\nsecond\n"


async def test_a_client_that_takes_nothing_does_not_hold_the_result(bench: Any) -> None:
    async def progress(text: str, *, terminal: str | None = None) -> None:
        await asyncio.Event().wait()

    bench.progress = progress
    async with asyncio.timeout(50):
        assert (await bench.use("Bash", command="echo hi")).text == "hi"


def test_the_title_is_the_command_and_what_it_does() -> None:
    assert bash.title({"command": "ls -l"}) == "ls -l"
    assert bash.title({"command": "ls", "description": "List\nfiles"}) == "ls  # List files"
    assert bash.title({}) == "Bash"
    assert bash.kind == "execute"


async def test_crows_own_key_is_not_handed_on(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CROW_API_KEY", "sk-secret")
    assert "sk-secret" not in (await bench.use("Bash", command="env")).text


@pytest.mark.parametrize("entry", ["{cwd}/bin", "bin", "", "{cwd}/link"])
async def test_no_bash_of_the_directorys_own_is_started(bench: Any, entry: str) -> None:
    folder = Path(bench.cwd) / ("bin" if entry else "")
    folder.mkdir(exist_ok=True)
    (folder / "bash").write_text("#!/bin/sh\necho mine\n")
    (folder / "bash").chmod(0o755)
    (Path(bench.cwd) / "link").symlink_to("bin")
    here = entry.format(cwd=bench.cwd)
    for path in (os.pathsep.join([here, os.environ["PATH"]]), here or os.pathsep):
        bench.environment["PATH"] = path
        result = await bench.use("Bash", command='echo "${BASH_VERSION:0:1} $PATH"')
        assert result.text[0].isdigit()
        assert path in result.text


@pytest.mark.parametrize("command", ["a\0b", "echo \ud800", "x" * 3_000_000])
async def test_a_command_that_cannot_be_passed_on_is_an_error(bench: Any, command: str) -> None:
    result = await bench.use("Bash", command=command)
    assert result.error
    assert result.text.startswith("The command cannot be ")


async def timed_out(bench: Any, command: str, began: str) -> Any:
    """The result of a command that never ends, after it has made a file; the time is up in ms."""
    for timeout in (400, 4000, 40_000):
        result = await bench.use("Bash", command=command, timeout=timeout)
        if bench.path(began).exists():
            return result
    raise AssertionError(f"nothing made {began}")


async def test_t01_a_command_that_hangs_is_ended_with_its_group(bench: Any) -> None:
    command = "echo partial; sleep 3600 & echo $! >new; mv new pid; wait"
    result = await timed_out(bench, command, "pid")
    assert result.error
    assert result.text.startswith("Exit code 143\nTimed out: ended after ")
    assert result.text.endswith("partial")
    assert result.data["interrupted"]
    await demand_gone(int(bench.path("pid").read_text()))


@pytest.mark.slow
async def test_t02_what_ignores_sigterm_or_leaves_the_group_is_killed(bench: Any) -> None:
    escape = (
        f"{sys.executable} -SEc 'import os,time;"
        "os.fork() and os._exit(0); os.setsid(); os.fork() and os._exit(0);"
        'open("new","w").write(str(os.getpid())); os.rename("new","pid"); time.sleep(3600)\''
    )
    hang = f"trap '' TERM; {escape}; while :; do sleep 1; done"
    result = await timed_out(bench, hang, "pid")
    assert result.text.startswith("Exit code 137\nTimed out")
    await demand_gone(int(bench.path("pid").read_text()))


async def test_t03_a_background_child_that_holds_the_pipe_does_not_hold_the_result(
    bench: Any,
) -> None:
    result = await bench.use("Bash", command="sleep 3600 & echo $!")
    pid, note = result.text.split("\n")
    assert note == "(it left processes running in the background)"
    assert is_alive(int(pid))
    await Shells.of(bench).aclose()
    await demand_gone(int(pid))


async def test_t03_a_child_that_goes_on_printing_is_not_killed_by_it(bench: Any) -> None:
    os.mkfifo(bench.path("go"))
    await bench.use("Bash", command="(read x <go; echo late; echo alive >done) &")
    await asyncio.to_thread(bench.path("go").write_text, "x\n")
    await until(bench.path("done").exists)


async def test_t04_a_flood_is_bounded_and_kept_on_disk(bench: Any, home: Path) -> None:
    size = 80 * 1024 * 1024
    before = resident()
    result = await bench.use(
        "Bash",
        command=f"echo begin; head -c {size} /dev/zero | tr '\\0' x; echo; seq 3 >&2; echo end",
    )
    assert resident() - before < 64 * 1024 * 1024
    assert len(result.text) < 31_000
    assert result.data["stdout"].startswith("begin\nxxx")
    assert result.data["stdout"].endswith("xxx\nend\n")
    assert result.data["stderr"] == "1\n2\n3\n"
    path = Path(result.text.split("bytes in ")[1].split(" ")[0])
    assert path.is_relative_to(home)
    assert path.stat().st_size == 64 * 1024 * 1024
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert sum(map(len, bench.shown)) < 20 * 1024 * 1024


def resident() -> int:
    """Bytes of memory that this process has now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


async def test_t04_output_that_is_only_too_long_for_the_model_is_whole_on_disk(bench: Any) -> None:
    result = await bench.use("Bash", command="seq 20000")
    note = "bytes left out; all of it in "
    path = Path(result.text.split(note)[1].split(" ")[0])
    assert path.read_text() == "".join(f"{n}\n" for n in range(1, 20001))
    assert result.text.startswith("1\n2\n")
    assert result.text.endswith("\n20000")


@pytest.mark.parametrize(
    "command,text",
    [
        (r"printf 'a\xffb\xc3'", "a\ufffdb\ufffd"),
        (r"printf '\033[31mred\033[0m\033]0;title\007 \000nul\x08\x7f'", "red nul"),
        (r"printf '10%%\r50%%\r100%%\n\ndone\r\n'", "100%\n\ndone"),
    ],
)
async def test_t05_what_is_no_text_is_made_readable(bench: Any, command: str, text: str) -> None:
    assert (await bench.use("Bash", command=command)).text == text


async def test_t05_a_character_cut_by_the_limit_is_not_garbled(bench: Any) -> None:
    result = await bench.use("Bash", command=f"{sys.executable} -c 'print(\"aé→😀\" * 9000)'")
    assert "\ufffd" not in result.text


async def test_t06_there_is_no_input_and_no_terminal(bench: Any) -> None:
    async with asyncio.timeout(50):
        result = await bench.use(
            "Bash", command="cat; read x; echo [$x]; tty; (: </dev/tty) 2>/dev/null || echo no tty"
        )
    assert result.text == "[]\nnot a tty\nno tty"


@pytest.mark.parametrize(
    "command,text",
    [
        ("echo a; kill -9 $$", "Exit code 137\nKilled by SIGKILL.\na"),
        ("kill -SEGV $$", "Exit code 139\nKilled by SIGSEGV.\n(no output)"),
        ("bash -c 'kill -9 $$'; exit $?", "Exit code 137\n"),
    ],
)
async def test_t07_death_by_a_signal_is_reported(bench: Any, command: str, text: str) -> None:
    result = await bench.use("Bash", command=command)
    assert result.error
    assert result.text.startswith(text)


async def test_t08_a_directory_that_is_gone_is_a_clear_error(bench: Any) -> None:
    result = await bench.use("Bash", command='rm -rf "$PWD"; echo done')
    assert result.text == "done"
    again = await bench.use("Bash", command="echo hi")
    assert again.error
    assert again.text == (
        f"The working directory {bench.cwd} is gone, so no command can run in it."
    )
    assert (await bench.use("Glob", pattern="*")).error
    assert (await bench.use("Grep", pattern="x")).error
    assert (await bench.use("LS")).error


async def test_t10_one_call_that_fails_and_one_that_is_cancelled_leave_the_third(
    bench: Any,
) -> None:
    calls = [
        asyncio.create_task(bench.use("Bash", command=command))
        for command in ("exit 1", "echo up; sleep 3600", "sleep 0.3; echo fine")
    ]
    await asyncio.wait_for(bench.printed.wait(), 50)
    calls[1].cancel()
    results: list[Any] = await asyncio.gather(*calls, return_exceptions=True)
    assert results[0].text == "Exit code 1\n(no output)"
    assert isinstance(results[1], asyncio.CancelledError)
    assert results[2].text == "fine"


async def test_cancelling_ends_everything(bench: Any) -> None:
    command = "trap '' TERM; sleep 3600 & echo $! >pid; echo up; wait; sleep 3600"
    running = asyncio.create_task(bench.use("Bash", command=command))
    await asyncio.wait_for(bench.printed.wait(), 50)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await demand_gone(int(bench.path("pid").read_text()))


LOOKS = """
import asyncio, os, sys, threading
from crow import Agent, NullClient
from crow.events import ToolProgress
from crow.testing import ScriptedModel, call

class Impatient(NullClient):
    async def update(self, session_id, event):
        if isinstance(event, ToolProgress):
            sys.addaudithook(hear)
            agent.cancel(session)

def hear(event, args):
    if event == "os.listdir" and args[0] == "/proc":
        looks.append(threading.current_thread() is threading.main_thread())

async def main():
    global agent, session
    agent = Agent(ScriptedModel(call("Bash", command="echo up; exec sleep 60")))
    session = await agent.new_session(client=Impatient())
    await agent.run("Go", session=session)
    await agent.close()

looks = []
asyncio.run(main())
print({*looks})
"""


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
async def test_every_process_is_looked_at_beside_the_loop(tmp_path: Path) -> None:
    """There can be thousands of them, and others cancel, too."""
    ended = await run([sys.executable, "-c", LOOKS], cwd=tmp_path)
    assert (ended.code, ended.out, ended.err) == (0, b"{False}\n", b"")


SCRIPT = """
import asyncio, sys
from crow.core.ports.client import NullClient
from crow.process import run
from crow.tools.declarations import bash
from crow.tools.process import Process

class ToolEnvironment:
    cwd = sys.argv[1]
    roots = (cwd,)
    session_id = "s"
    client = NullClient()
    launcher = None
    def __init__(self): self.cache = {}
    async def progress(self, text, *, terminal=None): print(text, flush=True)

command = "sleep 3600 & a=$!; setsid sleep 3600 & echo $a $! $$; wait"
asyncio.run(bash.run({"command": command}, ToolEnvironment()))
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_children_die_with_the_agent_even_those_in_sessions_of_their_own(
    tmp_path: Path, number: signal.Signals
) -> None:
    agent = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    with agent:
        assert agent.stdout is not None
        pids = [int(pid) for pid in agent.stdout.readline().split()]
        assert all(map(is_alive, pids))
        agent.send_signal(number)
        agent.wait()
    for pid in pids:
        asyncio.run(demand_gone(pid))


async def test_a_command_that_is_cancelled_while_it_is_started_leaves_nothing(
    tmp_path: Path,
) -> None:
    process = Process("", Spool(lambda: tmp_path, "bash", threshold=1000), 1000)
    line = "sleep 3600 & a=$!; setsid sleep 3600 & echo $a $! $$ > part; mv part pids; wait"
    starting = asyncio.create_task(
        process.start(["bash", "-c", line], str(tmp_path), os.environ, stdin=subprocess.PIPE)
    )  # without input nothing of it waits
    for _ in range(2):
        await asyncio.sleep(0)
    while not (tmp_path / "pids").exists():
        time.sleep(0.01)  # noqa: ASYNC251 - the loop is not to learn that the program runs
    starting.cancel()
    await asyncio.wait([starting])
    assert starting.cancelled()
    process.close()
    for pid in (tmp_path / "pids").read_text().split():
        await demand_gone(int(pid))


async def test_a_background_command_is_read_and_ended(bench: Any) -> None:
    fifo = bench.path("go")
    os.mkfifo(fifo)
    result = await bench.use(
        "Bash", command=f"echo up; read x <{fifo}; echo $x; sleep 3600", run_in_background=True
    )
    assert result.data["backgroundTaskId"] == "bash_1"
    first = await shown(bench, "up")
    assert first.text.startswith("bash_1: running\nup\n(the whole output is in ")
    await asyncio.to_thread(fifo.write_text, "two\n")
    second = await shown(bench, "two")
    assert "up" not in second.data["stdout"]
    ended = await bench.use("KillShell", shell_id="bash_1")
    assert ended.text.startswith("bash_1 was ended: echo up")
    last = await bench.use("BashOutput", bash_id="bash_1")
    assert last.data["status"] == "killed"
    again = await bench.use("KillShell", shell_id="bash_1")
    assert again.text == "bash_1 had ended already."
    whole = Path(first.text.split("output is in ")[1].rstrip(")"))
    assert whole.read_text() == "up\ntwo\n"


async def shown(bench: Any, text: str) -> Any:
    """Look at the background command until it has printed something."""
    async with asyncio.timeout(50):
        while True:
            result = await bench.use("BashOutput", bash_id="bash_1", wait=20)
            if text in result.text:
                return result


async def test_the_end_of_a_background_command_can_be_waited_for(bench: Any) -> None:
    await bench.use("Bash", command="seq 5; exit 2", run_in_background=True)
    result = await bench.use("BashOutput", bash_id="bash_1", wait=5000, filter="[24]")
    assert result.text.startswith("bash_1: failed, exit code 2\n2\n4\n")
    assert result.data["exitCode"] == 2


async def test_waiting_for_a_background_command_is_bounded(bench: Any) -> None:
    await bench.use("Bash", command="sleep 3600", run_in_background=True)
    result = await bench.use("BashOutput", bash_id="bash_1", wait=50)
    assert result.text.startswith("bash_1: running\n(nothing new)")


async def test_wrong_questions_about_background_commands_are_answered(bench: Any) -> None:
    result = await bench.use("BashOutput", bash_id="bash_9")
    assert result.text == "No background command 'bash_9'; there are: none."
    await bench.use("Bash", command="true", run_in_background=True)
    result = await bench.use("BashOutput", bash_id="bash_1", filter="(")
    assert result.text.startswith("filter: no regular expression")


async def test_a_client_with_terminals_shows_the_command(bench: Any, screens: Any) -> None:
    bench.client.terminals = screens
    result = await bench.use("Bash", command="echo hi; pwd")
    assert result.text == f"hi\n{bench.cwd}"
    assert result.terminal == "term-1"
    assert bench.terminals == ["term-1"]
    assert screens.made[0].is_released


@pytest.mark.parametrize(
    "command,text",
    [
        ("echo a; exit 4", "Exit code 4\na"),
        ("kill -9 $$", "Exit code 128\nKilled by signal 9.\n(no output)"),
    ],
)
async def test_a_failure_in_a_terminal_is_reported(
    bench: Any, screens: Any, command: str, text: str
) -> None:
    bench.client.terminals = screens
    result = await bench.use("Bash", command=command)
    assert result.error
    assert result.text == text


async def test_a_command_that_hangs_in_a_terminal_is_killed(bench: Any, screens: Any) -> None:
    bench.client.terminals = screens
    result = await timed_out(bench, "echo a; touch on; exec sleep 3600", "on")
    assert result.text == "Exit code 143\nTimed out. The output until then:\na"
    assert all(screen.is_released for screen in screens.made)


async def test_cancelling_kills_the_command_in_the_terminal(bench: Any, screens: Any) -> None:
    bench.client.terminals = screens
    running = asyncio.create_task(bench.use("Bash", command="exec sleep 3600"))
    await asyncio.wait_for(bench.printed.wait(), 50)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert screens.made[0].is_released
    assert screens.made[0].process.returncode == -9


async def test_where_no_terminal_can_be_made_the_command_runs_here(
    bench: Any, screens: Any
) -> None:
    screens.is_broken = True
    bench.client.terminals = screens
    result = await bench.use("Bash", command="echo hi")
    assert (result.text, result.terminal) == ("hi", None)


def test_commands_run_where_processes_have_no_descriptors(tmp_path: Path) -> None:
    program = (
        "import os, sys; del os.pidfd_open  # as on a Mac\n"
        "from crow.cli import main\n"
        "sys.exit(main(['run', '--allow', 'Bash', 'Run `echo $((6 * 7)); exit 3`']))\n"
    )
    env = {**os.environ, "HOME": str(tmp_path), "CROW_SANDBOX": "off", "CROW_MODEL": "rehearsal"}
    argv = [sys.executable, "-c", program]
    ended = subprocess.run(
        argv, cwd=tmp_path, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True
    )
    assert "Exit code 3: 42" in ended.stdout + ended.stderr
