"""The line at the bottom: model, mode, sandbox, how full the window is, the cost, the branch."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from crow.core.events import UsageReported
from crow.core.support.frozen import mutable
from crow.terminal.palette import SGR
from crow.terminal.progress_line import short
from crow.text import columns, one_line, shorten

NARROW = 50
SEPARATOR = " · "


@mutable
class Status:
    """The texts of the status line; empty texts are left out.

    ``more`` are the texts of others. ``script`` are painted lines in the place of all of this, of
    a command of the user's.
    """

    model: str = ""
    mode: str = ""
    sandbox: str = ""
    branch: str = ""
    window: str = ""
    full: str = ""
    cost: str = ""
    cached: str = ""
    script: list[str] | None = None
    more: Callable[[], list[str]] = list[str]

    def report(self, event: UsageReported) -> None:
        """Take in what a request came to."""
        if event.context_window:
            share = 100 * event.context_tokens / event.context_window
            self.full, self.window = f"{share:.0f} %", f" of {short(event.context_window)}"
        elif event.context_tokens:
            self.full = f"{short(event.context_tokens)} tokens"
        if "cost" in event.total:
            self.cost = f"${event.total['cost']:.2f}"
        if (given := event.total.get("input_tokens", 0)) and "cached_tokens" in event.total:
            self.cached = f"{100 * event.total['cached_tokens'] / given:.0f} % cached"

    def lines(self, width: int) -> list[str]:
        """What stands at the bottom."""
        if self.script is None:
            return [self.line(width)]
        return [cut(line, width) for line in self.script] or [""]

    def line(self, width: int) -> str:
        """The line; what does not fit is dropped from the right."""
        parts = [self.model, self.mode, self.full]
        if width >= NARROW:
            rest = [f"{self.full}{self.window}", self.cost, self.cached, *self.more(), self.branch]
            parts = [self.model, self.mode, self.sandbox, *rest]
        line = ""
        for part in filter(None, map(one_line, parts)):
            longer = f"{line}{SEPARATOR}{part}" if line else part
            if columns(longer) > width:
                break
            line = longer
        return line


def cut(line: str, width: int) -> str:
    """A painted line that fits."""
    parts = re.split(f"({SGR.pattern})", line)
    for n in range(0, len(parts), 2):
        parts[n] = shorten(parts[n], max(0, width)) if width > 0 else ""
        width -= columns(parts[n])
    return "".join(parts)


def branch_of(folder: Path) -> str:
    """The branch that is checked out there, or the start of the commit; empty without any."""
    for each in (folder, *folder.parents):
        head = each / ".git"
        try:
            if head.is_file():  # a worktree's
                head = each / head.read_text("utf-8").removeprefix("gitdir:").strip()
            text = (head / "HEAD").read_text("utf-8").strip()
        except (OSError, UnicodeDecodeError):
            continue
        name = text.removeprefix("ref: refs/heads/")
        return name if name != text else text[:8]
    return ""
