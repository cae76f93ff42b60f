"""A prompt's run as hooks see it, and the reply that it ends with."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import field
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from crow.core.events import StopReason
from crow.core.hooks.context import Context, Stopping
from crow.core.messages import Content, Message, Usage, prompt_of
from crow.core.session import Session
from crow.core.support.clock import Clock
from crow.core.support.frozen import OwnList, OwnSet, kept, mutable
from crow.core.support.tasks import Errands, running
from crow.core.support.validation import check, fits

if TYPE_CHECKING:
    from crow.core.host import Agent


@mutable
class Reply:
    """The answer to one prompt.

    ``text`` is the model's last message, ``usage`` the sum over the run's requests. ``detail``
    says more about a ``stop_reason`` other than ``end_turn``: the hook's reason, the error.
    ``error`` is set where ``stop_reason`` is ``error``.
    """

    text: str
    stop_reason: StopReason
    usage: Usage
    session: Session = field(repr=False)
    detail: str = ""
    error: BaseException | None = None

    def __setattr__(self, name: str, value: object) -> None:
        """Set a field. Raises ``TypeError`` for a value that is not what the field holds."""
        if not _good(name)(value):
            check(f"reply.{name}", value, REPLY[name])
        if name == "usage":
            value = kept(value)
        object.__setattr__(self, name, value)


REPLY: dict[str, Any] = {
    "text": str,
    "stop_reason": StopReason,
    "usage": Usage,
    "detail": str,
    "error": BaseException | None,
    "session": Session,
}


@cache
def _good(name: str) -> Callable[[Any], bool]:
    """What tells of a field's value whether it is one: types are slow to be looked up."""
    return fits(REPLY.get(name, Any))


class RunContext(Context):
    """One prompt, from its arrival to the end of its run.

    ``count`` says how often hooks kept this run going, ``cap`` how often in a row they may;
    ``cancelled`` is true once somebody cancelled it.
    """

    __slots__ = (
        "abandoned",
        "caller",
        "cancellation",
        "cancelled",
        "cap",
        "count",
        "count_in_row",
        "errands",
        "holds_lock",
        "hung",
        "loop",
        "open",
        "partial",
        "prompt",
        "reply",
        "sent",
        "shown",
        "stopping",
        "stored",
        "supervisor",
        "task",
    )

    shapes = MappingProxyType(
        {
            "prompt": Content,
            "reply": Reply,
            "stopping": Stopping | None,
            "shown": bool,
            "cap": int,
            "owner": str,
            "clock": Clock | None,
        }
    )
    kept = ("prompt", "reply")

    def __init__(
        self,
        agent: Agent,
        session: Session,
        prompt: Content,
        written: list[dict[str, Any]] | None = None,
    ) -> None:
        Context.__init__(self, agent, session, run=self)
        self.prompt = prompt
        self.sent = kept(prompt_of(prompt, written))
        self.reply = Reply("", "end_turn", {}, session)
        self.stored = False
        self.stopping: Stopping | None = None
        self.cancellation = asyncio.Event()
        self.cancelled = False
        self.holds_lock = False
        self.abandoned = False
        self.task: asyncio.Task[None] | None = None
        self.caller: asyncio.Task[Any] | None = None
        self.supervisor: asyncio.Task[None] | None = None
        self.open: OwnList[Any] = OwnList()
        self.hung: OwnSet[object] = OwnSet()
        self.errands = Errands()
        self.loop = running()
        self.partial: OwnList[str] = OwnList()
        self.shown = True
        self.count = 0
        self.count_in_row = 0
        self.cap = agent.stop_cap

    def __setattr__(self, name: str, value: object) -> None:
        """Set a field. Raises ``TypeError`` for a value that is not what the field holds."""
        if name in RunContext.shapes:
            check(f"run.{name}", value, RunContext.shapes[name])
        elif getattr(self, name, None) is not None:
            raise AttributeError(f"run.{name} cannot be replaced")
        if name == "prompt":
            value = kept(value)
        object.__setattr__(self, name, value)

    def keep_going(self) -> None:
        """Count once more that hooks keep it going, in all and since its last tool call."""
        object.__setattr__(self, "count", self.count + 1)
        object.__setattr__(self, "count_in_row", self.count_in_row + 1)

    def has_called(self) -> None:
        """Note that a tool was called: it goes on for something."""
        object.__setattr__(self, "count_in_row", 0)

    def mark(self, fact: Literal["stored", "holds_lock", "abandoned", "cancelled"]) -> None:
        """Note for the loop that something is so from now on."""
        object.__setattr__(self, fact, True)

    @property
    def stop_hook_active(self) -> bool:
        """True where a hook has kept this run going already."""
        return self.count > 0

    @property
    def stop_reason(self) -> StopReason:
        """Why the run ended."""
        return self.reply.stop_reason

    @property
    def usage(self) -> Usage:
        """Tokens of this run so far."""
        return self.reply.usage

    @property
    def messages(self) -> list[Message]:
        """The history; the list is a copy, the messages are not to be changed."""
        return list(self.session.messages)

    def check(self) -> None:
        """Raise ``CancelledError`` where the run was cancelled and somebody swallowed that."""
        if self.cancelled:
            raise asyncio.CancelledError

    def cancel(self) -> None:
        """End the run as soon as anything can be ended; later calls change nothing."""
        if not self.cancelled:
            self.mark("cancelled")
            self.cancellation.set()
            for task in (self.task, *self.errands):
                if task is not None:
                    task.cancel()
