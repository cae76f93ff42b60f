"""The parameters and tools of a request, beside its items, in the words of Responses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from crow.core.messages import ToolSpec
from crow.llm.http.request_format import RequestFormat
from crow.llm.http.text import is_object
from crow.llm.models import ModelInfo

REASONING = "reasoning.summary"
LIMITS = ("max_completion_tokens", "max_tokens")
LEAST_OUTPUT = 16
SAMPLING = ("temperature", "top_p", "presence_penalty", "frequency_penalty")
"""What models that think refuse."""


def in_words_of_responses(
    params: Mapping[str, Any], form: RequestFormat, info: ModelInfo
) -> dict[str, Any]:
    """A request's parameters, those of chat completions renamed to what they are here.

    ``reasoning_effort``, both limits of tokens, ``tool_choice``, ``response_format`` and
    ``verbosity`` are understood; all others go as they are. How hard to think is said in the words
    that ``info`` has for it.
    """
    sent = _accepted(params, info)
    effort: Any = sent.pop("reasoning_effort", None)
    if isinstance(effort, str) and info.levels:
        effort = info.effort(effort)
    reasoning: dict[str, Any] = {"effort": effort} if effort else {}
    if REASONING not in form.without:
        reasoning["summary"] = "auto"
    _put(sent, "reasoning", reasoning)
    for name in LIMITS:
        if (limit := sent.pop(name, None)) is not None:
            sent.setdefault("max_output_tokens", max(limit, LEAST_OUTPUT))
    if is_object(choice := sent.get("tool_choice")) and is_object(choice.get("function")):
        sent["tool_choice"] = {"type": "function", **choice["function"]}
    text: dict[str, Any] = {}
    if is_object(shape := sent.pop("response_format", None)):
        text["format"] = {"type": shape.get("type"), **(shape.get("json_schema") or {})}
    if (verbosity := sent.pop("verbosity", None)) is not None:
        text["verbosity"] = verbosity
    _put(sent, "text", text)
    return sent


def _accepted(params: Mapping[str, Any], info: ModelInfo) -> dict[str, Any]:
    refused = SAMPLING if "temperature" in info.refuses else ()
    return {name: value for name, value in params.items() if name not in refused}


def _put(sent: dict[str, Any], name: str, value: dict[str, Any]) -> None:
    """Set an object; what was given of it under its own name counts."""
    given: dict[str, Any] = sent.get(name) or {}
    if whole := {**value, **given}:
        sent[name] = whole


def tools_of(tools: list[ToolSpec]) -> list[dict[str, Any]]:
    """Tools, flat. Not strict: their schemas have optional parameters."""
    return [{"type": "function", "strict": False, **tool["function"]} for tool in tools]
