"""The rules of the Messages protocol on parameters: a row for each."""

from __future__ import annotations

import re
from collections.abc import Iterable

from crow.testing.messages.request import MessagesRequest
from crow.testing.messages.rule import Found, MessagesRule

FIELDS = frozenset(
    "model messages max_tokens system tools tool_choice temperature top_p top_k stop_sequences"
    " stream thinking output_config metadata service_tier cache_control container inference_geo"
    " speed".split()
)
FIELDS_OF_MESSAGES = frozenset(("role", "content"))
BETA_FIELDS = {
    "context_management": "context-management-2025-06-27",
    "mcp_servers": "mcp-client-2025-11-20",
}
BINDING = "thinking-binding-controls-2026-08-01"
STRICT_TOOLS = 20
LEAST_BUDGET = 1024
NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")


def _first(found: Iterable[Found]) -> Found:
    """The first of several faults."""
    return next(iter(found), None)


def _no_key(asked: MessagesRequest) -> Found:
    headers = asked.headers
    return None if headers.get("x-api-key") or headers.get("authorization") else ()


def _no_version(asked: MessagesRequest) -> Found:
    return None if "anthropic-version" in asked.headers else ()


def _missing(asked: MessagesRequest) -> Found:
    wanted = ("model", "messages", "max_tokens")
    return _first((name,) for name in wanted if not asked.body.get(name))


def _unknown_field(asked: MessagesRequest) -> Found:
    for name in asked.body:
        if name not in FIELDS and BETA_FIELDS.get(name, "-") not in asked.betas:
            return (name,)
    for number, message in enumerate(asked.body["messages"]):
        for name in message:
            if name not in FIELDS_OF_MESSAGES:
                return (f"messages.{number}.{name}",)
    return None


def _unbound(asked: MessagesRequest) -> Found:
    is_there = "block_binding" in asked.thinking
    return (asked.thinking["type"],) if is_there and BINDING not in asked.betas else None


def _wrong_thinking(asked: MessagesRequest) -> Found:
    kind = asked.thinking.get("type")
    if kind == "enabled" and asked.version >= (4, 7):
        return (kind,)
    if kind == "disabled" and asked.always_thinks:
        return (kind,)
    return (kind,) if kind == "adaptive" and asked.version < (4, 6) else None


def _sampled(asked: MessagesRequest) -> Found:
    refuses = asked.version >= (4, 7)
    return _first(
        (name,) for name in ("temperature", "top_p", "top_k") if refuses and name in asked.body
    )


def _warm_thoughts(asked: MessagesRequest) -> Found:
    return () if asked.is_thinking and asked.body.get("temperature", 1) != 1 else None


def _forced(asked: MessagesRequest) -> Found:
    choice = asked.part("tool_choice").get("type")
    refuses = asked.always_thinks or asked.thinking.get("type") == "enabled"
    return () if refuses and choice in ("any", "tool") else None


def _choice_of_nothing(asked: MessagesRequest) -> Found:
    return () if "tool_choice" in asked.body and not asked.body.get("tools") else None


def _small_budget(asked: MessagesRequest) -> Found:
    budget = asked.thinking.get("budget_tokens", LEAST_BUDGET)
    return () if budget < LEAST_BUDGET else None


def _large_budget(asked: MessagesRequest) -> Found:
    return () if asked.thinking.get("budget_tokens", 0) >= asked.body["max_tokens"] else None


def _many_strict(asked: MessagesRequest) -> Found:
    strict = sum(bool(tool.get("strict")) for tool in asked.body.get("tools") or ())
    return (strict, STRICT_TOOLS) if strict > STRICT_TOOLS else None


def _open_root(asked: MessagesRequest) -> Found:
    for number, tool in enumerate(asked.body.get("tools") or ()):
        if {"oneOf", "anyOf", "allOf"} & (tool.get("input_schema") or {}).keys():
            return (number,)
    return None


def _no_object(asked: MessagesRequest) -> Found:
    for number, tool in enumerate(asked.body.get("tools") or ()):
        if "type" not in tool and (tool.get("input_schema") or {}).get("type") != "object":
            return (number,)
    return None


def _bad_name(asked: MessagesRequest) -> Found:
    for number, tool in enumerate(asked.body.get("tools") or ()):
        if not NAME.fullmatch(tool["name"]):
            return (number,)
    return None


def _same_name(asked: MessagesRequest) -> Found:
    names = [tool["name"] for tool in asked.body.get("tools") or ()]
    return () if len(names) != len(set(names)) else None


REQUEST: tuple[MessagesRule, ...] = (
    MessagesRule("key", _no_key, "x-api-key header is required", 401, "authentication_error"),
    MessagesRule("version", _no_version, "anthropic-version: header is required"),
    MessagesRule("required", _missing, "{}: Field required"),
    MessagesRule("A06", _unbound, "thinking.{}.block_binding: Extra inputs are not permitted"),
    MessagesRule("A18", _unknown_field, "{}: Extra inputs are not permitted"),
    MessagesRule("A13", _wrong_thinking, '"thinking.type.{}" is not supported for this model.'),
    MessagesRule("A14", _sampled, "`{}` is deprecated for this model."),
    MessagesRule(
        "A14 warm",
        _warm_thoughts,
        "`temperature` may only be set to 1 when thinking is enabled.",
    ),
    MessagesRule("A15", _forced, "Thinking may not be enabled when tool_choice forces tool use."),
    MessagesRule(
        "choice", _choice_of_nothing, "tool_choice: may only be specified while providing tools"
    ),
    MessagesRule(
        "A16",
        _small_budget,
        "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024",
    ),
    MessagesRule(
        "A16 large",
        _large_budget,
        "`max_tokens` must be greater than `thinking.budget_tokens`.",
    ),
    MessagesRule("A19", _many_strict, "Too many strict tools ({}): at most {} are allowed."),
    MessagesRule(
        "A23",
        _open_root,
        "tools.{}.custom.input_schema: input_schema does not support oneOf, allOf, or anyOf "
        "at the top level",
    ),
    MessagesRule(
        "object", _no_object, "tools.{}.custom.input_schema.type: Input should be 'object'"
    ),
    MessagesRule(
        "name",
        _bad_name,
        "tools.{}.custom.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'",
    ),
    MessagesRule("names", _same_name, "tools: Tool names must be unique."),
)
