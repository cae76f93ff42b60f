"""A tool call as a card: what it is about, the end of its output while it runs, what came of it."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import TypeAlias

from crow.core.events import ToolEnded
from crow.core.tools import Call, Diff, ToolKind, ToolResult
from crow.terminal.diff import counts, diff_lines
from crow.terminal.palette import Look, Palette
from crow.terminal.pictures import picture_lines, pictures_of
from crow.text import clean, columns, one_line, shorten

LIVE_LINES = 5
FINAL_LINES = {"execute": 5, "think": 3}
"""How many lines of a card's output stay on the screen, by the kind of its tool; else one."""
FAILURE_LINES = 3
DIFF_LINES = 30
OWN_LINES = 10
"""And of one that an extension has something to show in."""
KEPT = 2000
"""Lines of output that are kept while a call runs."""
STATUS = re.compile(r"Exit code (\d+)")
BODY = "  │ "
Body: TypeAlias = Callable[[Call, ToolResult], list[str] | None]
NOTABLE = 1.0
"""Seconds from which on it is said how long a call took."""


class Card:
    """One call, from its beginning to its end; ``depth`` is 1 for a sub-agent's."""

    def __init__(
        self, call: Call, title: str, kind: ToolKind, cwd: str, palette: Palette, depth: int = 0
    ) -> None:
        self.call = call
        self.kind = kind
        self.done = False
        self.runs = False
        self.depth = depth
        self._cwd = cwd
        self._palette = palette
        self._title = title
        self._began = time.monotonic()
        self._printed: list[str] = []
        self._rest = ""
        self._dropped = 0
        self._ended: ToolEnded | None = None
        self._is_given = False
        self.body: Body = lambda call, result: None

    @property
    def name(self) -> str:
        """Tool and title in a line."""
        text = one_line(self._near(self._title))
        if self.kind != "execute" and text.endswith(f" {self._cwd}"):
            text = f"{text.removesuffix(self._cwd)}."
        known = text == self.call.name or text.startswith(f"{self.call.name} ")
        return text if known else f"{one_line(self.call.name)} {text}"

    def start(self, title: str) -> None:
        """The call was permitted and runs."""
        self._title = title
        self.runs = True
        self._began = time.monotonic()

    def print(self, text: str) -> None:
        """The call has printed something."""
        *lines, self._rest = (self._rest + clean(text)).split("\n")
        self._printed += lines
        if (much := len(self._printed) - KEPT) > 0:
            del self._printed[:much]
            self._dropped += much

    def end(self, ended: ToolEnded) -> None:
        """The call has its result."""
        self._ended = ended
        self.done = True
        self.runs = False

    # how it looks

    def final(self, width: int) -> list[str]:
        """See `crow.terminal.answer.Item`."""
        if not self.done or self._is_given:
            return []
        self._is_given = True
        return self._whole(width, shortly=True)

    def live(self, width: int, now: float) -> list[str]:
        """See `crow.terminal.answer.Item`."""
        if self.done:
            return self._whole(width, shortly=True, shows=False)[: LIVE_LINES + 1]
        seconds = now - self._began
        state = f"{seconds:.0f} s" if self.runs and seconds >= NOTABLE else ""
        return self._indented([self._head(width, state), *self._tail(width)])

    def expanded(self, width: int) -> list[str]:
        """Everything that there is to see."""
        return self._whole(width, shortly=False)

    def _whole(self, width: int, *, shortly: bool, shows: bool = True) -> list[str]:
        """All its lines; pictures are drawn once it is final, where it ``shows`` them."""
        width -= 2 * self.depth
        ended = self._ended
        if ended is None:
            return self._indented([self._head(width, ""), *self._body(self._printed, width)])
        state, looks = outcome_of(ended, self._said(ended.result))
        body = self._outcome(ended, width, shortly=shortly)
        for part in pictures_of(ended.result.content if shows else None):
            body += picture_lines(part, width, self._palette)
        return self._indented([self._head(width, self._near(state), *looks), *body])

    def _outcome(self, ended: ToolEnded, width: int, *, shortly: bool) -> list[str]:
        result = ended.result
        if ended.outcome == "cancelled":
            return self._tail(width) if shortly else self._body(self._lines, width)
        if (own := self.body(self.call, result)) is not None:
            limit = OWN_LINES if shortly else len(own)
            rest = [self._more(len(own) - limit, "more")] if len(own) > limit else []
            return [*self._body(own[:limit], width), *rest]
        if result.diffs and not result.error:
            lines = [line for diff in result.diffs for line in self._changes(diff, width)]
            limit = DIFF_LINES if shortly else len(lines)
            rest = [self._more(len(lines) - limit, "more")] if len(lines) > limit else []
            return [*lines[:limit], *rest]
        lines = [line for line in clean(result.shown).split("\n") if line.strip()]
        if result.error and lines and lines[0].startswith("Exit code "):
            lines = lines[1:]
        if not shortly:
            return self._body(lines, width)
        limit = FAILURE_LINES if result.error else 0
        if self.kind != "think" or self._printed:  # of a tool that only notes something, nothing
            limit = FINAL_LINES.get(self.kind, limit)
        hidden = len(lines) - limit
        if limit == 0 or lines == ["(no output)"]:
            return []
        more = [self._more(hidden, "earlier")] if hidden > 0 else []
        return [*more, *self._body(lines[-limit:], width)]

    @property
    def _lines(self) -> list[str]:
        """What it has printed."""
        return [line for line in (*self._printed, self._rest) if line.strip()]

    def _tail(self, width: int) -> list[str]:
        """The last of what it has printed."""
        hidden = len(self._lines) + self._dropped - LIVE_LINES
        more = [self._more(hidden, "earlier")] if hidden > 0 else []
        return [*more, *self._body(self._lines[-LIVE_LINES:], width)]

    def _said(self, result: ToolResult) -> str:
        """What the output comes to, in a few words."""
        if result.diffs:
            sums = [counts(diff) for diff in result.diffs]
            plus, minus = sum(a for a, _ in sums), sum(b for _, b in sums)
            verb = "created" if all(diff.old is None for diff in result.diffs) else "changed"
            return f"{verb}, +{plus} -{minus}"
        lines = [line for line in clean(result.shown).split("\n") if line.strip()]
        if self.kind in ("read", "search"):
            return f"{len(lines):,} line{'' if len(lines) == 1 else 's'}"
        if self.kind in ("execute", "think"):
            return ""
        return lines[0] if lines else ""

    def _changes(self, diff: Diff, width: int) -> list[str]:
        return [f"    {line}" for line in diff_lines(diff, width - 4, self._palette)]

    def _head(self, width: int, state: str, *looks: Look) -> str:
        colour: Look = "cyan"
        if self._ended is not None:
            colour = "green" if self._ended.outcome in ("ok", "answered") else "red"
        name, _, rest = self.name.partition(" ")
        state = shorten(state, max(4, min(width // 2, width - columns(name) - 5)))
        room = width - len("● ") - columns(name) - 1 - (columns(state) + 3 if state else 0)
        title = f" {shorten(rest, room)}" if rest and room > 1 else ""
        end = (
            f"{self._palette(' · ', 'dim')}{self._palette(state, *(looks or ('dim',)))}"
            if state
            else ""
        )
        return f"{self._palette('●', colour)} {self._palette(name, 'bold')}{title}{end}"

    def _body(self, lines: list[str], width: int) -> list[str]:
        room = width - len(BODY)
        fit = [shorten(self._near(line).expandtabs(4), room) for line in lines]
        return [self._palette(f"{BODY}{line}", "dim") for line in fit]

    def _more(self, number: int, which: str) -> str:
        plural = "" if number == 1 else "s"
        return self._palette(f"  │ … {number:,} {which} line{plural} (Ctrl-O)", "dim")

    def _near(self, text: str) -> str:
        """Paths as they are seen from the session's directory."""
        return text.replace(f"{self._cwd}/", "")

    def _indented(self, lines: list[str]) -> list[str]:
        return [f"{'  ' * self.depth}{line}" for line in lines]


def outcome_of(ended: ToolEnded, said: str) -> tuple[str, tuple[Look, ...]]:
    """How a call ended, in a few words, and how these look."""
    time = f"{ended.duration:.1f} s" if ended.duration >= NOTABLE else ""
    match ended.outcome:
        case "ok" | "answered":
            return " ".join(filter(None, ("✓", " · ".join(filter(None, (said, time)))))), ("dim",)
        case "denied":
            return "✗ denied", ("red",)
        case "cancelled":
            return "✗ cancelled", ("yellow",)
        case "error":
            return " ".join(filter(None, ("✗", failure_of(ended.result), time))), ("red",)


def failure_of(result: ToolResult) -> str:
    """An error in a word or two; the rest stands below."""
    status = STATUS.match(result.text)
    return f"exit {status[1]}" if status else "failed"
