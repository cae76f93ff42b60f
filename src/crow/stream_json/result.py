"""The last message of a turn: how it ended."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from typing import cast

from crow.core.agent import Agent
from crow.core.errors import ModelError
from crow.core.hooks.run_context import Reply
from crow.core.messages import Usage
from crow.core.ports.llm import model_named
from crow.keys import STRUCTURED_OUTPUT
from crow.ports.models import facts_of
from crow.stream_json.lines import Message
from crow.stream_json.projection import usage_of

Size = tuple[int, int]
"""Tokens of a model: of its window, and of an answer."""
SUCCESSES = ("end_turn", "hook_stopped", "max_tokens", "refusal")
SUBTYPES = {"max_turn_requests": "error_max_turns", "cancelled": "error_during_execution"}
OF_MONEY = "the limit of $"
"""How a run ends that has cost too much, as the limits say it."""
OF_FORM = "no answer fitted the schema"
"""How a run ends that has not answered in the form that was wanted."""


def subtype_of(reply: Reply) -> str:
    """How a turn ended, in the words of the protocol."""
    if reply.stop_reason == "max_turn_requests" and reply.detail.startswith(OF_MONEY):
        return "error_max_budget_usd"
    if reply.stop_reason == "max_turn_requests" and OF_FORM in reply.detail:
        return "error_max_structured_output_retries"
    return SUBTYPES.get(reply.stop_reason, "success")


def used(usage: Usage, size: Size) -> Message:
    """What a model of a ``size`` has used."""
    told = usage_of(usage)
    return {
        "inputTokens": told["input_tokens"],
        "outputTokens": told["output_tokens"],
        "cacheReadInputTokens": told["cache_read_input_tokens"],
        "cacheCreationInputTokens": told["cache_creation_input_tokens"],
        "webSearchRequests": 0,
        "costUSD": usage.get("cost", 0.0),
        "contextWindow": size[0],
        "maxOutputTokens": size[1],
    }


def size_in(agent: Agent, name: str) -> Size:
    """The tokens that a model can be given and can answer; 0 for what is not known."""
    try:
        llm = model_named(agent.llm, None if name == agent.llm.model else name)
    except ModelError:
        return 0, 0
    facts = facts_of(llm)
    return llm.context_window or 0, (facts.max_output if facts else None) or 0


def usage_by_model(
    total: Usage, model: str, others: Mapping[str, Usage], size: Callable[[str], Size]
) -> Message:
    """What each model has used; what no other one has is the session's own model's."""
    rest = dict(cast("Mapping[str, float]", total))
    named = {name: usage for name, usage in others.items() if name != model}
    for usage in named.values():
        spent = cast("Mapping[str, float]", usage)
        rest = {key: value - spent.get(key, 0) for key, value in rest.items()}
    own = {model: cast(Usage, rest)} if any(rest.values()) or not named else {}
    return {name: used(usage, size(name)) for name, usage in {**own, **named}.items()}


def result(
    reply: Reply,
    *,
    model: str,
    others: Mapping[str, Usage],
    size: Callable[[str], Size],
    turns: int,
    seconds: float,
    asked: float,
) -> Message:
    """How a turn ended; ``asked`` are the seconds in which models were, ``others`` what they used.

    ``model`` is the session's own; ``size`` says how much each can be given and can answer.
    """
    usage, cost = usage_of(reply.usage), reply.usage.get("cost", 0.0)
    is_error = reply.stop_reason not in SUCCESSES
    told: Message = {
        "type": "result",
        "subtype": subtype_of(reply),
        "is_error": is_error,
        "duration_ms": round(seconds * 1000),
        "duration_api_ms": round(asked * 1000),
        "num_turns": turns,
        "session_id": reply.session.id,
        "stop_reason": None if reply.stop_reason == "error" else reply.stop_reason,
        "total_cost_usd": cost,
        "usage": usage,
        "modelUsage": usage_by_model(reply.usage, model, others, size),
        "uuid": str(uuid.uuid4()),
    }
    if (structured := STRUCTURED_OUTPUT.get(reply.session)) is not None:
        told["structured_output"] = structured
    if reply.stop_reason in SUBTYPES:
        return {**told, "errors": [reply.detail] if reply.detail else []}
    return {**told, "result": reply.detail if is_error else reply.text}
