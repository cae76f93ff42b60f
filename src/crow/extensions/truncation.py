"""Truncation: the output of any tool that is too long is cut for the model and kept on disk."""

from __future__ import annotations

import asyncio
import os
from dataclasses import KW_ONLY, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from crow import Arg, ToolContext, hook
from crow.dataclasses import entity
from crow.hooks import FIRST
from crow.messages import Content, Part

if TYPE_CHECKING:
    from crow.project import OutputFolder

LINE_SLACK = 200


@entity
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
        folder = self._folder(ctx.session_id)
        where = folder.keep(result.text, f"{ctx.name[:80]}-{os.urandom(6).hex()}")
        note = f"[{len(result.text)} characters; the middle is left out, {where}]"
        ctx.result = replace(result, content=shortened(result.content, self.limit, note))

    def _folder(self, session_id: str) -> OutputFolder:
        from crow.project import OutputFolder

        return OutputFolder(session_id, self.directory)

    async def forget_session(self, session_id: str) -> None:
        """Remove what is kept of a session."""
        await asyncio.to_thread(self._folder(session_id).remove)


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
    from crow.tools import boundary

    start = boundary(text, limit - limit // 2)
    end = boundary(text, len(text) - limit // 2, forward=True)
    line = text.rfind("\n", max(start - LINE_SLACK, start // 2), start)
    start = line + 1 if line >= 0 else start
    line = text.find("\n", end, end + min(LINE_SLACK, limit // 4))
    end = line + 1 if line >= 0 else end
    head = text[:start] if text[:start].endswith("\n") or not start else f"{text[:start]}\n"
    return f"{head}{note}\n{text[end:]}"
