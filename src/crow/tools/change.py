"""A change of one file: thought out first, so that people can be shown it, and made later."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable

from crow.core.ports.tool import ToolEnvironment
from crow.core.support.frozen import frozen
from crow.core.tools import Diff, Location, ToolResult
from crow.tools.disk import demand_writable
from crow.tools.excerpt import excerpts
from crow.tools.files import Document, SeenFiles, demand_small, load
from crow.tools.hidden import may_tell
from crow.tools.paths import place_to_write

Rewrite = Callable[[Document | None], tuple[str, int, int]]
"""Gives the new text, the line of the first change and how many there are, or raises."""


@frozen
class Change:
    """A change of a file. ``before`` is what it is now, None for a new one."""

    path: str
    real: str
    before: Document | None
    new: str
    line: int = 1
    count: int = 1

    @property
    def old(self) -> str | None:
        """The text that is there."""
        return self.before.text if self.before else None

    def diffs(self) -> tuple[Diff, ...]:
        """What people are shown."""
        return excerpts(Diff(self.path, self.old, self.new))

    def result(self, text: str, note: str, data: object) -> ToolResult:
        """What is told once it is made."""
        place = Location(self.path, self.line if self.before else None)
        told = f"{text} {note}".rstrip()
        return ToolResult(told, data=data, diffs=self.diffs(), locations=(place,))


async def plan_change(ctx: ToolEnvironment, path: str, rewrite: Rewrite) -> Change:
    """Think a change out. Raises `ToolError`, ``OSError`` or ``ValueError`` where it cannot be."""
    real = place_to_write(path, ctx.roots)
    before = await load(ctx, path, real)
    if before is not None:
        SeenFiles.of(ctx).demand_seen(before, path)
    new, line, count = await asyncio.to_thread(rewrite, before)
    demand_small(path, len(new))
    return Change(path, real, before, new, line, count)


async def preview_change(
    ctx: ToolEnvironment, path: str, rewrite: Rewrite, bare: Callable[[], Diff]
) -> ToolResult:
    """What a change would do to a file, or a `ToolError`; nothing is written.

    Of a file that the model may not read without a question it must not learn anything before
    somebody was asked: such a file is not opened, and ``bare`` is what the arguments alone say.
    """
    if not await asyncio.to_thread(may_tell, ctx, path, place_to_write):
        return ToolResult("", diffs=excerpts(await asyncio.to_thread(bare)))
    async with SeenFiles.of(ctx).lock(os.path.realpath(path)):
        change = await plan_change(ctx, path, rewrite)
    if ctx.client.files is None:
        await asyncio.to_thread(demand_writable, change.real)
    return ToolResult("", diffs=await asyncio.to_thread(change.diffs))


def bare_diff(path: str, new: str) -> Diff:
    """A new text for a file that is not to be opened: whether it is there is all that is seen."""
    return Diff(path, "" if os.path.lexists(path) else None, new)
