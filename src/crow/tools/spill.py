"""Outputs that are too long: cut for the model, kept whole on disk."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

_JOINER = "\u200d"
_LINE_SLACK = 200


def outputs(session_id: str) -> Path:
    """Where the whole outputs of a session are kept."""
    import platformdirs

    safe = re.sub(r"[^\w.-]", "_", session_id).lstrip(".") or "session"
    return Path(platformdirs.user_cache_dir("crow", appauthor=False), "outputs", safe[:100])


def create(directory: Path, stem: str = "output") -> BinaryIO:
    """A new file that only its owner can read; its path is ``file.name``."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = directory / f"{stem}-{os.urandom(6).hex()}.txt"
    path.touch(mode=0o600, exist_ok=False)
    return path.open("wb")


def keep(text: str, directory: Path, stem: str = "output") -> Path:
    """Write a text to a new file of its own."""
    with create(directory, stem) as file:
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
    start = max(0, len(text) - limit)
    while start < len(text) and boundary(text, start) != start:
        start += 1
    line = text.find("\n", start, start + min(_LINE_SLACK, limit // 2))
    return text[line + 1 :] if line >= 0 and start > 0 else text[start:]


def boundary(text: str, index: int) -> int:
    """The last place at or before ``index`` where a text can be cut between two graphemes."""
    if index >= len(text):
        return len(text)
    while index > 0 and _belong(text, index):
        index -= 1
    return index


def _belong(text: str, index: int) -> bool:
    """True where the characters on both sides of ``index`` are one grapheme."""
    before, after = text[index - 1], text[index]
    if after < "\u0300" and before < "\u0300":
        return before == "\r" and after == "\n"
    if _is_surrogate_pair(before, after) or _JOINER in (before, after):
        return True
    if _is_flag(after) and _is_flag(before):
        return _flags_before(text, index) % 2 == 1
    import unicodedata

    return unicodedata.category(after)[0] == "M" or "\U0001f3fb" <= after <= "\U0001f3ff"


def _is_surrogate_pair(before: str, after: str) -> bool:
    return "\ud800" <= before <= "\udbff" and "\udc00" <= after <= "\udfff"


def _is_flag(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"


def _flags_before(text: str, index: int) -> int:
    start = index
    while start > 0 and _is_flag(text[start - 1]):
        start -= 1
    return index - start
