"""The rules of OpenAI's Responses, as data: on a request and on what was answered before."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any, TypeAlias

from crow.core.support.frozen import frozen
from crow.testing.responses.events import Item

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


Breaches: TypeAlias = Callable[[Any, Issued], Iterator["tuple[object, ...]"]]


@frozen
class ResponsesRule:
    """A rule: ``breaches`` gives what breaks it, ``says`` is the sentence for that."""

    id: str
    breaches: Breaches
    says: str
    code: str | None = None
    param: str | None = "input"


def _unknown(body: Any, issued: Issued) -> Iterator[tuple[object, ...]]:
    return ((name,) for name in body if name not in FIELDS)


def _lonely_thoughts(body: Any, issued: Issued) -> Iterator[tuple[object, ...]]:
    for item, after in pairwise([*_items(body), NOTHING]):
        if item.get("type") == "reasoning" and not _is_output(after):
            yield (item["id"],)


def _thoughtless(body: Any, issued: Issued) -> Iterator[tuple[object, ...]]:
    last: str | None = None
    for item in _items(body):
        wanted = issued.before.get(item.get("id", ""))
        if wanted is not None and wanted != last:
            yield item["id"], item["type"], wanted
        last = item.get("id")


def _orphans(body: Any, issued: Issued) -> Iterator[tuple[object, ...]]:
    asked: set[str] = set()
    for item in _items(body):
        if item.get("type") == "function_call":
            asked.add(item["call_id"])
        elif item.get("type") == "function_call_output" and item["call_id"] not in asked:
            yield (item["call_id"],)


def _unanswered(body: Any, issued: Issued) -> Iterator[tuple[object, ...]]:
    answered = {i["call_id"] for i in _items(body) if i.get("type") == "function_call_output"}
    return (
        (item["call_id"],)
        for item in _items(body)
        if item.get("type") == "function_call" and item["call_id"] not in answered
    )


def _foreign(body: Any, issued: Issued) -> Iterator[tuple[object, ...]]:
    for item in _items(body):
        if content := item.get("encrypted_content"):
            known = issued.thoughts.get(item["id"]), issued.models.get(item["id"])
            if known != (content, body["model"]):
                yield (item["id"],)


def _unstored(body: Any, issued: Issued) -> Iterator[tuple[object, ...]]:
    for item in _items(body):
        is_closed = not (item.get("encrypted_content") or item.get("content"))
        if item.get("type") == "reasoning" and is_closed:
            yield (item["id"],)


def _too_long(body: Any, issued: Issued) -> Iterator[tuple[object, ...]]:
    named = [("prompt_cache_key", body.get("prompt_cache_key") or "")]
    for place, item in enumerate(_items(body)):
        named += [(f"input[{place}].{name}", item.get(name) or "") for name in ("id", "call_id")]
    return ((name, len(value)) for name, value in named if len(value) > LONGEST)


def _ids(body: Any, issued: Issued) -> Iterator[tuple[object, ...]]:
    for place, item in enumerate(_items(body)):
        given = item.get("id", "fc_")
        if item.get("type") == "function_call" and not given.startswith("fc_"):
            yield place, given


def _little(body: Any, issued: Issued) -> Iterator[tuple[object, ...]]:
    if (limit := body.get("max_output_tokens", 16)) < 16:
        yield (limit,)


def _warm(body: Any, issued: Issued) -> Iterator[tuple[object, ...]]:
    if "temperature" in body and re.match(r"gpt-[6-9]", body["model"]):
        yield ("temperature",)


def _open_schemas(body: Any, issued: Issued) -> Iterator[tuple[object, ...]]:
    for tool in body.get("tools") or ():
        schema: Item = tool.get("parameters") or {}
        if tool.get("strict", True) and schema.get("additionalProperties") is not False:
            yield (tool.get("name"),)


def _nested(body: Any, issued: Issued) -> Iterator[tuple[object, ...]]:
    tools = enumerate(body.get("tools") or ())
    return ((place,) for place, tool in tools if "name" not in tool)


def _wrong_parts(body: Any, issued: Issued) -> Iterator[tuple[object, ...]]:
    for place, item in enumerate(_items(body)):
        if item.get("type") in ("reasoning", "message"):
            continue
        for part in _listed(item.get("output") or item.get("content")):
            if part.get("type") not in PARTS:
                yield place, part.get("type")


def _duplicates(body: Any, issued: Issued) -> Iterator[tuple[object, ...]]:
    seen: set[str] = set()
    for item in _items(body):
        if (given := item.get("id")) in seen:
            yield (given,)
        seen.add(given or object())  # type: ignore[arg-type]


def _items(body: Any) -> list[Any]:
    return _listed(body.get("input"))


def _listed(value: Any) -> list[Any]:
    return [*value] if isinstance(value, list) else []  # type: ignore[misc]


def _is_output(item: Any) -> bool:
    return item.get("type") in OUTPUT or item.get("role") == "assistant"


RULES = (
    ResponsesRule("R00", _unknown, "Unknown parameter: '{}'.", "unknown_parameter", None),
    ResponsesRule(
        "R06",
        _too_long,
        (
            "Invalid '{}': string too long. Expected a string with maximum length 64, but"
            " got a string with length {} instead."
        ),
        "string_above_max_length",
    ),
    ResponsesRule(
        "R07",
        _ids,
        "Invalid 'input[{}].id': '{}'. Expected an ID that begins with 'fc'.",
        "invalid_value",
    ),
    ResponsesRule(
        "R07",
        _little,
        (
            "Invalid 'max_output_tokens': integer below minimum value. Expected a value "
            ">= 16, but got {} instead."
        ),
        "integer_below_min_value",
        "max_output_tokens",
    ),
    ResponsesRule(
        "R08",
        _warm,
        "Unsupported parameter: '{}' is not supported with this model.",
        "unsupported_parameter",
        "temperature",
    ),
    ResponsesRule(
        "R09",
        _open_schemas,
        (
            "Invalid schema for function '{}': In context=(), 'additionalProperties' is "
            "required to be supplied and to be false."
        ),
        "invalid_function_parameters",
        "tools",
    ),
    ResponsesRule(
        "R13",
        _nested,
        "Missing required parameter: 'tools[{}].name'.",
        "missing_required_parameter",
        "tools",
    ),
    ResponsesRule("R14", _wrong_parts, "Invalid value: 'input[{}]' holds '{}'.", "invalid_value"),
    ResponsesRule("R15", _duplicates, "Duplicate item found with id {}."),
    ResponsesRule(
        "R05",
        _foreign,
        (
            "The encrypted content for item {} could not be verified. Reason: Encrypted "
            "content could not be decrypted or parsed."
        ),
        "invalid_encrypted_content",
        None,
    ),
    ResponsesRule(
        "R16",
        _unstored,
        ("Item with id '{}' not found. Items are not persisted when `store` is set to false."),
    ),
    ResponsesRule(
        "R01",
        _lonely_thoughts,
        ("Item '{}' of type 'reasoning' was provided without its required following item."),
    ),
    ResponsesRule(
        "R02",
        _thoughtless,
        ("Item '{}' of type '{}' was provided without its required 'reasoning' item: '{}'."),
    ),
    ResponsesRule("R03", _orphans, "No tool call found for function call output with call_id {}."),
    ResponsesRule("R04", _unanswered, "No tool output found for function call {}."),
)
"""What OpenAI refuses, in the order in which it is looked at."""
