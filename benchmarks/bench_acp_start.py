"""From the start of the process to its first answers, and from the end of input to its end.

``crow acp`` and ``run_agent`` in a script, beside a bare asyncio loop that answers ``initialize``
and nothing else. Started in turn, in an empty home; the ratios are those of the medians.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROUNDS = 15
BARE = """
import asyncio, json, sys

async def main():
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        answer = {"jsonrpc": "2.0", "id": json.loads(line)["id"], "result": {"protocolVersion": 1}}
        print(json.dumps(answer), flush=True)

asyncio.run(main())
"""
SCRIPT = """
import asyncio
from crow import Agent, run_agent
asyncio.run(run_agent(Agent()))
"""
COMMANDS = {
    "bare": [sys.executable, "-c", BARE],
    "crow acp": [str(Path(sys.executable).with_name("crow")), "acp"],
    "run_agent": [sys.executable, "-c", SCRIPT],
}
HELLO = {"protocolVersion": 1, "clientCapabilities": {}}


def ask(process: subprocess.Popen[bytes], request_id: int, method: str, params: object) -> None:
    """Send a request and wait for its answer."""
    assert process.stdin is not None
    assert process.stdout is not None
    request = {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}
    process.stdin.write(json.dumps(request).encode() + b"\n")
    process.stdin.flush()
    while (line := process.stdout.readline()) and json.loads(line).get("id") != request_id:
        pass
    assert line, f"{method} was not answered"


def start(command: list[str], env: dict[str, str], cwd: str) -> tuple[float, float, float]:
    """Seconds to the answer to each request, and from the end of input to the end."""
    began = time.perf_counter()
    with subprocess.Popen(
        command, env=env, cwd=cwd, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        ask(process, 0, "initialize", HELLO)
        greeted = time.perf_counter()
        ask(process, 1, "session/new", {"cwd": cwd, "mcpServers": []})
        opened = time.perf_counter()
        process.stdin.close()
        process.wait()
    return greeted - began, opened - began, time.perf_counter() - opened


def main() -> None:
    times: dict[str, list[tuple[float, float, float]]] = {name: [] for name in COMMANDS}
    with tempfile.TemporaryDirectory() as home:
        env = {"PATH": os.environ["PATH"], "HOME": home}
        for _ in range(ROUNDS + 1):
            for name, command in COMMANDS.items():
                times[name].append(start(command, env, home))
    medians = {
        name: [statistics.median(column) * 1e3 for column in zip(*rounds[1:], strict=True)]
        for name, rounds in times.items()
    }
    for name, (greeted, opened, ended) in medians.items():
        print(f"{name:10} initialize {greeted:4.0f} ms", end="   ")
        print(f"ratio {greeted / medians['bare'][0]:.2f}", end="   ")
        if name != "bare":
            print(f"session/new {opened:4.0f} ms   exit {ended:4.0f} ms", end="")
        print()


if __name__ == "__main__":
    main()
