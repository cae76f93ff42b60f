"""One request: the prompt, the turns that answer it, the tool calls of a turn.

The contexts that the loop works with, and the ones of the moments around it.
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from crow.core.calls import Call, Location, Outcome, ToolKind, ToolResult, mismatch
from crow.core.errors import CrowError, told
from crow.core.events import (
    StopReason,
    TextDelta,
    ToolEnded,
    ToolProgress,
    UsageReported,
    UserMessage,
)
from crow.core.messages import (
    Content,
    Message,
    ToolSpec,
    Usage,
    add_usage,
    context_block,
    is_prompt,
    tool_answer,
    user,
)
from crow.core.ports import Completion, Delta, Option, Request, Tool
from crow.core.reach import (
    UI,
    CompactContext,
    Context,
    ErrorContext,
    MessageContext,
    Stopping,
    UpdateContext,
    waiting,
)
from crow.core.session import Session
from crow.core.verdicts import Continue, Ruling, Stop

if TYPE_CHECKING:
    from crow.core.agent import Agent

__all__ = [
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

NOT_RUN = "not run: the run was stopped before"
CANCELLED = "cancelled by the user"
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
        "holds_lock",
        "hung",
        "open",
        "partial",
        "prompt",
        "reply",
        "shown",
        "stopping",
        "stored",
        "supervisor",
        "task",
    )

    def __init__(self, agent: Agent, session: Session, prompt: Content) -> None:
        super().__init__(agent, session)
        self.run = self
        self.prompt = prompt
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
        self.partial: list[str] = []
        self.shown = True
        self.count = 0
        self.count_in_row = 0
        self.cap = agent.stop_cap

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
            if self.task is not None:
                self.task.cancel()

    def new_turn(self) -> TurnContext:
        """The next request, as it is before any hook has seen it."""
        session = self.session
        hooked = self.agent.hooks.before_llm_request or self.agent.hooks.around_llm_request
        messages, tools = session.messages, self.agent.tool_specs(session)
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
        if not self.shown:
            message_id = self.session.next_message_id
            await self.emit(UserMessage(self.prompt, message_id))
        await self.append(user(self.prompt))
        await self.deliver()


class TurnContext(Context):
    """One request to the model, and what came of it.

    ``messages``, ``tools``, ``model`` and ``params`` are the request's; ``reply`` is the model's
    `Completion`; ``results`` are the tool calls with their results, in source order.
    """

    __slots__ = ("reply", "request", "results")

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

    async def show(self, delta: Delta) -> None:
        """Tell the client what the model is saying."""
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


class ToolContext(Context):
    """One tool call: ``args`` are what runs, ``result`` is what the model is told.

    ``outcome`` is ``ok``, ``error``, ``denied``, ``answered`` (a hook answered for the tool) or
    ``cancelled``; ``duration`` is in seconds. ``faulty`` says that the call could not run at all:
    no such tool, or arguments that are no JSON or do not fit the schema. While the tool runs this
    is its `Bench`.
    """

    __slots__ = (
        "args",
        "call",
        "duration",
        "faulty",
        "options",
        "outcome",
        "reason",
        "result",
        "settled",
        "tool",
    )

    run: RunContext

    def __init__(self, run: RunContext, call: Call, tool: Tool | None) -> None:
        super().__init__(run.agent, run.session, run)
        self.call = call
        self.tool = tool
        self.args: dict[str, Any] = copy.deepcopy(call.args)
        self.result: ToolResult | None = None
        self.outcome: Outcome = "ok"
        self.duration = 0.0
        self.options: Sequence[Option] = ()
        self.reason = ""
        self.settled = False
        self.faulty = False

    @property
    def block(self) -> Call:
        """The call, by the name that the third essay gives it."""
        return self.call

    @property
    def name(self) -> str:
        """The tool's name."""
        return self.call.name

    @property
    def output(self) -> str:
        """The text of the result."""
        return self.result.text if self.result else ""

    @property
    def error(self) -> str | None:
        """The text of the result where it is an error."""
        return self.output if self.outcome == "error" else None

    @property
    def title(self) -> str:
        """The call in a line that a person reads."""
        return str(self._ask_tool("title", self.args) or self.call.name)

    @property
    def kind(self) -> ToolKind:
        """What sort of tool it is."""
        return getattr(self.tool, "kind", "other")

    @property
    def locations(self) -> tuple[Location, ...]:
        """The files that the call is about."""
        return tuple(self._ask_tool("locations", self.args, self.cwd) or ())

    def _ask_tool(self, member: str, *arguments: Any) -> Any:
        """What an optional member of the tool answers; None without it, or for odd arguments."""
        try:
            return getattr(self.tool, member)(*arguments)
        except Exception:  # noqa: BLE001 - the model may have sent anything
            return None

    async def progress(self, text: str, *, terminal: str | None = None) -> None:
        """Show output of the call while it runs."""
        await self.emit(ToolProgress(self.call.id, text, terminal))

    def prepare(self) -> bool:
        """Make the arguments what hooks are to see; False where the call cannot run at all."""
        if self.call.fault is not None:
            self.refuse(self.call.fault)
        elif self.tool is None:
            names = ", ".join(sorted(self.agent.tools_of(self.session)))
            self.refuse(f"there is no tool {self.call.name!r}; there are: {names}")
        else:
            self.args = self._ask_tool("prepare", self.args, self.cwd) or self.args
        return self.result is None

    def check(self) -> bool:
        """Hold the final arguments against the tool's schema; False where they do not fit."""
        tool = self.tool
        assert tool is not None
        own = getattr(tool, "check", None)
        wrong = own(self.args) if own is not None else mismatch(tool.parameters, self.args)
        if wrong:
            self.refuse(f"{self.call.name}: {wrong}")
        return not wrong

    def refuse(self, fault: str) -> None:
        """Conclude a call that cannot run at all."""
        self.faulty = True
        self.conclude("error", ToolResult.failure(fault))

    def rule(self, ruling: Ruling) -> None:
        """Conclude a call that must not run, or that a hook answered."""
        if isinstance(ruling.verdict, Stop):
            self.stop(ruling.reason)
        if ruling.refused:
            self.conclude("denied", ToolResult.failure(ruling.reason or "denied by a hook"))
        elif ruling.answer is not None:
            self.conclude("answered", ToolResult.of(ruling.answer.value))

    async def execute(self) -> ToolResult:
        """Run the tool; the innermost of ``around_tool``."""
        assert self.tool is not None
        owner, clock = self.owner, self.clock
        self.owner, self.clock = self.call.name, None
        try:
            return ToolResult.of(await self.tool.run(self.args, self))
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if self.run.cancelled or (task is not None and task.cancelling()):
                raise
            raise RuntimeError("the tool was cancelled by its own code") from None
        except SystemExit as error:
            raise RuntimeError(f"the tool wanted to end the program: exit {error}") from None
        finally:
            self.owner, self.clock = owner, clock

    def succeed(self, value: object) -> None:
        """Conclude with what the tool, or a hook around it, returned."""
        result = ToolResult.of(value)
        self.conclude("error" if result.error else "ok", result)

    async def fail_with(self, error: Exception) -> None:
        """Conclude with what the tool raised."""
        text = told(error)
        named = text if isinstance(error, CrowError) else f"{type(error).__name__}: {text}"
        self.conclude("error", ToolResult.failure(named))
        await self.fail(error, "tool")

    def conclude(self, outcome: Outcome, result: ToolResult | str) -> ToolResult:
        """Give the call its outcome; the first one stands."""
        if self.result is None:
            self.outcome = outcome
            self.result = ToolResult.of(result)
        return self.result

    async def settle(self) -> None:
        """Say what came of the call, exactly once; one without a result was cancelled."""
        if not self.settled:
            self.settled = True
            self.conclude("cancelled", CANCELLED if self.run.cancelled else NOT_RUN)
            await self.agent.hooks.after_tool.fire(self)
            result = self.conclude("cancelled", NOT_RUN)
            await self.emit(ToolEnded(self.call, self.outcome, result, self.duration))


class SessionContext(Context):
    """A session begins or ends.

    ``source`` is ``new``, ``load``, ``resume``, ``fork`` or ``subagent``; ``reason`` says why it
    ends: ``closed``, ``replaced`` or ``exit``.
    """

    __slots__ = ("reason", "source")

    def __init__(
        self, agent: Agent, session: Session, *, source: str = "", reason: str = ""
    ) -> None:
        super().__init__(agent, session)
        self.source = source
        self.reason = reason


class CommandContext(Context):
    """A slash command: ``command`` is its name without the slash, ``args`` the rest of the line."""

    __slots__ = ("args", "command")

    def __init__(self, run: RunContext, command: str, args: str) -> None:
        super().__init__(run.agent, run.session, run)
        self.command = command
        self.args = args


class ConfigContext(Context):
    """Model, mode or options are about to change; ``changes`` maps names to new values."""

    __slots__ = ("changes",)

    def __init__(self, agent: Agent, session: Session, changes: dict[str, Any]) -> None:
        super().__init__(agent, session)
        self.changes = changes


class NotificationContext(Context):
    """The user's attention is wanted; ``kind`` says for what, ``message`` in words."""

    __slots__ = ("kind", "message")

    def __init__(
        self, agent: Agent, session: Session, run: RunContext | None, kind: str, message: str
    ) -> None:
        super().__init__(agent, session, run)
        self.kind = kind
        self.message = message
