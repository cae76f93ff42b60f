"""What `crow run` does before it asks the model: counts, which no machine's load changes."""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio.subprocess import DEVNULL, PIPE

from tests.cli.conftest import Crow

from crow.testing.endpoint import Endpoint, answer

COUNT = """
import os, sys, crow
home, counted = os.path.dirname(crow.__file__), []
calls = 0

def count(frame, event, arg):
    global calls
    calls += event == "call" and frame.f_code.co_filename.startswith(home)

def ask(event, args):
    if event == "socket.connect":
        counted.append((sum(name.startswith("crow") for name in sys.modules), calls))

sys.addaudithook(ask)
sys.setprofile(count)
from crow.cli import main
main(["run", "Go"])
print(*counted[0])
"""
MODULES, CALLS = 180, 8_500


async def test_little_is_imported_and_called_before_the_first_request(
    crow: Crow, endpoint: Endpoint
) -> None:
    endpoint.play(answer("Done."))
    env = {**os.environ, **crow.env}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", COUNT), cwd=crow.cwd, env=env, stdin=DEVNULL, stdout=PIPE
    )
    out, _ = await process.communicate()
    said, counts = out.decode().splitlines()
    modules, calls = map(int, counts.split())
    assert said == "Done."
    assert modules <= MODULES
    assert calls <= CALLS
