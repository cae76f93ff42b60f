"""Outputs that are too long: cut for the model, kept whole on disk."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from crow.tools.text import boundary

_LINE_SLACK = 200


def outputs(session_id: str) -> Path:
    """Where the whole outputs of a session are kept."""
    import platformdirs

    safe = re.sub(r"[^\w.-]", "_", session_id).lstrip(".") or "session"
    return Path(platformdirs.user_cache_dir("crow", appauthor=False), "outputs", safe[:100])


def create_output(directory: Path, stem: str = "output") -> BinaryIO:
    """A new file that only its owner can read; its path is ``file.name``."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = directory / f"{stem}-{os.urandom(6).hex()}.txt"
    path.touch(mode=0o600, exist_ok=False)
    return path.open("wb")


def keep(text: str, directory: Path, stem: str = "output") -> Path:
    """Write a text to a new file of its own."""
    with create_output(directory, stem) as file:
        file.write(text.encode("utf-8", "surrogatepass"))
    return Path(file.name)


def clip(text: str, limit: int, directory: Path | Callable[[], Path]) -> tuple[str, Path | None]:
    """At most ``limit`` characters of a text, and the file that holds all of it.

    Head and tail are kept, and between them one line that says what is missing and where it is;
    only where ``limit`` is too small for that line is it left out. No grapheme is split. The
    path is None where nothing was cut. ``directory`` may be a function, asked only when needed.
    """
    if len(text) <= limit:
        return text, None
    path = keep(text, directory() if callable(directory) else directory)
    note = f"\n[... of {len(text)} characters the middle is left out; all of it: {path} ...]\n"
    room = limit - len(note)
    if room < 2:
        return text[: boundary(text, max(limit, 0))], path
    return head(text, room - room // 2) + note + tail(text, room // 2), path


def head(text: str, limit: int) -> str:
    """The beginning, up to ``limit`` characters, to the end of a line where one is near."""
    end = boundary(text, limit)
    line = text.rfind("\n", max(0, end - _LINE_SLACK, end // 2), end)
    return text[: line + 1] if line >= 0 and end < len(text) else text[:end]


def tail(text: str, limit: int) -> str:
    """The end, up to ``limit`` characters, from the beginning of a line where one is near."""
    start = boundary(text, max(0, len(text) - limit), forward=True)
    line = text.find("\n", start, start + min(_LINE_SLACK, limit // 2))
    return text[line + 1 :] if line >= 0 and start > 0 else text[start:]
