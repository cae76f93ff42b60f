"""The back ends of the sandbox: which of the operating system's means confines a command here."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias

from crow import frozen
from crow.extensions.sandbox.policy import Policy

Outcome: TypeAlias = Literal["restored", "removed", "kept"]
GUARANTEES = ("write", "protected", "secrets", "network", "sockets", "processes", "survivors")


@frozen
class Finding:
    """What a command did to a protected path, found afterwards, and what became of it."""

    path: str
    outcome: Outcome
    line: str

    def __str__(self) -> str:
        return self.line


@dataclass(slots=True)
class Launch:
    """How a command is started so that it is confined.

    ``restrict`` is called on a thread of its own, which then starts the program. ``found`` is
    filled when the context is left, ``refused`` with the hosts that a proxy did not let through.
    """

    argv: Sequence[str]
    env: Mapping[str, str]
    pass_fds: Sequence[int] = ()
    restrict: Callable[[], None] | None = None
    found: list[Finding] = field(default_factory=list[Finding])
    refused: list[str] = field(default_factory=list[str])


class Backend(Protocol):
    """One of the operating system's means."""

    @property
    def name(self) -> str:
        """``bubblewrap``, ``landlock``, ``seatbelt`` or ``none``."""
        ...

    @property
    def holds(self) -> frozenset[str]:
        """What it guarantees in both rings, out of `GUARANTEES`."""
        ...

    @property
    def holds_reading(self) -> frozenset[str]:
        """What it guarantees in the reading ring."""
        ...

    @property
    def does_not_hold(self) -> tuple[str, ...]:
        """The rest, a line each, for people."""
        ...

    def confine(
        self, argv: Sequence[str], cwd: str, env: Mapping[str, str], policy: Policy
    ) -> AbstractContextManager[Launch]:
        """How a program is started; the context is left when it has ended.

        Raises ``OSError`` where it cannot be confined.
        """
        ...


class Unconfined:
    """The lack of a sandbox: every command runs as the user."""

    name = "none"
    holds: frozenset[str] = frozenset()
    holds_reading = holds
    does_not_hold: tuple[str, ...] = (
        "Nothing is confined: every command runs with all that you may do.",
    )

    @contextmanager
    def confine(
        self, argv: Sequence[str], cwd: str, env: Mapping[str, str], policy: Policy
    ) -> Generator[Launch]:
        """As it was meant."""
        del cwd, policy
        yield Launch(argv, env)


def find_backend(wanted: str | None = None) -> Backend:
    """The best back end that works here, or the one of that name; blocks while it is tried.

    What worked is kept in the user's cache for as long as kernel and bubblewrap stay the same.
    Raises ``OSError``, with the reason, where the one that is wanted does not work.
    """
    from crow.extensions.sandbox.probe import find

    return find(wanted)


def known_backend() -> str | None:
    """The name of the back end that was found before, None where that is not known."""
    from crow.extensions.sandbox.probe import remembered

    known = remembered()
    return known.name if known else None
