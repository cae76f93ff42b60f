"""A stored conversation shown to a client again: as events, and of every call one update."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeGuard

from crow.acp.jsonrpc import as_object
from crow.acp.session_view import SessionView
from crow.acp.subagents import Subagent, Told, unfinished
from crow.acp.versions import Version
from crow.core.agent import Agent
from crow.core.errors import ModelError, SessionError
from crow.core.events import (
    Event,
    RunEnded,
    TextDelta,
    ThoughtDelta,
    TitleChanged,
    ToolEnded,
    ToolPending,
    ToolStarted,
    UsageReported,
    UserMessage,
)
from crow.core.messages import Message, is_prompt, text_of, thought_of
from crow.core.session import Session
from crow.core.support.validation import implements
from crow.core.tools import Call, ToolResult
from crow.ports.stores import ReplayStore

if TYPE_CHECKING:
    from crow.acp.words import Card, Update

AGENT = "Agent"
"""The tool that hands tasks to sub-agents."""
GENERAL = "general-purpose"
"""The kind of a sub-agent whose call names none."""
PRINTED = ("terminal_output", "terminal_exit")
"""What is said of a terminal behind the call that has it."""
SETTLED = ("completed", "failed", "cancelled")


async def replay(agent: Agent, session: Session) -> AsyncIterator[Event]:
    """What was said, thought and done, in order; then the title and the usage.

    A store that replays is asked; otherwise the history is told, which knows less. No terminals:
    the client would not know them. A call that was lost before it began is described as its tool
    would do it.
    """
    store = agent.store
    is_told = implements(store, ReplayStore)
    events = store.replay(session.id) if is_told else history_events(agent, session)
    async for event in without_made_up_ends(session, events):
        yield _shown(agent, session, event)
    if session.title:
        yield TitleChanged(session.title)
    try:
        window = agent.llm.context_window
    except ModelError:
        return
    yield UsageReported({}, session.usage, session.tokens(window)["total_tokens"], window)


def subagent_of(session: Session, event: ToolEnded) -> str | None:
    """The session of the sub-agent that a call began; None where there is none."""
    if event.call.name != AGENT:
        return None
    cut_off = unfinished(session).get(event.call.id)
    found = as_object(event.result.data).get("agentId") or cut_off
    return found if isinstance(found, str) else None


async def of_subagent(agent: Agent, session: Session, subagent: str, *, asked: bool) -> list[Event]:
    """What was shown of a sub-agent's work beside its result.

    All of it, or ``asked``: the calls that its user was asked about.
    """
    if not implements(agent.store, ReplayStore):
        return []
    try:
        told = agent.store.replay(subagent, asked=asked)
        return [_shown(agent, session, each) async for each in told]
    except (SessionError, TypeError):
        return []


async def without_made_up_ends(
    session: Session, events: AsyncIterator[Event]
) -> AsyncIterator[Event]:
    """The events without the last ends of calls that are on: no store can know of these.

    They come at the end. Which one is the last is only known there, so the rest waits from the
    first one on.
    """
    on: set[str] | None = None
    rest: list[Event] = []
    async for event in events:
        if on is None:  # now the store has read what there is
            on = {call.call.id for run in session.runs for call in run.open if not call.ended}
        if rest or (isinstance(event, ToolEnded) and event.call.id in on):
            rest.append(event)
        else:
            yield event
    ends = {each.call.id: at for at, each in enumerate(rest) if isinstance(each, ToolEnded)}
    made_up = {at for call_id, at in ends.items() if call_id in (on or ())}
    for at, event in enumerate(rest):
        if at not in made_up:
            yield event


def _shown(agent: Agent, session: Session, event: Event) -> Event:
    match event:
        case ToolEnded() if event.result.terminal is not None:
            return replace(event, result=replace(event.result, terminal=None))
        case ToolPending(call, title) if title == call.name:
            return _pending(agent, session, call)
        case _:
            return event


async def history_events(agent: Agent, session: Session) -> AsyncIterator[Event]:
    """The history as events; injected context is not shown."""
    answers = {m.get("tool_call_id"): m.get("content") for m in session.messages}
    for index, message in enumerate(session.messages):
        message_id = f"{session.id}.{session.segment}.{index}"
        if is_prompt(message):
            sent = message.get("written", ())
            yield UserMessage(message.get("content") or "", message_id, sent)
        elif message["role"] == "assistant":
            for event in _said(message, message_id):
                yield event
            for part in message.get("tool_calls", ()):
                call = _call(part)
                yield _pending(agent, session, call)
                yield ToolEnded(call, "ok", ToolResult(answers.get(call.id) or ""), 0.0)


def _said(message: Message, message_id: str) -> Iterator[Event]:
    if thought := thought_of(message):
        yield ThoughtDelta(thought, message_id)
    if said := text_of(message.get("content")):
        yield TextDelta(said, message_id)


def _call(part: Any) -> Call:
    function = part["function"]
    try:
        args = as_object(json.loads(function["arguments"]))
    except ValueError:
        args = {}
    return Call(part["id"], function["name"], args)


def _pending(agent: Agent, session: Session, call: Call) -> ToolPending:
    """The call as its tool would describe it, where that is still there and takes the arguments."""
    tool: Any = agent.tool(call.name, session)
    try:
        title = tool.title(call.args)
        return ToolPending(call, title, tool.kind, tuple(tool.locations(call.args, session.cwd)))
    except (AttributeError, KeyError, TypeError, ValueError):
        return ToolPending(call, call.name, getattr(tool, "kind", "other"))


def hired_by(event: ToolEnded, subagent: str, caller: Session) -> Session:
    """What a call says of the session of the sub-agent that it has begun."""
    data, args = as_object(event.result.data), event.call.args
    kind = data.get("agentType") or args.get("subagent_type") or GENERAL
    return Session(
        id=subagent,
        cwd=caller.cwd,
        parent=caller,
        title=str(args.get("description") or ""),
        agent_type=str(kind),
    )


def ending_of(event: ToolEnded) -> RunEnded:
    """How the work of a sub-agent ended, as far as its call says."""
    if as_object(event.result.data).get("status") == "completed":
        return RunEnded("end_turn")
    return (
        RunEnded("error", event.result.text) if event.outcome == "error" else RunEnded("cancelled")
    )


class JoinedCalls:
    """Makes of all updates of a call the one that says how it is in the end.

    Calls are told in the order in which they began; a call that goes on is told with the `rest`.
    """

    def __init__(self) -> None:
        self._open: dict[str, Card] = {}

    def take(self, updates: Iterable[Update]) -> Iterator[Update]:
        """What is to be told now."""
        for update in updates:
            if is_card(update):
                self._join(update)
                yield from self._done()
            else:
                yield update

    def _join(self, update: Card) -> None:
        call_id = update["toolCallId"]
        known = self._open.get(call_id, update)
        meta = {**known.get("_meta", {}), **update.get("_meta", {})}
        joined: Any = {**known, **update, "sessionUpdate": known["sessionUpdate"]}
        if meta:
            joined["_meta"] = meta
        self._open[call_id] = joined

    def _done(self) -> Iterator[Update]:
        for call_id, update in list(self._open.items()):
            if update.get("status") not in SETTLED:
                break
            yield from told(self._open.pop(call_id))

    def rest(self) -> Iterator[Update]:
        """The calls that go on, and what waits behind them."""
        for update in self._open.values():
            yield from told(update)
        self._open.clear()


def told(update: Card) -> Iterator[Update]:
    """A call as it is told again; what its terminal shows follows what makes that known.

    Zed reads the one of a call's first update alone, and the other of those behind it.
    """
    meta: Any = update.get("_meta", {})
    if not any(name in meta for name in PRINTED):
        yield update
        return
    first: Any = {**update, "_meta": {name: meta[name] for name in meta if name not in PRINTED}}
    yield first
    shown: Any = {name: meta[name] for name in (*PRINTED, "claudeCode") if name in meta}
    call_id = update["toolCallId"]
    yield {"sessionUpdate": "tool_call_update", "toolCallId": call_id, "_meta": shown}


def is_card(update: Update) -> TypeGuard[Card]:
    """True for what tells of a call."""
    return update["sessionUpdate"] in ("tool_call", "tool_call_update")


def call_id_of(update: Update) -> str:
    """The call that an update tells of."""
    return update["toolCallId"] if is_card(update) else ""


class Replay:
    """One session on its way to a client that wants to see all of it."""

    def __init__(self, view: SessionView, version: Version) -> None:
        self._view = view
        self._version = version
        self.projection = version.projection(view)
        self._joined = JoinedCalls()
        self._begun: dict[str, list[Event]] = {}

    async def updates(self, event: Event) -> list[Told]:
        """What the client is told of an event of the session, and of the sub-agents below it."""
        self._note(event)
        updates = self.projection.updates(event)
        told = self._own(self._joined.take(updates))
        if isinstance(event, ToolEnded):
            told += await self._below(event, call_id_of(updates[-1]))
        return told

    def rest(self) -> list[Told]:
        """What goes on while it is told."""
        return self._own(self._joined.rest())

    def _own(self, updates: Iterable[Update]) -> list[Told]:
        return [(self._view.session.id, update) for update in updates]

    def going_on(self) -> list[Event]:
        """The beginnings of the calls that have not come to their ends."""
        return [event for events in self._begun.values() for event in events]

    def _note(self, event: Event) -> None:
        match event:
            case ToolPending():
                self._begun[event.call.id] = [event]
            case ToolStarted():
                self._begun.get(event.call.id, []).append(event)
            case ToolEnded():
                self._begun.pop(event.call.id, None)
            case _:
                pass

    async def _below(self, event: ToolEnded, parent: str) -> list[Told]:
        """What was shown of the work of a sub-agent, if the call began one."""
        subagent, able = subagent_of(self._view.session, event), self._view.capabilities
        if subagent is None:
            return []
        agent, session = self._view.agent, self._view.session
        events = await of_subagent(agent, session, subagent, asked=not able.subagents)
        if able.subagents:
            return await self._beside(event, parent, subagent, events)
        view = replace(self._view, subagent=subagent, parent=parent)
        told = self._version.projection(view)
        return self._own(
            joined for each in events for joined in self._joined.take(told.updates(each))
        )

    async def _beside(
        self, event: ToolEnded, parent: str, subagent: str, events: list[Event]
    ) -> list[Told]:
        """A sub-agent as a session of its own, which the client can do nothing with but watch."""
        caller = self._view.session
        hired = hired_by(event, subagent, caller)
        view = SessionView(
            self._view.agent, hired, self._view.capabilities, live=False, caller=caller.id
        )
        again = Replay(view, self._version)
        known = Subagent(hired, again.projection, parent)
        told = [known.as_it_was(ending_of(event))]
        for each in events:
            told += await again.updates(each)
        return [*told, *again.rest()]
