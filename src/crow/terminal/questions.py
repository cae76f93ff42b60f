"""Questions to the person: one at a time, each answered by the keys that it shows."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

from prompt_toolkit.buffer import Buffer

from crow.core.ports.client import PermissionRequest, Question
from crow.terminal.palette import Palette
from crow.terminal.question import Asked, PermissionAsked, QuestionAsked


class Questions:
    """Asks, and takes keys as answers. ``news`` is called when there is something else to be seen.

    ``call`` is called with a line for somebody who does not look, ``stop`` where the person wants
    everything to end. ``draft`` holds the words of an answer; what was being written stays apart.
    """

    def __init__(
        self,
        palette: Palette,
        news: Callable[[], None],
        call: Callable[[str], None],
        stop: Callable[[], None],
    ) -> None:
        self.asked: Asked | None = None
        self.draft = Buffer(name="answer", multiline=False)
        self.last_key = 0.0
        self._palette = palette
        self._news = news
        self._call = call
        self._stop = stop
        self._turn = asyncio.Lock()

    # who asks

    async def permission(self, request: PermissionRequest, cwd: str) -> tuple[str | None, str]:
        """The chosen option, and the words that go with a no."""
        async with self._turn:
            wrong = ""
            while True:
                asked = PermissionAsked(request, cwd, self._palette, time.monotonic())
                if wrong:
                    asked.note(f"{wrong} is no rule.")
                answer = await self._ask(asked, f"Crow wants to use {request.call.name}")
                wrong = await refused(request, asked)
                if not wrong:
                    return answer, asked.words

    async def question(self, question: Question) -> Any:
        """The answer to another question, or its default."""
        async with self._turn:
            asked = QuestionAsked(question, self._palette, time.monotonic())
            answer = await self._ask(asked, question.text)
            return question.default if answer is None else answer

    async def secret(self, text: str) -> Any:
        """A line that is not shown; None where the person leaves it."""
        async with self._turn:
            asked = QuestionAsked(Question(text, "text"), self._palette, time.monotonic())
            asked.is_secret = True
            return await self._ask(asked, text)

    async def show(self, asked: Asked) -> Any:
        """The answer to what the person has called for; nobody has to be called then."""
        async with self._turn:
            return await self._ask(asked, "")

    def look(self) -> None:
        """Show what is new."""
        self._news()

    async def _ask(self, asked: Asked, call: str) -> Any:
        self.asked = asked
        self.draft.reset()
        if call:
            self._call(call)
        self._news()
        try:
            answer = await asked.answer
        finally:
            self.asked = None
            self._news()
        if asked.left:
            self._stop()
            await asyncio.sleep(0)  # where the work that asks is cancelled, it is here
        return answer

    # the person

    @property
    def is_asking(self) -> bool:
        """True while keys answer a question."""
        return self.asked is not None and self.asked.is_armed(time.monotonic(), self.last_key)

    @property
    def is_typing(self) -> bool:
        """True while words are typed as an answer."""
        return self.asked is not None and bool(self.asked.typing) and self.is_asking

    @property
    def hides(self) -> bool:
        """True while what is typed is not to be seen."""
        return self.asked is not None and self.asked.is_secret

    def note_key(self) -> None:
        """A key was pressed: whoever types something else does not answer with it."""
        if not self.is_asking:
            self.last_key = time.monotonic()

    def press(self, key: str) -> None:
        """Answer by a key."""
        if self.asked is not None:
            self.asked.press(key)
            self._begin_typing()

    def _begin_typing(self) -> None:
        """Show what is to be typed on from, where words are an answer."""
        if self.asked is not None and self.asked.typing:
            self.draft.text = self.asked.written
            self.draft.cursor_position = len(self.asked.written)
        self._news()

    def move(self, by: int) -> None:
        """Highlight another answer."""
        if self.asked is not None:
            self.asked.move(by)
            self._news()

    def scroll(self, by: int) -> None:
        """Show more of what is to be decided on."""
        if self.asked is not None:
            self.asked.scroll(by)
            self._news()

    def choose(self) -> None:
        """Give the highlighted answer."""
        if self.asked is not None:
            self.asked.enter()
            self._begin_typing()

    def refuse(self) -> None:
        """No, and stop."""
        if self.asked is not None:
            self.asked.leave()

    def say(self) -> None:
        """Answer by the words that were typed."""
        if self.asked is not None:
            self.asked.typed(self.draft.text)
            self.draft.reset()
            self._news()

    def unsay(self) -> None:
        """Answer by a key after all."""
        if self.asked is not None:
            self.asked.back()
            self.draft.reset()
            self._news()

    def lines(self, width: int, height: int) -> list[str]:
        """The question, if there is one."""
        if self.asked is None:
            return []
        return self.asked.lines(width, height, armed=self.is_asking)


async def refused(request: PermissionRequest, asked: PermissionAsked) -> str:
    """Have the rules remembered that were chosen; the first one that is none."""
    for rule in asked.kept:
        if request.keep is not None and await request.keep(rule, "allow", asked.lasting) is False:
            return rule
    return ""
