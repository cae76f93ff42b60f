"""The terminal as a client: shows what happens, asks the person, hands on what is typed."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Coroutine, Mapping
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, TypeVar

from prompt_toolkit.completion import Completer

from crow.core.events import (
    ConfigChanged,
    Event,
    RunEnded,
    UsageReported,
)
from crow.core.ports import Files, PermissionRequest, Question, Terminals
from crow.terminal.beside import Beside
from crow.terminal.clipboard import picture_in_clipboard
from crow.terminal.conversation import Conversation, Extras
from crow.terminal.editor import Editor
from crow.terminal.keys import Pressed, added_keys, bindings
from crow.terminal.menu import menu_lines
from crow.terminal.outbox import Outbox
from crow.terminal.palette import Palette
from crow.terminal.questions import Questions
from crow.terminal.screen import Screen
from crow.terminal.status import Status
from crow.terminal.transcript import Transcript
from crow.terminal.working import BEAT, Working
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
ABSENT = 6.0
"""Seconds without a key after which somebody is called who is waited for."""


class Terminal:
    """A client that shows a conversation and lets it be steered.

    ``conversation`` is set once there is one; ``watch`` is called with each event. Everything that
    is typed is kept until it is said: `next_prompt` gives it, or the run that is on is told.
    """

    files: Files | None = None
    terminals: Terminals | None = None
    answers = True

    def __init__(
        self, cwd: str, *, history: Path | None = None, completer: Completer | None = None
    ) -> None:
        self.palette = Palette.of_environment()
        self.conversation: Conversation | None = None
        self.status = Status()
        self.transcript = Transcript(self.palette, cwd)
        self.editor = Editor(history, completer)
        self.outbox = Outbox()
        self.working: Working | None = None
        self.watch: Callable[[Event], object] = lambda _: None
        self._widget: Callable[[], list[str]] = list[str]
        self._armed_until = self._escaped_at = 0.0
        self._moves = not os.environ.get("CROW_REDUCED_MOTION")
        self._title = ""
        self.questions = Questions(self.palette, self._look, self._call, self.interrupt)
        self.screen = Screen(self, self.editor, self.questions, bindings(self))

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
        beside = Beside(self._print)
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
            if self.working or self.questions.asked or self._armed_until:
                self.screen.refresh()

    @property
    def _is_moving(self) -> bool:
        """True while there is something to be seen that moves, or a question about to take keys."""
        if self.questions.asked is not None:
            return not self.questions.is_asking
        return self._moves and self.working is not None

    def use(self, extras: Extras) -> None:
        """Show what others add."""
        self._widget = extras.widget
        self.status.more = extras.status
        self.transcript.card_body = extras.card

    def bind(self, acts: Mapping[Pressed, Callable[[], object]]) -> None:
        """Let these keys do something beside the screen's own, which keep what they do."""
        self.screen.added_keys = added_keys(self, acts)

    def _look(self) -> None:
        """Show what is new of a question."""
        self.screen.now()

    def leave(self) -> None:
        """End the talk, as soon as what is being done has ended."""
        self.outbox.close()
        self.questions.refuse()
        self.interrupt()

    @property
    def is_left(self) -> bool:
        """True where the person wants to leave."""
        return self.outbox.is_closed

    # what happens, as the loop tells it

    async def update(self, session_id: str, event: Event) -> None:
        """Show an event."""
        self._deliver()
        self._note(event)
        self.watch(event)
        self.transcript.take(session_id, event)
        if isinstance(event, RunEnded) and session_id == self.transcript.session_id:
            self.transcript.end()
        self.screen.refresh()
        await asyncio.sleep(0)

    def _note(self, event: Event) -> None:
        """Keep what the lines at the bottom say."""
        match event:
            case UsageReported():
                self.status.report(event)
                if self.working:
                    self.working.report(event.last)
            case ConfigChanged(changes):
                self.status.mode = changes.get("mode", self.status.mode)
                self.status.model = changes.get("model", None) or self.status.model
            case _ if self.working:
                self.working.note(event)
            case _:
                pass

    async def permission(self, session_id: str, request: PermissionRequest) -> str | None:
        """Ask the person; what was said with a no is told to the model."""
        answer, words = await self.questions.permission(request, self.transcript.cwd)
        if words and self.conversation is not None:
            self.outbox.steer(words, self.conversation)
        return answer

    async def ask(self, session_id: str, question: Question) -> Any:
        """Ask the person something else."""
        return await self.questions.question(question)

    async def secret(self, text: str) -> str | None:
        """Ask for a line that is not shown."""
        return await self.questions.secret(text)

    def _print(self, lines: list[str]) -> None:
        """Show what somebody has printed."""
        self.transcript.write(lines)
        self.screen.refresh()

    def obey(self, sequence: str) -> None:
        """Have the terminal do what a hook wants of it; the caller knows that it is harmless."""
        self.screen.output.write_raw(sequence)
        self.screen.output.flush()

    def tell(self, text: str, *, is_error: bool = False) -> None:
        """Say something at the end of the conversation."""
        self.transcript.close(text, "error" if is_error else "info")
        self.screen.refresh()

    # prompts

    async def next_prompt(self) -> str | None:
        """What the person says next; None where they leave."""
        return await self.outbox.next()

    def begin(self, prompt: str = "") -> None:
        """A prompt is being worked on; one that somebody sees already need not be shown."""
        if prompt:
            self.transcript.prompt(prompt)
        self.working = Working()
        self.screen.now()

    def finish(self, *, interrupted: bool = False, tells: bool = True) -> None:
        """The prompt is done with: what was not heard is said next, or edited where that ended.

        Without ``tells`` somebody else says that it was interrupted.
        """
        self._deliver()
        took = time.monotonic() - self.working.began if self.working else 0.0
        self.working = None
        self.transcript.end()
        if interrupted:
            if tells:
                self.transcript.close("interrupted", "warning")
            while self.outbox:
                self.take_back()
        self.outbox.postpone()
        if took > ABSENT:
            self._call("Crow is done")
        self.screen.now()

    def type(self, text: str) -> None:
        """Take what was typed before: every line of it was ended by Enter, but the last one."""
        *lines, rest = text.split("\n")
        for line in filter(str.strip, lines):
            self.outbox.put(line)
        self.editor.paste(rest)

    def submit(self, *, later: bool = False) -> None:
        """Say what was typed: at once, to the run that is on, or ``later``."""
        text = self.editor.take()
        is_talk = not text.startswith(("/", "!", "#"))
        if self.working and self.conversation and is_talk and not later and text.strip():
            self.outbox.steer(text, self.conversation)
        elif text.strip():
            self.outbox.put(text)
        self.screen.now()

    def _deliver(self) -> None:
        """Put what the model has heard meanwhile where it was said."""
        for text in self.outbox.delivered():
            self.transcript.prompt(text)

    def take_back(self) -> None:
        """Edit the last thing again that waits to be said."""
        self._deliver()
        if (text := self.outbox.take_back()) is not None:
            self.editor.put_back(text)
            self.screen.now()

    def expand(self) -> None:
        """Show all of the question, else of the last card."""
        if (asked := self.questions.asked) is not None:
            asked.whole = not asked.whole
        else:
            self.transcript.expand()
        self.screen.now()

    def interrupt(self) -> None:
        """End what is being done."""
        if self.conversation is not None:
            self.conversation.interrupt()

    def escape(self) -> None:
        """End what is being done; twice where nothing is, go back to an earlier prompt."""
        now, before = time.monotonic(), self._escaped_at
        self._escaped_at = 0.0 if self.working else now
        self.interrupt()
        if now - before < TWICE and not self.working and not self.editor.clear():
            self.outbox.put(REWIND)
        self.screen.now()

    def control_c(self) -> None:
        """Refuse, else clear the draft, else interrupt, else leave when it comes once more."""
        now = time.monotonic()
        if self.questions.asked is not None:
            self.questions.refuse()
        elif self.editor.clear():
            pass
        elif self.working:
            self.interrupt()
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
                self.tell("there is no picture in the clipboard, or nobody who gives it")
            self.screen.now()

        self.screen.app.create_background_task(paste())

    def next_mode(self) -> None:
        """Go on in the next mode."""
        if self.conversation is not None:
            self.conversation.next_mode()

    def unfold(self) -> None:
        """Show thoughts whole, or fold them."""
        self.transcript.unfold()
        self.screen.now()

    def redraw(self) -> None:
        """Draw the live area anew."""
        self.screen.app.renderer.erase()
        self.screen.now()

    def suspend(self) -> None:
        """Give the terminal back to the shell until it brings this to the front again."""
        self.screen.suspend()

    def _call(self, text: str) -> None:
        """Call the person, where they do not look."""
        if time.monotonic() - self.questions.last_key > ABSENT or self.questions.asked:
            self.screen.output.notify(text)

    # how it looks

    def committed(self, width: int) -> list[str]:
        """See `crow.terminal.screen.Drawn`."""
        self._name()
        return self.transcript.committed(width)

    def live(self, width: int, height: int) -> list[str]:
        """See `crow.terminal.screen.Drawn`."""
        now = time.monotonic()
        below = [
            *self.outbox.lines(width, self.palette),
            *self._bottom(width, max(3, height - 3), now),
            *(self.palette(shorten(line, width), "dim") for line in self._widget()),
        ]
        steps = self.transcript.steps(width) if self.working else []
        above = [*self.transcript.live(width, now), *(["", *steps] if steps else ())]
        room = max(0, height - len(below) - 1)
        return [*above[-room:], *(["", *below] if below else ())] if room else below[-height:]

    def _bottom(self, width: int, height: int, now: float) -> list[str]:
        """The question, or else what is being done."""
        if self.questions.asked is not None:
            return self.questions.lines(width, height)
        if self.working is not None:
            return [self.working.line(width, now, self.palette, moves=self._moves)]
        return []

    def menu(self, width: int) -> list[str]:
        """See `crow.terminal.screen.Drawn`."""
        state = self.editor.buffer.complete_state
        if state is None or self.questions.asked is not None:
            return []
        return menu_lines(state, width, self.palette)

    def bottom(self, width: int) -> list[str]:
        """The line at the bottom, or what a key would do now."""
        if time.monotonic() < self._armed_until:
            return [shorten("Press Ctrl-C again to leave", width)]
        self._armed_until = 0.0
        return self.status.lines(width)

    def _name(self) -> None:
        """Name the window by what is going on."""
        state = "? " if self.questions.asked else "✳ " if self.working else ""
        title = f"{state}crow · {Path(self.transcript.cwd).name}"
        if title != self._title:
            self._title = title
            self.screen.output.title(title)
