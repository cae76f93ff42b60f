"""The live area at the bottom of the terminal, and the lines that go above it for good."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import termios
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any, Protocol
from weakref import WeakKeyDictionary

from prompt_toolkit.application import Application, in_terminal
from prompt_toolkit.cursor_shapes import ModalCursorShapeConfig
from prompt_toolkit.enums import EditingMode
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import ANSI, StyleAndTextTuples, to_formatted_text
from prompt_toolkit.input import Input, create_input
from prompt_toolkit.input.vt100 import Vt100Input
from prompt_toolkit.key_binding import KeyBindings, KeyBindingsBase, merge_key_bindings
from prompt_toolkit.key_binding.key_bindings import DynamicKeyBindings
from prompt_toolkit.layout.containers import ConditionalContainer, DynamicContainer, HSplit, Window
from prompt_toolkit.layout.controls import BufferControl, FormattedTextControl
from prompt_toolkit.layout.dimension import Dimension
from prompt_toolkit.layout.layout import Layout
from prompt_toolkit.layout.processors import ConditionalProcessor, PasswordProcessor
from prompt_toolkit.layout.screen import Screen as Cells
from prompt_toolkit.output.color_depth import ColorDepth
from prompt_toolkit.styles import Style
from prompt_toolkit.widgets import SearchToolbar

from crow.terminal.background import ASK, Replies
from crow.terminal.editor import Editor
from crow.terminal.output import TerminalOutput
from crow.terminal.questions import Questions

FRAME = 1 / 30
"""Seconds between two frames of what comes by itself; keys are shown at once."""
SHARE = 4
"""How many times as long as it took to draw a frame nothing is drawn then, at least."""
SOON = 1.0
"""Seconds in which the terminal may say what it is; nobody waits for it."""
EDITOR_ROWS = 10
MARK, REST = "> ", "  "
STYLE = Style([("mark", "bold ansicyan"), ("status", "fg:ansibrightblack"), ("search-toolbar", "")])
UNFOLDED = ("XTERM_VERSION",)
"""Variables of terminals that cut long rows where the window gets narrower, and fold none."""


class Drawn(Protocol):
    """The content of the screen."""

    def committed(self, width: int) -> list[str]:
        """The lines that are final since the last time."""
        ...

    def live(self, width: int, height: int) -> list[str]:
        """The lines that change, ``height`` at most."""
        ...

    def menu(self, width: int) -> list[str]:
        """What can be chosen from below the editor."""
        ...

    @property
    def questions(self) -> Questions:
        """What is asked."""
        ...

    @property
    def added_keys(self) -> KeyBindingsBase:
        """Keys that do something beside the screen's own."""
        ...

    def bottom(self, width: int) -> list[str]:
        """The last line, or several."""
        ...

    def end(self) -> None:
        """There is nobody to draw for any more."""
        ...


class Screen:
    """Draws: `refresh` says that there is news, `run` does it until `exit`."""

    def __init__(
        self,
        drawn: Drawn,
        editor: Editor,
        keys: KeyBindings,
    ) -> None:
        self._drawn = drawn
        self.keys: KeyBindingsBase = keys
        self.output = TerminalOutput(sys.stdout, drawn.end)
        self.is_shown = asyncio.Event()
        self._editor = editor
        self._answering: WeakKeyDictionary[Questions, Window] = WeakKeyDictionary()
        self._lines: list[str] = []
        self._final: list[str] = []
        self._timer: asyncio.TimerHandle | None = None
        self._drawn_at = self._cost = 0.0
        self._size = self.output.get_size()
        self._told: Callable[[str], object] = str
        self._asked_at = 0.0
        self._is_answered = True
        self.app: Application[None] = LiveArea(
            layout=self._layout(),
            key_bindings=merge_key_bindings(
                [
                    DynamicKeyBindings(lambda: self._drawn.added_keys),
                    DynamicKeyBindings(lambda: self.keys),
                ]
            ),
            style=STYLE,
            include_default_pygments_style=False,
            color_depth=ColorDepth.DEPTH_1_BIT if os.environ.get("NO_COLOR") else None,
            erase_when_done=True,
            input=self._input(),
            output=self.output,
        )
        self.app.ttimeoutlen = 0.05
        self.app.timeoutlen = 0.05
        self.app.key_processor.before_key_press += self._key
        self.app.before_render += self._before
        self.app.after_render += self._after

    def _input(self) -> Input:
        """What is typed; what the terminal says by itself is none of that."""
        source = create_input(always_prefer_tty=True)
        if isinstance(source, Vt100Input):
            reader: Any = Replies(source.stdin_reader, self._hear)
            source.stdin_reader = reader
        return source

    def edit_as_vi(self) -> None:
        """Take the keys of vi in the editor; the cursor's form says in which mode that is."""
        self.app.editing_mode = EditingMode.VI
        self.app.cursor = ModalCursorShapeConfig()

    def ask(self, told: Callable[[str], object]) -> None:
        """Ask the terminal what it is; ``told`` is called with what it says soon."""
        self._told, self._asked_at = told, time.monotonic()
        self._is_answered = False
        self.output.write_raw(ASK)
        self.output.flush()

    def _hear(self, reply: str) -> None:
        """The terminal has said something."""
        if not self._is_answered and time.monotonic() - self._asked_at < SOON:
            self._told(reply)
        self._is_answered = self._is_answered or reply.endswith("c")

    def _layout(self) -> Layout:
        search = SearchToolbar(ignore_case=True)
        draft = BufferControl(
            self._editor.buffer, search_buffer_control=search.control, preview_search=True
        )
        self._draft = written(draft)
        typing = Condition(lambda: self._drawn.questions.is_typing)
        body = [
            self._text(self._shown),
            ConditionalContainer(DynamicContainer(lambda: self._answers), typing),
            ConditionalContainer(self._draft, ~typing),
            search,
            self._text(lambda: self._drawn.menu(self.width)),
            self._text(lambda: self._drawn.bottom(self.width), "class:status"),
        ]
        return Layout(HSplit(body), self._draft)

    @property
    def _answers(self) -> Window:
        """Where words are typed as an answer, as they were left."""
        questions = self._drawn.questions
        if (window := self._answering.get(questions)) is None:
            hides = Condition(lambda: self._drawn.questions.hides)
            masked = ConditionalProcessor(PasswordProcessor("•"), hides)
            window = written(BufferControl(questions.draft, input_processors=[masked]))
            self._answering[questions] = window
        return window

    def _text(self, lines: Callable[[], list[str]], style: str = "") -> Window:
        """A part of the screen that is as high as what is in it."""
        control = FormattedTextControl(lambda: fragments(lines(), style))
        return Window(control, lambda: Dimension.exact(len(lines())), dont_extend_height=True)

    # size

    @property
    def width(self) -> int:
        """Cells of a line that may be used: the last one would make some terminals fold it."""
        return max(10, self._size.columns - 1)

    @property
    def height(self) -> int:
        """Rows of the live area above the editor."""
        others = len(self._drawn.menu(self.width)) + 1 + len(self._drawn.bottom(self.width))
        rows = self._editor.buffer.document.line_count
        return max(1, self._size.rows - 2 - others - min(rows, EDITOR_ROWS))

    # news

    def refresh(self) -> None:
        """There is something new to be seen, soon."""
        if self._timer is None and self.app.is_running:
            wait = max(FRAME, SHARE * self._cost)
            delay = max(0.0, self._drawn_at + wait - time.monotonic())
            self._timer = asyncio.get_running_loop().call_later(delay, self._frame)

    def now(self) -> None:
        """Draw what there is at once; what is still to come by itself comes then as well."""
        self._draw()

    def keep(self) -> None:
        """Let what is final be written, whoever is to be seen next."""
        self._final += self._drawn.committed(self.width)

    def _frame(self) -> None:
        self._timer = None
        self._draw()

    def _draw(self) -> None:
        self._drawn_at = time.monotonic()
        self._take()
        self._cost = time.monotonic() - self._drawn_at
        self.app.invalidate()

    def _take(self) -> None:
        self._size = self.output.get_size()
        self._final += self._drawn.committed(self.width)
        self._lines = self._drawn.live(self.width, self.height)

    def _shown(self) -> list[str]:
        return [*self._lines[-self.height :], ""]

    # frames

    def _before(self, app: Application[None]) -> None:
        """Write what is final above the live area."""
        if (size := self.output.get_size()) != self._size:
            self._size = size
            self._take()
        self._focus()
        self.output.hold()
        final, self._final = self._final, []
        if final or self._shrinks():
            app.renderer.erase()
        self.output.write_raw("".join(f"{line}\r\n" for line in final))

    def _after(self, app: Application[None]) -> None:
        del app
        self.output.release()
        self.is_shown.set()

    def _key(self, _: object) -> None:
        """A key was pressed: see whom it is for before anybody takes it."""
        self._drawn.questions.note_key()
        self._focus()

    def _focus(self) -> None:
        wanted = self._answers if self._drawn.questions.is_typing else self._draft
        layout = self.app.layout
        if not layout.is_searching and layout.current_window is not wanted:
            layout.focus(wanted)

    def _shrinks(self) -> bool:
        """True where less is to be shown than stands there: the rest would stay empty."""
        last = self.app.renderer.last_rendered_screen
        if last is None:
            return False
        container = self.app.layout.container
        return (
            container.preferred_height(self._size.columns, self._size.rows).preferred < last.height
        )

    async def run(self) -> None:
        """Show everything until the end."""
        self.output.open()
        try:
            await self.app.run_async(pre_run=self._take)
        finally:
            if self._timer is not None:
                self._timer.cancel()
            self._final += self._drawn.committed(self.width)
            self.output.write_raw("".join(f"{line}\r\n" for line in self._final))
            self._final = []
            self.output.close()
            if not self._is_answered:
                with suppress(OSError, termios.error):
                    termios.tcflush(sys.stdout.fileno(), termios.TCIFLUSH)

    def suspend(self) -> None:
        """Stop as a job of the shell does."""

        async def stop() -> None:
            async with in_terminal():
                self.output.close()
                os.kill(0, signal.SIGTSTP)
                self.output.open()

        self.app.create_background_task(stop())

    def exit(self) -> None:
        """End it."""
        if self.app.is_running and not self.app.is_done:
            self.app.exit()


def written(control: BufferControl) -> Window:
    """A part of the screen that is typed in."""
    rows = Dimension(min=1, max=EDITOR_ROWS)
    return Window(control, rows, wrap_lines=True, dont_extend_height=True, get_line_prefix=prefix)


class LiveArea(Application[None]):
    """An application that finds its place again where the terminal has folded its rows."""

    def _on_resize(self) -> None:
        last = self.renderer.last_rendered_screen
        if last is not None:
            width = self.output.get_size().columns
            cursor = last.get_cursor_position(self.layout.current_window)
            rows = [row_width(last, y) for y in range(cursor.y)]
            self.output.write_raw("\r")
            self.output.cursor_up(rows_above(rows, cursor.x, width))
            self.output.erase_down()
        self.renderer.reset(leave_alternate_screen=False)
        self._redraw()


def rows_above(widths: Sequence[int], cursor: int, columns: int) -> int:
    """How many rows stand above the cursor in a terminal that folds rows of these widths."""
    if any(name in os.environ for name in UNFOLDED):
        return len(widths)
    return sum(max(1, -(-width // columns)) for width in widths) + cursor // columns


def row_width(cells: Cells, y: int) -> int:
    """How many cells of a row are in use."""
    row = cells.data_buffer[y]
    return max((x + char.width for x, char in row.items() if char.char.strip()), default=0)


def prefix(number: int, wrapped: int) -> StyleAndTextTuples:
    """What stands before a line of the editor."""
    return [("class:mark", MARK)] if not number and not wrapped else [("", REST)]


def fragments(lines: list[str], style: str = "") -> StyleAndTextTuples:
    """Painted lines as prompt-toolkit draws them."""
    found: Any = []
    for number, line in enumerate(lines):
        if number:
            found.append(("", "\n"))
        found += painted(line, style)
    return found


@lru_cache(512)
def painted(line: str, style: str) -> tuple[Any, ...]:
    """One line of them, in pieces of one look: `ANSI` makes one of each letter, which is slow."""
    pieces: list[tuple[str, str]] = []
    for look, text, *_ in to_formatted_text(ANSI(line), style=style):
        before = pieces.pop()[1] if pieces and pieces[-1][0] == look else ""
        pieces.append((look, before + text))
    return tuple(pieces)
