"""One request, and what a hook can reach from it.

A context never goes stale: it resolves through the session whenever it is used.
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from crow.core.calls import Call, Location, Outcome, ToolKind, ToolResult, mismatch
from crow.core.errors import CrowError
from crow.core.events import (
    Event,
    Notice,
    Severity,
    StopReason,
    TextDelta,
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
    text_of,
    tool_answer,
    user,
)
from crow.core.ports import Client, Completion, Delta, Option, Question, Request, Tool
from crow.core.session import Session, TokenCount
from crow.core.trace import Trace
from crow.core.verdicts import Ruling, Stop

if TYPE_CHECKING:
    from crow.core.agent import Agent

Choice = TypeVar("Choice", bound=str)
FINISHED: dict[str, StopReason] = {"length": "max_tokens", "content_filter": "refusal"}


class Clock(Protocol):
    """A running hook's time, which stands still while it waits for the user."""

    def pause(self) -> None: ...
    def resume(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Stopping:
    """Why a run is to end, and who wanted it."""

    reason: str
    by: str
    stop_reason: StopReason


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


class Context:
    """What every hook can reach: agent, session, its own state, the user."""

    __slots__ = ("agent", "clock", "owner", "run", "session")

    def __init__(self, agent: Agent, session: Session, run: RunContext | None = None) -> None:
        self.agent = agent
        self.session = session
        self.run = run
        self.owner = ""
        self.clock: Clock | None = None

    @property
    def session_id(self) -> str:
        """The session's id."""
        return self.session.id

    @property
    def cwd(self) -> str:
        """The session's directory, absolute."""
        return self.session.cwd

    @property
    def roots(self) -> tuple[str, ...]:
        """The session's directory and its additional ones, absolute."""
        return self.session.roots

    @property
    def client(self) -> Client:
        """Whoever is at the other end."""
        return self.session.client

    @property
    def state(self) -> dict[str, Any]:
        """The running extension's own JSON in this session, stored with it."""
        return self.session.state.setdefault(self.owner, {})

    @property
    def cache(self) -> dict[str, Any]:
        """The session's memory that is not stored."""
        return self.session.cache

    @property
    def trace(self) -> Trace:
        """What the hooks of this session did."""
        return self.session.trace

    @property
    def ui(self) -> UI:
        """Questions and notices to the user."""
        return UI(self)

    async def emit(self, event: Event) -> None:
        """Tell the client, unless an ``on_update`` hook objects."""
        self._hold_back_a_ghost()
        point = self.agent.hooks.on_update
        if point.entries:
            update = UpdateContext(self.agent, self.session, self.run, event)
            if await point.fire(update):
                return
            event = update.update
        await self.session.client.update(self.session.id, event)

    async def append(self, message: Message) -> None:
        """Put a message at the end of the history."""
        self._hold_back_a_ghost()
        self.session.messages.append(message)
        await self.tell_of(message)

    async def tell_of(self, message: Message) -> None:
        """Fire ``on_message``."""
        point = self.agent.hooks.on_message
        if point.entries:
            await point.fire(MessageContext(self.agent, self.session, self.run, message))

    def _hold_back_a_ghost(self) -> None:
        """Let code that ignored its cancellation do nothing more to the conversation."""
        run = self.run
        if run is not None and run.abandoned and asyncio.current_task() is not run.supervisor:
            raise asyncio.CancelledError

    async def deliver(self) -> None:
        """Put injected context at the end of the history; only where that is whole."""
        pending = self.session.pending
        while pending:
            await self.append(pending.pop(0))

    async def get_latest_user_message(self) -> str:
        """Text of the last prompt; in ``before_run`` the one that is not stored yet."""
        if self.run is not None and not self.run.stored:
            return text_of(self.run.prompt)
        return self.session.latest_prompt()

    async def get_messages(self) -> list[Message]:
        """A copy of the history."""
        return copy.deepcopy(self.session.messages)

    async def inject_context(self, text: str) -> None:
        """Put a marked block at the tail of the conversation, at its next whole seam.

        In ``before_run`` that is right behind the prompt, and nowhere if the prompt is refused.
        """
        self.session.pending.append(context_block(text, self.owner or "crow"))

    async def get_token_count(self) -> TokenCount:
        """How full the window is, anchored on what the provider reported."""
        return self.session.tokens(self.agent.llm.context_window)

    def stop(self, reason: str = "", *, stop_reason: StopReason = "hook_stopped") -> None:
        """End the run gracefully: calls that did not run are answered "not run"."""
        if self.run is not None:
            self.run.stopping = Stopping(reason, self.owner, stop_reason)

    async def stop_current_turn(self) -> None:
        """Let nothing more happen in this run after the current event."""
        self.stop()

    async def continue_with_current_session(self) -> None:
        """Take a stop back."""
        if self.run is not None:
            self.run.stopping = None

    async def restart_with_new_session(self, messages: Sequence[Message] | None = None) -> str:
        """Begin a new segment of history under the same session id, which is returned.

        Without ``messages`` it begins with the prompt that is being answered. The old segment
        stays in the store.
        """
        self.session.restart(messages)
        await self._replaced("", "restart")
        return self.session.id

    async def compact(
        self, messages: Sequence[Message], summary: str, trigger: str = "manual"
    ) -> bool:
        """Replace the history by a summary and the messages that are kept.

        Fires ``before_compact`` and ``after_compact``; False where a hook objected.
        """
        ctx = CompactContext(self.agent, self.session, self.run, list(messages), summary, trigger)
        if await self.agent.hooks.before_compact.fire(ctx):
            return False
        head = [context_block(ctx.summary, "summary")] if ctx.summary else []
        self.session.restart([*head, *ctx.messages])
        await self._replaced(ctx.summary, trigger)
        return True

    async def _replaced(self, summary: str, trigger: str) -> None:
        ctx = CompactContext(
            self.agent, self.session, self.run, self.session.messages, summary, trigger
        )
        if isinstance(self, TurnContext):
            self.request.messages = list(self.session.messages)
        await self.agent.hooks.after_compact.fire(ctx)

    async def fail(self, error: BaseException, where: str) -> None:
        """Fire ``on_error``; ``where`` is ``model``, ``loop``, ``tool`` or ``hook:NAME``."""
        point = self.agent.hooks.on_error
        if point.entries:
            await point.fire(ErrorContext(self.agent, self.session, self.run, error, where))


class UI:
    """The user, as a hook can ask. The hook's clock stands still meanwhile."""

    __slots__ = ("_ctx",)

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx

    async def confirm(self, text: str, *, default: bool = False) -> bool:
        """A yes or no."""
        return bool(await self._ask(Question(text, "confirm", default=default)))

    async def select(
        self, text: str, choices: Sequence[Choice], *, default: Choice | None = None
    ) -> Choice | None:
        """One of several; the default where nobody can answer."""
        return await self._ask(Question(text, "select", tuple(choices), default))

    async def ask(self, text: str, *, default: str = "") -> str:
        """A line of text."""
        return str(await self._ask(Question(text, "text", default=default)))

    async def notify(self, text: str, *, severity: Severity = "info") -> None:
        """Tell the user something; never part of the conversation."""
        await self._ctx.emit(Notice(text, severity, self._ctx.owner))

    async def _ask(self, question: Question) -> Any:
        with waiting(self._ctx):
            return await self._ctx.client.ask(self._ctx.session.id, question)


@contextmanager
def waiting(ctx: Context) -> Iterator[None]:
    """Stop the running hook's clock."""
    clock = ctx.clock
    if clock is not None:
        clock.pause()
    try:
        yield
    finally:
        if clock is not None:
            clock.resume()


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

    async def show(self, delta: Delta) -> None:
        """Tell the client what the model is saying."""
        if type(delta) is TextDelta:
            self.run.partial.append(delta.text)
        await self.emit(delta)

    async def store_reply(self) -> None:
        """Put the model's answer into the history and count its tokens."""
        run, reply, session = self.run, self.reply, self.session
        run.partial.clear()
        message = reply.message()
        if message is not None:
            await self.append(message)
        run.reply.text = reply.text
        run.reply.stop_reason = FINISHED.get(reply.finish, "end_turn")
        if reply.usage is not None:
            session.report(reply.usage)
            run.reply.usage = add_usage(run.reply.usage, reply.usage)
            window = self.agent.llm.context_window
            tokens = session.tokens(window)["total_tokens"]
            await self.emit(UsageReported(reply.usage, session.usage, tokens, window))


class ToolContext(Context):
    """One tool call: ``args`` are what runs, ``result`` is what the model is told.

    ``outcome`` is ``ok``, ``error``, ``denied``, ``answered`` (a hook answered for the tool) or
    ``cancelled``; ``duration`` is in seconds. While the tool runs this is its `Bench`.
    """

    __slots__ = (
        "args",
        "call",
        "duration",
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
        title = getattr(self.tool, "title", None)
        return str(title(self.args)) if callable(title) else self.call.name

    @property
    def kind(self) -> ToolKind:
        """What sort of tool it is."""
        return getattr(self.tool, "kind", "other")

    @property
    def locations(self) -> tuple[Location, ...]:
        """The files that the call is about."""
        locations = getattr(self.tool, "locations", None)
        return tuple(locations(self.args, self.cwd)) if callable(locations) else ()

    async def progress(self, text: str, *, terminal: str | None = None) -> None:
        """Show output of the call while it runs."""
        await self.emit(ToolProgress(self.call.id, text, terminal))

    def prepare(self) -> bool:
        """Make the arguments what hooks are to see; False where the call cannot run at all."""
        if self.call.fault is not None:
            self.conclude("error", ToolResult.failure(self.call.fault))
        elif self.tool is None:
            names = ", ".join(sorted(self.agent.tools_of(self.session)))
            text = f"there is no tool {self.call.name!r}; there are: {names}"
            self.conclude("error", ToolResult.failure(text))
        elif (prepare := getattr(self.tool, "prepare", None)) is not None:
            self.args = prepare(self.args, self.cwd)
        return self.result is None

    def check(self) -> bool:
        """Hold the final arguments against the tool's schema; False where they do not fit."""
        tool = self.tool
        assert tool is not None
        own = getattr(tool, "check", None)
        wrong = own(self.args) if own is not None else mismatch(tool.parameters, self.args)
        if wrong:
            self.conclude("error", ToolResult.failure(f"{self.call.name}: {wrong}"))
        return not wrong

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
        finally:
            self.owner, self.clock = owner, clock

    def succeed(self, value: object) -> None:
        """Conclude with what the tool, or a hook around it, returned."""
        result = ToolResult.of(value)
        self.conclude("error" if result.error else "ok", result)

    async def fail_with(self, error: Exception) -> None:
        """Conclude with what the tool raised."""
        text = str(error) or type(error).__name__
        named = text if isinstance(error, CrowError) else f"{type(error).__name__}: {text}"
        self.conclude("error", ToolResult.failure(named))
        await self.fail(error, "tool")

    def conclude(self, outcome: Outcome, result: ToolResult | str) -> None:
        """Give the call its outcome; the first one stands."""
        if self.result is None:
            self.outcome = outcome
            self.result = ToolResult.of(result)


class MessageContext(Context):
    """A message was appended to the history."""

    __slots__ = ("message",)

    def __init__(
        self, agent: Agent, session: Session, run: RunContext | None, message: Message
    ) -> None:
        super().__init__(agent, session, run)
        self.message = message


class CommandContext(Context):
    """A slash command: ``command`` is its name without the slash, ``args`` the rest of the line."""

    __slots__ = ("args", "command")

    def __init__(self, run: RunContext, command: str, args: str) -> None:
        super().__init__(run.agent, run.session, run)
        self.command = command
        self.args = args


class CompactContext(Context):
    """The history is replaced by ``summary`` and ``messages``, the ones that are kept whole.

    ``trigger`` is ``auto``, ``manual``, ``overflow`` or ``restart``.
    """

    __slots__ = ("messages", "summary", "trigger")

    def __init__(
        self,
        agent: Agent,
        session: Session,
        run: RunContext | None,
        messages: list[Message],
        summary: str,
        trigger: str,
    ) -> None:
        super().__init__(agent, session, run)
        self.messages = messages
        self.summary = summary
        self.trigger = trigger


class ConfigContext(Context):
    """Model, mode or options are about to change; ``changes`` maps names to new values."""

    __slots__ = ("changes",)

    def __init__(self, agent: Agent, session: Session, changes: dict[str, Any]) -> None:
        super().__init__(agent, session)
        self.changes = changes


class UpdateContext(Context):
    """An event on its way to the client."""

    __slots__ = ("update",)

    def __init__(
        self, agent: Agent, session: Session, run: RunContext | None, update: Event
    ) -> None:
        super().__init__(agent, session, run)
        self.update = update


class ErrorContext(Context):
    """Something failed; ``where`` is ``model``, ``loop``, ``tool`` or ``hook:NAME``."""

    __slots__ = ("error", "where")

    def __init__(
        self,
        agent: Agent,
        session: Session,
        run: RunContext | None,
        error: BaseException,
        where: str,
    ) -> None:
        super().__init__(agent, session, run)
        self.error = error
        self.where = where


class NotificationContext(Context):
    """The user's attention is wanted; ``kind`` says for what, ``message`` in words."""

    __slots__ = ("kind", "message")

    def __init__(
        self, agent: Agent, session: Session, run: RunContext | None, kind: str, message: str
    ) -> None:
        super().__init__(agent, session, run)
        self.kind = kind
        self.message = message
