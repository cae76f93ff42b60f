"""An agent as a process of its own: what it prints, when it leaves, what it leaves behind (C01-C12)."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from tests.processes import is_alive, until

from crow import Agent
from crow.extensions.persistence import PersistenceHook
from crow.testing import FakeEditor, ScriptedModel

AGENT = """
import asyncio, os, subprocess, sys, threading, time
from pathlib import Path
from crow import Agent, run_agent, tool
from crow.testing import ScriptedModel, call, delay

HERE = Path(sys.argv[1])

@tool
async def noisy() -> str:
    "Print in every way there is."
    print("printed")
    os.write(1, b"written\\n")
    subprocess.run(["sh", "-c", "echo echoed; cat"], check=True)
    return "quiet"

@tool
async def stuck() -> str:
    "Block the event loop."
    (HERE / "on").touch()
    time.sleep(3600)

@tool
async def deaf() -> str:
    "Ignore every cancellation."
    (HERE / "on").touch()
    while True:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            continue

@tool
async def thread() -> str:
    "Block a thread that the interpreter waits for."
    def block():
        (HERE / "on").touch()
        time.sleep(3600)
    await asyncio.to_thread(block)
    return ""

async def before_llm_request(ctx):
    if HERE.joinpath("hook").exists():
        (HERE / "on").touch()
        await asyncio.Event().wait()

def plain(script, tools=(noisy, stuck, deaf, thread)):
    model = ScriptedModel(*script, leftover="allow")
    from crow.tools import builtin
    return Agent(llm=model, tools=[*tools, *builtin()], hooks=[before_llm_request])
"""


@pytest.fixture
def command(tmp_path: Path) -> Callable[..., list[str]]:
    """The command line of an agent that plays this script."""

    def write(
        script: str, end: str = "asyncio.run(run_agent(plain(SCRIPT)))", home: Path = tmp_path
    ) -> list[str]:
        file = home / "agent.py"
        file.write_text(f"{AGENT}\nSCRIPT = [{script}]\n{end}\n")
        return [sys.executable, str(file), str(home)]

    return write


def line(method: str, request_id: int | None = None, **params: Any) -> bytes:
    """A request or notification."""
    message = {"jsonrpc": "2.0", "method": method, "params": params}
    named = message if request_id is None else {**message, "id": request_id}
    return json.dumps(named).encode() + b"\n"


HELLO = line("initialize", 0, protocolVersion=1)


@pytest.mark.slow
async def test_a_whole_conversation(command: Any, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n")
    script = f'"Hello. ", call("Read", file_path="{tmp_path}/a.txt"), "Bye."'
    editor = FakeEditor()
    async with editor.spawned(*command(script), initialize=False):
        greeting = await editor.initialize(version=65535)
        session = await editor.new_session(tmp_path)
        await editor.prompt(session, "Hi")
        await editor.prompt(session, "Read a.txt")
        assert editor.text() == "Hello. Bye."
        assert [card["status"] for card in editor.cards()] == ["completed"]
    assert greeting.protocol_version == 1
    assert editor.process is not None
    assert editor.process.returncode == 0


@pytest.mark.slow
@pytest.mark.rule("nothing but JSON on stdout", "a pure stdout, an exit in time")
async def test_nothing_but_the_protocol_is_on_stdout_from_the_first_request_on(
    tmp_path: Path, command: Any
) -> None:
    """C12: what prints, prints to stderr; who reads stdin finds it empty."""
    editor = FakeEditor()
    async with editor.spawned(*command('call("noisy"), "done"')):
        await editor.prompt(await editor.new_session(tmp_path), "Make noise")
        (card,) = editor.cards()
        assert card["rawOutput"] == {"output": "quiet"}


@pytest.mark.rule("a quick start", "start-up")
async def test_initialize_is_answered_while_the_agent_is_still_being_built(
    command: Any, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    end = f"""
from crow.acp import serve_stdio
def build():
    print("a line while it is built")
    while not Path({str(gate)!r}).exists():
        time.sleep(0.01)
    assert "acp" not in sys.modules
    return plain(SCRIPT)
serve_stdio(build)
"""
    early = command('"ready"', end)
    source = Path(early[1])
    source.write_text(source.read_text().replace('print("a stray line before anything")', ""))
    editor = FakeEditor()
    async with editor.spawned(*early, initialize=False):
        greeting = await editor.initialize()
        gate.touch()
        await editor.prompt(await editor.new_session(tmp_path), "Hi")
        assert editor.text() == "ready"
    assert greeting.agent_capabilities is not None
    assert greeting.agent_capabilities.load_session


def converse(command: list[str], lines: bytes) -> subprocess.CompletedProcess[bytes]:
    """All that an agent answers to these lines; its input ends behind them."""
    return subprocess.run(command, input=lines, capture_output=True, timeout=50, check=False)


def answers(output: bytes) -> list[Any]:
    """The lines that are messages."""
    return [json.loads(each) for each in output.splitlines() if each.startswith(b"{")]


def test_an_end_of_input_before_anything_else_is_an_end(command: Any) -> None:
    ended = converse(command(""), b"")
    assert ended.returncode == 0
    assert b"Traceback" not in ended.stderr


def test_what_was_asked_before_the_end_of_input_is_answered(command: Any, tmp_path: Path) -> None:
    place = {"cwd": str(tmp_path), "mcpServers": []}
    opening = line("session/new", 1, **place) + line("session/load", 2, sessionId="s", **place)
    asked = HELLO + opening + line("session/nonsense", 3) + b"garbage"
    ended = converse(command(""), asked)
    assert ended.returncode == 0
    by_id = {message["id"]: message for message in answers(ended.stdout)}
    assert by_id[0]["result"]["protocolVersion"] == 1
    assert "result" in by_id[1] or by_id[1]["error"]["code"] == -32800
    assert by_id[2]["error"]["code"] in (-32601, -32800)
    assert by_id[3]["error"]["code"] == -32601
    assert by_id[None]["error"]["code"] == -32700
    assert b"Traceback" not in ended.stderr


NEVER = """
from crow.acp import serve_stdio
def build():
    time.sleep(3600)
serve_stdio(build)
"""


@pytest.mark.rule("no orphans")
def test_a_client_that_greets_and_leaves_need_not_wait_for_the_agent(command: Any) -> None:
    """The process ends although nothing is built yet, and the greeting was answered."""
    ended = converse(command("", NEVER), HELLO)
    assert ended.returncode == 0
    assert [message["id"] for message in answers(ended.stdout)] == [0]
    assert ended.stderr == b""


STORED = """
from crow.extensions.persistence import PersistenceHook
stored = Agent(llm=ScriptedModel(), hooks=[PersistenceHook(HERE / "crow.db")])
asyncio.run(run_agent(stored))
"""


async def test_what_nobody_will_see_is_not_shown_to_its_end(command: Any, tmp_path: Path) -> None:
    """A client leaves while a long conversation is loaded: the request is answered, as cancelled."""
    long = ["x" * 200_000] * 40
    agent = Agent(llm=ScriptedModel(*long), hooks=[PersistenceHook(tmp_path / "crow.db")])
    async with agent:
        session = (await agent.run("Go", cwd=tmp_path)).session
        for _ in long[1:]:
            await agent.run("Go on", session=session)
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *command("", STORED), stdin=pipe, stdout=pipe, limit=2**20
    )
    assert process.stdin is not None
    assert process.stdout is not None
    place = {"cwd": str(tmp_path), "mcpServers": []}
    process.stdin.write(HELLO + line("session/load", 1, sessionId=session.id, **place))
    while b"session/update" not in (said := await process.stdout.readline()):
        assert said
    process.stdin.close()
    *shown, last = answers(await process.stdout.read())
    await Running(process).left()
    assert process.returncode == 0
    assert last["error"]["code"] == -32800
    assert sum(len(json.dumps(each)) for each in shown) < sum(map(len, long)) / 2


OUTLIVES = """
async def main():
    await run_agent(plain(SCRIPT))
    for each in threading.enumerate():
        if each.name == "crow-acp-end":
            await asyncio.to_thread(each.join)
    (HERE / "over").touch()
asyncio.run(main())
"""


@pytest.mark.rule("a pure stdout, an exit in time")
def test_a_script_goes_on_when_its_client_has_left(command: Any, tmp_path: Path) -> None:
    """Whoever ends a process that is stuck has nothing to do there, and ends by itself."""
    ended = converse(command("", OUTLIVES), HELLO)
    assert ended.returncode == 0
    assert (tmp_path / "over").exists()


LAST_WORDS = """
import atexit
from crow.acp import serve_stdio
atexit.register(print, "registered")
def on_session_end():
    print("hooked")
def build():
    return Agent(llm=ScriptedModel(), hooks=[on_session_end])
serve_stdio(build)
"""


async def test_what_is_said_last_is_written(command: Any, tmp_path: Path) -> None:
    """By hooks and by what is registered for the end of the process, although nothing else is."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *command("", LAST_WORDS), stdin=pipe, stdout=pipe, stderr=pipe
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(HELLO + line("session/new", 1, cwd=str(tmp_path)))
    while b'"id":1' not in (said := await process.stdout.readline()):
        assert said
    process.stdin.close()
    _, told = await process.communicate()
    assert process.returncode == 0
    assert told == b"hooked\nregistered\n"


class Running:
    """An agent's process in the middle of a turn."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process

    async def left(self) -> None:
        """Wait until it has left by itself."""
        async with asyncio.timeout(40):
            await self.process.wait()


Begin = Callable[[list[str], Path], Awaitable[Running]]


@pytest.fixture
async def begin() -> AsyncIterator[Begin]:
    """Starts an agent, opens a session and sends a prompt; the answer is not waited for."""
    running: list[Running] = []

    async def start(command: list[str], cwd: Path) -> Running:
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe)
        each = Running(process)
        running.append(each)
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(HELLO + line("session/new", 1, cwd=str(cwd)))
        while not (said := await process.stdout.readline()).startswith(b'{"jsonrpc":"2.0","id":1'):
            assert said
        session = json.loads(said)["result"]["sessionId"]
        prompt = [{"type": "text", "text": "Go"}]
        process.stdin.write(line("session/prompt", 2, sessionId=session, prompt=prompt))
        return each

    yield start
    for each in running:
        if each.process.returncode is None:
            each.process.kill()
        await each.process.communicate()


PHASES = {
    "the model is silent": '[delay(3600), "never"]',
    "a command runs": 'call("Bash", command="echo $$ > pid; touch on; sleep 3600")',
    "a hook hangs": '"never"',
    "a tool ignores its cancellation": 'call("deaf")',
    "the event loop is blocked": 'call("stuck")',
    "a thread is blocked": 'call("thread")',
}
ANSWERED = list(PHASES)[:3]


async def in_phase(begin: Begin, command: Any, home: Path, phase: str) -> Running:
    """An agent in a phase of its turn."""
    home.mkdir()
    if phase == "a hook hangs":
        (home / "hook").touch()
    running = await begin(command(PHASES[phase], home=home), home)
    if phase != "the model is silent":
        await until((home / "on").exists)
    return running


@pytest.mark.slow
@pytest.mark.rule("no orphans", "a pure stdout, an exit in time")
@pytest.mark.parametrize("end", ["its input ends", "a signal"])
async def test_what_ends_the_process_ends_it_in_every_phase(
    begin: Begin, command: Any, tmp_path: Path, end: str
) -> None:
    """C01: status 0, what was asked is answered, and nothing is left behind."""
    homes = {phase: tmp_path / phase.replace(" ", "-") for phase in PHASES}
    starting = [in_phase(begin, command, home, phase) for phase, home in homes.items()]
    running = dict(zip(PHASES, await asyncio.gather(*starting), strict=True))
    for each in running.values():
        assert each.process.stdin is not None
        if end == "a signal":
            each.process.terminate()
        else:
            each.process.stdin.close()
    await asyncio.gather(*(each.left() for each in running.values()))
    assert [each.process.returncode for each in running.values()] == [0] * len(PHASES)
    for phase in ANSWERED:
        stdout = running[phase].process.stdout
        assert stdout is not None
        assert answers(await stdout.read())[-1]["result"]["stopReason"] == "cancelled"
    pid = int((homes["a command runs"] / "pid").read_text())
    await until(lambda: not is_alive(pid))


@pytest.mark.variants(1)
@pytest.mark.rule("no orphans")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
async def test_a_signal_that_ends_it_is_an_end_of_input(
    begin: Begin, command: Any, tmp_path: Path, number: signal.Signals
) -> None:
    """The editor was killed, or its terminal closed: what is open is answered, nothing stays."""
    script = 'call("Bash", command="setsid sleep 3600 & echo $! > left; echo $$ > pid; wait")'
    given = signal.signal(number, signal.SIG_DFL)  # behind nohup it would stay ignored
    try:
        running = await begin(command(script), tmp_path)
    finally:
        signal.signal(number, given)
    await until((tmp_path / "pid").exists)
    await until(lambda: (tmp_path / "pid").read_text().strip() != "")
    running.process.send_signal(number)
    await running.left()
    assert running.process.returncode == 0
    stdout = running.process.stdout
    assert stdout is not None
    assert answers(await stdout.read())[-1]["result"]["stopReason"] == "cancelled"
    for name in ("pid", "left"):
        pid = int((tmp_path / name).read_text())
        await until(lambda pid=pid: not is_alive(pid))


async def test_who_was_started_to_outlive_a_terminal_does(
    begin: Begin, command: Any, tmp_path: Path
) -> None:
    """As nohup does it; the end of input still ends it."""
    script = command('call("Bash", command="echo $$ > pid; sleep 3600")')
    running = await begin(["nohup", *script], tmp_path)
    await until((tmp_path / "pid").exists)
    running.process.send_signal(signal.SIGHUP)
    assert running.process.stdin is not None
    assert running.process.stdout is not None
    running.process.stdin.write(line("session/nonsense", 99))
    while b'"id":99' not in (said := await running.process.stdout.readline()):
        assert said
    running.process.stdin.close()
    await running.left()
    assert running.process.returncode == 0


async def test_nobody_reading_any_more_is_an_end_of_input(command: Any, tmp_path: Path) -> None:
    """C09: EPIPE."""
    source, sink = os.pipe()
    process = await asyncio.create_subprocess_exec(
        *command(""), stdin=asyncio.subprocess.PIPE, stdout=sink
    )
    os.close(sink)
    os.close(source)
    assert process.stdin is not None
    process.stdin.write(HELLO)
    await Running(process).left()
    process.stdin.close()


async def test_a_stdout_that_does_not_block_is_written_whole(command: Any, tmp_path: Path) -> None:
    """C09: EAGAIN and short writes."""
    source, sink = os.pipe()
    os.set_blocking(sink, False)
    process = await asyncio.create_subprocess_exec(
        *command('"x" * 1_000_000'), stdin=asyncio.subprocess.PIPE, stdout=sink
    )
    os.close(sink)
    assert process.stdin is not None
    process.stdin.write(HELLO + line("session/new", 1, cwd=str(tmp_path)))
    with os.fdopen(source, "rb") as output:
        while not (said := await asyncio.to_thread(output.readline)).startswith(
            b'{"jsonrpc":"2.0","id":1'
        ):
            assert said
        session = json.loads(said)["result"]["sessionId"]
        prompt = [{"type": "text", "text": "Go"}]
        process.stdin.write(line("session/prompt", 2, sessionId=session, prompt=prompt))
        await asyncio.sleep(0.3)
        text = ""
        while "id" not in (message := json.loads(await asyncio.to_thread(output.readline))):
            text += message["params"]["update"].get("content", {}).get("text", "")
        process.stdin.close()
        assert text == "x" * 1_000_000
        await Running(process).left()


GATED = """
from crow.acp import serve_stdio
def build():
    while not (HERE / "gate").exists():
        time.sleep(0.01)
    return plain(SCRIPT)
serve_stdio(build)
"""


@pytest.mark.rule("no orphans")
@pytest.mark.parametrize("when", ["it is built", "it serves"])
async def test_the_death_of_the_parent_ends_the_process(
    command: Any, tmp_path: Path, when: str
) -> None:
    """C02: the pipe is still open in someone else's hands."""
    start = "import subprocess, sys; p = subprocess.Popen(sys.argv[1:]); print(p.pid); p.wait()"
    parent = await asyncio.create_subprocess_exec(
        *(sys.executable, "-uc", start, *command('"ready"', GATED)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert parent.stdin is not None
    assert parent.stdout is not None
    pid = int(await parent.stdout.readline())
    parent.stdin.write(HELLO)
    while b'"id":0' not in await parent.stdout.readline():
        pass
    if when == "it serves":
        (tmp_path / "gate").touch()
        parent.stdin.write(line("session/new", 1, cwd=str(tmp_path)))
        while b'"id":1' not in await parent.stdout.readline():
            pass
    parent.kill()
    await until(lambda: not is_alive(parent.pid))
    (tmp_path / "gate").touch()
    await until(lambda: not is_alive(pid))
    await parent.communicate()
