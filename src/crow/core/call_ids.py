"""The ids of a conversation's tool calls: each of them new, whatever models and hooks repeat."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from crow.core.tools import Call


class CallIds:
    """The ids that were used, also by calls that are in the history no more.

    What a model repeats gets another id, which stands for the same in all of a turn: in the pieces
    that come before the reply, in the reply, and in another attempt at it.
    """

    __slots__ = ("_instead", "_number", "_used")

    def __init__(self) -> None:
        self._used: set[str] = set()
        self._instead: dict[str, str] = {}
        self._number = 0

    def use(self, ids: Iterable[str]) -> None:
        """Know ids of calls."""
        self._used.update(ids)

    def begin(self) -> None:
        """Begin a turn: what is repeated from now on is another call again."""
        self._instead.clear()

    def known(self, said: str) -> str:
        """The id in this turn of a call to which somebody gives one."""
        if said not in self._used:
            return said
        if said not in self._instead:
            self._instead[said] = self._new()
        return self._instead[said]

    def distinct(self, calls: Iterable[Call]) -> tuple[Call, ...]:
        """The calls of a reply, each of them with an id of its own."""
        found: dict[str, Call] = {}
        for call in calls:
            known = self.known(call.id)
            known = self._new() if known in found else known
            found[known] = call if known == call.id else replace(call, id=known)
        return tuple(found.values())

    def own(self, calls: Iterable[Call]) -> list[Call]:
        """Calls that no model has made, each with an id of its own, which is used then."""
        own: list[Call] = []
        for call in calls:
            own.append(replace(call, id=self._new()) if call.id in self._used else call)
            self._used.add(own[-1].id)
        return own

    def _new(self) -> str:
        """Nine letters and digits: one provider takes nothing else."""
        while True:
            self._number += 1
            new = f"call{self._number:05d}"
            if new not in self._used:
                return new
