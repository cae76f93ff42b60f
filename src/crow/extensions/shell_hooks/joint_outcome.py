"""The joint outcome of one firing's handlers; conflicts are decided here, whatever the order."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from crow.dataclasses import frozen
from crow.extensions.shell_hooks.handler import Handler
from crow.extensions.shell_hooks.outcome import Outcome, Permission

STRICTNESS: tuple[Permission | None, ...] = (None, "allow", "ask", "defer", "deny")


@frozen
class JointOutcome:
    """The outcomes of one firing, in the order in which the handlers are configured."""

    outcomes: Sequence[tuple[Handler, Outcome]] = ()

    def __bool__(self) -> bool:
        return bool(self.outcomes)

    @property
    def stop(self) -> str | None:
        """Why everything is to end; None where it is not."""
        return next((out.stop for _, out in self.outcomes if out.stop is not None), None)

    @property
    def permission(self) -> Permission | None:
        """The strictest verdict: deny, defer, ask, allow."""
        strictest = max((STRICTNESS.index(out.permission) for _, out in self.outcomes), default=0)
        return STRICTNESS[strictest]

    @property
    def reason(self) -> str:
        """Why, in the words of whoever gave the strictest verdict first."""
        wanted = self.permission
        return next((o.reason for _, o in self.outcomes if o.permission == wanted and o.reason), "")

    @property
    def blocks(self) -> list[str]:
        """The reasons of all who block."""
        return list(dict.fromkeys(o.block for _, o in self.outcomes if o.block is not None))

    @property
    def blocked(self) -> str | None:
        """All reasons as one text; None where nobody blocks."""
        return "\n".join(self.blocks) if self.blocks else None

    @property
    def contexts(self) -> list[str]:
        """What is meant for the model."""
        return [out.context for _, out in self.outcomes if out.context]

    @property
    def unread(self) -> bool:
        """True where somebody said what nobody can read."""
        return any(out.output.unread for _, out in self.outcomes)

    def answers(self, name: str) -> Iterator[Any]:
        """The values of a field of ``hookSpecificOutput``, of all who gave it."""
        for _, out in self.outcomes:
            value = out.output.specific.get(name)
            if value is not None:
                yield value

    def last(self, name: str) -> Any:
        """The value that was given last in configured order; None where nobody gave one."""
        return next(reversed(list(self.answers(name))), None)

    def rewritten(self, args: Mapping[str, Any]) -> dict[str, Any] | None:
        """The arguments with what every rewrite changed, in configured order; None without one."""
        return chained(args, list(self.answers("updatedInput")))


def chained(
    args: Mapping[str, Any], rewrites: Sequence[Mapping[str, Any]]
) -> dict[str, Any] | None:
    """The arguments with what every rewrite changed; None without one.

    Every handler has seen the original: what one left alone is not taken back by it.
    """
    if not rewrites:
        return None
    result = copy.deepcopy(dict(args))
    for rewrite in rewrites:
        for name in [key for key in args if key not in rewrite]:
            result.pop(name, None)
        result |= {k: v for k, v in rewrite.items() if k not in args or args[k] != v}
    return result


NOTHING = JointOutcome()
