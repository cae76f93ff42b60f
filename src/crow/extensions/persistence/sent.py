"""A request as it was sent, as far as the conversation does not say that.

A row has what is another than in the request before: ``model``, ``params``, ``tools``, ``system``
(the messages in front of the conversation). From index ``since`` on it is the conversation again;
where hooks have changed that, ``messages`` stand from index ``at`` on in its place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from itertools import takewhile
from typing import Any

from crow import Message, RequestContext, mutable

SYSTEM = ("system", "developer")
UNSAID: Any = object()


@mutable
class LastRequest:
    """The request that was sent last; ``made`` is where hooks' messages began in it last, or -1."""

    fields: dict[str, Any] = field(default_factory=dict[str, Any])
    messages: Sequence[Message] = ()
    made: int = -1

    def changes(self, ctx: RequestContext) -> dict[str, Any]:
        """What is another in the next one, which is the last one from now on."""
        head = [*takewhile(lambda message: message["role"] in SYSTEM, ctx.messages)]
        rest, history = ctx.messages[len(head) :], ctx.session.messages
        now = {"model": ctx.model, "params": ctx.params, "tools": ctx.tools, "system": head}
        told = {name: value for name, value in now.items() if self._was(name) != value}
        since = common(self.messages, rest)
        if rest[since:] != history[since:]:
            at = since + common(history[since:], rest[since:])
            told |= {"since": since, "at": at, "messages": rest[at:]}
            self.made = at
        elif self.made >= since:
            told["since"], self.made = since, -1
        self.fields, self.messages = now, rest
        return told

    def _was(self, name: str) -> Any:
        return self.fields.get(name, UNSAID)


def common(before: Sequence[Message], now: Sequence[Message]) -> int:
    """With how many messages both begin."""
    if now[: len(before)] == before:
        return len(before)
    pairs = enumerate(zip(before, now, strict=False))
    return next((index for index, (was, item) in pairs if was != item), min(len(before), len(now)))
