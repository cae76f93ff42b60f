"""The contexts of the moments: a session, a request, a tool call, an error. All of it is data.

What the loop does with a request is in `crow.core.turn`, with a call in `crow.core.tool_call`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from crow.core.events import Event, ToolProgress
from crow.core.hooks.context import Context
from crow.core.hooks.run_context import RunContext
from crow.core.messages import Message, ToolSpec, Usage
from crow.core.ports.client import Option
from crow.core.ports.llm import Completion, Request
from crow.core.ports.tool import (
    CheckedTool,
    Launcher,
    LocatedTool,
    PreparingTool,
    TitledTool,
    Tool,
)
from crow.core.session import SHAPES
from crow.core.support.frozen import KeptList, kept, thawed
from crow.core.support.validation import fits, implements, is_event, json_object, mismatch
from crow.core.tools import Call, Diff, Location, Outcome, ToolKind, ToolResult
from crow.core.verdicts import Ask, Ring


@dataclass(slots=True, eq=False, repr=False)
class UpdateContext(Context):
    """An event on its way to the client."""

    shapes = MappingProxyType({"update": is_event})

    update: Event


@dataclass(slots=True, eq=False, repr=False)
class MessageContext(Context):
    """A message was appended to the history."""

    kept = ("message",)

    message: Message


@dataclass(slots=True, eq=False, repr=False)
class CompactContext(Context):
    """The history is replaced by ``summary`` and ``messages``, the ones that are kept whole.

    ``trigger`` is ``auto``, ``manual``, ``overflow`` or ``restart``.
    """

    shapes = MappingProxyType({"messages": list[Message], "summary": str})
    kept = ("messages",)

    messages: list[Message]
    summary: str
    trigger: str


@dataclass(slots=True, eq=False, repr=False)
class ErrorContext(Context):
    """Something failed; ``where`` is ``model``, ``loop``, ``tool`` or ``hook:NAME``.

    ``place`` is the file and line of a hook that failed, empty for anything else.
    """

    error: BaseException
    where: str
    place: str = ""


@dataclass(slots=True, eq=False, repr=False)
class SessionContext(Context):
    """A session begins or ends.

    ``source`` is ``new``, ``load``, ``resume``, ``fork`` or ``subagent``; ``reason`` says why it
    ends: ``closed``, ``replaced``, ``prompt_input_exit`` (a person went) or ``exit``. Both are
    ``reload`` for an extension whose files have changed: the session goes on.
    """

    source: str = ""
    reason: str = ""


@dataclass(slots=True, eq=False, repr=False)
class CommandContext(Context):
    """A slash command: ``command`` is its name without the slash, ``args`` the rest of the line."""

    shapes = MappingProxyType({"args": str})

    command: str
    args: str


def is_changes(value: Any) -> bool:
    """new values by name, texts for model and mode"""  # noqa: D400, D403 - a noun for sentences
    return json_object(value) and all(
        fits(SHAPES[name])(value[name]) for name in ("model", "mode") if name in value
    )


@dataclass(slots=True, eq=False, repr=False)
class ConfigContext(Context):
    """Model, mode or options are about to change; ``changes`` maps names to new values.

    Where a settings file was edited, ``source`` says whose it is (``user_settings``,
    ``project_settings``, ``local_settings`` or ``policy_settings``), ``path`` which one, and
    ``changes["settings"]`` is what it says now. ``skills`` is for a skill's file. The two are empty
    for what a person chose.
    """

    shapes = MappingProxyType({"changes": is_changes})
    kept = ("changes",)

    changes: dict[str, Any]
    source: str = ""
    path: str = ""


@dataclass(slots=True, eq=False, repr=False)
class CwdContext(Context):
    """The session works in another directory from now on: ``new_cwd``, and not ``old_cwd``."""

    old_cwd: str
    new_cwd: str


@dataclass(slots=True, eq=False, repr=False)
class WorktreeContext(Context):
    """A working tree of the project is wanted, or no longer needed.

    ``name`` is what it is called, ``path`` where it is, absolute: empty where it is wanted and no
    hook has made it. ``session`` is the one that is to work there; it need not be open yet.
    """

    shapes = MappingProxyType({"path": str})

    name: str
    path: str = ""


@dataclass(slots=True, eq=False, repr=False)
class NotificationContext(Context):
    """The user's attention is wanted; ``kind`` says for what, ``message`` in words."""

    kind: str
    message: str


class TurnContext(Context):
    """One request to the model, and what came of it.

    ``messages``, ``tools``, ``model`` and ``params`` are the request's; ``reply`` is the model's
    `Completion`; ``results`` are the tool calls with their results, in source order.
    """

    __slots__ = ("reply", "request", "results")

    shapes = MappingProxyType(
        {
            "messages": list[Message],
            "tools": list[ToolSpec],
            "model": str | None,
            "params": json_object,
            "reply": Completion,
        }
    )
    kept = ("request",)

    run: RunContext  # pyright: ignore[reportIncompatibleVariableOverride]

    def __init__(self, run: RunContext, request: Request) -> None:
        Context.__init__(self, run.agent, run.session, run=run)
        self.request = request
        self.reply = Completion()
        self.results: list[ToolContext] = []

    @property
    def _own_model(self) -> str | None:
        return self.request.model

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
        await Context._replaced(self, summary, trigger)  # noqa: SLF001 - a dataclass with slots knows no super()


class RequestContext(Context):
    """A request that goes to the model now, as all hooks have left it: this is what is sent.

    ``messages``, ``tools``, ``model`` and ``params`` are the request's; nobody changes them here.
    """

    __slots__ = ("messages", "model", "params", "tools")

    run: RunContext  # pyright: ignore[reportIncompatibleVariableOverride]

    def __init__(self, run: RunContext, request: Request) -> None:
        Context.__init__(self, run.agent, run.session, run=run)
        self.messages: list[Message] = KeptList(request.messages)
        self.tools: list[ToolSpec] = KeptList(request.tools)
        self.model = request.model
        self.params: dict[str, Any] = kept(request.params)


class ToolContext(Context):
    """One tool call: ``args`` are what runs, ``result`` is what the model is told.

    ``outcome`` is ``ok``, ``error``, ``denied``, ``answered`` (a hook answered for the tool) or
    ``cancelled``; ``duration`` is in seconds. ``faulty`` says that the call could not run at all:
    no such tool, or arguments that are no JSON or do not fit the schema. ``begun`` and ``finished``
    say how far the tool itself came, whatever the hooks around it made of that. ``question`` is
    what the user is about to be asked, at ``on_permission``. ``ring`` is how far what it starts may
    reach, as those said who let it pass; ``launcher`` confines that where a hook around the tool
    has set one. While the tool runs this is its `ToolEnvironment`.
    """

    __slots__ = (
        "approved",
        "args",
        "begun",
        "call",
        "diffs",
        "duration",
        "ended",
        "faulty",
        "finished",
        "launcher",
        "options",
        "outcome",
        "question",
        "reason",
        "result",
        "ring",
        "settled",
        "told",
        "tool",
    )

    shapes = MappingProxyType(
        {"args": json_object, "result": ToolResult, "launcher": Launcher | None}
    )
    kept = ("args",)

    run: RunContext  # pyright: ignore[reportIncompatibleVariableOverride]

    def __init__(self, run: RunContext, call: Call, tool: Tool | None) -> None:
        Context.__init__(self, run.agent, run.session, run=run)
        self.call = call
        self.tool = tool
        self.args: dict[str, Any] = thawed(call.args)
        self.approved = kept(self.args)
        self.result: ToolResult | None = None
        self.outcome: Outcome = "ok"
        self.duration = 0.0
        self.options: Sequence[Option] = ()
        self.reason = ""
        self.question: Ask | None = None
        self.diffs: tuple[Diff, ...] = ()
        self.settled = self.ended = False
        self.begun = self.finished = False
        self.told: set[object] = set()
        self.faulty = False
        self.ring: Ring = ""
        self.launcher: Launcher | None = None

    @property
    def block(self) -> Call:
        """The call; ``block.input`` are its arguments."""
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
        tool = self.tool
        try:
            told = tool.title(self.args) if implements(tool, TitledTool) else ""
        except Exception:  # noqa: BLE001 - the model may have sent anything
            told = ""
        return str(told or self.call.name)

    @property
    def kind(self) -> ToolKind:
        """What sort of tool it is."""
        return getattr(self.tool, "kind", "other")

    @property
    def locations(self) -> tuple[Location, ...]:
        """The files that the call is about."""
        tool = self.tool
        try:
            found = tool.locations(self.args, self.cwd) if implements(tool, LocatedTool) else ()
            return tuple(found or ())
        except Exception:  # noqa: BLE001 - see above
            return ()

    @property
    def misfit(self) -> str:
        """Why the tool cannot take the arguments as they are; empty where it can."""
        if self.tool is None or self.call.fault is not None:
            return self.call.fault or f"there is no tool {self.name!r}"
        if implements(self.tool, CheckedTool):
            wrong = self.tool.check(self.args)
        else:
            wrong = mismatch(self.tool.parameters, self.args)
        return f"{self.name}: {wrong}" if wrong else ""

    def prepared(self) -> dict[str, Any]:
        """The arguments as the tool puts them right, where it does."""
        tool = self.tool
        try:
            put_right = (
                tool.prepare(self.args, self.cwd) if implements(tool, PreparingTool) else None
            )
        except Exception:  # noqa: BLE001 - see above
            put_right = None
        return self.args if put_right is None else put_right

    async def progress(self, text: str, *, terminal: str | None = None) -> None:
        """Show output of the call while it runs."""
        await self.emit(ToolProgress(self.call.id, self.agent.scrubbed(text), terminal))


def open_call(run: RunContext, call: Call) -> ToolContext:
    """A call of the model's that waits for its answer."""
    opened = ToolContext(run, call, run.agent.tool(call.name, run.session))
    run.open.add(opened)
    return opened
