"""A history as turns: what is kept whole, and what a summary is to stand for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from crow import Message
from crow.dataclasses import frozen
from crow.messages import is_prompt, weight


@frozen
class Split:
    """A history in two: no call is parted from its answers.

    ``prompt`` is the one that is being answered, where it is not among the ``recent`` messages.
    """

    older: list[Message]
    recent: list[Message]
    prompt: Message | None = None

    @property
    def kept(self) -> list[Message]:
        """What follows the summary."""
        return [self.prompt, *self.recent] if self.prompt else self.recent


def split(messages: Sequence[Message], turns: int, room: int, *, running: bool) -> Split:
    """Keep the last ``turns`` of a history, fewer where they have more than ``room`` characters.

    While a run goes on its prompt and its last turn are kept whatever their size; otherwise
    something is always left to be summarised.
    """
    found = turns_of(messages)
    number = max(min(turns, len(found) - 1), int(running))
    while number > 1 and size(joined(found[-number:])) > room:
        number -= 1
    cut = len(found) - number
    older, recent = joined(found[:cut]), joined(found[cut:])
    if not running or any(map(is_prompt, recent)):
        return Split(older, recent)
    return Split(older, recent, next(filter(is_prompt, reversed(older)), None))


def turns_of(messages: Iterable[Message]) -> list[list[Message]]:
    """A history cut where nothing that belongs together is parted.

    A turn begins with what was said to the model, or with the model's message where it went on by
    itself; the answers to its calls belong to it.
    """
    found: list[list[Message]] = []
    said = False
    for message in messages:
        if not found or (said and message["role"] != "tool"):
            found.append([])
            said = False
        found[-1].append(message)
        said = said or message["role"] == "assistant"
    return found


def joined(turns: Iterable[Iterable[Message]]) -> list[Message]:
    """The messages of some turns."""
    return [message for turn in turns for message in turn]


def size(messages: Iterable[Message]) -> int:
    """Characters that a model reads."""
    return sum(map(weight, messages))
