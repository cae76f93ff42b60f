"""The rules of the Messages protocol, on parameters and on the conversation."""

from __future__ import annotations

import re
from collections.abc import Iterator

from crow.testing.messages.request import (
    SIGNATURE,
    THOUGHTS,
    VERSION,
    Block,
    MessagesRequest,
    blocks_of,
    signed,
)
from crow.testing.strict import Breaches, Rules

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
MARKS = 4
ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")
IMAGES = ("image/jpeg", "image/png", "image/gif", "image/webp")
SERVED = ("server_tool_use", "web_search_tool_result", "web_fetch_tool_result")
"""What a paused answer may end with."""
NO_RESULTS = "messages.{}: Did not find {} `tool_result` block(s) at the beginning of this message."

RULES = Rules()
"""Every rule, in the order in which they are looked at."""


@RULES.add("key", "x-api-key header is required", status=401, kind="authentication_error")
def _no_key(asked: MessagesRequest) -> Breaches:
    if not (asked.headers.get("x-api-key") or asked.headers.get("authorization")):
        yield ()


@RULES.add("version", "anthropic-version: header is required")
def _no_version(asked: MessagesRequest) -> Breaches:
    if VERSION not in asked.headers:
        yield ()


@RULES.add("required", "{}: Field required")
def _missing(asked: MessagesRequest) -> Breaches:
    wanted = ("model", "messages", "max_tokens")
    return ((name,) for name in wanted if not asked.body.get(name))


@RULES.add("A06", "thinking.{}.block_binding: Extra inputs are not permitted")
def _unbound(asked: MessagesRequest) -> Breaches:
    if "block_binding" in asked.thinking and BINDING not in asked.betas:
        yield (asked.thinking["type"],)


@RULES.add("A18", "{}: Extra inputs are not permitted")
def _unknown_field(asked: MessagesRequest) -> Breaches:
    for name in asked.body:
        if name not in FIELDS and BETA_FIELDS.get(name, "-") not in asked.betas:
            yield (name,)
    for number, message in enumerate(asked.body["messages"]):
        yield from ((f"messages.{number}.{name}",) for name in message.keys() - FIELDS_OF_MESSAGES)


@RULES.add("A13", '"thinking.type.{}" is not supported for this model.')
def _wrong_thinking(asked: MessagesRequest) -> Breaches:
    refused = {
        "enabled": asked.version >= (4, 7),
        "disabled": asked.always_thinks,
        "adaptive": asked.version < (4, 6),
    }
    if refused.get(kind := asked.thinking.get("type", "")):
        yield (kind,)


@RULES.add("A14", "`{}` is deprecated for this model.")
def _sampled(asked: MessagesRequest) -> Breaches:
    names = ("temperature", "top_p", "top_k") if asked.version >= (4, 7) else ()
    return ((name,) for name in names if name in asked.body)


@RULES.add("A14 warm", "`temperature` may only be set to 1 when thinking is enabled.")
def _warm_thoughts(asked: MessagesRequest) -> Breaches:
    if asked.is_thinking and asked.body.get("temperature", 1) != 1:
        yield ()


@RULES.add("A15", "Thinking may not be enabled when tool_choice forces tool use.")
def _forced(asked: MessagesRequest) -> Breaches:
    refuses = asked.always_thinks or asked.thinking.get("type") == "enabled"
    if refuses and asked.part("tool_choice").get("type") in ("any", "tool"):
        yield ()


@RULES.add("choice", "tool_choice: may only be specified while providing tools")
def _choice_of_nothing(asked: MessagesRequest) -> Breaches:
    if "tool_choice" in asked.body and not asked.tools:
        yield ()


@RULES.add("A16", "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024")
def _small_budget(asked: MessagesRequest) -> Breaches:
    if asked.thinking.get("budget_tokens", LEAST_BUDGET) < LEAST_BUDGET:
        yield ()


@RULES.add("A16 large", "`max_tokens` must be greater than `thinking.budget_tokens`.")
def _large_budget(asked: MessagesRequest) -> Breaches:
    if asked.thinking.get("budget_tokens", 0) >= asked.body["max_tokens"]:
        yield ()


@RULES.add("A19", "Too many strict tools ({}): at most {} are allowed.")
def _many_strict(asked: MessagesRequest) -> Breaches:
    strict = sum(bool(tool.get("strict")) for tool in asked.tools)
    if strict > STRICT_TOOLS:
        yield strict, STRICT_TOOLS


@RULES.add(
    "A23",
    "tools.{}.custom.input_schema: input_schema does not support oneOf, allOf, or anyOf at the top "
    "level",
)
def _open_root(asked: MessagesRequest) -> Breaches:
    for number, tool in enumerate(asked.tools):
        if {"oneOf", "anyOf", "allOf"} & _part(tool, "input_schema").keys():
            yield (number,)


@RULES.add("object", "tools.{}.custom.input_schema.type: Input should be 'object'")
def _no_object(asked: MessagesRequest) -> Breaches:
    for number, tool in enumerate(asked.tools):
        if "type" not in tool and _part(tool, "input_schema").get("type") != "object":
            yield (number,)


@RULES.add("name", "tools.{}.custom.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'")
def _bad_name(asked: MessagesRequest) -> Breaches:
    tools = enumerate(asked.tools)
    return ((number,) for number, tool in tools if not NAME.fullmatch(tool["name"]))


@RULES.add("names", "tools: Tool names must be unique.")
def _same_name(asked: MessagesRequest) -> Breaches:
    if len({tool["name"] for tool in asked.tools}) < len(asked.tools):
        yield ()


# the conversation


@RULES.add("user first", 'messages: first message must use the "user" role')
def _starts_otherwise(asked: MessagesRequest) -> Breaches:
    if asked.messages[0][0] != "user":
        yield ()


@RULES.add("content", "messages.{}: {} messages must have non-empty content")
def _no_content(asked: MessagesRequest) -> Breaches:
    messages = enumerate(asked.messages)
    return ((number, role) for number, (role, blocks) in messages if not blocks)


@RULES.add("A17", "messages.{}.content.{}.{}: String should match pattern '^[a-zA-Z0-9_-]+$'")
def _bad_id(asked: MessagesRequest) -> Breaches:
    for number, at, block in asked.blocks("tool_use", "tool_result"):
        name = "id" if block["type"] == "tool_use" else "tool_use_id"
        if not ID.fullmatch(block[name]):
            yield number, at, f"{block['type']}.{name}"


@RULES.add("input", "messages.{}.content.{}.tool_use.input: Input should be an object")
def _bad_call(asked: MessagesRequest) -> Breaches:
    for number, at, block in asked.blocks("tool_use"):
        if not isinstance(block.get("input"), dict):
            yield number, at


@RULES.add(
    "A17 image", "messages.{}.content.{}: all content must be type `text` if `is_error` is true"
)
def _image_of_error(asked: MessagesRequest) -> Breaches:
    for number, at, block in asked.blocks("tool_result"):
        if block.get("is_error") and {each["type"] for each in _inside(block)} - {"text"}:
            yield number, at


@RULES.add(
    "image",
    "image.source.base64.media_type: Input should be 'image/jpeg', 'image/png', 'image/gif' or "
    "'image/webp', not {}",
)
def _bad_image(asked: MessagesRequest) -> Breaches:
    for image in _everything(asked, "image"):
        source = _part(image, "source")
        if source.get("type") == "base64" and source.get("media_type") not in IMAGES:
            yield (source.get("media_type"),)


@RULES.add("A09", "messages.{}.content.{}.thinking.signature: Field required")
def _unsigned(asked: MessagesRequest) -> Breaches:
    for number, at, block in asked.blocks("thinking"):
        if not block.get("signature"):
            yield number, at


@RULES.add("A11", "messages: text content blocks must be non-empty")
def _empty_text(asked: MessagesRequest) -> Breaches:
    return (() for block in _everything(asked, "text") if not block["text"])


@RULES.add("A11 blank", "messages: text content blocks must contain non-whitespace text")
def _blank_text(asked: MessagesRequest) -> Breaches:
    return (() for block in _everything(asked, "text") if not block["text"].strip())


@RULES.add("A10", "A maximum of 4 blocks with cache_control may be provided. Found {}.")
def _many_marks(asked: MessagesRequest) -> Breaches:
    if asked.marks > MARKS:
        yield (asked.marks,)


@RULES.add("mark", "messages.{}.content.{}.thinking.cache_control: Extra inputs are not permitted")
def _marked_thought(asked: MessagesRequest) -> Breaches:
    for number, at, block in asked.blocks(*THOUGHTS):
        if "cache_control" in block:
            yield number, at


@RULES.add("A22", "messages: `tool_use` ids must be unique")
def _same_id(asked: MessagesRequest) -> Breaches:
    known = [block["id"] for _, _, block in asked.blocks("tool_use")]
    if len(known) != len(set(known)):
        yield ()


@RULES.add("A02", NO_RESULTS)
def _result_behind(asked: MessagesRequest) -> Breaches:
    for number, (role, blocks) in enumerate(asked.messages):
        kinds = [block["type"] for block in blocks]
        count = kinds.count("tool_result")
        if role == "user" and kinds[:count] != ["tool_result"] * count:
            yield number, count


@RULES.add("A02 apart", NO_RESULTS)
def _result_apart(asked: MessagesRequest) -> Breaches:
    """All results of a turn stand in one message."""
    for number, (role, blocks) in enumerate(asked.messages):
        is_behind = number and asked.messages[number - 1][0] != "assistant"
        if role == "user" and is_behind and _ids(blocks, "tool_result", "tool_use_id"):
            yield number, 1


@RULES.add(
    "A03", "messages.{}.content.{}: unexpected `tool_use_id` found in `tool_result` blocks: {}."
)
def _stray_result(asked: MessagesRequest) -> Breaches:
    for number, (_, blocks) in enumerate(asked.turns):
        calls = _ids(asked.turns[number - 1][1] if number else [], "tool_use", "id")
        for at, block in enumerate(blocks):
            if block["type"] == "tool_result" and block["tool_use_id"] not in calls:
                yield number, at, block["tool_use_id"]


@RULES.add(
    "A01",
    "messages.{}: `tool_use` ids were found without `tool_result` blocks immediately after: {}.",
)
def _unanswered(asked: MessagesRequest) -> Breaches:
    for number, (role, blocks) in enumerate(asked.turns):
        following = asked.turns[number + 1][1] if number + 1 < len(asked.turns) else []
        answered = _ids(following, "tool_result", "tool_use_id")
        open_calls = [each for each in _ids(blocks, "tool_use", "id") if each not in answered]
        if role == "assistant" and open_calls:
            yield number, ", ".join(open_calls)


@RULES.add(
    "A07",
    "messages.{}.content.{}: `thinking` or `redacted_thinking` blocks in the latest assistant "
    "message cannot be modified.",
)
def _edited_thought(asked: MessagesRequest) -> Breaches:
    said = (number for number, (role, _) in enumerate(asked.messages) if role == "assistant")
    last = max(said, default=-1)
    for number, at, block in asked.blocks(*THOUGHTS):
        is_ours = str(block.get("signature")).startswith(SIGNATURE)
        if number == last and is_ours and signed(block) is None:
            yield number, at


@RULES.add("A04", "messages.{}.content.{}: Invalid `signature` in `thinking` block")
def _false_signature(asked: MessagesRequest) -> Breaches:
    for number, at, block in asked.blocks(*THOUGHTS):
        if signed(block) is None:
            yield number, at


@RULES.add(
    "thought last", "messages.{}: The final block in an assistant message cannot be `thinking`."
)
def _thought_at_the_end(asked: MessagesRequest) -> Breaches:
    for number, (role, blocks) in enumerate(asked.messages):
        if role == "assistant" and blocks and blocks[-1]["type"] in THOUGHTS:
            yield (number,)


@RULES.add(
    "A08",
    "messages.{}.content.0.type: Expected `thinking` or `redacted_thinking`, but found `{}`.",
)
def _no_thought(asked: MessagesRequest) -> Breaches:
    if asked.thinking.get("type") == "enabled" and len(asked.turns) > 1:
        (_, said), (_, answer) = asked.turns[-2:]
        if answer[0]["type"] == "tool_result" and said[0]["type"] not in THOUGHTS:
            yield len(asked.turns) - 2, said[0]["type"]


@RULES.add("A12", "This model does not support assistant message prefill.")
def _prefilled(asked: MessagesRequest) -> Breaches:
    role, blocks = asked.messages[-1]
    is_paused = bool(blocks) and blocks[-1]["type"] in SERVED
    if role == "assistant" and not is_paused and asked.version >= (4, 6):
        yield ()


@RULES.add("A21", "role 'system' is not supported on this model")
def _late_system(asked: MessagesRequest) -> Breaches:
    takes = asked.version >= ((4, 8) if asked.family == "opus" else (5, 0))
    if not takes and any(role == "system" for role, _ in asked.messages):
        yield ()


@RULES.add("A21 place", "messages.{}: a system message must follow a user message")
def _misplaced_system(asked: MessagesRequest) -> Breaches:
    for number, (role, _) in enumerate(asked.messages):
        if role == "system" and asked.messages[number - 1][0] != "user":
            yield (number,)


def _part(block: Block, name: str) -> Block:
    return block.get(name) or {}


def _ids(blocks: list[Block], kind: str, name: str) -> list[str]:
    return [block[name] for block in blocks if block["type"] == kind]


def _inside(result: Block) -> list[Block]:
    return blocks_of(result.get("content") or [])


def _everything(asked: MessagesRequest, kind: str) -> Iterator[Block]:
    """All blocks of a kind, those in results as well."""
    for _, block in asked.parts():
        nested = _inside(block) if block.get("type") == "tool_result" else ()
        yield from (each for each in (block, *nested) if each.get("type") == kind)
