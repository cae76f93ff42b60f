"""The harness that an extension is played in: a scripted model, and a log of warnings."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import AsyncGenerator, Iterable, Sequence
from typing import Any, TypeAlias

from crow.app import build
from crow.app.composer import Composer
from crow.core.agent import Agent
from crow.core.events import TextDelta
from crow.core.ports.llm import Completion, Request
from crow.core.tools import Call
from crow.entry_points import entry_points
from crow.settings import load

Reply: TypeAlias = Sequence[tuple[str, dict[str, Any]]] | Exception
Act: TypeAlias = Sequence[Reply]


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


def agent_around(name: str, model: Player) -> tuple[Agent, Composer]:
    """The whole agent in this folder, and who hangs an extension on it that has this name.

    One of that name that is installed, which may be the very one, is not in use there.
    """
    here = os.getcwd()  # noqa: PTH109 - the folder that it is played in
    installed = [each.name for each in entry_points() if each.name == name and not each.own]
    off = json.dumps({"extensions": {"disable": installed}})
    agent = build(load(here, file=off), model=model)
    return agent, Composer(agent, load(here))


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
