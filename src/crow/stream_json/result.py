"""The last message of a turn: how it ended."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import cast

from crow.core.messages import Usage
from crow.core.session import Reply
from crow.keys import STRUCTURED_OUTPUT
from crow.stream_json.lines import Message
from crow.stream_json.projection import usage_of

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


def used(usage: Usage) -> Message:
    """What a model has used."""
    told = usage_of(usage)
    return {
        "inputTokens": told["input_tokens"],
        "outputTokens": told["output_tokens"],
        "cacheReadInputTokens": told["cache_read_input_tokens"],
        "cacheCreationInputTokens": told["cache_creation_input_tokens"],
        "webSearchRequests": 0,
        "costUSD": usage.get("cost", 0.0),
    }


def usage_by_model(total: Usage, model: str, others: Mapping[str, Usage]) -> Message:
    """What each model has used; what no other one has is the session's own model's."""
    rest = dict(cast("Mapping[str, float]", total))
    named = {name: usage for name, usage in others.items() if name != model}
    for usage in named.values():
        spent = cast("Mapping[str, float]", usage)
        rest = {key: value - spent.get(key, 0) for key, value in rest.items()}
    own = {model: used(cast(Usage, rest))} if any(rest.values()) or not named else {}
    return own | {name: used(usage) for name, usage in named.items()}


def result(
    reply: Reply,
    *,
    model: str,
    others: Mapping[str, Usage],
    turns: int,
    seconds: float,
    asked: float,
) -> Message:
    """How a turn ended; ``asked`` are the seconds in which models were, ``others`` what they used.

    ``model`` is the session's own.
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
        "modelUsage": usage_by_model(reply.usage, model, others),
        "uuid": str(uuid.uuid4()),
    }
    if (structured := STRUCTURED_OUTPUT.get(reply.session)) is not None:
        told["structured_output"] = structured
    if reply.stop_reason in SUBTYPES:
        return {**told, "errors": [reply.detail] if reply.detail else []}
    return {**told, "result": reply.detail if is_error else reply.text}
