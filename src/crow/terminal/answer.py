"""The model's answer on its way to the scrollback: text and thoughts."""

from __future__ import annotations

import time
from typing import Protocol

from crow.terminal.code import Highlighter
from crow.terminal.markdown import Block, Code, Fence, FenceEnd, Piece, Splitter
from crow.terminal.palette import Palette
from crow.terminal.paragraph import Paragraph
from crow.terminal.wrapping import folded
from crow.text import clean

INDENT = "  "
THOUGHT_LINES = 3
LAST = 2000
"""Letters at the end of a thought that its last lines are looked for in."""
SHARE, BRIEF = 4, 0.004
"""How many times as long as drawing took what is drawn stays, where that was not brief: keys that
are pressed meanwhile need not wait for it once more."""
OPEN = 2000
"""Letters that are drawn of what is open and cannot be final in parts, such as a list's item."""


class Item(Protocol):
    """Something of the conversation that becomes final, bit by bit."""

    @property
    def done(self) -> bool:
        """True once nothing of it changes any more."""
        ...

    def final(self, width: int) -> list[str]:
        """The lines that are final and were not given yet."""
        ...

    def live(self, width: int, now: float) -> list[str]:
        """The lines that may still change."""
        ...


class AnswerText:
    """A text of the model's, of which everything but the open end is final."""

    def __init__(self, palette: Palette, message_id: str = "") -> None:
        self.message_id = message_id
        self.done = False
        self._palette = palette
        self._splitter = Splitter()
        self._paragraph = Paragraph()
        self._ready: list[Piece] = []
        self._code: Highlighter | None = None
        self._indent = INDENT
        self._has_said = False
        self._drawn: tuple[object, list[str]] = None, []
        self._rests_until = 0.0

    def take(self, text: str) -> None:
        """Hear more."""
        self._ready += self._splitter.feed(text)

    def end(self) -> None:
        """Nothing more comes."""
        if not self.done:
            self._ready += self._splitter.end()
            self.done = True

    @property
    def is_empty(self) -> bool:
        """True where nothing can be seen of it."""
        return not (self._has_said or self._ready or self._splitter.open)

    def final(self, width: int) -> list[str]:
        """See `Item`."""
        ready, self._ready = self._ready, []
        lines: list[str] = []
        for piece in ready:
            lines += self._lines(piece, width)
            self._has_said = True
        return [*lines, *self._settled(width)]

    def _settled(self, width: int) -> list[str]:
        """The rows of a long paragraph that nothing behind them changes any more."""
        match self._splitter.open:
            case (Block(text, spaced),):
                gap = self._gap(spaced)
                if rows := self._paragraph.settle(text, width, self._palette):
                    self._has_said = True
                    self._drawn, self._rests_until = (None, []), 0.0
                    return [*gap, *rows]
            case _:
                pass
        return []

    def _gap(self, spaced: bool) -> list[str]:
        return [""] if spaced and self._has_said and not self._paragraph.has_begun else []

    def live(self, width: int, now: float) -> list[str]:
        """See `Item`."""
        state = self._splitter.open, width
        if self._drawn[0] != state and now >= self._rests_until:
            began = time.monotonic()
            shown = state[0] if self._paragraph.has_begun else map(shortened, state[0])
            lines = [line for piece in shown for line in self._lines(piece, width, final=False)]
            self._drawn = state, lines
            took = time.monotonic() - began
            self._rests_until = now + SHARE * took if took > BRIEF else 0.0
        return self._drawn[1]

    def _lines(self, piece: Piece, width: int, *, final: bool = True) -> list[str]:
        match piece:
            case Block(text, spaced):
                lines = [*self._gap(spaced), *self._paragraph.rest(text, width, self._palette)]
                if final:
                    self._paragraph = Paragraph()
                return lines
            case Fence(language, indent):
                self._code = Highlighter(language, self._palette)
                self._indent = " " * max(indent, len(INDENT))
                return [""] if self._has_said else []
            case Code(text):
                return self._code_lines(text, width, final=final)
            case FenceEnd():
                self._code = None
                return []

    def _code_lines(self, text: str, width: int, *, final: bool) -> list[str]:
        """A line of code; one that is too long goes to the terminal whole, which can copy it so."""
        text = text.expandtabs(4)
        painted = self._code.line(text, final=final) if self._code else text
        if final:
            return [f"{self._indent}{painted}"]
        return (
            folded(f"{self._indent}{text}", width)
            if len(text) > width // 2
            else [f"{self._indent}{painted}"]
        )


def shortened(piece: Piece) -> Piece:
    """The end of a paragraph that is one very long line: all of it takes longer each time."""
    if not isinstance(piece, Block) or len(piece.text) <= OPEN or "\n" in piece.text.rstrip():
        return piece
    return Block(piece.text[-OPEN:].partition(" ")[2], piece.spaced)


class Thought:
    """The model's thoughts: their last lines while it thinks, then a line that stands for all."""

    def __init__(self, palette: Palette, *, whole: bool = False) -> None:
        self.done = False
        self.text = ""
        self.whole = whole
        self._palette = palette
        self._began = time.monotonic()
        self._took = 0.0

    def take(self, text: str) -> None:
        """Hear more."""
        self.text += clean(text)

    def end(self) -> None:
        """The thought is over."""
        if not self.done:
            self._took = time.monotonic() - self._began
            self.done = True

    def final(self, width: int) -> list[str]:
        """See `Item`."""
        if not self.done or not self.text.strip():
            return []
        seconds = f" for {self._took:.0f} s" if self._took >= 1 else ""
        head = self._palette(
            f"∴ Thought{seconds}{'' if self.whole else ' · Ctrl-T shows it'}", "dim"
        )
        return [head, *(self.lines(width) if self.whole else ())]

    def live(self, width: int, now: float) -> list[str]:
        """See `Item`."""
        del now
        shown = self._rows(self._end, width)
        return [self._palette("∴ Thinking", "dim"), *shown[-THOUGHT_LINES:]] if shown else []

    def lines(self, width: int) -> list[str]:
        """All of it."""
        return self._rows(self.text, width)

    @property
    def _end(self) -> str:
        """Where its last lines are: all of a long thought takes longer each time."""
        steps = (len(self.text) - LAST) // LAST * LAST
        return self.text[max(self.text.rfind("\n", 0, -LAST) + 1, steps) :]

    def _rows(self, text: str, width: int) -> list[str]:
        rows = folded(text.strip(), width - len(INDENT))
        return [f"{INDENT}{self._palette(row, 'dim', 'italic')}" for row in rows if row.strip()]
