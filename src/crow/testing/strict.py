"""A strict endpoint of a model: it judges each request by rules before it plays its script."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar, TypeAlias

from crow.core.support.frozen import frozen
from crow.testing.endpoint import Endpoint, Received, Response

Breaches: TypeAlias = "Iterable[tuple[object, ...]]"
"""What is wrong with a request, each for the blanks of what is answered."""
Check: TypeAlias = Callable[[Any], Breaches]


@frozen
class Rule:
    """Something that is refused: ``breaches`` finds it, ``says`` is the answer, with blanks.

    ``about`` is what else belongs to the answer.
    """

    id: str
    says: str
    breaches: Check
    about: Mapping[str, Any]


class Rules(list[Rule]):
    """Rules in the order in which they are looked at."""

    def add(self, rule_id: str, says: str, **about: Any) -> Callable[[Check], Check]:
        """Make a rule of a function that gets a request."""

        def added(breaches: Check) -> Check:
            self.append(Rule(rule_id, says, breaches, about))
            return breaches

        return added

    def broken(self, asked: object) -> tuple[Rule, str] | None:
        """The first that a request breaks, and what is answered."""
        for each in self:
            if (subject := next(iter(each.breaches(asked)), None)) is not None:
                return each, each.says.format(*subject)
        return None


@frozen
class Asked:
    """A request's JSON, and what its endpoint has said so far."""

    body: Any
    known: Any


class StrictEndpoint(Endpoint):
    """An `Endpoint` with rules; ``refused`` has the ids of those that requests broke."""

    _rules: ClassVar[Rules]

    def __init__(self) -> None:
        super().__init__()
        self.refused: list[str] = []

    def _answer(self, received: Received) -> Response:
        asked = self._read(received)
        if (fault := self._rules.broken(asked)) is not None:
            return self._refuse(*fault)
        return self._reply(asked, received)

    def _read(self, received: Received) -> Any:
        """A request as the rules look at it."""
        raise NotImplementedError

    def _reply(self, asked: Any, received: Received) -> Response:
        """The response to a request that breaks no rule."""
        return super()._answer(received)

    def _refuse(self, broke: Rule, text: str) -> Response:
        self.refused.append(broke.id)
        return self._refusal(text, **broke.about)

    def _refusal(self, text: str) -> Response:
        """The response to one that does, as its provider words it."""
        raise NotImplementedError
