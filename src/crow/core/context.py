"""One request: the prompt, and the turns that answer it. All contexts can be imported here."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from crow.core.call_context import CANCELLED, NOT_RUN, ToolContext
from crow.core.calls import Call
from crow.core.events import StopReason, TextDelta, UsageReported, UserMessage
from crow.core.history import flaw, repaired
from crow.core.kept import kept
from crow.core.messages import (
    Content,
    Message,
    ToolSpec,
    Usage,
    add_usage,
    context_block,
    is_prompt,
    prompt_of,
    sendable,
    tool_answer,
    user,
)
from crow.core.moments import CommandContext, ConfigContext, NotificationContext, SessionContext
from crow.core.ports import Completion, Delta, Request
from crow.core.reach import (
    UI,
    Clock,
    CompactContext,
    Context,
    ErrorContext,
    MessageContext,
    Stopping,
    UpdateContext,
    waiting,
)
from crow.core.session import Session
from crow.core.shapes import check, json_object
from crow.core.verdicts import Continue

if TYPE_CHECKING:
    from crow.core.agent import Agent

__all__ = [
    "CANCELLED",
    "NOT_RUN",
    "UI",
    "CommandContext",
    "CompactContext",
    "ConfigContext",
    "Context",
    "ErrorContext",
    "MessageContext",
    "NotificationContext",
    "Reply",
    "RunContext",
    "SessionContext",
    "Stopping",
    "ToolContext",
    "TurnContext",
    "UpdateContext",
    "waiting",
]

logger = logging.getLogger("crow.hooks")

FINISHED: dict[str, StopReason] = {"length": "max_tokens", "content_filter": "refusal"}


@dataclass(slots=True)
class Reply:
    """The answer to one prompt.

    ``text`` is the model's last message, ``usage`` the sum over the run's requests. ``detail``
    says more about a ``stop_reason`` other than ``end_turn``: the hook's reason, the error.
    ``error`` is set where ``stop_reason`` is ``error``.
    """

    text: str
    stop_reason: StopReason
    usage: Usage
    session: Session
    detail: str = ""
    error: BaseException | None = None

    def __setattr__(self, name: str, value: object) -> None:
        """Set a field. Raises ``TypeError`` for a value that is not what the field holds."""
        check(f"reply.{name}", value, REPLY.get(name, Any))
        object.__setattr__(self, name, value)


REPLY: dict[str, Any] = {
    "text": str,
    "stop_reason": StopReason,
    "usage": Usage,
    "detail": str,
    "error": BaseException | None,
    "session": Session,
}


def is_task(value: object) -> bool:
    """a task or None"""  # noqa: D400, D403 - a noun for sentences
    return value is None or isinstance(value, asyncio.Task)


class RunContext(Context):
    """One prompt, from its arrival to the end of its run.

    ``count`` says how often hooks kept this run going, ``cap`` how often in a row they may.
    """

    __slots__ = (
        "abandoned",
        "cancellation",
        "cap",
        "count",
        "count_in_row",
        "errands",
        "holds_lock",
        "hung",
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

    shapes = {  # noqa: RUF012 - a table
        "prompt": Content,
        "reply": Reply,
        "stopping": Stopping | None,
        "stored": bool,
        "shown": bool,
        "holds_lock": bool,
        "abandoned": bool,
        "cancellation": asyncio.Event,
        "count": int,
        "count_in_row": int,
        "cap": int,
        "open": list[ToolContext],
        "partial": list[str],
        "errands": set[Any],
        "hung": set[Any],
        "sent": Message,
        "task": is_task,
        "supervisor": is_task,
        "owner": str,
        "clock": Clock | None,
    }
    kept = ("prompt", "reply")

    def __init__(
        self,
        agent: Agent,
        session: Session,
        prompt: Content,
        written: list[dict[str, Any]] | None = None,
    ) -> None:
        super().__init__(agent, session)
        self.run = self
        self.prompt = prompt
        self.sent = prompt_of(prompt, written)
        self.reply = Reply("", "end_turn", {}, session)
        self.stored = False
        self.stopping: Stopping | None = None
        self.cancellation = asyncio.Event()
        self.holds_lock = False
        self.abandoned = False
        self.task: asyncio.Task[None] | None = None
        self.supervisor: asyncio.Task[Any] | None = None
        self.open: list[ToolContext] = []
        self.hung: set[object] = set()
        self.errands: set[asyncio.Task[Any]] = set()
        self.partial: list[str] = []
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

    @property
    def cancelled(self) -> bool:
        """True once somebody cancelled the run."""
        return self.cancellation.is_set()

    def check(self) -> None:
        """Raise ``CancelledError`` where the run was cancelled and somebody swallowed that."""
        if self.cancelled:
            raise asyncio.CancelledError

    def cancel(self) -> None:
        """End the run as soon as anything can be ended; later calls change nothing."""
        if not self.cancelled:
            self.cancellation.set()
            for task in (self.task, *self.errands):
                if task is not None:
                    task.cancel()

    def new_turn(self) -> TurnContext:
        """The next request, as it is before any hook has seen it."""
        session = self.session
        hooked = self.agent.hooks.before_llm_request or self.agent.hooks.around_llm_request
        messages, tools = sendable(session.messages), self.agent.tool_specs(session)
        if hooked:
            messages, tools = list(messages), list(tools)
        params = {**session.options.get("params", {})}
        message_id = session.next_message_id
        return TurnContext(
            self, Request(messages, tools, session.model, params, session.id, message_id)
        )

    async def keep_going(self, more: Continue) -> None:
        """Count that a hook wants more, and tell the model what."""
        self.count += 1
        self.count_in_row += 1
        await self.append(context_block(more.message, "on_stop"))

    @property
    def steered(self) -> bool:
        """True where the user said something while the run was on."""
        return any(is_prompt(message) for message in self.session.pending)

    def open_call(self, call: Call) -> ToolContext:
        """A call of the model's that waits for its answer."""
        opened = ToolContext(self, call, self.agent.tool(call.name, self.session))
        self.open.append(opened)
        return opened

    async def close_calls(self) -> None:
        """Put the results of the open calls into the history, in source order."""
        await self.heal()
        unanswered = set(self.session.unanswered())
        opened, self.open = self.open, []
        self.count_in_row = 0 if opened else self.count_in_row
        for call in opened:
            if call.call.id in unanswered and call.result is not None:
                await self.append(tool_answer(call.call.id, call.result.content))

    async def keep_partial(self) -> None:
        """Put what the model had said when it was interrupted into the history."""
        text = "".join(self.partial)
        self.partial.clear()
        if text:
            self.reply.text = text
            await self.append({"role": "assistant", "content": text})

    async def store_prompt(self) -> None:
        """Put the prompt and the context that belongs to it into the history."""
        self.stored = True
        unchanged = self.sent["content"] == self.prompt
        message = self.sent if unchanged else user(self.prompt)
        if not self.shown:
            message_id = self.session.next_message_id
            await self.emit(UserMessage(self.prompt, message_id, message.get("written", ())))
        await self.append(message)
        await self.deliver()


class TurnContext(Context):
    """One request to the model, and what came of it.

    ``messages``, ``tools``, ``model`` and ``params`` are the request's; ``reply`` is the model's
    `Completion`; ``results`` are the tool calls with their results, in source order.
    """

    __slots__ = ("reply", "request", "results")

    shapes = {  # noqa: RUF012 - a table
        "messages": list[Message],
        "tools": list[ToolSpec],
        "model": str | None,
        "params": json_object,
        "reply": Completion,
    }
    kept = ("request",)

    run: RunContext

    def __init__(self, run: RunContext, request: Request) -> None:
        super().__init__(run.agent, run.session, run)
        self.request = request
        self.reply = Completion()
        self.results: list[ToolContext] = []

    @property
    def messages(self) -> list[Message]:
        """The messages of the request; replace them, do not change them in place."""
        return self.request.messages

    @messages.setter
    def messages(self, value: list[Message]) -> None:
        self.request.messages = value

    @property
    def tools(self) -> list[ToolSpec]:
        """What the model is told of the tools."""
        return self.request.tools

    @tools.setter
    def tools(self, value: list[ToolSpec]) -> None:
        self.request.tools = value

    @property
    def model(self) -> str | None:
        """The model asked; None for the endpoint's own."""
        return self.request.model

    @model.setter
    def model(self, value: str | None) -> None:
        self.request.model = value

    @property
    def params(self) -> dict[str, Any]:
        """Further parameters of the request."""
        return self.request.params

    @params.setter
    def params(self, value: dict[str, Any]) -> None:
        self.request.params = value

    @property
    def usage(self) -> Usage | None:
        """Tokens of this request, where the provider said."""
        return self.reply.usage

    async def _replaced(self, summary: str, trigger: str) -> None:
        self.request.messages = list(self.session.messages)
        self.request.message_id = self.session.next_message_id
        await super()._replaced(summary, trigger)

    def whole_request(self) -> Request:
        """The request, whatever hooks have done to single messages in place."""
        wrong = flaw(self.request.messages)
        if wrong is not None:
            logger.warning("a message was changed in place, and the request repaired: %s", wrong)
            self.request.messages = repaired(self.request.messages)
        return self.request

    async def show(self, delta: Delta) -> None:
        """Tell the client what the model is saying."""
        self.run.check()
        if type(delta) is TextDelta:
            self.run.partial.append(delta.text)
        await self.emit(delta)

    def count(self) -> None:
        """Count the reply's tokens, as if it stood in the history already."""
        self.session.report(self.reply.usage, ahead=self.reply.message() is not None)
        self.run.reply.usage = add_usage(self.run.reply.usage, self.reply.usage)

    async def store_reply(self) -> None:
        """Put the model's answer into the history and tell of its tokens."""
        run, reply, session = self.run, self.reply, self.session
        run.partial.clear()
        message = reply.message()
        if message is not None:
            await self.append(message)
        run.reply.text = reply.text
        run.reply.stop_reason = FINISHED.get(reply.finish, "end_turn")
        if reply.usage is not None:
            window = self.agent.context_window(self.session)
            tokens = session.tokens(window)["total_tokens"]
            await self.emit(UsageReported(reply.usage, session.usage, tokens, window))
