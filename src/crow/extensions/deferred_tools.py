"""Deferred tools: those that come late are told at the tail, and the list in front stays as it is.

For most models the tools stand in front of all messages, so that one more of them makes the
provider read the whole conversation anew.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, cast

from crow import (
    FIRST,
    Call,
    Completion,
    Context,
    Key,
    RunContext,
    Session,
    TurnContext,
    hook,
    mutable,
)
from crow.messages import context_block

if TYPE_CHECKING:
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


@mutable
class Offered:
    """What the model of a session was told of tools: in the list, and since.

    ``listed`` is the list of a segment of the history, ``seen`` what there was at the last look,
    ``known`` what the model knows by now, by name. ``has_call`` is true with `CALL_TOOL` listed.
    """

    segment: int
    listed: list[ToolSpec]
    seen: list[ToolSpec]
    known: dict[str, ToolSpec]
    has_call: bool = field(default=False)


OFFERED: Key[Offered] = Key(NAME)


class DeferredToolsHook:
    """Keeps the list of tools as it was in the first request, and announces later ones at the tail.

    Where an extension says that it may bring tools (its ``brings_tools(session)``; MCP servers do),
    the list has the tool ``CallTool``, which calls those that were announced: the call is judged,
    shown and stored as one of the tool that it names. A tool that goes or changes stays in the list
    as it was, and the model is told. After a compaction the list is that of the moment. Where
    nobody was to bring tools, those that come stand at the end of the list.
    """

    name = NAME
    order = 165

    @hook("before_llm_request", order=FIRST)
    async def keep(self, ctx: TurnContext) -> None:
        """Let the request have the list of the first one, and what has come since at its end."""
        session = ctx.session
        specs = ctx.agent.tool_specs(session)
        offered = OFFERED.get(session)
        if offered is None or offered.segment != session.segment:
            offered = OFFERED.set(session, _begun(ctx, specs))
        elif not offered.has_call:
            _extend(offered, specs)
        if offered.listed != specs:
            ctx.tools = list(offered.listed)
        if told := _untold(ctx):
            message = context_block(told, NAME)
            await ctx.append(message)
            ctx.messages = [*ctx.messages, message]

    async def around_run(
        self, ctx: RunContext, call_next: Callable[[], Awaitable[object]]
    ) -> object:
        """Announce behind a prompt what has come since the last answer."""
        await self._announce(ctx)
        return await call_next()

    async def after_turn(self, ctx: TurnContext) -> None:
        """Announce what has come meanwhile."""
        await self._announce(ctx)

    async def _announce(self, ctx: Context) -> None:
        if told := _untold(ctx):
            await ctx.inject_context(told)

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


def _untold(ctx: Context) -> str:
    """What has come since the model was last told of tools."""
    offered, specs = OFFERED.get(ctx), ctx.agent.tool_specs(ctx.session)
    if offered is None or not offered.has_call or offered.segment != ctx.session.segment:
        return ""
    if specs is offered.seen or specs == offered.seen:
        return ""
    offered.seen = specs
    return "\n\n".join(_news(offered, {_name(spec): spec for spec in specs}))


def _begun(ctx: Context, specs: list[ToolSpec]) -> Offered:
    """The list of a first request."""
    has_call = brings_tools(ctx)
    listed = [*specs, SPEC] if has_call else specs
    known = {_name(spec): spec for spec in specs}
    return Offered(ctx.session.segment, listed, specs, known, has_call)


def brings_tools(ctx: Context) -> bool:
    """True where an extension may bring tools in the middle of the session."""
    for each in ctx.agent.extensions_of(ctx.session).values():
        says: Callable[[Session], bool] | None = getattr(each, "brings_tools", None)
        if says is not None and says(ctx.session):
            return True
    return False


def _extend(offered: Offered, specs: list[ToolSpec]) -> None:
    """Put what nobody could announce at the end of the list; the rest of that stays."""
    if specs is not offered.seen and specs != offered.seen:
        offered.seen = specs
        names = {_name(spec) for spec in offered.listed}
        offered.listed = [*offered.listed, *(each for each in specs if _name(each) not in names)]


def _news(offered: Offered, now: Mapping[str, ToolSpec]) -> Iterator[str]:
    """What the model does not know of the tools yet."""
    known = offered.known
    new = [spec for name, spec in now.items() if name not in known]
    other = [spec for name, spec in now.items() if name in known and known[name] != spec]
    gone = [name for name in known if name not in now]
    for heading, specs in ((NEW, new), (OTHER, other)):
        if specs:
            yield "\n".join([heading, *map(_line, specs)])
    if gone:
        yield f"{GONE} {', '.join(gone)}"
    offered.known = dict(now)


def _name(spec: ToolSpec) -> str:
    return spec["function"]["name"]


def _line(spec: ToolSpec) -> str:
    return json.dumps(spec["function"], ensure_ascii=False)
