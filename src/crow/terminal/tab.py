"""A session on the screen: what happens in it, what it asks, what was typed for it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Literal, Protocol, TypeAlias

from prompt_toolkit.key_binding import KeyBindings, KeyBindingsBase

from crow.core.events import ConfigChanged, Event, RunEnded, UsageReported, UserMessage
from crow.core.messages import text_of
from crow.core.ports.client import Files, PermissionRequest, Question, Terminals
from crow.terminal.conversation import Conversation, Extras
from crow.terminal.editor import Draft, Editor
from crow.terminal.keys import Pressed, added_keys
from crow.terminal.outbox import Outbox
from crow.terminal.palette import Palette
from crow.terminal.progress_line import ProgressLine
from crow.terminal.questions import Questions
from crow.terminal.screen import Screen
from crow.terminal.status import Status
from crow.terminal.transcript import Transcript
from crow.text import shorten

ABSENT = 6.0
"""Seconds of work after which somebody is called who may look elsewhere."""
NO_KEYS = KeyBindings()
State: TypeAlias = Literal["waits", "works", "done", "idle"]
"""What a session does: it waits for the person, works, has ended unseen, or nothing."""


class Window(Protocol):
    """The window that shows a tab."""

    palette: Palette
    editor: Editor
    screen: Screen
    front: Tab
    tabs: list[Tab]

    def show(self, tab: Tab) -> None:
        """Bring a tab to the front."""
        ...

    def call(self, tab: Tab, text: str) -> None:
        """Call the person, who may not look."""
        ...


class Tab:
    """A client that shows a conversation and lets it be steered.

    ``conversation`` is set once there is one; ``watch`` is called with each event. Everything that
    is typed is kept until it is said: `next_prompt` gives it, or the run that is on is told.
    ``first`` is the first prompt. ``keys`` are those that its extensions have added.
    ``takes_at_once`` does what is said, whatever goes on; False where it has to wait its turn.
    """

    files: Files | None = None
    terminals: Terminals | None = None
    answers = True

    def __init__(self, window: Window, cwd: str) -> None:
        self.window = window
        self.conversation: Conversation | None = None
        self.status = Status()
        self.transcript = Transcript(window.palette, cwd)
        self.outbox = Outbox()
        self.working: ProgressLine | None = None
        self.watch: Callable[[Event], object] = lambda _: None
        self.widget: Callable[[], list[str]] = list[str]
        self.keys: KeyBindingsBase = NO_KEYS
        self.takes_at_once: Callable[[str], bool] = lambda _: False
        self.draft = Draft()
        self.first = ""
        self._is_done = False
        call = partial(window.call, self)
        self.questions = Questions(window.palette, self.look, call, self.interrupt)

    @property
    def is_front(self) -> bool:
        """True while this is what the person sees."""
        return self.window.front is self

    @property
    def name(self) -> str:
        """What it is called: the session's title, or its first prompt."""
        return (self.conversation.title if self.conversation else "") or self.first or "new"

    @property
    def state(self) -> State:
        """What goes on in it."""
        if self.questions.asked is not None and not self.questions.asked.is_own:
            return "waits"
        if self.working is not None:
            return "works"
        return "done" if self._is_done else "idle"

    def use(self, extras: Extras) -> None:
        """Show what others add."""
        self.widget = extras.widget
        self.status.more = extras.status
        self.transcript.card_body = extras.card

    def bind(self, acts: Mapping[Pressed, Callable[[], object]]) -> None:
        """Let these keys do something beside the screen's own, which keep what they do."""
        self.keys = added_keys(self.questions, acts)

    def look(self) -> None:
        """Show at once what is new."""
        self.window.screen.now()

    def refresh(self) -> None:
        """Show soon what is new, where that can be seen."""
        if self.is_front:
            self.window.screen.refresh()

    def come(self) -> None:
        """The person sees it from now on, with what they had typed in it."""
        self._is_done = False
        self.window.editor.bring(self.draft)
        self.questions.last_key = time.monotonic()

    def go(self) -> None:
        """The person sees something else from now on."""
        self.draft = self.window.editor.put_aside()

    def leave(self) -> None:
        """End the talk in it, as soon as what is being done has ended."""
        self.outbox.close()
        self.questions.refuse()
        self.interrupt()

    @property
    def is_left(self) -> bool:
        """True where the person wants to leave it."""
        return self.outbox.is_closed

    # what happens, as the loop tells it

    async def update(self, session_id: str, event: Event) -> None:
        """Show an event."""
        self._deliver()
        self._note(event)
        self.watch(event)
        if isinstance(event, UserMessage):
            self.first = self.first or text_of(event.content)
        self.transcript.take(session_id, event)
        if isinstance(event, RunEnded) and session_id == self.transcript.session_id:
            self.transcript.end()
        self.refresh()
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

    def obey(self, sequence: str) -> None:
        """Have the terminal do what a hook wants of it; the caller knows that it is harmless."""
        self.window.screen.output.write_raw(sequence)
        self.window.screen.output.flush()

    def tell(self, text: str, *, is_error: bool = False) -> None:
        """Say something at the end of the conversation."""
        self.transcript.close(text, "error" if is_error else "info")
        self.refresh()

    # prompts

    async def next_prompt(self) -> str | None:
        """What the person says next; None where they leave."""
        return await self.outbox.next()

    def begin(self, prompt: str = "") -> None:
        """A prompt is being worked on; one that somebody sees already need not be shown."""
        if prompt:
            self.transcript.prompt(prompt)
            if not prompt.startswith("/"):
                self.first = self.first or prompt
        self.working = ProgressLine()
        self.look()

    def finish(self, *, interrupted: bool = False, tells: bool = True) -> None:
        """The prompt is done with: what was not heard is said next, or edited where that ended.

        Without ``tells`` somebody else says that it was interrupted.
        """
        self._deliver()
        took = time.monotonic() - self.working.began if self.working else 0.0
        self.working = None
        self._is_done = not self.is_front
        self.transcript.end()
        if interrupted:
            if tells:
                self.transcript.close("interrupted", "warning")
            while self.outbox:
                self.take_back()
        self.outbox.postpone()
        if took > ABSENT:
            self.window.call(self, "Crow is done")
        self.look()

    def submit(self, text: str, *, later: bool = False) -> None:
        """Say something: at once, to the run that is on, or ``later``."""
        is_talk = not text.startswith(("/", "!", "#"))
        if not is_talk and self.takes_at_once(text):
            return
        if self.working and self.conversation and is_talk and not later and text.strip():
            self.outbox.steer(text, self.conversation)
        elif text.strip():
            self.outbox.put(text)

    def _deliver(self) -> None:
        """Put what the model has heard meanwhile where it was said."""
        for text in self.outbox.delivered():
            self.transcript.prompt(text)

    def take_back(self) -> None:
        """Edit the last thing again that waits to be said."""
        self._deliver()
        if (text := self.outbox.take_back()) is not None:
            self.put_back(text)

    def put_back(self, text: str) -> None:
        """Put a text in front of what is being typed, to be edited again."""
        if self.is_front:
            self.window.editor.put_back(text)
            self.look()
        else:
            self.draft = self.draft.behind(text)

    def interrupt(self) -> None:
        """End what is being done."""
        if self.conversation is not None:
            self.conversation.interrupt()

    # how it looks

    def live(self, width: int, height: int, now: float, *, moves: bool) -> list[str]:
        """What may still change, above the editor."""
        palette = self.window.palette
        below = [
            *self.outbox.lines(width, palette),
            *self._bottom(width, max(3, height - 3), now, moves=moves),
            *(palette(shorten(line, width), "dim") for line in self.widget()),
        ]
        steps = self.transcript.steps(width) if self.working else []
        above = [*self.transcript.live(width, now), *(["", *steps] if steps else ())]
        room = max(0, height - len(below) - 1)
        return [*above[-room:], *(["", *below] if below else ())] if room else below[-height:]

    def _bottom(self, width: int, height: int, now: float, *, moves: bool) -> list[str]:
        """The question, or else what is being done."""
        if self.questions.asked is not None:
            return self.questions.lines(width, height)
        if self.working is not None:
            return [self.working.line(width, now, self.window.palette, moves=moves)]
        return []
