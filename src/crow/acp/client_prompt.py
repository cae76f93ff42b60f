"""A client's own system prompt, as it comes with the requests that open a session."""

from __future__ import annotations

from crow.acp.config_options import takes_prompts
from crow.acp.errors import invalid
from crow.acp.jsonrpc import Message
from crow.core.agent import Agent

MODES = ("append", "override")


def client_prompt(agent: Agent, params: Message) -> tuple[str, str]:
    """How and what the client adds to the system message. Raises `Refusal`."""
    given = params["systemPrompt"]
    if not takes_prompts(agent):
        raise invalid("systemPrompt: this agent has no extension for it")
    if given["mode"] not in MODES:
        raise invalid(f"systemPrompt.mode: there is no {given['mode']!r}, only {', '.join(MODES)}")
    if not given["content"] or any(block["type"] != "text" for block in given["content"]):
        raise invalid("systemPrompt.content: only blocks of text make a system prompt")
    return given["mode"], "\n\n".join(block["text"] for block in given["content"])
