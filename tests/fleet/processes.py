"""Workers as processes, whose model is an endpoint that a test plays."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path


async def until(there: Callable[[], Awaitable[object]], seconds: float = 60) -> None:
    """Wait until something is there."""
    async with asyncio.timeout(seconds):
        while not await there():  # noqa: ASYNC110
            await asyncio.sleep(0.05)


@asynccontextmanager
async def working(
    address: str, url: str, folder: Path, *args: str, **env: str
) -> AsyncIterator[asyncio.subprocess.Process]:
    """A worker with a home of its own, until the block ends; then it is drained, and killed."""
    folder.mkdir(exist_ok=True)
    own = {
        **{name: value for name, value in os.environ.items() if not name.startswith("CROW_")},
        "HOME": str(folder),
        "CROW_STORE": address,
        "CROW_BASE_URL": url,
        "CROW_MODEL": "scripted",
        "CROW_API_KEY": "k",
        **env,
    }
    with (folder / "log").open("a") as log:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "crow", "fleet", "work", "--grace", "1", *args),
            env=own,
            cwd=folder,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGCONT)
            process.terminate()
            try:
                async with asyncio.timeout(20):
                    await process.wait()
            except TimeoutError:
                process.kill()
                await process.wait()
