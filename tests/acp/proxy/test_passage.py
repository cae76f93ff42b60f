"""What passes through: as it came, in order, whatever its size, and to the end of either side."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.processes import is_alive

CROW = str(Path(sys.executable).with_name("crow"))
MIRROR = """
import sys
log = open(sys.argv[1], "ab", 0)
for line in sys.stdin.buffer:
    log.write(line)
    sys.stdout.buffer.write(line)
    sys.stdout.buffer.flush()
"""
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=("Cs",)), max_size=20),
    lambda each: st.lists(each, max_size=4) | st.dictionaries(st.text("abé~", max_size=5), each),
    max_leaves=8,
)  # fmt: skip
METHODS = st.sampled_from(
    ["_team/thing", "session/list", "session/set_mode", "authenticate", "mcp/message", "x"]
)


def messages() -> Any:
    """Messages that no hook judges, in any spelling of JSON."""
    objects = st.dictionaries(st.sampled_from(["a", "_meta", "sessionId"]), JSON)
    fields = {"jsonrpc": st.just("2.0"), "method": METHODS, "params": objects}
    notifications = st.fixed_dictionaries(fields)
    answers = st.fixed_dictionaries({"id": st.integers(), "result": JSON})
    separators = st.sampled_from([(",", ":"), (", ", ": "), (" , ", " :\t")])
    return st.builds(
        lambda message, gaps, is_ascii: json.dumps(
            message, separators=gaps, ensure_ascii=is_ascii
        ).encode(),
        notifications | answers,
        separators,
        st.booleans(),
    )


@asynccontextmanager
async def proxy(*command: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """Crow in front of a command, with bare pipes."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        CROW, "acp", "--proxy", "--", *command, stdin=pipe, stdout=pipe, stderr=pipe, limit=2**26
    )  # fmt: skip
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.communicate()


def send(process: asyncio.subprocess.Process, **message: Any) -> None:
    """Say something to the agent behind Crow."""
    assert process.stdin
    process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")


async def through(lines: list[bytes], log: Path) -> tuple[list[bytes], list[bytes]]:
    """Lines through Crow to a mirror and back: what came back, and what the mirror got."""
    async with proxy(sys.executable, "-c", MIRROR, str(log)) as process:
        assert process.stdin
        assert process.stdout
        process.stdin.write(b"".join(line + b"\n" for line in lines))
        back = [(await process.stdout.readline()).rstrip(b"\n") for _ in lines]
        process.stdin.close()
        assert await process.wait() == 0
    return back, log.read_bytes().split(b"\n")[:-1]


@pytest.mark.slow
def test_every_message_that_nobody_judges_passes_as_it_came(tmp_path: Path) -> None:
    @given(lines=st.lists(messages(), min_size=20, max_size=80))
    def passes(lines: list[bytes]) -> None:
        log = tmp_path / "log"
        log.unlink(missing_ok=True)
        assert asyncio.run(through(lines, log)) == (lines, lines)

    settings(max_examples=3, deadline=None, suppress_health_check=[HealthCheck.too_slow])(passes)()


@pytest.mark.slow
async def test_a_message_of_sixteen_megabytes_passes(tmp_path: Path) -> None:
    big = json.dumps({"jsonrpc": "2.0", "method": "x", "params": {"a": "y" * 2**24}}).encode()
    assert await through([big], tmp_path / "log") == ([big], [big])


@pytest.mark.slow
async def test_a_request_that_is_too_long_is_answered_and_not_passed_on(front: Any) -> None:
    async with proxy(*front.command) as process:
        assert process.stdin
        assert process.stdout
        big = {"jsonrpc": "2.0", "id": 5, "method": "x", "params": {"a": "y" * 2**25}}
        process.stdin.write(json.dumps(big).encode() + b"\n")
        told = json.loads(await process.stdout.readline())
        assert (told["id"], told["error"]["data"]) == (5, {"details": "the line is too long"})
        process.stdin.write(b"nonsense\n")
        assert json.loads(await process.stdout.readline())["error"]["code"] == -32700
    assert front.received == []


async def test_what_an_agent_prints_beside_the_protocol_is_not_passed_on() -> None:
    said = '{"jsonrpc":"2.0","method":"x"}'
    code = f"print('Loading...'); print('{said}', flush=True); input()"
    async with proxy(sys.executable, "-c", code) as process:
        assert process.stdout
        assert process.stderr
        assert await process.stdout.readline() == said.encode() + b"\n"
        assert b"a line of the agent's is not passed on" in await process.stderr.readline()


async def test_an_agent_that_dies_is_told_of_to_whoever_waits_for_it(front: Any) -> None:
    async with proxy(*front.command) as process:
        assert process.stdin
        assert process.stdout
        assert process.stderr
        send(process, id=1, method="session/new", params={"cwd": "/", "mcpServers": []})
        session = json.loads(await process.stdout.readline())["result"]["sessionId"]
        prompt = [{"type": "text", "text": "die"}]
        send(
            process, id=2, method="session/prompt", params={"sessionId": session, "prompt": prompt}
        )
        told = json.loads(await process.stdout.readline())
        assert told["id"] == 2
        assert told["error"]["message"].endswith("ended with status 7")
        assert (await process.stderr.read()).endswith(b"ended with status 7\n")
        assert await process.wait() == 1


async def test_an_agent_that_cannot_be_started_is_told_of_in_a_line() -> None:
    async with proxy("no-such-agent") as process:
        assert process.stderr
        assert (await process.stderr.read()).decode() == (
            "crow: the agent 'no-such-agent' cannot be started: "
            "[Errno 2] No such file or directory: 'no-such-agent'\n"
        )
        assert await process.wait() == 1


@pytest.mark.slow
@pytest.mark.parametrize("how", ["end", "signal"])
async def test_the_agent_and_what_it_has_started_end_with_the_client(
    how: str, tmp_path: Path
) -> None:
    code = (
        "import os, signal, subprocess, sys, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "child = subprocess.Popen(['sleep', '600'])\n"
        f"open({str(tmp_path / 'pids')!r}, 'w').write(f'{{os.getpid()}} {{child.pid}}')\n"
        """print('{"jsonrpc":"2.0","method":"x"}', flush=True)\n"""
        "time.sleep(600)\n"
    )
    async with proxy(sys.executable, "-c", code) as process:
        assert process.stdout
        assert process.stdin
        await process.stdout.readline()
        if how == "end":
            process.stdin.close()
        else:
            process.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(process.wait(), 15) == 0
    assert not any(map(is_alive, map(int, (tmp_path / "pids").read_text().split())))


LAST = """
import atexit, sys

class Remains:
    def __del__(self):
        print("taken to pieces")

sys.modules["kept"] = Remains()  # until the interpreter is taken to pieces
atexit.register(print, "registered")

def on_session_end():
    pass
"""


@pytest.mark.slow
async def test_the_proxy_is_not_taken_to_pieces_at_its_end(tmp_path: Path) -> None:
    """That takes longer than all the rest; what is registered for the end is called."""
    folder = Path.home() / ".crow" / "extensions"
    folder.mkdir(parents=True)
    (folder / "last.py").write_text(LAST)
    async with proxy(sys.executable, "-c", MIRROR, str(tmp_path / "log")) as process:
        _, told = await process.communicate(b"")
    assert (process.returncode, told) == (0, b"registered\n")


@pytest.mark.slow
async def test_no_input_and_no_output_is_an_end(tmp_path: Path) -> None:
    """``/dev/null`` is neither a pipe nor a file, and no event loop waits for it."""
    null = asyncio.subprocess.DEVNULL
    process = await asyncio.create_subprocess_exec(
        *(CROW, "acp", "--proxy", "--", sys.executable, "-c", MIRROR, str(tmp_path / "log")),
        stdin=null,
        stdout=null,
    )
    try:
        assert await asyncio.wait_for(process.wait(), 40) == 0
    finally:
        with suppress(ProcessLookupError):
            process.kill()


@pytest.mark.slow
async def test_a_client_that_does_not_read_makes_the_agent_wait(front: Any) -> None:
    """The agent cannot say more than pipes hold; what it said is all there in the end."""
    async with proxy(*front.command) as process:
        assert process.stdin
        assert process.stdout
        cwd = str(front.project)
        send(process, id=1, method="session/new", params={"cwd": cwd, "mcpServers": []})
        session = json.loads(await process.stdout.readline())["result"]["sessionId"]
        reading: Any = process._transport.get_pipe_transport(1)  # type: ignore[attr-defined]
        reading.pause_reading()
        text = {"type": "text", "text": "say-big 1000000\n" * 30}
        send(
            process, id=2, method="session/prompt", params={"sessionId": session, "prompt": [text]}
        )
        await asyncio.sleep(1)
        resident = Path(f"/proc/{process.pid}/statm").read_text().split()[1]
        assert int(resident) * os.sysconf("SC_PAGE_SIZE") < 120 * 2**20
        reading.resume_reading()
        sizes = [len(await process.stdout.readline()) for _ in range(30)]
        assert min(sizes) > 1_000_000
        assert json.loads(await process.stdout.readline())["id"] == 2


async def test_settings_that_cannot_be_read_let_nothing_pass(front: Any) -> None:
    front.settings()
    (Path.home() / ".claude/settings.json").write_text("{", "utf-8")
    async with proxy(*front.command) as process:
        assert process.stderr
        assert "mend the file" in (await process.stderr.read()).decode()
        assert await process.wait() == 1
