"""A request's options in Gemini's words: how it thinks, how long it answers, what it may call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from crow.llm.gemini.tools import name_for, schema_for
from crow.llm.gemini.traits import EFFORT, THINKING
from crow.llm.http.request_format import RequestFormat
from crow.llm.http.text import is_object
from crow.llm.models import ModelInfo

RENAMED = {
    "temperature": "temperature",
    "top_p": "topP",
    "top_k": "topK",
    "max_tokens": "maxOutputTokens",
    "max_completion_tokens": "maxOutputTokens",
    "seed": "seed",
    "presence_penalty": "presencePenalty",
    "frequency_penalty": "frequencyPenalty",
}
"""Parameters of chat completions that go into the ``generationConfig``."""
MODES = {"auto": "AUTO", "none": "NONE", "required": "ANY"}


def request_fields(
    params: Mapping[str, Any], info: ModelInfo, form: RequestFormat, limit: int | None
) -> dict[str, Any]:
    """The body's fields beside conversation and tools.

    ``params`` that Gemini knows by another name are renamed, what is in ``generationConfig`` is
    merged, and everything else goes in as it is. ``limit`` is the most tokens of an answer.
    """
    body = dict(params)
    own = body.pop("generationConfig", None)
    config: dict[str, Any] = {} if limit is None else {"maxOutputTokens": limit}
    for name in RENAMED.keys() & body.keys():
        config[RENAMED[name]] = body.pop(name)
    if (stop := body.pop("stop", None)) is not None:
        config["stopSequences"] = [stop] if isinstance(stop, str) else stop
    config |= _answer_format(body.pop("response_format", None))
    effort, choice = body.pop("reasoning_effort", None), body.pop("tool_choice", None)
    given: dict[str, Any] = own if is_object(own) else {}
    thinking = {**thinking_of(info, form, effort), **given.get("thinkingConfig", {})}
    if "thinkingBudget" in given.get("thinkingConfig", {}):
        thinking.pop("thinkingLevel", None)
    config |= given
    if thinking:
        config["thinkingConfig"] = thinking
    if choice:
        body.setdefault("toolConfig", {"functionCallingConfig": _choice(choice)})
    return {**body, "generationConfig": config} if config else body


def thinking_of(info: ModelInfo, form: RequestFormat, level: str | None) -> dict[str, Any]:
    """How hard the model thinks, and that it shows it; nothing for one that does not think."""
    if not info.thinking or THINKING in form.without:
        return {}
    shown = {"includeThoughts": True}
    if not level or EFFORT in form.without:
        return shown
    level = "off" if level == "none" else level
    if info.thinking == "budget":
        return {**shown, "thinkingBudget": info.budget(level)}
    return {**shown, "thinkingLevel": (info.effort(level) or level).upper()}


def _choice(choice: Any) -> dict[str, Any]:
    """What may be called, from what chat completions call ``tool_choice``."""
    if not is_object(choice):
        return {"mode": MODES.get(choice, "AUTO")}
    name = choice.get("function", {}).get("name", "")
    return {"mode": "ANY", "allowedFunctionNames": [name_for(name)]}


def _answer_format(wanted: Any) -> dict[str, Any]:
    """What chat completions call ``response_format``."""
    if not is_object(wanted) or wanted.get("type") == "text":
        return {}
    schema = wanted.get("json_schema", {}).get("schema")
    found: dict[str, Any] = {"responseMimeType": "application/json"}
    return {**found, "responseJsonSchema": schema_for(schema)} if schema else found
