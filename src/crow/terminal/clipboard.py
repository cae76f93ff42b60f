"""The picture in the clipboard: terminals paste text alone, so programs are asked for it."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress

from crow.process import run

COMMANDS = (
    ("wl-paste", "--no-newline", "--type", "image/png"),
    ("xclip", "-selection", "clipboard", "-target", "image/png", "-out"),
    ("pngpaste", "-"),
)
LONGEST = 3.0
PNG = b"\x89PNG\r\n\x1a\n"


async def picture_in_clipboard() -> str:
    """The path of a file with it; empty where there is none, or nobody can say."""
    for command in COMMANDS:
        data = await _printed(command)
        if data.startswith(PNG):
            number, path = tempfile.mkstemp(prefix="crow-", suffix=".png")
            with os.fdopen(number, "wb") as file:
                file.write(data)
            return path
    return ""


async def _printed(command: tuple[str, ...]) -> bytes:
    with suppress(OSError, TimeoutError):
        return (await run(command, timeout=LONGEST)).out
    return b""
