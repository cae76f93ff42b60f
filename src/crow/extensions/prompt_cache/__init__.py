"""Prompt cache: whether each request begins with what the one before was, and who changed that."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

from crow import (
    CompactContext,
    ConfigContext,
    RequestContext,
    RunContext,
    Session,
    SessionContext,
    TurnContext,
    hook,
)
from crow.extensions.prompt_cache.sent_request import (
    IN_PREFIX,
    MEMORY,
    NOTHING,
    Memory,
    Sent,
    Setting,
    Stage,
)
from crow.hooks import FIRST, Record
from crow.keys import SYSTEM_PROMPT

if TYPE_CHECKING:
    from crow import Agent
    from crow.extensions.prompt_cache.cause import Break
    from crow.extensions.prompt_cache.report import Counts

NAME = "prompt_cache"
POINT = "on_llm_request"
KEPT_BREAKS = 10
MODELS = 4


class PromptCacheHook:
    """Compares every request with the one before: what that was is what the next one begins with.

    Providers keep what a request begins with, and read it again for a tenth of the price. Where a
    request of a session begins otherwise than the one before to the same model, that is counted:
    from which message on, who it was (a hook, tools that came late, a part of the system prompt),
    and how many tokens were paid again, by what the provider reported. The user is told once of
    each culprit; ``/cost``, ``/context`` and ``crow hooks explain`` tell of all. A compaction, a
    new beginning, another model, other settings and a new process are no faults, and counted
    apart; so are the requests of sub-agents.
    """

    name = NAME
    order = 95

    def init_agent(self, agent: Agent) -> None:
        """Look on while hooks change requests."""
        agent.hooks.before_llm_request.watchers.append(self.watch)

    def on_session_start(self, ctx: SessionContext) -> None:
        """Find what is known of a stored session."""
        memory_of(ctx.session)

    # what has come of the request so far

    def watch(self, record: Record, ctx: TurnContext) -> None:
        """Keep what a hook has made of a request; the lists that it made are nobody else's."""
        stages = memory_of(ctx.session).stages
        hook = _named(record) if _changes(record) else ""
        last = stages[-1] if stages else None
        if last is None or last.messages is not ctx.messages or last.tools is not ctx.tools:
            stages.append(Stage(hook, ctx.messages, ctx.tools))

    @hook("after_compact")
    def replaced(self, ctx: CompactContext) -> None:
        """Remember what has replaced the history."""
        memory_of(ctx.session).replaced = ctx.trigger

    @hook("on_config_change")
    def set(self, ctx: ConfigContext) -> None:
        """Remember what somebody has set."""
        name, changes = (ctx.path, {}) if ctx.path else (", ".join(ctx.changes), ctx.changes)
        tools = list(ctx.agent.tool_specs(ctx.session))
        memory_of(ctx.session).settings.append(Setting(name, dict(changes), tools))

    # the request

    def on_llm_request(self, ctx: RequestContext) -> None:
        """Keep the request as it is sent."""
        memory = memory_of(ctx.session)
        given = ctx.params
        params = {name: given[name] for name in IN_PREFIX if name in given} if given else given
        parts = SYSTEM_PROMPT.get(ctx) or NOTHING
        if memory.asked_for != (message_id := ctx.session.next_message_id):
            memory.asked_for, memory.asked = message_id, []
        stages = memory.asked[-1][1].stages if memory.asked else tuple(memory.stages)
        sent = Sent(ctx.messages, ctx.tools, params, ctx.session.segment, stages, parts)
        memory.asked.append((ctx.model or ctx.agent.llm.model, sent))
        memory.stages.clear()

    @hook("after_llm_response", order=FIRST)
    def compare(self, ctx: TurnContext) -> Coroutine[Any, Any, None] | None:
        """Compare an answered request with the one before."""
        memory = memory_of(ctx.session)
        if not memory.asked:  # a hook has answered in the model's place
            return None
        asked, memory.asked = memory.asked, []
        model, now = asked[-1]
        if len(asked) > 1:  # what was asked beside the conversation breaks nothing
            model, now = next((a for a in asked if memory.begins_as_before(*a)), asked[-1])
        usage = ctx.usage or {}
        counts = memory.counts
        counts["requests"] = counts.get("requests", 0) + 1
        counts["used"] = counts.get("used", 0) + usage.get("total_tokens", 0)
        found = None
        if not memory.begins_as_before(model, now):
            found = _broken(ctx, memory, model, now)
            memory.hashed = None
        memory.sent.pop(model, None)
        memory.sent[model] = now
        if len(memory.sent) > MODELS:
            del memory.sent[next(iter(memory.sent))]
        memory.traced, memory.replaced, memory.settings = ctx.trace.count, "", []
        memory.input = usage.get("input_tokens", 0)
        return None if found is None else self._tell(ctx, counts, found)

    async def _tell(self, ctx: TurnContext, counts: Counts, found: Break) -> None:
        """Count a break, put it into the trace, and tell the user once of whom it was."""
        told = {"request": counts.get("requests", 0), **found.described}
        answer = {"type": "prefix", "reason": found.text, **told}
        ctx.trace.add(Record(POINT, ctx.owner, NAME, answer))
        counts["last"] = [*counts.get("last", []), {**told, "text": found.text}][-KEPT_BREAKS:]
        if found.expected:
            expected = counts.setdefault("expected", {})
            expected[found.why] = expected.get(found.why, 0) + 1
            return
        counts["breaks"] = counts.get("breaks", 0) + 1
        counts["tokens"] = counts.get("tokens", 0) + found.tokens
        known = counts.setdefault("told", [])
        if found.by not in known:
            known.append(found.by)
            await ctx.ui.notify(found.notice, severity="warning")

    def after_run(self, ctx: RunContext) -> None:
        """Keep with the session what was sent last, for the process that goes on with it."""
        memory = memory_of(ctx.session)
        if memory.sent and ctx.session.parent is None:
            from crow.extensions.prompt_cache.stored import remembered

            model, sent = next(reversed(memory.sent.items()))
            memory.counts["sent"] = remembered(memory, model, sent)


def _broken(ctx: TurnContext, memory: Memory, model: str, now: Sent) -> Break | None:
    """What a request has broken; of the first one in a process what has changed since it ended."""
    from crow.extensions.prompt_cache.cause import broken
    from crow.extensions.prompt_cache.stored import since_stored

    return (broken if memory.sent else since_stored)(ctx, memory, model, now)


def memory_of(session: Session) -> Memory:
    """What is remembered of a session; of a sub-agent's it is counted with its caller's."""
    memory = MEMORY.get(session)
    if memory is None:
        counts: Any = session.root.state.setdefault(NAME, {})
        if session.parent is not None:
            counts = counts.setdefault("subagents", {})
        memory = MEMORY.set(session, Memory(session, counts))
    return memory


def _changes(record: Record) -> bool:
    return "messages" in record.changed or "tools" in record.changed


def _named(record: Record) -> str:
    same = record.owner == record.hook
    return record.hook if same else f"{record.owner}.{record.hook}"
