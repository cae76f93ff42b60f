"""The request that was sent last, which the next one is compared with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any

from crow import Session
from crow.dataclasses import mutable
from crow.keys import PROMPT_CACHE, Key

if TYPE_CHECKING:
    from crow import Message
    from crow.extensions.prompt_cache.report import Counts
    from crow.messages import ToolSpec

IN_PREFIX = ("reasoning_effort", "response_format", "thinking", "tool_choice")
"""Parameters that providers put in front of the messages, or read them by."""
NOTHING: Mapping[str, str] = {}


@mutable
class Stage:
    """A request as a hook had changed it; at first, as none had (no ``hook``)."""

    hook: str
    messages: list[Message]
    tools: list[ToolSpec]


@mutable
class Sent:
    """A request as it was sent. Tools stand in front of the messages, for most models.

    ``params`` are those of `IN_PREFIX`; ``stages`` is what hooks made of it one after another,
    ``parts`` what the system prompt was made of.
    """

    messages: list[Message]
    tools: list[ToolSpec]
    params: Mapping[str, Any]
    segment: int
    stages: Sequence[Stage]
    parts: Mapping[str, str]

    @property
    def system(self) -> str | None:
        """The text of the system message; None where there is none."""
        first = self.messages[:1]
        is_system = bool(first) and first[0]["role"] in ("system", "developer")
        return str(first[0]["content"]) if is_system else None


@mutable
class Setting:
    """A change of a request, and what the tools were before that.

    ``changes`` are empty where a file of settings has changed: that holds, whoever wrote it.
    """

    name: str
    changes: Mapping[str, Any]
    tools: list[ToolSpec]

    def holds(self, session: Session) -> bool:
        """True where it has come to that."""
        return all(
            getattr(session, name, session.options.get(name)) == value
            for name, value in self.changes.items()
        )


def begins_with(now: list[Any], before: list[Any]) -> bool:
    """True where one list of messages is the beginning of the other.

    Lists are ordered like words: by the first item that differs, else the shorter one comes first.
    Messages have no order, so where one differs that is an error. It costs a look at each, and no
    copy: most are the very same objects.
    """
    try:
        return before <= now or now <= before
    except TypeError:
        return False


def parting(before: list[Any], now: list[Any]) -> int | None:
    """The index of the first item that is another one now; None where there is none."""
    pairs = zip(before, now, strict=False)
    return next((index for index, (was, item) in enumerate(pairs) if was != item), None)


@mutable
class Memory:
    """The memory of a session; what clients and commands find as `PROMPT_CACHE`.

    ``sent`` is the last request that each model has answered, ``asked`` those for the message
    ``asked_for`` that wait for their answer, each with its model, ``stages`` what hooks have made
    of it so far. ``traced`` counts the records of the trace up to the last answer. ``replaced``
    says what has replaced the history since, ``settings`` what was set. ``input`` are the reported
    tokens of the last request.
    """

    session: Session
    counts: Counts
    sent: dict[str, Sent] = field(default_factory=dict[str, Sent])
    asked: list[tuple[str, Sent]] = field(default_factory=list[tuple[str, Sent]])
    asked_for: str = ""
    stages: list[Stage] = field(default_factory=list[Stage])
    traced: int = 0
    replaced: str = ""
    settings: list[Setting] = field(default_factory=list[Setting])
    input: int = 0
    hashed: Any = None

    def begins_as_before(self, model: str, now: Sent) -> bool:
        """True where a request begins with what the one before was, or there was none."""
        before = self.sent.get(model)
        if before is None:
            return not self.sent and "sent" not in self.counts
        return (
            before.segment == now.segment
            and (before.tools is now.tools or before.tools == now.tools)
            and before.params == now.params
            and begins_with(now.messages, before.messages)
        )

    @property
    def lines(self) -> list[str]:
        """What a person should know, the first line alone being enough."""
        from crow.extensions.prompt_cache.report import lines

        return list(lines(self.counts, self.session.usage))

    @property
    def described(self) -> dict[str, Any]:
        """The same as JSON; empty as long as nothing was paid again."""
        from crow.extensions.prompt_cache.report import described

        return described(self.counts)


MEMORY: Key[Memory] = Key(PROMPT_CACHE)
