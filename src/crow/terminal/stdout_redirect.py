"""A redirect of standard output while the screen is in use: whole lines, above the live area."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Callable

from crow.text import clean


class RedirectedStdout(io.TextIOBase):
    """A stream that stands for standard output and error; ``show`` is called with its lines."""

    def __init__(self, show: Callable[[list[str]], None]) -> None:
        self._show = show
        self._loop = asyncio.get_running_loop()
        self._rest = ""

    def isatty(self) -> bool:
        """What is printed is seen."""
        return True

    def writable(self) -> bool:
        """Anything can be printed."""
        return True

    def write(self, text: str) -> int:
        """Print; from any thread."""
        *lines, self._rest = (self._rest + text).split("\n")
        if lines:
            self._loop.call_soon_threadsafe(self._show, [clean(line) for line in lines])
        return len(text)
