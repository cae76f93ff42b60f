"""The back ends of the sandbox: which of the operating system's means confines a command here."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias

from crow.dataclasses import frozen
from crow.extensions.sandbox.policy import Policy
from crow.process import mark_of

Outcome: TypeAlias = Literal["restored", "removed", "kept"]
GUARANTEES = {
    "write": "nothing outside the workspace is written, removed or made",
    "attributes": "no modes, owners or times of files outside or protected are changed",
    "protected": "protected files stay as they are",
    "undone": "protected files that a command makes are taken away after it",
    "secrets": "keys and credentials of the home cannot be read",
    "masked": "secret files inside the workspace cannot be read",
    "network": "no network",
    "sockets": "no sockets of programs outside, and none that go around the rest",
    "pipes": "named pipes of programs outside cannot be written to",
    "processes": "processes outside are not read, written or sent signals",
    "survivors": "no process goes on after the command",
    "kernel": "no namespaces, no kernel settings, no new privileges",
}


@frozen
class Finding:
    """A finding: what a command did to a protected path, and what became of it."""

    path: str
    outcome: Outcome
    line: str

    def __str__(self) -> str:
        return self.line


@dataclass(slots=True)
class Launch:
    """The start of a command so that it is confined.

    ``restrict`` is called on a thread of its own, which then starts the program, ``started`` with
    its number; ``ask`` sends the command a signal. ``found`` is filled when the context is left,
    ``refused`` with the hosts that a proxy did not let through.
    """

    argv: Sequence[str]
    env: Mapping[str, str]
    pass_fds: Sequence[int] = ()
    restrict: Callable[[], None] | None = None
    started: Callable[[int], None] | None = None
    ask: Callable[[int], bool] | None = None
    ended: Callable[[int | None], None] | None = None
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


class RememberedBackend(Backend, Protocol):
    """One that is found faster when it is looked for again."""

    @property
    def about(self) -> str:
        """What has to be known for that."""
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
        """As it was meant, but for what the kernel limits."""
        from crow.extensions.sandbox.limits import limited

        del cwd
        yield Launch(limited(argv, policy.limits, mark_of(env)), env)
