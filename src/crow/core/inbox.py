"""What waits to be said to the model, until a request takes it along."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self, SupportsIndex, cast

from crow.core.frozen import OwnList
from crow.core.messages import Message, is_prompt
from crow.core.tasks import DOING, Spawned
from crow.core.validation import fits


class Inbox(OwnList[Message]):
    """What waits to be said: everybody may add to it, the loop takes from it.

    ``by_hooks`` is what hooks have put in: with that alone nobody keeps a run going for ever.
    """

    __slots__ = ("by_hooks",)

    def __init__(self, messages: Iterable[Message] = ()) -> None:
        super().__init__(messages)
        self.by_hooks: list[Message] = []

    def append(self, message: Message) -> None:
        """Put a message at the end."""
        self.insert(len(self), message)

    def extend(self, messages: Iterable[Message]) -> None:
        """Put messages at the end."""
        for message in messages:
            self.append(message)

    def __iadd__(self, messages: Iterable[Message]) -> Self:  # pyright: ignore[reportIncompatibleMethodOverride]
        self.extend(messages)
        return self

    def insert(self, index: SupportsIndex, message: Message) -> None:
        """Put a message in front of another one."""
        cast(Any, list).insert(self, index, message)
        doing = DOING.get()
        if doing is not None and not isinstance(doing, Spawned):
            self.by_hooks.append(message)

    def put(self, items: Iterable[Message]) -> None:
        """Become these messages."""
        super().put(items)
        here = set(map(id, self))
        self.by_hooks = [each for each in self.by_hooks if id(each) in here]

    def prompts(self, *, by_hooks: bool) -> list[Message]:
        """The prompts that wait: those of hooks, or all others."""
        theirs = set(map(id, self.by_hooks))
        said = filter(fits(Message), self)
        return [each for each in said if is_prompt(each) and (id(each) in theirs) is by_hooks]
