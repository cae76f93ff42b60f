"""A stored conversation as updates, so that a client can show it again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from crow.acp.cards import contents, describe, diff, planned, replayed
from crow.acp.content import to_blocks
from crow.acp.editor import notes
from crow.acp.jsonrpc import Message, as_object
from crow.acp.updates import chunks, plan, text, thought_id, usage
from crow.core.agent import Agent
from crow.core.calls import Call, ToolResult
from crow.core.errors import ModelError
from crow.core.events import PlanChanged, PlanEntry, UsageReported
from crow.core.messages import Content, is_prompt
from crow.core.messages import Message as Spoken
from crow.core.session import Session


def replay(agent: Agent, session: Session) -> Iterator[Message]:
    """What was said, thought and done, in order; then the plan, the title and the usage.

    Injected context is not shown, and neither are terminals: the client does not know them.
    """
    answers = {
        str(message.get("tool_call_id")): message.get("content")
        for message in session.messages
        if message["role"] == "tool"
    }
    for index, message in enumerate(session.messages):
        message_id = f"{session.id}.{session.segment}.{index}"
        if message["role"] == "assistant":
            yield from _spoken(message, message_id)
            for part in message.get("tool_calls", ()):
                yield from _called(agent, session, part, answers)
        elif is_prompt(message):
            blocks = to_blocks(message.get("content"))
            yield from chunks("user_message_chunk", blocks, message_id)
    yield from _state(agent, session)


def _spoken(message: Spoken, message_id: str) -> Iterator[Message]:
    if thought := message.get("reasoning_content"):
        yield text("agent_thought_chunk", thought, thought_id(message_id))
    yield from chunks("agent_message_chunk", to_blocks(message.get("content")), message_id)


def _called(
    agent: Agent, session: Session, part: Any, answers: dict[str, Content | None]
) -> Iterator[Message]:
    """A call, and its result where it has one."""
    function = part["function"]
    call = Call(part["id"], function["name"], _arguments(function["arguments"]))
    card = replayed(call, agent.tool(call.name, session), session.cwd)
    yield {"sessionUpdate": "tool_call", "status": "pending", **describe(card)}
    is_failed = call.id in notes(session).get("failed", ()) or call.id not in answers
    result = ToolResult(answers.get(call.id) or "", error=is_failed)
    shown = contents(card.kind, "error" if is_failed else "ok", result)
    preview = None if is_failed else planned(card.kind, card.args, over=False)
    yield {
        "sessionUpdate": "tool_call_update",
        "toolCallId": call.id,
        "status": "failed" if is_failed else "completed",
        "content": [diff(preview)] if preview else shown,
        "rawOutput": result.text,
    }


def _arguments(written: str) -> dict[str, Any]:
    try:
        return as_object(json.loads(written))
    except ValueError:
        return {}


def _state(agent: Agent, session: Session) -> Iterator[Message]:
    if kept := notes(session).get("plan"):
        yield plan(PlanChanged(tuple(PlanEntry(*entry) for entry in kept)))
    if session.title:
        yield {"sessionUpdate": "session_info_update", "title": session.title}
    try:
        window = agent.llm.context_window
    except ModelError:
        return
    tokens = session.tokens(window)["total_tokens"]
    yield from usage(UsageReported({}, session.usage, tokens, window))
