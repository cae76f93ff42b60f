"""What tests of servers wait for, and what they do not."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from pathlib import Path

from crow.testing import FakeEditor


async def exists(path: Path) -> None:
    """Wait for a file."""
    while not path.exists():  # noqa: ASYNC110 - no event tells of it
        await asyncio.sleep(0.02)


@contextlib.asynccontextmanager
async def prompting(editor: FakeEditor, session: str, text: str) -> AsyncGenerator[None]:
    """A prompt whose answer this client will not get."""
    task = asyncio.create_task(editor.prompt(session, text))
    yield
    task.add_done_callback(lambda done: done.cancelled() or done.exception())
