"""The first message of a turn: what there is in a session."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from typing import Any

from crow._version import __version__
from crow.core.agent import Agent
from crow.core.errors import ModelError
from crow.core.ports.llm import model_named
from crow.core.session import Session
from crow.core.support.validation import implementing, implements
from crow.keys import OUTPUT_STYLE
from crow.ports.faces import LateArrival, SessionInventory, ToolFilter
from crow.ports.models import KeyedModel
from crow.stream_json.lines import Message

SPOKEN = "2.1.332"
"""The version of Claude Code whose words these are: libraries warn where a program names none."""
KEY_SOURCES = {"ANTHROPIC_API_KEY": "ANTHROPIC_API_KEY", "crow login": "/login managed key"}
"""Where a key is from, in the words of the protocol, by what Crow says of it."""
HELPER = "apiKeyHelper"
CAPABILITIES = ("interrupt_receipt_v1",)
"""What programs may rely on: an interrupt is answered by what is still queued."""


def init(agent: Agent, session: Session, model: str) -> Message:
    """What there is in a session, as extensions offer it."""
    there = offered(agent, session)
    return {
        "type": "system",
        "subtype": "init",
        "cwd": session.cwd,
        "session_id": session.id,
        "tools": list(lent(agent, session)),
        "mcp_servers": [
            {key: each[key] for key in ("name", "status", "source") if key in each}
            for each in there.get("mcp_servers", ())
        ],
        "model": model,
        "permissionMode": session.mode,
        "slash_commands": list(agent.commands_of(session)),
        "apiKeySource": key_source(agent, session),
        "claude_code_version": SPOKEN,
        "crow_version": __version__,
        "output_style": OUTPUT_STYLE.get(session) or "default",
        "agents": there.get("agents", []),
        "skills": there.get("skills", []),
        "plugins": there.get("plugins", []),
        "capabilities": list(CAPABILITIES),
        "uuid": str(uuid.uuid4()),
    }


def offered(agent: Agent, session: Session) -> dict[str, list[Any]]:
    """What the extensions offer in a session, by kind."""
    found: dict[str, list[Any]] = {}
    for extension in implementing(agent.extensions_of(session).values(), SessionInventory):
        for kind, things in extension.offers_in(session).items():
            found.setdefault(kind, []).extend(things)
    return found


def lent(agent: Agent, session: Session) -> Iterable[str]:
    """The tools that the model is lent: those that no extension hides from it."""
    hiding = implementing(agent.extensions_of(session).values(), ToolFilter)
    for name, tool in agent.tools_of(session).items():
        if not any(each.hides(name, tool) for each in hiding):
            yield name


def key_source(agent: Agent, session: Session) -> str:
    """Where the key of the session's model is from; ``none`` for what Claude Code has no word."""
    try:
        llm = model_named(agent.llm, session.model or agent.llm.model)
    except ModelError:
        return "none"
    origin = llm.key_origin if implements(llm, KeyedModel) else ""
    return HELPER if origin.startswith(HELPER) else KEY_SOURCES.get(origin, "none")


def servers(agent: Agent, session: Session) -> list[Message]:
    """The MCP servers of a session: how each is, and the tools that it has."""
    return offered(agent, session).get("mcp_servers", [])


async def settle(agent: Agent, session: Session) -> None:
    """Wait for what is still on its way, such as servers that bring tools."""
    for extension in implementing(agent.extensions_of(session).values(), LateArrival):
        await extension.arrive(session)
