"""The launcher of a call's programs: in its ring, with what of the environment is theirs."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Literal, Protocol

from crow.process import MARK, is_secret, mark_of

if TYPE_CHECKING:
    from crow.extensions.sandbox.backend import Launch
    from crow.extensions.sandbox.finder import Finder
    from crow.extensions.sandbox.policy import Limits, Policy, Ring
    from crow.extensions.sandbox.process_monitor import ProcessMonitor
    from crow.project import SandboxSettings

INHERITED = re.compile(
    r"HOME|LOGNAME|PATH|PWD|SHELL|TERM|COLORTERM|NO_COLOR|USER|TZ|LANG|LANGUAGE|LC_\w+|XDG_\w+"
    r"|COLUMNS|LINES|PAGER|GIT_PAGER|VIRTUAL_ENV|CROW_COMMAND"
)
"""What a command has of the environment that only reads."""
IMPATIENT = {
    "PIP_RETRIES": "0",
    "UV_HTTP_RETRIES": "0",
    "NPM_CONFIG_FETCH_RETRIES": "0",
    "CARGO_NET_RETRY": "0",
}
"""What keeps programs from trying for minutes to reach what they cannot."""


class Holder(Protocol):
    """The holder of a launcher: a session's sandbox.

    ``late`` is told what was found when the call had ended.
    """

    settings: SandboxSettings
    finder: Finder
    late: list[str]

    @property
    def limits(self) -> Limits:
        """How much a command may use."""
        ...

    def policy(self, ring: Ring) -> Policy:
        """What a command may touch now."""
        ...


class RingLauncher:
    """Starts the programs of one call in a ring, and limits them; a `Launcher`.

    Those in the ring ``outside`` are limited alone. ``is_over`` says that the call has had its
    result, or that there is none: what is found later is told later. ``is_named`` that whoever
    starts a program has chosen all of its environment.
    """

    def __init__(
        self, holder: Holder, ring: Ring | Literal["outside"], *, is_named: bool = False
    ) -> None:
        self.ring: Ring | Literal["outside"] = ring
        self.policy: Policy | None = None
        self.cwd = ""
        self.is_over = self.is_named = is_named
        self._holder = holder
        self._launches: list[Launch] = []
        self._watches: list[ProcessMonitor] = []

    @contextmanager
    def launch(self, argv: Sequence[str], cwd: str, env: Mapping[str, str]) -> Generator[Launch]:
        """How a program is started. Raises ``OSError`` where it cannot be confined."""
        from crow.extensions.sandbox.process_monitor import ProcessMonitor

        holder = self._holder
        mark = mark_of(env) if self.ring == "outside" else ""
        watch = ProcessMonitor(holder.limits, mark)
        with self._confined(argv, cwd, env) as launch, watch:
            if not self.is_named:
                launch.started = _both(launch.started, watch.begin)
            if not self.is_over:
                self._launches.append(launch)
                self._watches.append(watch)
            yield launch
        if self.is_over:
            holder.late += [*watch.over, *map(str, launch.found)]

    def _confined(
        self, argv: Sequence[str], cwd: str, env: Mapping[str, str]
    ) -> AbstractContextManager[Launch]:
        """In its ring."""
        holder = self._holder
        if self.ring == "outside":
            from crow.extensions.sandbox.backend import Unconfined
            from crow.extensions.sandbox.policy import Policy

            return Unconfined().confine(
                argv, cwd, env, Policy("workspace", (), limits=holder.limits)
            )
        self.cwd, self.policy = cwd, holder.policy(self.ring)
        backend = holder.finder.find()
        kept = self._environment(env)
        if backend.holds:  # what is confined goes with the agent, however that ends
            kept.setdefault(MARK, os.urandom(8).hex())
        return backend.confine(argv, cwd, kept, self.policy)

    def _environment(self, env: Mapping[str, str]) -> dict[str, str]:
        """What of the environment a program gets."""
        settings, is_reading = self._holder.settings, self.ring == "reading"
        kept: dict[str, str] = {}
        for name, value in env.items():
            is_known = name in settings.passed or self.is_named
            hides = is_secret(name) and not is_known
            is_more = is_reading and INHERITED.fullmatch(name) is None
            if not (hides or is_more or name in settings.hidden):
                kept[name] = value
        offline = self.policy is not None and self.policy.network == "none"
        return {**(IMPATIENT if offline else {}), **kept}

    @property
    def found(self) -> list[str]:
        """What ended it, and what was found afterwards, in lines."""
        over = [each for watch in self._watches for each in watch.over]
        return over + [str(each) for launch in self._launches for each in launch.found]

    @property
    def refused_hosts(self) -> list[str]:
        """The hosts that a proxy did not let through."""
        return list(dict.fromkeys(host for one in self._launches for host in one.refused))

    def look_again(self) -> None:
        """Look for a back end anew: this one does not work any more."""
        self._holder.finder.forget()


def _both(
    first: Callable[[int], None] | None, second: Callable[[int], None]
) -> Callable[[int], None]:
    """One after the other."""

    def started(pid: int) -> None:
        if first is not None:
            first(pid)
        second(pid)

    return started
