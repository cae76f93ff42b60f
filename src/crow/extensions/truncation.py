"""Truncation: the output of any tool that is too long is cut for the model and kept on disk."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
from dataclasses import KW_ONLY, dataclass, replace
from pathlib import Path
from typing import Annotated

from crow import FIRST, Arg, ToolContext, hook
from crow.messages import Content, Part
from crow.tools import boundary

LINE_SLACK = 200


@dataclass(eq=False)
class TruncationHook:
    """Cuts a tool's text for the model at ``limit`` characters: head and tail stay.

    The whole text is kept in a file, and the line in the middle names it. What hooks see as
    ``tool_response`` (``result.data``) and pictures stay as they are. No grapheme is split. It runs
    behind the other ``after_tool`` hooks.
    """

    name = "truncation"
    order = 70
    is_its_options = True

    limit: Annotated[int, Arg(minimum=1)] = 40_000
    """Characters of a result."""
    _: KW_ONLY
    directory: str | Path | None = None
    """Where the whole is kept; without it that is in the user's cache."""

    @hook("after_tool", order=FIRST)
    def cut(self, ctx: ToolContext) -> None:
        """Replace a result that is too long."""
        result = ctx.result
        if result is None or len(result.text) <= self.limit:
            return
        where = self._keep(result.text, ctx.session_id, ctx.name)
        note = f"[{len(result.text)} characters; the middle is left out, {where}]"
        ctx.result = replace(result, content=shortened(result.content, self.limit, note))

    async def forget_session(self, session_id: str) -> None:
        """Remove what is kept of a session."""
        await asyncio.to_thread(shutil.rmtree, self._folder(session_id), ignore_errors=True)

    def _folder(self, session_id: str) -> Path:
        directory = _cache() if self.directory is None else Path(os.path.expanduser(self.directory))
        return directory / _plain(session_id)

    def _keep(self, text: str, session_id: str, tool: str) -> str:
        folder = self._folder(session_id)
        path = folder / f"{_plain(tool)}-{os.urandom(6).hex()}.txt"
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with os.fdopen(
                os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb"
            ) as file:
                file.write(text.encode("utf-8", "surrogatepass"))
        except OSError as error:
            return f"and could not be kept: {error.strerror}"
        return f"all of it is in {path}"


def _cache() -> Path:
    import platformdirs

    return Path(platformdirs.user_cache_dir("crow", appauthor=False), "outputs")


def _plain(name: str) -> str:
    return re.sub(r"[^\w-]", "_", name)[:100] or "output"


def shortened(content: Content, limit: int, note: str) -> Content:
    """A content whose text has at most ``limit`` characters and, beside these, the note.

    Of several texts each is cut at its share; parts that are no text stay.
    """
    if isinstance(content, str):
        return clipped(content, limit, note)
    lengths = [len(part["text"]) for part in content if part["type"] == "text"]
    share = _share(lengths, limit)
    parts: list[Part] = []
    for part in content:
        if part["type"] == "text" and len(part["text"]) > share:
            parts.append({"type": "text", "text": clipped(part["text"], share, note)})
        else:
            parts.append(part)
    return parts


def _share(lengths: list[int], limit: int) -> int:
    """How long each of several texts may be, so that all of them together fit."""
    rest, room = sorted(lengths), limit
    while rest and rest[0] <= room // len(rest):
        room -= rest.pop(0)
    return room // len(rest) if rest else limit


def clipped(text: str, limit: int, note: str) -> str:
    """Head, note and tail of a text."""
    start = boundary(text, limit - limit // 2)
    end = boundary(text, len(text) - limit // 2, forward=True)
    line = text.rfind("\n", max(start - LINE_SLACK, start // 2), start)
    start = line + 1 if line >= 0 else start
    line = text.find("\n", end, end + min(LINE_SLACK, limit // 4))
    end = line + 1 if line >= 0 else end
    head = text[:start] if text[:start].endswith("\n") or not start else f"{text[:start]}\n"
    return f"{head}{note}\n{text[end:]}"
