"""Deferred tools: those that come late are told at the tail, and the list in front stays as it is.

For most models the tools stand in front of all messages, so that one more of them makes the
provider read the whole conversation anew. Where there are very many, the model is told the names
alone, at the tail as well, and looks up what it needs.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import field, replace
from typing import TYPE_CHECKING, Annotated, Any, cast

from crow import Agent, Arg, Call, Completion, Context, RunContext, Session, Tool, TurnContext, hook
from crow.dataclasses import frozen, mutable
from crow.hooks import FIRST
from crow.keys import Key
from crow.messages import context_block
from crow.ports import DeferrableTool, ToolBringer, implementing, implements

if TYPE_CHECKING:
    from crow import Message
    from crow.messages import ToolSpec

NAME = "deferred_tools"
CALL_TOOL = "CallTool"
SPEC: ToolSpec = {
    "type": "function",
    "function": {
        "name": CALL_TOOL,
        "description": (
            "Call a tool that is not in this list, because it was announced in the conversation "
            "after that had begun. All others are called by themselves."
        ),
        "parameters": {
            "type": "object",
            "properties": {
                "name": {"type": "string", "description": "The tool's name, as announced"},
                "arguments": {"type": "object", "description": "Its arguments, by its parameters"},
            },
            "required": ["name", "arguments"],
        },
    },
}
NEW = f"There are new tools. Call them with {CALL_TOOL}, by name and arguments:"
OTHER = "These tools are described otherwise than before; this is what holds now:"
GONE = "These tools are not there any more:"
DEFERRED = (
    "There are these tools, too. Read their definitions with ToolSearch before you call them:"
)


@mutable
class Offered:
    """The tools that the model of a session was told of: in the list, and since.

    ``listed`` is the list of a segment of the history, ``seen`` what there was at the last look,
    ``known`` what the model knows by now, by name. ``has_call`` is true with `CALL_TOOL` listed.
    ``deferred`` are the names of those that were announced without a definition, ``loaded`` those
    of which it was read since.
    """

    segment: int
    listed: list[ToolSpec]
    seen: list[ToolSpec]
    known: dict[str, ToolSpec]
    has_call: bool = field(default=False)
    deferred: set[str] = field(default_factory=set[str])
    loaded: set[str] = field(default_factory=set[str])


OFFERED: Key[Offered] = Key(NAME)


@frozen
class DeferredToolsOptions:
    """The settings of tools that are not in the list."""

    search_above: Annotated[float | None, Arg(minimum=0)] = None
    """Tokens of the definitions of MCP tools above which `ToolSearch` finds them: a tenth of the
    context window without it."""


class DeferredToolsHook:
    """Keeps the list of tools as it was in the first request, and announces later ones at the tail.

    Where an extension says that it may bring tools (its ``brings_tools(session)``; MCP servers do),
    the list has the tool ``CallTool``, which calls those that were announced: the call is judged,
    shown and stored as one of the tool that it names. A tool that goes or changes stays in the list
    as it was, and the model is told. After a compaction the list is that of the moment. Where
    nobody was to bring tools, those that come stand at the end of the list.

    Tools with a true ``defer_loading`` (those of MCP servers have it) stand in no list where their
    definitions have more than ``search_above`` tokens: the model is told their names, and the tool
    ``ToolSearch`` gives it the definitions that it asks for.
    """

    name = NAME
    order = 165
    inherited = True
    options = DeferredToolsOptions

    def __init__(self, *, search_above: float | None = None) -> None:
        self.search_above = search_above

    @hook("before_llm_request", order=FIRST)
    def keep(self, ctx: TurnContext) -> Awaitable[None] | None:
        """Let the request have the list of the first one, and what has come since at its end."""
        session = ctx.session
        specs = ctx.agent.tool_specs(session)
        offered = OFFERED.get(session)
        if offered is None or offered.segment != session.segment:
            deferred = self._defer(ctx)
            specs = ctx.agent.tool_specs(session)
            offered = OFFERED.set(session, _begun(ctx, specs, deferred))
        elif not offered.has_call:
            _extend(offered, specs)
        if offered.listed != specs:
            ctx.tools = list(offered.listed)
        told = self._untold(ctx)
        return self._add(ctx, context_block(told, NAME)) if told else None

    async def _add(self, ctx: TurnContext, message: Message) -> None:
        await ctx.append(message)
        ctx.messages = [*ctx.messages, message]

    def around_run(
        self, ctx: RunContext, call_next: Callable[[], Awaitable[object]]
    ) -> Awaitable[object]:
        """Announce behind a prompt what has come since the last answer."""
        more = self._announce(ctx)
        return call_next() if more is None else self._after(more, call_next)

    async def _after(
        self, more: Awaitable[None], call_next: Callable[[], Awaitable[object]]
    ) -> object:
        await more
        return await call_next()

    def after_turn(self, ctx: TurnContext) -> Awaitable[None] | None:
        """Announce what has come meanwhile."""
        return self._announce(ctx)

    def _announce(self, ctx: Context) -> Awaitable[None] | None:
        told = self._untold(ctx)
        return ctx.inject_context(told) if told else None

    def _defer(self, ctx: Context) -> set[str]:
        """The tools that are too many to be listed; `ToolSearch` is there for them."""
        tools = ctx.agent.tools_of(ctx.session)
        names = {name for name, tool in tools.items() if may_wait(tool)}
        if not names:
            return names
        from crow.extensions.deferred_tools.search import (
            TOOL_SEARCH,
            limit_of,
            tokens_of,
        )

        specs = [spec for spec in ctx.agent.tool_specs(ctx.session) if _name(spec) in names]
        limit = limit_of(self.search_above, ctx.agent.context_window(ctx.session))
        if tokens_of(specs) <= limit:
            return set()
        if TOOL_SEARCH not in tools:
            ctx.session.add_tool(_search(ctx.agent, ctx.session))
        return names

    def _untold(self, ctx: Context) -> str:
        """What has come since the model was last told of tools."""
        offered, specs = OFFERED.get(ctx), ctx.agent.tool_specs(ctx.session)
        if offered is None or not offered.has_call or offered.segment != ctx.session.segment:
            return ""
        if specs is offered.seen or specs == offered.seen:
            return ""
        offered.deferred |= self._defer(ctx) - offered.known.keys()
        offered.seen = specs = ctx.agent.tool_specs(ctx.session)
        return "\n\n".join(_news(offered, {_name(spec): spec for spec in specs}))

    @hook("after_llm_response", order=FIRST)
    def unwrap(self, ctx: TurnContext) -> Completion | None:
        """Make a call of the announced tool of one that was made by ``CallTool``."""
        if all(call.name != CALL_TOOL for call in ctx.reply.calls):
            return None
        return replace(ctx.reply, calls=tuple(map(unwrapped, ctx.reply.calls)))


def unwrapped(call: Call) -> Call:
    """The call that is meant; with what is wrong with it where it means none."""
    if call.name != CALL_TOOL or call.fault:
        return call
    name, args = call.args.get("name"), call.args.get("arguments", {})
    if not isinstance(name, str) or name == CALL_TOOL:
        return replace(call, fault=f"{CALL_TOOL} takes the name of another tool, not {name!r}.")
    if isinstance(args, str):  # some models write objects as text
        try:
            args = json.loads(args)
        except ValueError as error:
            return replace(
                call, fault=f"{CALL_TOOL}: the arguments for {name} are not valid JSON: {error}."
            )
    if not isinstance(args, dict):
        return replace(
            call,
            fault=f"{CALL_TOOL}: the arguments for {name} must be one JSON object, such as {{}}.",
        )
    given = cast("dict[str, Any]", args)
    return Call(call.id, name, given, json.dumps(given), None, call.extra_content)


def _search(agent: Agent, session: Session) -> Tool:
    """The tool that finds what was announced by name."""
    from crow.extensions.deferred_tools.search import ToolSearch

    def find() -> dict[str, ToolSpec]:
        offered = OFFERED.get(session)
        names = offered.deferred if offered is not None else ()
        return {_name(spec): spec for spec in agent.tool_specs(session) if _name(spec) in names}

    def note(names: Iterable[str]) -> None:
        if (offered := OFFERED.get(session)) is not None:
            offered.loaded |= set(names)

    return ToolSearch(find, note)


def _begun(ctx: Context, specs: list[ToolSpec], deferred: set[str]) -> Offered:
    """The list of a first request."""
    has_call = bool(deferred) or brings_tools(ctx)
    kept = [spec for spec in specs if _name(spec) not in deferred] if deferred else specs
    listed = [*kept, SPEC] if has_call else specs
    known = {_name(spec): spec for spec in kept}
    seen = [] if deferred else specs  # the names are told of yet
    return Offered(ctx.session.segment, listed, seen, known, has_call, deferred)


def brings_tools(ctx: Context) -> bool:
    """True where an extension may bring tools in the middle of the session."""
    used = implementing(ctx.agent.extensions_of(ctx.session).values(), ToolBringer)
    return any(each.brings_tools(ctx.session) for each in used)


def may_wait(tool: object) -> bool:
    """True for a tool whose definition may wait until the model looks for it."""
    return implements(tool, DeferrableTool) and tool.defer_loading


def _extend(offered: Offered, specs: list[ToolSpec]) -> None:
    """Put what nobody could announce at the end of the list; the rest of that stays."""
    if specs is not offered.seen and specs != offered.seen:
        offered.seen = specs
        names = {_name(spec) for spec in offered.listed}
        offered.listed = [*offered.listed, *(each for each in specs if _name(each) not in names)]


def _news(offered: Offered, now: Mapping[str, ToolSpec]) -> Iterator[str]:
    """What the model does not know of the tools yet."""
    known, unread = offered.known, offered.deferred - offered.loaded
    new = {name: spec for name, spec in now.items() if name not in known}
    other = [s for n, s in now.items() if n in known and known[n] != s and n not in unread]
    gone = [name for name in known if name not in now]
    for heading, specs in ((NEW, [s for n, s in new.items() if n not in unread]), (OTHER, other)):
        if specs:
            yield "\n".join([heading, *map(_line, specs)])
    if names := [name for name in new if name in unread]:
        yield f"{DEFERRED} {', '.join(names)}"
    if gone:
        yield f"{GONE} {', '.join(gone)}"
    offered.known = dict(now)


def _name(spec: ToolSpec) -> str:
    return spec["function"]["name"]


def _line(spec: ToolSpec) -> str:
    return json.dumps(spec["function"], ensure_ascii=False)
