"""A list that is chosen from: searched while a word is typed, moved through with the arrows."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeAlias

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.filters import Condition
from prompt_toolkit.key_binding import KeyBindings

from crow.core.errors import CrowError
from crow.core.support.frozen import frozen
from crow.terminal.palette import Look, Palette
from crow.terminal.question import Asked
from crow.terminal.questions import Questions
from crow.text import columns, one_line, shorten

PAGE = 10
"""Rows that a page up or down goes over."""


@frozen
class Row:
    """Something to be chosen. ``about`` stands below it; ``refused`` says why it cannot be had.

    ``before`` is put in front of its text as it is, to show where it belongs.
    """

    value: Any
    text: str
    about: str = ""
    refused: str = ""
    before: str = ""


Rows: TypeAlias = Callable[[str, bool], Awaitable[Sequence[Row]]]
"""The rows for what was typed, and for whether all are wanted."""


class Picker(Asked):
    """A list that is open; its answer is the value of a row, None where none was chosen.

    ``more`` says what Tab shows beside: empty where that is nothing. ``at`` is the row that is
    highlighted at first, counted from the end where it is negative.
    """

    is_own = True

    def __init__(
        self,
        head: str,
        rows: Rows,
        palette: Palette,
        news: Callable[[], None],
        *,
        more: str = "",
        at: int = 0,
    ) -> None:
        super().__init__(head, (), palette, time.monotonic())
        self.typing = "list"
        self.wants_all = False
        self._source = rows
        self._news = news
        self._more = more
        self._text = ""
        self._at = at
        self._rows: Sequence[Row] | None = None
        self._search: asyncio.Task[None] | None = None

    def is_armed(self, now: float, last_key: float) -> bool:
        """True: the person has called for it."""
        del now, last_key
        return True

    # what keys do

    def search(self, text: str) -> None:
        """Show what fits what is typed now."""
        if self._search is not None:
            self._search.cancel()
        self._text = text
        self._search = asyncio.get_running_loop().create_task(self._find())

    async def _find(self) -> None:
        try:
            rows, trouble = await self._source(self._text, self.wants_all), ""
        except CrowError as error:
            rows, trouble = (), str(error)
        if self._rows is not None:
            self._at = 0
        self._rows, self._notes = rows, []
        if trouble:
            self.note(trouble)
        self._at = max(0, min(self._at + (len(rows) if self._at < 0 else 0), len(rows) - 1))
        self._news()

    def show_all(self) -> None:
        """Show more than at first, or that again."""
        if self._more:
            self.wants_all = not self.wants_all
            self.search(self._text)

    def move(self, by: int) -> None:
        """Highlight another row."""
        self._at = max(0, min(self._at + by, len(self._rows or ()) - 1))

    def typed(self, text: str) -> None:
        """Choose the highlighted row."""
        del text
        if not self._rows:
            return
        row = self._rows[self._at]
        if row.refused:
            self.note(row.refused)
        else:
            self.resolve(row.value)

    def back(self) -> None:
        """Choose none."""
        self.resolve(None)

    def leave(self) -> None:
        """Choose none; nothing else ends by that."""
        self.resolve(None)

    def end(self) -> None:
        """Search no more."""
        if self._search is not None:
            self._search.cancel()

    # how it looks

    def lines(self, width: int, height: int, *, armed: bool) -> list[str]:
        """The rows around the highlighted one, and what the keys do."""
        del armed
        paint, rows = self._palette, self._rows
        below = [paint(shorten(note, width), "yellow") for note in self._notes]
        below.append(paint(shorten(self._keys(), width), "dim"))
        head = f"{self.head} · {self._place}" if rows else self.head
        lines = [paint(shorten(head, width), "bold")]
        if rows is None:
            return [*lines, *below]
        if not rows:
            nothing = f"nothing holds {self._text!r}" if self._text.strip() else "there is nothing"
            return [*lines, paint(f"  {shorten(one_line(nothing), width - 2)}", "dim"), *below]
        rows_high = 2 if any(row.about for row in rows) else 1
        room = max(1, (height - len(lines) - len(below)) // rows_high)
        first = max(0, min(self._at - room // 2, len(rows) - room))
        for number, row in enumerate(rows[first : first + room], first):
            lines += self._row(row, width, is_chosen=number == self._at)
        return [*lines, *below]

    @property
    def _place(self) -> str:
        return f"{self._at + 1} of {len(self._rows or ())}"

    def _row(self, row: Row, width: int, *, is_chosen: bool) -> list[str]:
        paint = self._palette
        looks: tuple[Look, ...] = ("reverse",) if is_chosen else ()
        mark = "❯ " if is_chosen else "  "
        room = max(4, width - 2 - columns(row.before))
        text = f"{mark}{row.before}{paint(shorten(one_line(row.text), room), *looks)}"
        if not row.about:
            return [text]
        return [text, paint(f"    {shorten(one_line(row.about), width - 4)}", "dim")]

    def _keys(self) -> str:
        more = f" · Tab {self._more}" if self._more else ""
        return f"Enter chooses{more} · Esc closes · type to search"


async def pick(questions: Questions, picker: Picker) -> Any:
    """The value that the person chooses; None where they choose none."""

    def search(draft: Buffer) -> None:
        picker.search(draft.text)

    questions.draft.on_text_changed += search
    try:
        picker.search("")
        return await questions.show(picker)
    finally:
        questions.draft.on_text_changed -= search
        picker.end()


def add_picking(keys: KeyBindings, questions: Callable[[], Questions]) -> None:
    """The keys of a list, beside those of words that are typed."""
    is_picking = Condition(lambda: isinstance(questions().asked, Picker))

    def let(name: str, act: Callable[[Picker], object]) -> None:
        @keys.add(name, filter=is_picking)
        def _(event: object) -> None:
            del event
            if isinstance(picker := questions().asked, Picker):
                act(picker)
                questions().look()

    let("enter", lambda picker: picker.typed(""))
    let("up", lambda picker: picker.move(-1))
    let("down", lambda picker: picker.move(1))
    let("pageup", lambda picker: picker.move(-PAGE))
    let("pagedown", lambda picker: picker.move(PAGE))
    let("tab", Picker.show_all)
