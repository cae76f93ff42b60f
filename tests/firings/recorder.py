"""An extension that writes down every event which it hears, and in whose session, a line each."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from crow import Agent

LOG = "FIRINGS_LOG"


class Recorder:
    """Hangs at every event, by each of its names."""

    name = Path(__file__).stem

    def init_agent(self, agent: Agent) -> None:
        """Hang everywhere; an event of an extension that comes later is waited for."""
        wraps = {name for name, point in agent.hooks.points.items() if point.point.kind == "wrap"}
        for event in dict.fromkeys((*agent.hooks.names, *agent.hooks.announced())):
            heard = partial(self.write, event)
            agent.hooks.register(event, around(heard) if event in wraps else heard)

    def write(self, event: str, ctx: Any) -> None:
        """Write a line."""
        line = {"event": event, "by": self.name, "sub": ctx.session.parent is not None}
        with Path(os.environ[LOG]).open("a", encoding="utf-8") as file:
            file.write(f"{json.dumps(line)}\n")


def around(heard: Callable[[Any], None]) -> Callable[..., Any]:
    """The same, around what happens."""

    async def wrap(ctx: Any, call_next: Any) -> Any:
        heard(ctx)
        return await call_next()

    return wrap
