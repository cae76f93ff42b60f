"""Reports on a hook for a client that follows them: its beginning, what it prints, its end."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Literal

from crow.extensions.shell_hooks.output import RawOutput
from crow.ports import HookClient, implements

if TYPE_CHECKING:
    from crow import Context
    from crow.extensions.shell_hooks.handler import Handler
    from crow.extensions.shell_hooks.outcome import Outcome
    from crow.extensions.shell_hooks.process import Program

UNTOLD = frozenset({"Notification", "SessionEnd", "PreCompact", "PostCompact"})
"""Events of whose hooks Claude Code tells nothing."""
PACE = 1.0
"""Seconds after which it is looked what a hook has printed since."""
Ending = Literal["success", "error", "cancelled"]


class Report:
    """Tells of one run of a handler, where the client has a ``follow_hook``.

    ``about`` is what matchers look at. ``goes_on`` is true once nobody waits for it any more;
    ``printed`` is what it has left.
    """

    def __init__(self, handler: Handler, ctx: Context, about: str) -> None:
        root = ctx.session.root
        client = root.client
        is_ours = handler.kind == "callback" or handler.event.name in UNTOLD
        tell = client.follow_hook if implements(client, HookClient) else None
        self._tell = None if is_ours else tell
        self._session = root.id
        self._event = handler.event.name
        self._name = f"{self._event}:{about}" if about else self._event
        self._id = "" if self._tell is None else str(uuid.uuid4())
        self.goes_on = False
        self.printed: RawOutput | None = None

    def begin(self) -> None:
        """It starts."""
        self._put("hook_started")

    @asynccontextmanager
    async def following(self, program: Program) -> AsyncGenerator[None]:
        """Tell what a program prints while it runs."""
        task = asyncio.create_task(self._follow(program)) if self._tell is not None else None
        try:
            yield
        finally:
            if task is not None:
                task.cancel()

    async def _follow(self, program: Program) -> None:
        told = RawOutput()
        while True:
            await asyncio.sleep(PACE)
            printed = program.so_far
            if printed != told:
                told = printed
                self._put("hook_progress", **_texts(printed))

    def end(self, outcome: Outcome | None) -> None:
        """It is over; without an ``outcome`` it was cancelled."""
        printed, self.goes_on = self.printed or RawOutput(), False
        code = {} if self.printed is None else {"exit_code": printed.code}
        self._put("hook_response", **_texts(printed), **code, outcome=_ending(outcome, printed))

    def _put(self, subtype: str, **fields: Any) -> None:
        if self._tell is not None:
            who = {"hook_id": self._id, "hook_name": self._name, "hook_event": self._event}
            self._tell(self._session, subtype, {**who, **fields})


def _texts(printed: RawOutput) -> dict[str, str]:
    both = printed.stdout + printed.stderr
    return {"output": both, "stdout": printed.stdout, "stderr": printed.stderr}


def _ending(outcome: Outcome | None, printed: RawOutput) -> Ending:
    """How it ended: what it has refused is no error, an exit status is."""
    if outcome is None or outcome.kind == "cancelled":
        return "cancelled"
    has_failed = bool(printed.code or outcome.output.fault)
    return "error" if has_failed or outcome.kind == "non_blocking_error" else "success"
