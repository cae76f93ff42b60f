"""The rules of OpenAI's Responses: on a request and on what was answered before."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from crow.testing.responses.events import Item
from crow.testing.strict import Asked, Breaches, Rule, Rules

FIELDS = frozenset(
    """background context_management conversation include input instructions max_output_tokens
    max_tool_calls metadata model parallel_tool_calls previous_response_id prompt prompt_cache_key
    prompt_cache_options prompt_cache_retention reasoning safety_identifier service_tier store
    stream stream_options temperature text tool_choice tools top_logprobs top_p truncation
    user""".split()
)
OUTPUT = ("function_call", "reasoning")
PARTS = ("input_text", "input_image", "input_file", "input_audio")
LONGEST = 64
NOTHING: Item = {}
RULES = Rules()
"""What OpenAI refuses."""
TOO_LONG = Rule(
    "R11",
    "Your input exceeds the context window of this model.",
    lambda _: (),
    {"code": "context_length_exceeded"},
)
"""What is refused by its size."""


class Issued:
    """The items that an endpoint has sent, each with the model and the item before it."""

    def __init__(self) -> None:
        self.models: dict[str, str] = {}
        self.thoughts: dict[str, str] = {}
        self.before: dict[str, str] = {}

    def add(self, items: Sequence[Item], model: str) -> None:
        """Remember what was sent in one response."""
        last: Item | None = None
        for item in items:
            self.models[item["id"]] = model
            if item["type"] == "reasoning" and "encrypted_content" in item:
                self.thoughts[item["id"]] = item["encrypted_content"]
            if last is not None and last["type"] == "reasoning":
                self.before[item["id"]] = last["id"]
            last = item


@RULES.add("R00", "Unknown parameter: '{}'.", code="unknown_parameter", param=None)
def _unknown(asked: Asked) -> Breaches:
    return ((name,) for name in asked.body if name not in FIELDS)


@RULES.add(
    "R06",
    "Invalid '{}': string too long. Expected a string with maximum length 64, but"
    " got a string with length {} instead.",
    code="string_above_max_length",
)
def _too_long(asked: Asked) -> Breaches:
    named = [("prompt_cache_key", asked.body.get("prompt_cache_key") or "")]
    for place, item in enumerate(_items(asked.body)):
        named += [(f"input[{place}].{name}", item.get(name) or "") for name in ("id", "call_id")]
    return ((name, len(value)) for name, value in named if len(value) > LONGEST)


@RULES.add(
    "R07",
    "Invalid 'input[{}].id': '{}'. Expected an ID that begins with 'fc'.",
    code="invalid_value",
)
def _ids(asked: Asked) -> Breaches:
    for place, item in enumerate(_items(asked.body)):
        given = item.get("id", "fc_")
        if item.get("type") == "function_call" and not given.startswith("fc_"):
            yield place, given


@RULES.add(
    "R07",
    "Invalid 'max_output_tokens': integer below minimum value. Expected a value "
    ">= 16, but got {} instead.",
    code="integer_below_min_value",
    param="max_output_tokens",
)
def _little(asked: Asked) -> Breaches:
    if (limit := asked.body.get("max_output_tokens", 16)) < 16:
        yield (limit,)


@RULES.add(
    "R08",
    "Unsupported parameter: '{}' is not supported with this model.",
    code="unsupported_parameter",
    param="temperature",
)
def _warm(asked: Asked) -> Breaches:
    if "temperature" in asked.body and re.match(r"gpt-[6-9]", asked.body["model"]):
        yield ("temperature",)


@RULES.add(
    "R09",
    "Invalid schema for function '{}': In context=(), 'additionalProperties' is "
    "required to be supplied and to be false.",
    code="invalid_function_parameters",
    param="tools",
)
def _open_schemas(asked: Asked) -> Breaches:
    for tool in asked.body.get("tools") or ():
        schema: Item = tool.get("parameters") or {}
        if tool.get("strict", True) and schema.get("additionalProperties") is not False:
            yield (tool.get("name"),)


@RULES.add(
    "R13",
    "Missing required parameter: 'tools[{}].name'.",
    code="missing_required_parameter",
    param="tools",
)
def _nested(asked: Asked) -> Breaches:
    tools = enumerate(asked.body.get("tools") or ())
    return ((place,) for place, tool in tools if "name" not in tool)


@RULES.add("R14", "Invalid value: 'input[{}]' holds '{}'.", code="invalid_value")
def _wrong_parts(asked: Asked) -> Breaches:
    for place, item in enumerate(_items(asked.body)):
        if item.get("type") in ("reasoning", "message"):
            continue
        for part in _listed(item.get("output") or item.get("content")):
            if part.get("type") not in PARTS:
                yield place, part.get("type")


@RULES.add("R15", "Duplicate item found with id {}.")
def _duplicates(asked: Asked) -> Breaches:
    seen: set[str] = set()
    for item in _items(asked.body):
        if (given := item.get("id")) in seen:
            yield (given,)
        seen.add(given or object())  # type: ignore[arg-type]


@RULES.add(
    "R05",
    "The encrypted content for item {} could not be verified. Reason: Encrypted "
    "content could not be decrypted or parsed.",
    code="invalid_encrypted_content",
    param=None,
)
def _foreign(asked: Asked) -> Breaches:
    for item in _items(asked.body):
        if content := item.get("encrypted_content"):
            known = asked.known.thoughts.get(item["id"]), asked.known.models.get(item["id"])
            if known != (content, asked.body["model"]):
                yield (item["id"],)


@RULES.add(
    "R16", "Item with id '{}' not found. Items are not persisted when `store` is set to false."
)
def _unstored(asked: Asked) -> Breaches:
    for item in _items(asked.body):
        is_closed = not (item.get("encrypted_content") or item.get("content"))
        if item.get("type") == "reasoning" and is_closed:
            yield (item["id"],)


@RULES.add("R01", "Item '{}' of type 'reasoning' was provided without its required following item.")
def _lonely_thoughts(asked: Asked) -> Breaches:
    for item, after in pairwise([*_items(asked.body), NOTHING]):
        if item.get("type") == "reasoning" and not _is_output(after):
            yield (item["id"],)


@RULES.add(
    "R02", "Item '{}' of type '{}' was provided without its required 'reasoning' item: '{}'."
)
def _thoughtless(asked: Asked) -> Breaches:
    last: str | None = None
    for item in _items(asked.body):
        wanted = asked.known.before.get(item.get("id", ""))
        if wanted is not None and wanted != last:
            yield item["id"], item["type"], wanted
        last = item.get("id")


@RULES.add("R03", "No tool call found for function call output with call_id {}.")
def _orphans(asked: Asked) -> Breaches:
    called: set[str] = set()
    for item in _items(asked.body):
        if item.get("type") == "function_call":
            called.add(item["call_id"])
        elif item.get("type") == "function_call_output" and item["call_id"] not in called:
            yield (item["call_id"],)


@RULES.add("R04", "No tool output found for function call {}.")
def _unanswered(asked: Asked) -> Breaches:
    answered = {i["call_id"] for i in _items(asked.body) if i.get("type") == "function_call_output"}
    return (
        (item["call_id"],)
        for item in _items(asked.body)
        if item.get("type") == "function_call" and item["call_id"] not in answered
    )


def _items(body: Any) -> list[Any]:
    return _listed(body.get("input"))


def _listed(value: Any) -> list[Any]:
    return [*value] if isinstance(value, list) else []  # type: ignore[misc]


def _is_output(item: Any) -> bool:
    return item.get("type") in OUTPUT or item.get("role") == "assistant"
