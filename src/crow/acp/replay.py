"""A stored conversation as events, so that a client can be shown it again."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from typing import Any

from crow.acp.jsonrpc import as_object
from crow.core.agent import Agent
from crow.core.calls import Call, ToolResult
from crow.core.errors import ModelError
from crow.core.events import (
    Event,
    TextDelta,
    ThoughtDelta,
    TitleChanged,
    ToolEnded,
    ToolPending,
    UsageReported,
    UserMessage,
)
from crow.core.messages import Message, is_prompt, text_of
from crow.core.session import Session


async def replay(agent: Agent, session: Session) -> AsyncIterator[Event]:
    """What was said, thought and done, in order; then the title and the usage.

    A store that has a ``replay(session_id)`` is asked; otherwise the history is told, which knows
    less. No terminals: the client would not know them. A call that was lost before it began is
    described as its tool would do it.
    """
    stored: Any = getattr(agent.store, "replay", None)
    events = await stored(session.id) if stored is not None else told(agent, session)
    for event in events:
        match event:
            case ToolEnded() if event.result.terminal is not None:
                yield replace(event, result=replace(event.result, terminal=None))
            case ToolPending(call, title) if title == call.name:
                yield _pending(agent, session, call)
            case _:
                yield event
    if session.title:
        yield TitleChanged(session.title)
    try:
        window = agent.llm.context_window
    except ModelError:
        return
    yield UsageReported({}, session.usage, session.tokens(window)["total_tokens"], window)


def told(agent: Agent, session: Session) -> Iterator[Event]:
    """The history as events; injected context is not shown."""
    answers = {m.get("tool_call_id"): m.get("content") for m in session.messages}
    for index, message in enumerate(session.messages):
        message_id = f"{session.id}.{session.segment}.{index}"
        if is_prompt(message):
            yield UserMessage(message.get("content") or "", message_id)
        elif message["role"] == "assistant":
            yield from _said(message, message_id)
            for part in message.get("tool_calls", ()):
                call = _call(part)
                yield _pending(agent, session, call)
                yield ToolEnded(call, "ok", ToolResult(answers.get(call.id) or ""), 0.0)


def _said(message: Message, message_id: str) -> Iterator[Event]:
    if thought := message.get("reasoning_content"):
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
