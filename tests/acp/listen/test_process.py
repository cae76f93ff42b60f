"""The server's process: how it starts, what it says, how it ends, and what it lets go of."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from acp.exceptions import RequestError
from tests.acp.listen.waiting import exists

from crow.testing import FakeEditor

CROW = str(Path(sys.executable).with_name("crow"))


def crow(*options: str, **env: str) -> subprocess.CompletedProcess[str]:
    """The command where it does not come to serving."""
    return subprocess.run(
        [CROW, "acp", "--model", "rehearsal", *options],
        env={**os.environ, **env},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=30,
    )


def marking(event: str, cwd: Path) -> str:
    """Settings with a hook that makes a file of the event's name."""
    hook = {"hooks": [{"type": "command", "command": f"touch {cwd / event}"}]}
    return json.dumps({"hooks": {event: [hook]}})


def test_a_port_that_is_in_use_is_told_in_one_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        ended = crow("--listen", f"127.0.0.1:{port}")
    assert ended.returncode == 1
    assert ended.stdout == ""
    assert ended.stderr == f"crow: cannot listen on 127.0.0.1:{port}: Address already in use\n"


@pytest.mark.parametrize(
    "options, said",
    [
        (["--listen", "8765"], "--listen wants HOST:PORT, such as 127.0.0.1:8765"),
        (["--listen", "::1:8765"], "--listen wants HOST:PORT"),
        (["--listen", "127.0.0.1:99999"], "--listen wants HOST:PORT"),
        (["--listen", "0.0.0.0:0"], "choose a token for them"),
        (["--listen", "[::]:0"], "choose a token for them"),
        (["--listen", "127.0.0.1:0", "--token", "short"], "at least 16 characters"),
        (["--listen", "127.0.0.1:0", "--token", "sixteen characters"], "letters, digits"),
        (["--token", "a-token-for-tests-only"], "are for --listen"),
        (["--node-url", "http://10.0.0.7:8765/acp"], "are for --listen"),
        (["--listen", "127.0.0.1:0", "--node-url", "http://10.0.0.7:8765/acp"], "choose one with"),
        (
            ["--listen", "127.0.0.1:0", "--token", "a-token-for-tests-only", "--node-url", "x"],
            "--node-url wants http://HOST:PORT/acp",
        ),
    ],
)
@pytest.mark.variants(3)
def test_what_cannot_be_is_refused_in_one_line(options: list[str], said: str) -> None:
    ended = crow(*options)
    assert ended.returncode in (1, 2)
    assert said in ended.stderr
    assert ended.stderr.count("\n") == 1


def test_a_token_file_that_others_can_read_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("a-token-for-tests-only\n")
    file.chmod(0o640)
    ended = crow("--listen", "127.0.0.1:0", "--token-file", str(file))
    assert (ended.returncode, ended.stderr) == (
        1,
        f"crow: others can read {file}: chmod 600 {file}\n",
    )


def test_the_face_on_standard_input_knows_nothing_of_networks() -> None:
    code = """
import sys
import crow.cli.acp, crow.cli.acp_listen, crow.acp, crow.acp.server
heavy = {"starlette", "uvicorn", "websockets", "h11", "crow.acp.listen"}
assert not heavy & set(sys.modules), heavy & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=30)


@pytest.mark.slow
async def test_a_made_up_token_is_told_once_and_kept_where_wanted(
    start: Any, tmp_path: Path
) -> None:
    editor, file = FakeEditor(), tmp_path / "token"
    told = start(token=None)
    async with editor.dialed(told.ws):
        assert editor.greeting is not None
    kept = start("--token-file", str(file), token=None)
    token = file.read_text().strip()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert token not in kept.said
    async with editor.dialed(f"{kept.bare}?token={token}"):
        assert editor.greeting is not None


@pytest.mark.slow
async def test_commands_of_the_agent_do_not_inherit_the_token(start: Any, tmp_path: Path) -> None:
    editor, served = FakeEditor(), start("--allow", "Bash")
    async with editor.dialed(served.ws):
        session = await editor.new_session(tmp_path)
        await editor.prompt(session, "Run `env`")
        shown = json.dumps(editor.cards())
    assert "HOME=" in shown
    assert "CROW_ACP_TOKEN" not in shown


@pytest.mark.slow
@pytest.mark.skipif(not socket.has_ipv6, reason="this machine has no IPv6")
async def test_it_listens_on_an_address_of_six_groups(start: Any) -> None:
    editor, served = FakeEditor(), start("--listen", "[::1]:0")
    assert served.bare.startswith("http://[::1]:")
    for scheme in ("http", "ws"):
        async with editor.dialed(served.url(scheme)):
            assert editor.greeting is not None


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_cancels_turns_and_leaves_nothing(
    start: Any, tmp_path: Path, number: signal.Signals
) -> None:
    served = start("--allow", "Bash")
    (tmp_path / "forever.sh").write_text("echo $$ > pid\nmv pid on\nexec sleep 600\n")
    editors = [FakeEditor(), FakeEditor()]
    async with editors[0].dialed(served.http), editors[1].dialed(served.ws):
        turns: list[asyncio.Task[Any]] = []
        for editor in editors:
            session = await editor.new_session(tmp_path)
            prompt = editor.prompt(session, "Run `sh forever.sh`")
            turns.append(asyncio.create_task(prompt))
            await editor.saw("tool_call_update", status="in_progress")
        await exists(tmp_path / "on")
        served.process.send_signal(number)
        assert await asyncio.to_thread(served.process.wait, 10) == 0
        assert [(await turn).stop_reason for turn in turns] == ["cancelled", "cancelled"]
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "on").read_text()), 0)


LAST = """
import atexit, sys

class Remains:
    def __del__(self):
        print("taken to pieces")

remains = Remains()
sys.modules["kept"] = remains  # until the interpreter is taken to pieces
atexit.register(print, "registered")

def on_session_end():
    print("hooked")
"""


@pytest.mark.slow
async def test_it_leaves_behind_the_last_words_and_is_not_taken_to_pieces(
    start: Any, tmp_path: Path
) -> None:
    """That takes longer than everything else of an end."""
    (tmp_path / "last.py").write_text(LAST)
    served, editor = start("--extension", str(tmp_path / "last.py")), FakeEditor()
    async with editor.dialed(served.ws):
        await editor.new_session(tmp_path)
        served.process.terminate()
        assert await asyncio.to_thread(served.process.wait, 10) == 0
    assert served.process.stdout.read() == "hooked\nregistered\n"


@pytest.mark.slow
async def test_who_was_started_to_outlive_a_terminal_does(start: Any) -> None:
    given = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup does it
    try:
        served, editor = start(), FakeEditor()
    finally:
        signal.signal(signal.SIGHUP, given)
    served.process.send_signal(signal.SIGHUP)
    async with editor.dialed(served.ws):
        assert editor.greeting is not None


@pytest.mark.slow
async def test_a_question_that_nobody_comes_back_to_is_answered_by_no(
    start: Any, tmp_path: Path
) -> None:
    served = start("--away-timeout", "0.2", "--settings", marking("Stop", tmp_path))
    first = FakeEditor(silent=["session/request_permission"])
    later = FakeEditor()
    async with first.dialed(served.ws):
        session = await first.new_session(tmp_path)
        turn = asyncio.create_task(first.prompt(session, "Create a file called test.txt"))
        await first.saw("tool_call")
        turn.add_done_callback(lambda done: done.cancelled() or done.exception())
    await exists(tmp_path / "Stop")
    async with later.dialed(served.ws):
        await later.connection.load_session(str(tmp_path), session)
        # where the run has not ended yet, it is told behind the answer
        await later.wire.until(lambda: [c.get("status") for c in later.cards()] == ["failed"])
    assert later.asked == []
    assert not (tmp_path / "test.txt").exists()


@pytest.mark.slow
async def test_a_session_that_nobody_uses_is_closed_and_can_be_loaded(
    start: Any, tmp_path: Path
) -> None:
    settings = marking("SessionEnd", tmp_path)
    served = start("--idle-timeout", "0.2", "--allow", "Bash", "--settings", settings)
    editor = FakeEditor()
    async with editor.dialed(served.ws):
        session = await editor.new_session(tmp_path)
        await editor.prompt(session, "Run `echo one`")
    await exists(tmp_path / "SessionEnd")
    async with editor.dialed(served.http):
        with pytest.raises(RequestError):
            await editor.prompt(session, "Run `echo two`")
        await editor.connection.load_session(str(tmp_path), session)
        assert "one" in editor.text()
        assert (await editor.prompt(session, "Run `echo two`")).stop_reason == "end_turn"
