"""Where an extension is played: a model that says what it is told to, and what is left behind."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from crow.cli.checking.finding import Finding
from crow.core.events import TextDelta
from crow.core.ports import Completion, Request
from crow.core.tools import Call

Reply: TypeAlias = Sequence[tuple[str, dict[str, Any]]] | Exception
Act: TypeAlias = Sequence[Reply]
UNDO = "undo in lifespan, behind its yield, what is done before it"


class Player:
    """A model that makes the calls of ``act``, a reply each; ``asked`` has what it was sent.

    An exception in the place of a reply is raised.
    """

    model = "check"
    context_window: int | None = 200_000

    def __init__(self, act: Act = ()) -> None:
        self.act: list[Reply] = [*act]
        self.asked: list[tuple[list[Any], list[Any]]] = []

    async def stream(self, request: Request) -> AsyncGenerator[TextDelta | Completion, None]:
        """Say what comes next."""
        self.asked.append((list(request.messages), list(request.tools)))
        act = self.act.pop(0) if self.act else ()
        if isinstance(act, Exception):
            raise act
        calls = tuple(Call(f"{len(self.asked)}_{n}", *each) for n, each in enumerate(act))
        if not calls:
            yield TextDelta("Done.", request.message_id)
        text = "" if calls else "Done."
        yield Completion(text, calls, finish="tool_calls" if calls else "stop", model=self.model)


class Warnings(logging.Handler):
    """Keeps what Crow warns of."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.said: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a line."""
        self.said.append(" ".join(record.getMessage().split()))


def concerns(line: str, used: Iterable[str]) -> bool:
    """True for what is said of the extensions of these names."""
    return any(name in line for name in used)


def around() -> dict[str, set[str]]:
    """What an extension could leave behind."""
    fds = Path("/proc/self/fd")
    return {
        "a thread": {each.name for each in threading.enumerate() if theirs(each.name)},
        "a task": {each.get_name() for each in asyncio.all_tasks()},
        "an open file": {
            str(each.readlink())
            for each in fds.iterdir()
            if each.exists() and each.readlink().suffix != ".pyc"  # an import in a thread
        },
        "an environment variable": {*os.environ},
        "another working directory": {os.getcwd()},  # noqa: PTH109
    }


def theirs(thread: str) -> bool:
    """False for threads of Crow's and of the loop's own."""
    return not thread.startswith(("asyncio_", "crow"))


def left(before: dict[str, set[str]]) -> Iterator[Finding]:
    """What is there that was not before."""
    for what, now in around().items():
        for new in sorted(now - before[what]):
            if what != "an open file" or (new[0] == "/" and not new.startswith(("/proc", "/dev"))):
                yield Finding(f"it leaves {what} behind: {new}", UNDO)
