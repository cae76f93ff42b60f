"""Texts of hooks that are too long for a conversation: a file, its path, and a preview."""

from __future__ import annotations

import os
from pathlib import Path

LIMIT = 10_000
PREVIEW = 2_000


def capped(text: str, folder: Path) -> str:
    """The text, or where all of it stands and how it begins."""
    if len(text) <= LIMIT:
        return text
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = folder / f"hook-{os.urandom(6).hex()}.txt"
    path.touch(mode=0o600)
    path.write_text(text, "utf-8", "surrogatepass")
    note = f"[{len(text)} characters of a hook's output were saved to {path}; it begins:]\n"
    return note + text[:PREVIEW]
