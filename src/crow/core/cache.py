"""A typed key of what a session keeps in memory, and the keys that the core itself has."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, runtime_checkable

if TYPE_CHECKING:
    from crow.core.host import Session

V = TypeVar("V")


class Caching(Protocol):
    """A session, or what hooks and tools see of one."""

    @property
    def cache(self) -> dict[str, Any]: ...


@runtime_checkable
class Closable(Protocol):
    """Something that holds what has to be let go, such as connections or commands.

    What is kept in a session's ``cache`` and is one is closed with the session.
    """

    async def aclose(self) -> None:
        """Let go of it."""
        ...


class Key(str, Generic[V]):
    """A key of ``session.cache`` that knows the type of what is kept there.

    ``SEEN: Key[set[str]] = Key("seen")`` makes one, ``SEEN.get(ctx)`` uses it, with a session or a
    context. It is a string: whoever has only its name finds the same.
    """

    __slots__ = ()

    def get(self, whose: Caching) -> V | None:
        """What is kept; None where nothing is."""
        return whose.cache.get(self)

    def set(self, whose: Caching, value: V) -> V:
        """Keep a value, which is returned."""
        whose.cache[self] = value
        return value

    def setdefault(self, whose: Caching, default: V) -> V:
        """What is kept, or from now on the default."""
        return whose.cache.setdefault(self, default)

    def pop(self, whose: Caching) -> V | None:
        """What was kept, and is no longer."""
        return whose.cache.pop(self, None)


SUBAGENTS: Key[dict[str, Session]] = Key("session.children")
"""The sessions of the sub-agents that work for a session, by id."""


ENDING: Key[set[asyncio.Task[Any]]] = Key("tools.ending")
"""The work that cancelled calls have left to end: the next prompt waits for it, no answer does."""


FIRST_PROMPT: Key[str] = Key("first_prompt")
"""A prompt that a face with nobody to type answers first."""


TRACE_CONTEXT: Key[dict[str, str]] = Key("trace_context")
"""The W3C trace context of a session's last prompt that had one."""


CARRIER: Key[Callable[[Any], Mapping[str, str]]] = Key("trace_context.carrier")
"""Who makes spans in a session: gives the W3C trace context of what a context is about."""
