"""A client that looks on: it keeps what it is shown, and says nothing."""

from __future__ import annotations

from typing import TypeVar

from crow.core.events import Event, Notice
from crow.core.ports.client import NullClient

T = TypeVar("T")


class Watching(NullClient):
    """Keeps every event, its own and those of sub-agents."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    async def update(self, session_id: str, event: Event) -> None:
        self.events.append(event)

    def of(self, kind: type[T]) -> list[T]:
        """The events of a type."""
        return [event for event in self.events if isinstance(event, kind)]

    @property
    def notices(self) -> list[str]:
        """What notices said."""
        return [event.text for event in self.of(Notice)]
