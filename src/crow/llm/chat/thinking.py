"""How hard to think, said as an endpoint of chat completions wants it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from crow.llm.models import ModelInfo

EFFORT = "reasoning_effort"


def with_thinking(params: Mapping[str, Any], info: ModelInfo) -> Mapping[str, Any]:
    """Parameters with the neutral ``reasoning_effort`` in the words of the model's provider.

    What is said in the provider's own words stays, and so does a level for a model that is not
    known to think.
    """
    level = params.get(EFFORT)
    if not isinstance(level, str) or not info.levels:
        return params
    rest = {name: value for name, value in params.items() if name != EFFORT}
    return {**said(info, level), **rest}


def said(info: ModelInfo, level: str) -> dict[str, Any]:
    """A level as the parameters that mean it; a model without a word for it is only switched."""
    word = info.effort(level)
    on = level not in info.levels or info.nearest(level) != "off"
    effort = {EFFORT: word} if word and on else {}
    match info.thinking:
        case "switch":
            return {"thinking": {"type": _type(on)}, **effort}
        case "zai":
            return {"thinking": {"type": _type(on), "clear_thinking": False}, **effort}
        case "qwen":
            return {"enable_thinking": on, **effort}
        case "openrouter":
            return {"reasoning": {"effort": word}}
        case "together":
            return {"reasoning": {"enabled": on}, **effort}
        case "template":
            return {"chat_template_kwargs": {"enable_thinking": on}}
        case _:
            return {EFFORT: word}


def _type(on: bool) -> str:
    return "enabled" if on else "disabled"
