"""The terminal's window: a screen, an editor, keys, and the sessions that are talked to in it."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Coroutine
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, TypeVar

from prompt_toolkit.completion import Completer
from prompt_toolkit.key_binding import KeyBindingsBase

from crow.terminal.clipboard import picture_in_clipboard
from crow.terminal.editor import Editor
from crow.terminal.keys import bindings
from crow.terminal.menu import menu_lines
from crow.terminal.palette import Palette
from crow.terminal.picker import Picker
from crow.terminal.pictures import protocol_of
from crow.terminal.progress_line import BEAT
from crow.terminal.questions import Questions
from crow.terminal.roster import heading, roster_line
from crow.terminal.screen import Screen
from crow.terminal.stdout_redirect import RedirectedStdout
from crow.terminal.tab import ABSENT, Tab
from crow.text import one_line, shorten

T = TypeVar("T")
TWICE = 0.6
"""Seconds in which a second Esc belongs to the first."""
REWIND = "/rewind"
"""What is said by that."""
ARMED = 2.0
"""Seconds in which a second Ctrl-C leaves."""
SLOW = 0.5
"""Seconds between two looks at the clock where nothing moves."""
CALLED = 24
"""Letters of a session's name in what calls the person to it."""


class Terminal:
    """A window with one tab or several; keys go to the one in ``front``."""

    def __init__(
        self, cwd: str, *, history: Path | None = None, completer: Completer | None = None
    ) -> None:
        self.palette = Palette.of_environment()
        self.palette.pictures = protocol_of(os.environ)
        self.editor = Editor(history, completer)
        self.front = Tab(self, cwd)
        self.tabs = [self.front]
        self.is_left = False
        self._armed_until = self._escaped_at = 0.0
        self._moves = not os.environ.get("CROW_REDUCED_MOTION")
        self._title = ""
        self.screen = Screen(self, self.editor, bindings(self))

    # its life

    async def run(self, talk: Coroutine[Any, Any, T]) -> T:
        """Show the talk until it ends; its result. Whatever is printed meanwhile stands above.

        It begins when the screen is there.
        """

        async def begin() -> T:
            await self.screen.is_shown.wait()
            return await talk

        task = asyncio.create_task(begin())
        task.add_done_callback(lambda _: self.screen.exit())
        beat = asyncio.create_task(self._beat())
        beside = RedirectedStdout(self._print)
        try:
            with redirect_stdout(beside), redirect_stderr(beside):
                await self.screen.run()
        finally:
            beat.cancel()
            if not task.done():
                task.cancel()
        return await task

    async def _beat(self) -> None:
        """Let time be seen to pass, as long as there is something that takes it."""
        while True:
            await asyncio.sleep(BEAT if self._is_moving else SLOW)
            if self._armed_until or any(tab.state in ("works", "waits") for tab in self.tabs):
                self.screen.refresh()

    @property
    def _is_moving(self) -> bool:
        """True while there is something to be seen that moves, or a question about to take keys."""
        if self.questions.asked is not None:
            return not self.questions.is_asking
        return self._moves and self.front.working is not None

    def _print(self, lines: list[str]) -> None:
        """Show what somebody has printed."""
        self.front.transcript.write(lines)
        self.screen.refresh()

    def leave(self) -> None:
        """End the talk; where other sessions would be stopped by that, only if it comes twice."""
        now = time.monotonic()
        if self.busy(beside=self.front) and now >= self._armed_until:
            self._armed_until = now + ARMED
            self.screen.now()
        else:
            self.end()

    def end(self) -> None:
        """End the talk, as soon as what is being done has ended."""
        self.is_left = True
        for tab in self.tabs:
            tab.leave()

    def busy(self, *, beside: Tab) -> list[Tab]:
        """The other tabs in which something goes on."""
        return [tab for tab in self.tabs if tab is not beside and tab.state in ("works", "waits")]

    # tabs

    @property
    def questions(self) -> Questions:
        """What is asked in front."""
        return self.front.questions

    @property
    def added_keys(self) -> KeyBindingsBase:
        """The keys of extensions that do something now."""
        return self.front.keys

    def open(self, cwd: str) -> Tab:
        """One more tab, behind the others."""
        tab = Tab(self, cwd)
        self.tabs.append(tab)
        return tab

    def close(self, tab: Tab) -> None:
        """Show a tab no more; the last one stays."""
        at = self.tabs.index(tab)
        if len(self.tabs) > 1:
            self.tabs.remove(tab)
            if tab is self.front:
                self.show(self.tabs[max(0, at - 1)])
        self.screen.refresh()

    def show(self, tab: Tab) -> None:
        """Bring a tab to the front. What has been said in it meanwhile is seen then."""
        if tab is self.front or isinstance(self.questions.asked, Picker):
            return
        self.front.go()
        self.screen.keep()
        self.front = tab
        number = self.tabs.index(tab) + 1
        tab.transcript.write(["", heading(number, tab.name, self.screen.width, self.palette)])
        tab.come()
        self.screen.now()

    def show_number(self, number: int) -> None:
        """Bring a tab to the front, counted from 1."""
        if 0 < number <= len(self.tabs):
            self.show(self.tabs[number - 1])

    def show_waiting(self) -> None:
        """Bring the next tab to the front that waits for the person, else that is done."""
        at = self.tabs.index(self.front) + 1
        others = [*self.tabs[at:], *self.tabs[: at - 1]]
        for state in ("waits", "done"):
            if found := next((tab for tab in others if tab.state == state), None):
                self.show(found)
                return

    # prompts

    def type(self, text: str) -> None:
        """Take what was typed before: every line of it was ended by Enter, but the last one."""
        *lines, rest = text.split("\n")
        for line in filter(str.strip, lines):
            self.front.outbox.put(line)
        self.editor.paste(rest)

    def submit(self, *, later: bool = False) -> None:
        """Say what was typed: at once, to the run that is on, or ``later``."""
        self.front.submit(self.editor.take(), later=later)
        self.screen.now()

    def take_back(self) -> None:
        """Edit the last thing again that waits to be said."""
        self.front.take_back()

    def expand(self) -> None:
        """Show all of the question, else of the last card."""
        if (asked := self.questions.asked) is not None:
            asked.whole = not asked.whole
        else:
            self.front.transcript.expand()
        self.screen.now()

    def escape(self) -> None:
        """End what is being done; twice where nothing is, go back to an earlier prompt."""
        now, before, works = time.monotonic(), self._escaped_at, self.front.working
        self._escaped_at = 0.0 if works else now
        self.front.interrupt()
        if now - before < TWICE and not works and not self.editor.clear():
            self.front.outbox.put(REWIND)
        self.screen.now()

    def control_c(self) -> None:
        """Refuse, else clear the draft, else interrupt, else leave when it comes once more."""
        now = time.monotonic()
        if self.questions.asked is not None:
            self.questions.refuse()
        elif self.editor.clear():
            pass
        elif self.front.working:
            self.front.interrupt()
        elif now < self._armed_until:
            self.leave()
        else:
            self._armed_until = now + ARMED
        self.screen.now()

    # keys

    def enter(self) -> None:
        """Say what was typed, or begin another line behind a backslash."""
        if not self.editor.continues():
            self.editor.choose_command()
            self.submit()

    def submit_later(self) -> None:
        """Let what was typed be said when the run is over."""
        self.submit(later=True)

    def paste(self, data: str) -> None:
        """Take what was pasted as text, whatever keys it has in it."""
        if self.questions.is_typing:
            self.questions.draft.insert_text(one_line(data))
        else:
            self.editor.paste(data)

    def paste_picture(self) -> None:
        """Write where the picture of the clipboard lies, which goes along then."""

        async def paste() -> None:
            if path := await picture_in_clipboard():
                self.editor.paste(f"{path} ")
            else:
                self.front.tell("there is no picture in the clipboard, or nobody who gives it")
            self.screen.now()

        self.screen.app.create_background_task(paste())

    def next_mode(self) -> None:
        """Go on in the next mode."""
        if self.front.conversation is not None:
            self.front.conversation.next_mode()

    def unfold(self) -> None:
        """Show thoughts whole, or fold them."""
        self.front.transcript.unfold()
        self.screen.now()

    def redraw(self) -> None:
        """Draw the live area anew."""
        self.screen.app.renderer.erase()
        self.screen.now()

    def suspend(self) -> None:
        """Give the terminal back to the shell until it brings this to the front again."""
        self.screen.suspend()

    def call(self, tab: Tab, text: str) -> None:
        """Call the person, where they do not look."""
        away = time.monotonic() - self.questions.last_key > ABSENT
        if away or tab.questions.asked or tab is not self.front:
            name = f"{shorten(one_line(tab.name), CALLED)}: " if len(self.tabs) > 1 else ""
            self.screen.output.notify(name + text)

    # how it looks

    def committed(self, width: int) -> list[str]:
        """See `crow.terminal.screen.Drawn`."""
        self._name()
        return self.front.transcript.committed(width)

    def live(self, width: int, height: int) -> list[str]:
        """See `crow.terminal.screen.Drawn`."""
        return self.front.live(width, height, time.monotonic(), moves=self._moves)

    def menu(self, width: int) -> list[str]:
        """See `crow.terminal.screen.Drawn`."""
        state = self.editor.buffer.complete_state
        if state is None or self.questions.asked is not None:
            return []
        return menu_lines(state, width, self.palette)

    def bottom(self, width: int) -> list[str]:
        """The sessions where there are several, and the line at the bottom, or a key's effect."""
        roster = [roster_line(self.tabs, self.front, width)] if len(self.tabs) > 1 else []
        if time.monotonic() < self._armed_until:
            return [*roster, shorten(self._warning(), width)]
        self._armed_until = 0.0
        return [*roster, *self.front.status.lines(width)]

    def _warning(self) -> str:
        """What the key that leaves does when it comes once more."""
        if stopped := len(self.busy(beside=self.front)):
            return f"{stopped} at work beside: once more leaves, and stops them"
        return "Press Ctrl-C again to leave"

    def _name(self) -> None:
        """Name the window by what is going on."""
        states = {tab.state for tab in self.tabs}
        mark = "? " if "waits" in states else "✳ " if "works" in states else ""
        title = f"{mark}crow · {Path(self.front.transcript.cwd).name}"
        if title != self._title:
            self._title = title
            self.screen.output.title(title)
