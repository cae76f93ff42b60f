"""The cause of a request that begins otherwise than the one before, and what that cost."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from crow.dataclasses import frozen
from crow.extensions.prompt_cache.sent_request import Memory, Sent, Stage, begins_with, parting
from crow.hooks import Record
from crow.messages import weight
from crow.ports import ServerTool, implements

if TYPE_CHECKING:
    from crow import TurnContext
    from crow.messages import ToolSpec

CHARACTERS = 4
EXPECTED: Mapping[str, str] = {
    "compaction": "the conversation was compacted",
    "restart": "the conversation began anew",
    "model": "another model was asked: {by}",
    "settings": "the settings were changed ({by}), and so {what}",
    "process": "the session goes on in another process, and {what} changed",
}
"""What is nobody's fault, and how that is said."""
FAULT = "{by} changed {what}"


@frozen
class Break:
    """A request that begins otherwise than the one before.

    ``message`` says from which message on, counted from 1, and is 0 where the tools in front of
    them are others; ``why`` is a word of `EXPECTED`, or ``hook``, ``tools``, ``system_prompt`` or
    ``history``. ``tokens`` were paid again.
    """

    why: str
    by: str
    what: str = ""
    message: int = 0
    tokens: int = 0

    @property
    def expected(self) -> bool:
        """True where it is nobody's fault."""
        return self.why in EXPECTED

    @property
    def text(self) -> str:
        """It in words."""
        said = EXPECTED.get(self.why, FAULT).format(by=self.by, what=self.what)
        return f"{said}: about {self.tokens:,} tokens were paid again" if self.tokens else said

    @property
    def notice(self) -> str:
        """What the user is told of a fault."""
        return f"the provider's cache of the conversation was lost: {self.text} (/cost counts on)"

    @property
    def described(self) -> dict[str, Any]:
        """It as JSON."""
        said = {"why": self.why, "by": self.by, "what": self.what, "from_message": self.message}
        return {**said, "tokens": self.tokens, "expected": self.expected}


def broken(ctx: TurnContext, memory: Memory, model: str, now: Sent) -> Break:
    """What was broken, and by whom."""
    before = memory.sent.get(model)
    if before is None:
        return Break("model", model, "", 1, repaid(ctx, memory, now, now, 0))
    if before.segment != now.segment:
        why = "restart" if memory.replaced in ("restart", "") else "compaction"
        return Break(why, memory.replaced)
    return _changed(ctx, memory, before, now)


def _changed(ctx: TurnContext, memory: Memory, before: Sent, now: Sent) -> Break:
    index = parting(before.messages, now.messages)
    tokens = repaid(ctx, memory, before, now, 0)
    if before.tools != now.tools:
        why, by = _of_tools(ctx, memory, before, now)
        return Break(why, by, f"the tools ({tools_told(before.tools, now.tools)})", 0, tokens)
    if before.params != now.params:
        names = sorted(n for n in {**before.params, **now.params} if _differ(n, before, now))
        by = _hook_by_record(ctx, memory, "params")
        why = "hook" if by else "settings"
        return Break(why, by or "chosen", f"the parameter {', '.join(names)}", 1, tokens)
    assert index is not None
    why, by = _of_messages(ctx, memory, before, now, index)
    is_system = index == 0 and now.system is not None
    what = "the system message" if is_system else f"message {index + 1} of {len(before.messages)}"
    return Break(why, by, what, index + 1, repaid(ctx, memory, before, now, index))


def _differ(name: str, before: Sent, now: Sent) -> bool:
    return before.params.get(name) != now.params.get(name)


# who it was


def _of_tools(ctx: TurnContext, memory: Memory, before: Sent, now: Sent) -> tuple[str, str]:
    """Who changed the tools: whoever brought them, where the agent offers them so, else a hook."""
    if now.tools != ctx.agent.tool_specs(ctx.session):
        by = _of_hooks(ctx, memory, before, now, "tools")
        if by:
            return "hook", by
    set_since = [each for each in memory.settings if each.holds(ctx.session)]
    if set_since and set_since[0].tools == before.tools:
        return "settings", ", ".join(each.name for each in set_since)
    owners = dict.fromkeys(_owner(ctx, name) for name in new_names(before.tools, now.tools))
    return "tools", " and ".join(owners) or "an extension"


def _owner(ctx: TurnContext, name: str) -> str:
    tool = ctx.agent.tool(name, ctx.session)
    if implements(tool, ServerTool) and (server := tool.mcp_server.get("name")):
        return f"the MCP server {server}"
    return f"the extension {ctx.agent.scope_of(ctx.session).owner_of('tools', name)}"


def _of_messages(
    ctx: TurnContext, memory: Memory, before: Sent, now: Sent, index: int
) -> tuple[str, str]:
    if index == 0 and before.parts != now.parts:
        names = ", ".join(changed_names(before.parts, now.parts))
        return "system_prompt", f"the system prompt's part {names}"
    by = _of_hooks(ctx, memory, before, now, "messages")
    if by:
        return "hook", by
    by = _hook_by_record(ctx, memory, "session.messages")
    return ("hook", by) if by else ("history", "whoever replaced the history")


def _of_hooks(ctx: TurnContext, memory: Memory, before: Sent, now: Sent, part: str) -> str:
    """The hook behind which a request is another one: the first that makes it so, or a wrap."""
    index = parting(before.messages, now.messages)
    found = next(_turning(before.stages, now.stages, part, index), "")
    return f"the hook {found}" if found else _hook_by_record(ctx, memory, part)


def _turning(
    before: Sequence[Stage], now: Sequence[Stage], part: str, index: int | None
) -> Iterator[str]:
    """The hooks that made of what was as before something else, no further behind, in order."""
    known = {stage.hook: stage for stage in before}
    last = known.get("")
    for stage in now:
        base = known.get(stage.hook, last)
        was = getattr(base or stage, part)
        if stage.hook and _is_other(was, getattr(stage, part), part, index):
            yield stage.hook
        last = base
    yield from (hook for hook in known if hook not in {stage.hook for stage in now})


def _is_other(was: list[Any], item: list[Any], part: str, index: int | None) -> bool:
    if part == "tools":
        return was != item
    at = None if begins_with(item, was) else parting(was, item)
    return at is not None and (index is None or at <= index)


def _hook_by_record(ctx: TurnContext, memory: Memory, part: str) -> str:
    """The hooks that have changed something since the last answer, as the trace has them."""
    around = part not in ("params", "session.messages")
    found = dict.fromkeys(
        _name(record)
        for record in ctx.trace.since(memory.traced)
        if part in record.changed and (record.event == "around_llm_request" or not around)
    )
    return f"the hook {' or '.join(found)}" if found else ""


def _name(record: Record) -> str:
    return record.hook if record.owner == record.hook else f"{record.owner}.{record.hook}"


# what it was


def changed_names(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """The names of what is new, gone or another one."""
    return [name for name in {**before, **now} if before.get(name) != now.get(name)]


def new_names(before: Sequence[ToolSpec], now: Sequence[ToolSpec]) -> list[str]:
    """The names of tools that are new or others."""
    return [each["function"]["name"] for each in now if each not in before]


def tools_told(before: Sequence[ToolSpec], now: Sequence[ToolSpec]) -> str:
    """What has become of tools, in a few words."""
    return differences(_by_name(before), _by_name(now))


def _by_name(tools: Sequence[ToolSpec]) -> dict[str, Any]:
    return {each["function"]["name"]: each for each in tools}


def differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """What is new, gone and another one among things with names; else they are in another order."""
    new = [name for name in now if name not in before]
    gone = [name for name in before if name not in now]
    other = [name for name in now if name in before and before[name] != now[name]]
    pairs = (("new", new), ("gone", gone), ("others", other))
    told = [f"{word}: {shortened(names)}" for word, names in pairs if names]
    return "; ".join(told) or "in another order"


def shortened(names: Sequence[str]) -> str:
    """Names in a line that is not endless."""
    return ", ".join([*names[:4], *([f"and {len(names) - 4} more"] if len(names) > 4 else [])])


# what it cost


def repaid(ctx: TurnContext, memory: Memory, before: Sent, now: Sent, index: int) -> int:
    """Tokens of the request before, from a message on, that could not come from a cache.

    Their share of what was reported for that request, or a quarter of their characters; never more
    than what the provider says was not in its cache.
    """
    sizes = [weight(message) for message in before.messages]
    tools = len(json.dumps(before.tools, ensure_ascii=False))
    lost = sum(sizes[index:]) + (0 if index else tools)
    total = sum(sizes) + tools
    tokens = memory.input * lost // total if memory.input and total else lost // CHARACTERS
    usage = ctx.usage or {}
    if "cached_tokens" in usage:
        tokens = min(tokens, usage.get("input_tokens", 0) - usage["cached_tokens"])
    return max(0, tokens)
