"""The outbox: what the person has said and nobody has heard yet; nothing of it is ever lost."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from crow.terminal.conversation import Conversation, Steering
from crow.terminal.palette import Palette
from crow.text import one_line, shorten


class Outbox:
    """Prompts that wait for their turn, and what was said to the run that is on."""

    def __init__(self) -> None:
        self._queue: list[str] = []
        self._steered: list[tuple[str, Steering]] = []
        self._news = asyncio.Event()
        self.is_closed = False

    def __bool__(self) -> bool:
        return bool(self._queue or self._steered)

    def put(self, text: str) -> None:
        """Let it be said when it is its turn."""
        self._queue.append(text)
        self._news.set()

    def steer(self, text: str, conversation: Conversation) -> None:
        """Say it to the run that is on."""
        self._steered.append((text, conversation.steer(text)))

    def close(self) -> None:
        """Nothing more is to be said."""
        self.is_closed = True
        self._news.set()

    async def next(self) -> str | None:
        """The next prompt; None once nothing more is to be said."""
        while not self._queue and not self.is_closed:
            self._news.clear()
            await self._news.wait()
        return None if self.is_closed else self._queue.pop(0)

    def delivered(self) -> Iterator[str]:
        """What the model has heard since the last time."""
        while self._steered and self._steered[0][1].is_delivered:
            yield self._steered.pop(0)[0]

    def postpone(self) -> None:
        """Let what the run has not heard be said next: it is over."""
        late, self._steered = self._steered, []
        for _, steering in late:
            steering.take_back()
        self._queue[:0] = [text for text, _ in late]
        self._news.set()

    def take_back(self) -> str | None:
        """The last thing that waits, which is not said then."""
        if self._queue:
            return self._queue.pop()
        if not self._steered:
            return None
        text, steering = self._steered.pop()
        steering.take_back()
        return text

    def lines(self, width: int, palette: Palette) -> list[str]:
        """All that waits."""
        said = [("↳", text) for text, _ in self._steered] + [("⏸", text) for text in self._queue]
        shown = [shorten(f"{mark} {one_line(text)}", width) for mark, text in said]
        hint = [palette("  Alt-Up edits the last one", "dim")] if shown else []
        return [*(palette(line, "cyan") for line in shown), *hint]
