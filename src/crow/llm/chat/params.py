"""Parameters and tools as an endpoint takes them, and the words in which it refuses them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

from crow.core.messages import ToolSpec
from crow.llm.http.request_format import Refusal
from crow.llm.models import ModelInfo

DEVELOPER = "developer"
LIMITS = ("max_tokens", "max_completion_tokens")
TEMPERATURE = "temperature"
STRICT = "strict"
STORE = "store"
THINKING_WITH_TOOLS = "tools_on_chat"
FORCED = "forced_tools"
EFFORT_BESIDE_THINKING = "effort beside thinking"
NULL = "null_content"
NO_TOOLS = "absent_tools"
UNSIGNED_CALLS = "unsigned calls"

KNOWN_IN_ADVANCE = frozenset(
    {DEVELOPER, *LIMITS, TEMPERATURE, STRICT, STORE, THINKING_WITH_TOOLS, FORCED, NULL, NO_TOOLS}
)
UNTAKEN = (
    r"(?:not permitted|unsupported|not supported|does not support|unknown|unrecogni[sz]ed"
    r"|not allowed|unexpected|forbidden|invalid|deprecated)"
)
THOUGHTS_REFUSED = (
    r"(?:reasoning\w*|extra_content|thinking_blocks)[^.]{0,60}(?:not permitted|unsupported"
    r"|not supported|unknown|unrecogni[sz]ed|not allowed|unexpected|forbidden)"
    r"|(?:unsupported|unknown|unrecogni[sz]ed|unexpected|additional)[^.]{0,60}"
    r"(?:reasoning_(?!effort)|extra_content|thinking_blocks|'reasoning'|\"reasoning\")"
)
REFUSALS: tuple[Refusal, ...] = (
    (r"stream_options", {"usage": False}),
    (r"reasoning_content.{0,60}(?:must be passed back|is missing)", {"echoes": True}),
    (r"tool.?call.{0,200}length of 9\b", {"ids": 9}),
    (r"maximum length (?:of )?40\b", {"ids": 40}),
    (r"unexpected role 'user' after role 'tool'", {"answered": True}),
    (r"missing a .?thought_?signature", UNSIGNED_CALLS),
    (r"(?:function )?tools with reasoning_effort", THINKING_WITH_TOOLS),
    (r"both '?thinking'? and '?reasoning_effort", EFFORT_BESIDE_THINKING),
    (r"use '?max_completion_tokens", "max_tokens"),
    (rf"max_completion_tokens['\"`]?.{{0,40}}{UNTAKEN}", "max_completion_tokens"),
    (rf"{UNTAKEN}[^.']{{0,40}}['\"`]?max_completion_tokens", "max_completion_tokens"),
    (rf"['\"`]?temperature['\"`]?.{{0,40}}{UNTAKEN}", TEMPERATURE),
    (rf"{UNTAKEN}[^.]{{0,40}}['\"`]temperature", TEMPERATURE),
    (rf"role.{{0,60}}\bdeveloper\b|\bdeveloper\b.{{0,60}}(?:role|{UNTAKEN})", DEVELOPER),
    (rf"\bstrict\b.{{0,60}}{UNTAKEN}|'additionalProperties' is required", STRICT),
    (rf"{UNTAKEN}[^.]{{0,40}}['\"`]strict\b", STRICT),
    (rf"['\"`]store['\"`].{{0,40}}{UNTAKEN}|{UNTAKEN}[^.]{{0,40}}['\"`]store['\"`]", STORE),
    (r"expects the .?tools=?.? param", NO_TOOLS),
    (r"tool_choice.{0,80}thinking|thinking.{0,80}tool_choice", FORCED),
    (
        (
            r"content.{0,100}(?:\bnull\b|\bnone\b|nonetype)"
            r"|null, expected a? ?string|'?nonetype'? object"
        ),
        NULL,
    ),
    (THOUGHTS_REFUSED, {"thoughts": False}),
)
"""What endpoints say where they refuse something; models' tables know some of it in advance."""

EFFORT = "reasoning_effort"
LEFT_OUT: Mapping[str, tuple[str, ...]] = {
    TEMPERATURE: ("temperature", "top_p", "presence_penalty", "frequency_penalty"),
    STORE: ("store",),
}
"""What is not sent where it is refused."""


def taken(
    params: Mapping[str, Any], info: ModelInfo, without: AbstractSet[str], *, has_tools: bool
) -> dict[str, Any]:
    """Parameters in the words of the model's provider, without what is refused."""
    given = {**params}
    if has_tools and THINKING_WITH_TOOLS in without and ("off" in info.levels or not info.levels):
        given[EFFORT] = "off" if info.levels else "none"
    said = {**with_thinking(given, info)}
    if EFFORT_BESIDE_THINKING in without and "thinking" in said:
        said.pop(EFFORT, None)
    if FORCED in without and said.get("tool_choice") not in (None, "auto", "none"):
        said["tool_choice"] = "auto"
    for word in LEFT_OUT.keys() & without:
        for name in LEFT_OUT[word]:
            said.pop(name, None)
    return with_limit(said, without)


def with_limit(params: dict[str, Any], without: AbstractSet[str]) -> dict[str, Any]:
    """The limit of an answer under a name that is taken; none where neither is."""
    given = [name for name in LIMITS if name in params]
    if without.isdisjoint(given):
        return params
    rest = {name: value for name, value in params.items() if name not in LIMITS}
    name = next((each for each in LIMITS if each not in without), None)
    return {**rest, name: params[given[0]]} if name else rest


def tools_for(tools: Sequence[ToolSpec], without: AbstractSet[str]) -> list[Any]:
    """Tools without strict schemas where these are refused."""
    if STRICT not in without:
        return list(tools)
    return [{**tool, "function": _loose(tool["function"])} for tool in tools]


def _loose(function: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in function.items() if name != "strict"}


def with_thinking(params: Mapping[str, Any], info: ModelInfo) -> Mapping[str, Any]:
    """Parameters with the neutral ``reasoning_effort`` in the words of the model's provider.

    What is said in the provider's own words stays, and so does a level for a model that is not
    known to think.
    """
    level = params.get(EFFORT)
    if not isinstance(level, str) or not info.levels:
        return params
    rest = {name: value for name, value in params.items() if name != EFFORT}
    return {**thinking_params(info, level), **rest}


def thinking_params(info: ModelInfo, level: str) -> dict[str, Any]:
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
