"""The failure of a server: what it said, how it ended, what it complained of."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

KEPT = 4096
LINES = 8
_ADDRESS = re.compile(r"(\w+://)(?:[^\s/@?#]*@)?([^\s?#'\"]*)(?:[?#][^\s'\"]*)?")
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]")


class Refused(Exception):  # noqa: N818 - what it is to whoever asked
    """A server answered with an error, or with nonsense."""


class PagesWanted(Refused):
    """A server does nothing before its user has visited ``pages``, questions in ``url`` mode."""

    def __init__(self, text: str, pages: Sequence[Mapping[str, Any]]) -> None:
        super().__init__(text)
        self.pages = pages


class Gone(Exception):  # noqa: N818
    """A server is not connected, or its connection ended before it answered."""


class Failure:
    """Collects, while a connection lives, what would explain its end."""

    def __init__(self) -> None:
        self.code: int | None = None
        self.status = ""
        self.http = 0
        self._said = ""
        self._complaints = b""
        self._strays = 0
        self._first_stray = ""

    def say(self, reason: str) -> None:
        """The reason, where it is known; the first one stands."""
        self._said = self._said or reason

    def complain(self, data: bytes) -> None:
        """What a process printed to standard error."""
        self._complaints = (self._complaints + data)[-KEPT:]

    def stray(self, line: bytes) -> None:
        """A line of standard output that is no message."""
        text = plain(line[:200].decode("utf-8", "replace")).strip()
        if text:
            self._strays += 1
            self._first_stray = self._first_stray or text

    def refuse(self, status: int, phrase: str) -> None:
        """A web server answered with an error; 0 where it did not, after all."""
        self.http = status
        self.status = f"it answered HTTP {status}{phrase}" if status else ""

    def become(self, other: Failure) -> None:
        """Hold what another one holds."""
        vars(self).update(vars(other))

    def explain(self, otherwise: str) -> str:
        """All of it, for a person: one line, and the last lines of standard error."""
        return "\n".join([self.reason(otherwise), *self._tail()])

    def reason(self, otherwise: str) -> str:
        """One line."""
        return "; ".join([self._said or otherwise, *self._circumstances()])

    def _circumstances(self) -> Iterator[str]:
        if self.code is not None:
            yield ended(self.code)
        if self.status:
            yield self.status
        if self._strays:
            noun = "line" if self._strays == 1 else "lines"
            yield f"it printed {self._strays} {noun} that are no messages: {self._first_stray!r}"

    def _tail(self) -> list[str]:
        lines = plain(self._complaints.decode("utf-8", "replace")).splitlines()
        return [f"  {line.rstrip()[:300]}" for line in lines if line.strip()][-LINES:]


def first_of(error: BaseException) -> BaseException:
    """The error itself, or the first of a group's."""
    if isinstance(error, BaseExceptionGroup):
        return first_of(cast("BaseExceptionGroup[BaseException]", error).exceptions[0])
    return error


def reason_of(error: BaseException) -> str:
    """An error of the library's, in a line; of several the first."""
    first = first_of(error)
    if hasattr(first, "response"):  # an HTTP status, which is told of anyway
        return "the connection was refused"
    if isinstance(first, FileNotFoundError):
        return f"there is no program or directory {first.filename!r}"
    if isinstance(first, OSError) and first.strerror:
        return first.strerror
    return " ".join(without_secrets(str(first)).split())[:500] or type(first).__name__


def without_secrets(text: str) -> str:
    """A text whose addresses have neither passwords nor parameters."""
    return _ADDRESS.sub(lambda match: match[1] + match[2], plain(text))


def ended(code: int) -> str:
    """How a process ended."""
    if code >= 0:
        return f"it exited with status {code}"
    try:
        return f"it was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"it was ended by signal {-code}"


def plain(text: str) -> str:
    """Text of a stranger's without control characters, except for new lines and tabs."""
    return _CONTROL.sub("", text)
