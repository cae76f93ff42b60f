"""What Crow does before it asks the model: counts, which no machine's load changes."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Crow, calls

from crow.entry_points import FIRST_CALL, entry_points
from crow.extensions.sandbox.probe import find_backend
from crow.testing.endpoint import Endpoint, answer

COUNT = """
import os, sys, crow
counted, *argv = sys.argv[1:]
home = os.path.dirname(crow.__file__)
calls = 0

def count(frame, event, arg):
    global calls
    calls += event == "call" and frame.f_code.co_filename.startswith(home)

def ask(event, args):
    if event == "socket.connect" and not os.path.exists(counted):
        modules = sum(name.startswith("crow") for name in sys.modules)
        with open(counted, "w") as file:
            file.write(f"{modules} {calls}")

sys.addaudithook(ask)
sys.setprofile(count)
from crow.cli import main
sys.exit(main(argv))
"""


AHEAD = """
import os, sys, threading
from threading import current_thread, main_thread
told, *argv = sys.argv[1:]

def look(event, args):
    if event == "import" and current_thread() is main_thread():
        with open(told, "a") as file:
            print(args[0], file=file)

def profile(frame, event, arg):
    if event == "return" and frame.f_code.co_name == "_import":
        sys.addaudithook(look)
        with open(told, "a") as file:
            print("AHEAD", file=file)
        os.close(1)

threading.setprofile(profile)
from crow.cli import main
sys.exit(main(argv))
"""
"""Crow, which closes its standard output once it has imported ahead, and writes down what follows."""


@pytest.fixture(autouse=True)
def found_before(home: Path) -> None:
    """What holds commands is known, as from the second start on; else it is looked for at once."""
    del home
    if find_backend().name == "none":
        pytest.skip("nothing holds commands on this machine")


async def start(crow: Crow, counted: Path, *argv: str, stdin: int) -> Process:
    """Crow with a counter of modules and calls, which writes them down at the first request."""
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", COUNT, str(counted), *argv),
        cwd=crow.cwd,
        env={**os.environ, **crow.env, "CROW_SANDBOX": "on"},
        stdin=stdin,
        stdout=PIPE,
    )


def modules_and_calls(counted: Path) -> tuple[int, int]:
    modules, calls = counted.read_text().split()
    return int(modules), int(calls)


async def test_run_imports_and_calls_little_before_the_first_request(
    crow: Crow, endpoint: Endpoint, tmp_path: Path
) -> None:
    endpoint.play(answer("Done."))
    process = await start(crow, tmp_path / "counted", "run", "Go", stdin=DEVNULL)
    out, _ = await process.communicate()
    assert out.decode() == "Done.\n"
    modules, calls = modules_and_calls(tmp_path / "counted")
    assert modules <= 184
    assert calls <= 5_360


async def test_acp_imports_and_calls_little_before_the_first_request(
    crow: Crow, endpoint: Endpoint, tmp_path: Path
) -> None:
    endpoint.play(answer("Done."))
    process = await start(crow, tmp_path / "counted", "acp", stdin=PIPE)
    place = {"cwd": str(crow.cwd), "mcpServers": []}
    await asked(process, 0, "initialize", {"protocolVersion": 1, "clientCapabilities": {}})
    session = await asked(process, 1, "session/new", place)
    prompt = {"sessionId": session["sessionId"], "prompt": [{"type": "text", "text": "Go"}]}
    assert (await asked(process, 2, "session/prompt", prompt))["stopReason"] == "end_turn"
    await process.communicate(b"")
    modules, calls = modules_and_calls(tmp_path / "counted")
    assert modules <= 220
    assert calls <= 6_090


class Late(Sequence[Any]):
    """The steps of a response that begins when a stream is at its end."""

    def __init__(self, steps: Sequence[Any], stream: int) -> None:
        self.steps = steps
        self.stream = stream

    def __len__(self) -> int:
        return len(self.steps)

    def __getitem__(self, index: Any) -> Any:
        while os.read(self.stream, 1000):
            pass
        return self.steps[index]


async def test_what_a_first_call_needs_is_imported_while_the_model_answers(
    crow: Crow, endpoint: Endpoint, tmp_path: Path
) -> None:
    reading, writing = os.pipe()
    told = tmp_path / "told"
    first = calls(("Read", {"file_path": "README.md"}), ("Bash", {"command": "echo it"}))
    endpoint.play(Late(first, reading), answer("Done."))
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", AHEAD, str(told), "run", "Go"),
        cwd=crow.cwd,
        env={**os.environ, **crow.env, "CROW_SANDBOX": "on"},
        stdin=DEVNULL,
        stdout=writing,
    )
    os.close(writing)
    await process.wait()
    os.close(reading)
    ahead, *later = told.read_text().split()
    assert ahead == "AHEAD"
    results = [each for each in endpoint.requests[1].body["messages"] if each["role"] == "tool"]
    assert "It does things." in results[0]["content"]
    assert results[1]["content"].startswith("it")
    assert not {point.value for point in entry_points(FIRST_CALL)} & {*later}


async def asked(process: Process, number: int, method: str, params: dict[str, Any]) -> Any:
    """What a request is answered."""
    assert process.stdin is not None
    assert process.stdout is not None
    request = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
    process.stdin.write(json.dumps(request).encode() + b"\n")
    while line := await process.stdout.readline():
        said = json.loads(line)
        if said.get("id") == number and "method" not in said:
            return said["result"]
    raise AssertionError(f"{method} was not answered")
