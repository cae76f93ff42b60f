"""Verdicts: a hook's answers besides a plain value, and how several become one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Literal, TypeAlias

from crow.core.ports.client import ALLOW_ONCE, REJECT_ONCE, Keep, Option
from crow.core.support.frozen import frozen
from crow.core.support.validation import fits, json_value
from crow.core.tools import ToolResult

Ring = Literal["", "reading", "workspace", "outside"]
"""How far what a call starts may reach, where something confines it; empty says nothing of that.

``reading`` is also said of what only reads by its words, and nothing confines.
"""
WIDTH: Sequence[Ring] = ("reading", "workspace", "outside", "")


@frozen
class Allow:
    """Let it pass without asking. Never beats a deny or ask rule of the settings.

    ``ring`` is how far it may reach then: ``reading``, ``workspace`` or ``outside``.
    """

    reason: str = ""
    ring: Ring = ""


@frozen
class Ask:
    """Let the user decide.

    ``rule`` names the settings rule that wants the question: no hook's `Allow` answers it.
    ``default`` marks a question that is asked only because nothing said otherwise: any `Allow`
    answers it. ``answered`` is called with the id of the option that the user chose. Without any
    ``options`` only hooks are asked, whatever others want to ask, and the call is denied where they
    do not allow it.
    ``rules`` are those with which it would not be asked; ``keep(rule, behaviour, lasting)`` has one
    that allows, asks or denies remembered in this session, and in later ones where it is lasting;
    it answers False for what is no rule.
    ``unanswered`` stands where nobody can be asked; without it that is a denial. ``explanation``
    says in a line what the call would do, for a user who asks that back. ``ring`` is how far the
    call may reach once it is allowed, whoever allows it.
    """

    reason: str = ""
    rule: str | None = None
    default: bool = False
    options: Sequence[Option] = (ALLOW_ONCE, REJECT_ONCE)
    answered: Callable[[str], Awaitable[None] | None] | None = None
    rules: Sequence[str] = ()
    keep: Keep | None = None
    unanswered: Stop | None = None
    explanation: str = ""
    ring: Ring = ""


@frozen
class Deny:
    """Do not do it; ``reason`` goes to the model (or to the user, where no model asked)."""

    reason: str = ""
    rule: str | None = None


class Undecided(Deny):
    """The verdict of a hook that failed: whoever cannot decide denies."""

    __slots__ = ()


@frozen
class Stop:
    """Do not do it, and end the run."""

    reason: str = ""


@frozen
class Continue:
    """Do not end yet: go on with this message."""

    message: str


@frozen
class Answer:
    """Stands in for the guarded operation: a cached read, a synthetic reply."""

    value: Any


Verdict: TypeAlias = Allow | Ask | Deny | Stop | Answer
"""What a hook of a gate can answer beside a plain value."""


def answerable(value: Any) -> bool:
    """text, JSON or a ToolResult"""  # noqa: D400 - a noun for sentences
    return json_value(value) or fits(ToolResult)(value)


@frozen
class Ruling:
    """The ruling of all hooks of a gate: the strictest verdict, and an answer if given.

    Of the rings that they name the narrowest stands. ``closed`` is the first question without
    options: nobody is asked then.
    """

    verdict: Allow | Ask | Deny | Stop | None = None
    answer: Answer | None = None
    ring: Ring = ""
    closed: Ask | None = None

    @property
    def refused(self) -> bool:
        """True where the operation must not happen."""
        return isinstance(self.verdict, Deny | Stop)

    @property
    def spoken(self) -> bool:
        """True where somebody said that it must not happen."""
        return self.refused and not isinstance(self.verdict, Undecided)

    @property
    def reason(self) -> str:
        """Why, in the words of whoever was strictest."""
        return self.verdict.reason if self.verdict else ""

    def joined(self, verdict: Verdict) -> Ruling:
        """This ruling and one more verdict: the stricter stands, the first of equals."""
        if isinstance(verdict, Answer):
            return Ruling(self.verdict, self.answer or verdict, self.ring, self.closed)
        told: Ring = verdict.ring if isinstance(verdict, Allow | Ask) else ""
        ring: Ring = told if WIDTH.index(told) < WIDTH.index(self.ring) else self.ring
        closed = self.closed
        if isinstance(verdict, Ask) and not verdict.options:
            closed = closed or verdict
        stricter = strictness(verdict) > strictness(self.verdict)
        stricter = stricter or (isinstance(self.verdict, Undecided) and isinstance(verdict, Deny))
        return Ruling(verdict if stricter else self.verdict, self.answer, ring, closed)


NO_RULING = Ruling()


def strictness(verdict: Verdict | None) -> int:
    """The order in which verdicts beat each other."""
    match verdict:
        case Ask(default=True):
            return 1
        case Allow():
            return 2
        case Ask(rule=None):
            return 3
        case Ask():
            return 4
        case Deny():
            return 5
        case Stop():
            return 6
        case _:
            return 0
