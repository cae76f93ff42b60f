"""What a command costs through the Bash tool, beside a bare asyncio subprocess of the same shell.

Both run the same command in turn, in the same event loop. The ratio is the one of the medians.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import tempfile
import time
from typing import Any

from crow.core.events import Event
from crow.core.ports.client import Client, NullClient
from crow.core.ports.tool import Launcher
from crow.core.tools import Call
from crow.tools.declarations import bash
from crow.tools.shells import Shells

ROUNDS = 200
COMMAND = "echo hello"


class ToolEnvironment:
    """What the tool needs, and nobody who watches."""

    def __init__(self, cwd: str) -> None:
        self.cwd = cwd
        self.roots = (cwd,)
        self.session_id = "bench"
        self.call = Call("1", "Bash")
        self.client: Client = NullClient()
        self.state: dict[str, Any] = {}
        self.cache: dict[str, Any] = {}
        self.environment = dict(os.environ)
        self.secrets: tuple[str, ...] = ()
        self.launcher: Launcher | None = None

    async def progress(self, text: str, *, terminal: str | None = None) -> None:
        """Nobody watches."""

    async def emit(self, event: Event) -> None:
        """Nobody watches."""


async def bare(cwd: str) -> None:
    process = await asyncio.create_subprocess_exec(
        "bash",
        "-c",
        COMMAND,
        cwd=cwd,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    output, _ = await process.communicate()
    assert output == b"hello\n"


async def measure() -> tuple[list[float], list[float]]:
    through: list[float] = []
    without: list[float] = []
    with tempfile.TemporaryDirectory() as cwd:
        bench = ToolEnvironment(cwd)
        for _ in range(ROUNDS):
            began = time.perf_counter()
            await bare(cwd)
            middle = time.perf_counter()
            await bash.run({"command": COMMAND}, bench)
            through.append(time.perf_counter() - middle)
            without.append(middle - began)
        await Shells.of(bench).aclose()
    return through, without


def main() -> None:
    through, without = (statistics.median(times) for times in asyncio.run(measure()))
    print(f"bare asyncio subprocess   {without * 1000:6.2f} ms")
    print(f"through the Bash tool     {through * 1000:6.2f} ms")
    print(f"ratio                     {through / without:6.2f}")


if __name__ == "__main__":
    main()
