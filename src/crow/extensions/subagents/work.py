"""One sub-agent at work: made from its definition, run to its end, closed, whatever happens."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from time import perf_counter
from typing import TYPE_CHECKING, Any

from crow import ToolResult
from crow.dataclasses import frozen
from crow.errors import HookError, ModelError
from crow.extensions.subagents.definition import Definition
from crow.extensions.subagents.relay import Relay
from crow.extensions.subagents.role import Beginning, CallerMode, Turns, mode_of
from crow.keys import SUBAGENT_CALLS, SUBAGENTS
from crow.messages import add_usage
from crow.ports import (
    WorktreeProvider,
    first_implementing,
    model_named,
    serves_session,
    thought_levels_of,
)

if TYPE_CHECKING:
    from crow import LLM, Agent, Reply, Session, Tool, ToolContext

NAME = "subagents"
"""The extension's, under which sessions keep its state."""
CALLERS = ("inherit", "sonnet", "opus", "haiku")
"""Models that are not meant by name: of these the caller's own stands in, unless one is named."""
STATUS = {"end_turn": "completed", "cancelled": "cancelled"}
"""How a sub-agent ended, by why its run did."""
DECIDING = ("before_tool", "on_permission")


@frozen
class Task:
    """A task for a sub-agent; ``title`` in a few words. ``isolated`` is in a tree of its own."""

    prompt: str
    title: str
    model: str = ""
    isolated: bool = False


async def work(
    call: ToolContext, relay: Relay, task: Task, child: Agent, fields: Mapping[str, Any]
) -> ToolResult:
    """Let a sub-agent do a task; its last words are the result. Its tokens count for the caller.

    ``fields`` are those of its session. It is over when this returns, or is cancelled.
    """
    started = perf_counter()
    session: Session | None = None
    try:
        session = await child.new_session(call.cwd, client=relay, parent=call.session, **fields)
        begin(call, session)
        told = await isolate(call, session) if task.isolated else ""
        if isinstance(told, ToolResult):
            return told
        prompt = f"{task.prompt}\n\n{told}".rstrip() if told else task.prompt
        reply = await child.prompt(session, prompt, shown=not relay.shows_subagents)
        unfinished(call).pop(call.call.id, None)
        done = result(reply, task, relay, perf_counter() - started)
        if told and not await trees(call).leave_unused(call.agent, session):
            done = replace(done, content=f"{done.text}\n\nWhat it changed is in {session.cwd}")
        return done
    finally:
        if session is not None:
            at_work(session).pop(session.id, None)
            count(call, session)
        await child.close()


def trees(call: ToolContext) -> WorktreeProvider:
    """Who makes working trees. Raises `HookError` where nobody does."""
    used = call.agent.extensions_of(call.session).values()
    maker = first_implementing(used, WorktreeProvider)
    if maker is None:
        raise HookError("the extension worktrees is not in use")
    return maker


async def isolate(call: ToolContext, session: Session) -> str | ToolResult:
    """Let a sub-agent work in a tree of its own; what it is told, or why there can be none."""
    try:
        await trees(call).enter_worktree(call.agent, session, f"agent-{session.id[:8]}")
    except HookError as error:
        return ToolResult.failure(f"it would work in a worktree of its own: {error}")
    return f"You work in {session.cwd}, a git worktree of your own: change nothing outside of it."


def begin(call: ToolContext, session: Session) -> None:
    """Let clients know whose a sub-agent's calls are: of the call that a person sees."""
    at_work(session)[session.id] = session
    callers = SUBAGENT_CALLS.setdefault(session.root, {})
    callers[session.id] = callers.get(call.session.id, call.call.id)
    unfinished(call)[call.call.id] = session.id


def unfinished(call: ToolContext) -> dict[str, str]:
    """The sub-agents that came to no result, which would name them, by their calls: stored."""
    return call.session.state.setdefault(NAME, {}).setdefault("unfinished", {})


def at_work(session: Session) -> dict[str, Session]:
    """The sub-agents' sessions that are open now, where a person's session keeps them."""
    return SUBAGENTS.setdefault(session.root, {})


def count(call: ToolContext, session: Session) -> None:
    """Count a sub-agent's tokens for its caller."""
    call.session.usage = add_usage(call.session.usage, session.usage)
    call.run.reply.usage = add_usage(call.run.reply.usage, session.usage)


def result(reply: Reply, task: Task, relay: Relay, seconds: float) -> ToolResult:
    """What the caller is told; ``data`` has Claude Code's shape."""
    session, text = reply.session, reply.text.strip()
    completed = reply.stop_reason == "end_turn"
    if not completed:
        why = " ".join((reply.detail or reply.stop_reason).split())
        said = f" Its last words:\n{text}" if text else ""
        text = f"the sub-agent {session.agent_type} did not finish: {why}.{said}"
    text = text or "(the sub-agent ended without a word)"
    data = {
        "status": STATUS.get(reply.stop_reason, "failed"),
        "agentId": session.id,
        "agentType": session.agent_type,
        "prompt": task.prompt,
        "content": [{"type": "text", "text": text}],
        "totalToolUseCount": relay.tools,
        "totalDurationMs": round(seconds * 1000),
        "totalTokens": session.usage.get("total_tokens", 0),
        "usage": dict(session.usage),
    }
    return ToolResult(text, not completed, data, tuple(relay.changed.values()))


def hire(
    call: ToolContext,
    definition: Definition,
    llm: LLM | None,
    inherited: Mapping[str, Any],
    depth: int,
) -> Agent:
    """The agent of a definition: its caller's gates, and those of its tools that it may have.

    What it inherits hangs there under the same names, as far as it is trusted here, and brings its
    tools itself.
    """
    own: list[Any] = [Beginning(definition), CallerMode(definition.mode)]
    own += [Turns(definition.turns)] if definition.turns else []
    child = call.agent.child(llm, hooks=own, tools=())
    scopes = call.agent.scope_of(call.session).line()
    owners = {owner.name: owner for scope in [*scopes][::-1] for owner in scope.hooks.owners}
    for name, thing in inherited.items():
        known = owners.get(name)
        source = known.source if known else "code"
        child.use(thing, name=name, trusted=known is None or known.trusted, source=source)
    mine = dict(tools(call, definition, depth))
    _drop(child, {*child.tools} - {*mine})
    for name, tool in mine.items():
        if name not in child.tools:
            child.add_tool(tool)
    return child


def _drop(child: Agent, names: set[str]) -> None:
    """Take tools away that extensions have brought and a definition does not name."""
    owned = child.tools.owned
    for owner in {id(owned[name][1]): owned[name][1] for name in names}.values():
        child.tools.remove(owner)
        for name, (tool, whose) in owned.items():
            if whose is owner and name not in names:
                child.tools.add(name, tool, owner)


def tools(call: ToolContext, definition: Definition, depth: int) -> Iterator[tuple[str, Tool]]:
    """The caller's tools that a sub-agent may have; the one that calls sub-agents not for ever."""
    for name, tool in call.agent.tools_of(call.session).items():
        deeper = name != call.name or level(call.session) + 1 < depth
        lent = not serves_session(tool)
        if deeper and lent and definition.may_have(name):
            yield name, tool


def level(session: Session) -> int:
    """How many callers a session has."""
    return 0 if session.parent is None else 1 + level(session.parent)


def shared(call: ToolContext) -> dict[str, dict[str, Any]]:
    """The memory of the hooks that decide on calls, such as rules that the user gave today."""
    points = [call.agent.hooks.points[event] for event in DECIDING]
    owners = {hook.owner.name for hook_point in points for hook in hook_point.chain(call.session)}
    state = call.session.state
    return {name: state.setdefault(name, {}) for name in sorted(owners)}


def fields_of(call: ToolContext, definition: Definition, task: Task, model: str) -> dict[str, Any]:
    """How a sub-agent's session begins: as its caller's is now."""
    session = call.session
    return {
        "directories": session.directories,
        "agent_type": definition.name,
        "title": task.title,
        "mode": mode_of(definition.mode, session.mode),
        "model": model or session.model,
        "options": options_of(call, definition, model or session.model),
        "state": shared(call),
    }


def options_of(call: ToolContext, definition: Definition, model: str | None) -> dict[str, Any]:
    """The options of its session: its caller's, and how hard its own model is to think."""
    options, level = dict(call.session.options), str(definition.front_matter.get("effort") or "")
    try:
        known = thought_levels_of(model_named(call.agent.llm, model or None))
    except ModelError:
        return options
    if level in known:
        options["params"] = {**options.get("params", {}), "reasoning_effort": level}
    return options


def model_of(wish: str, models: Mapping[str, LLM | str]) -> tuple[LLM | None, str]:
    """The model that is meant by a name, as an object or a name; neither is the caller's."""
    chosen = models.get(wish, "" if wish in CALLERS else wish)
    return (None, chosen) if isinstance(chosen, str) else (chosen, "")
