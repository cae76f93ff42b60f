"""The rules of the Messages protocol on a conversation: a row for each."""

from __future__ import annotations

import re
from typing import Any

from crow.testing.messages.request import SIGNATURE, THOUGHTS, MessagesRequest, blocks_of, signed
from crow.testing.messages.rule import Found, MessagesRule

MARKS = 4
ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")
IMAGES = ("image/jpeg", "image/png", "image/gif", "image/webp")
SERVED = ("server_tool_use", "web_search_tool_result", "web_fetch_tool_result")
"""What a paused answer may end with."""


def _starts_otherwise(asked: MessagesRequest) -> Found:
    return None if asked.messages[0][0] == "user" else ()


def _no_content(asked: MessagesRequest) -> Found:
    for number, (role, blocks) in enumerate(asked.messages):
        if not blocks:
            return number, role
    return None


def _ids(blocks: list[dict[str, Any]], kind: str, name: str) -> list[str]:
    return [block[name] for block in blocks if block["type"] == kind]


def _unanswered(asked: MessagesRequest) -> Found:
    for number, (role, blocks) in enumerate(asked.turns):
        following = asked.turns[number + 1][1] if number + 1 < len(asked.turns) else []
        answered = _ids(following, "tool_result", "tool_use_id")
        open_calls = [each for each in _ids(blocks, "tool_use", "id") if each not in answered]
        if role == "assistant" and open_calls:
            return number, ", ".join(open_calls)
    return None


def _result_behind(asked: MessagesRequest) -> Found:
    for number, (role, blocks) in enumerate(asked.messages):
        kinds = [block["type"] for block in blocks]
        count = kinds.count("tool_result")
        if role == "user" and kinds[:count] != ["tool_result"] * count:
            return number, count
    return None


def _result_apart(asked: MessagesRequest) -> Found:
    """All results of a turn stand in one message."""
    roles = [
        (role, any(block["type"] == "tool_result" for block in blocks))
        for role, blocks in asked.messages
    ]
    for number, (role, has_results) in enumerate(roles[1:], 1):
        if role == "user" and has_results and roles[number - 1][0] != "assistant":
            return number, 1
    return None


def _stray_result(asked: MessagesRequest) -> Found:
    for number, (_, blocks) in enumerate(asked.turns):
        before = asked.turns[number - 1][1] if number else []
        calls = _ids(before, "tool_use", "id")
        for at, block in enumerate(blocks):
            if block["type"] == "tool_result" and block["tool_use_id"] not in calls:
                return number, at, block["tool_use_id"]
    return None


def _same_id(asked: MessagesRequest) -> Found:
    known = [block["id"] for _, _, block in asked.blocks("tool_use")]
    return () if len(known) != len(set(known)) else None


def _bad_id(asked: MessagesRequest) -> Found:
    for number, at, block in asked.blocks("tool_use", "tool_result"):
        name = "id" if block["type"] == "tool_use" else "tool_use_id"
        if not ID.fullmatch(block[name]):
            return number, at, f"{block['type']}.{name}"
    return None


def _bad_call(asked: MessagesRequest) -> Found:
    for number, at, block in asked.blocks("tool_use"):
        if not isinstance(block.get("input"), dict):
            return number, at
    return None


def _image_of_error(asked: MessagesRequest) -> Found:
    for number, at, block in asked.blocks("tool_result"):
        kinds = [each["type"] for each in blocks_of(block.get("content") or [])]
        if block.get("is_error") and set(kinds) - {"text"}:
            return number, at
    return None


def _bad_image(asked: MessagesRequest) -> Found:
    results = (each for _, _, each in asked.blocks("tool_result"))
    inside = [each for block in results for each in blocks_of(block.get("content") or [])]
    for block in (*(each for _, _, each in asked.blocks("image")), *inside):
        source: dict[str, Any] = block.get("source") or {}
        if source.get("type") == "base64" and source.get("media_type") not in IMAGES:
            return (source.get("media_type"),)
    return None


def _unsigned(asked: MessagesRequest) -> Found:
    for number, at, block in asked.blocks("thinking"):
        if not block.get("signature"):
            return number, at
    return None


def _last_assistant(asked: MessagesRequest) -> int:
    roles = [role for role, _ in asked.messages]
    return len(roles) - 1 - roles[::-1].index("assistant") if "assistant" in roles else -1


def _edited_thought(asked: MessagesRequest) -> Found:
    last = _last_assistant(asked)
    for number, at, block in asked.blocks(*THOUGHTS):
        is_ours = str(block.get("signature")).startswith(SIGNATURE)
        if number == last and is_ours and signed(block) is None:
            return number, at
    return None


def _false_signature(asked: MessagesRequest) -> Found:
    for number, at, block in asked.blocks(*THOUGHTS):
        if signed(block) is None:
            return number, at
    return None


def _thought_at_the_end(asked: MessagesRequest) -> Found:
    for number, (role, blocks) in enumerate(asked.messages):
        if role == "assistant" and blocks and blocks[-1]["type"] in THOUGHTS:
            return (number,)
    return None


def _no_thought(asked: MessagesRequest) -> Found:
    if asked.thinking.get("type") != "enabled" or len(asked.turns) < 2:
        return None
    (_, said), (_, answer) = asked.turns[-2:]
    if answer[0]["type"] != "tool_result" or said[0]["type"] in THOUGHTS:
        return None
    return len(asked.turns) - 2, said[0]["type"]


def _many_marks(asked: MessagesRequest) -> Found:
    return (asked.marks,) if asked.marks > MARKS else None


def _marked_thought(asked: MessagesRequest) -> Found:
    for number, at, block in asked.blocks(*THOUGHTS):
        if "cache_control" in block:
            return number, at
    return None


def _texts(asked: MessagesRequest) -> list[str]:
    blocks = [block for _, block in asked.parts()]
    blocks += [
        each
        for block in blocks
        if block.get("type") == "tool_result"
        for each in blocks_of(block.get("content") or [])
    ]
    return [block["text"] for block in blocks if block.get("type") == "text"]


def _empty_text(asked: MessagesRequest) -> Found:
    return () if any(not text for text in _texts(asked)) else None


def _blank_text(asked: MessagesRequest) -> Found:
    return () if any(not text.strip() for text in _texts(asked)) else None


def _prefilled(asked: MessagesRequest) -> Found:
    role, blocks = asked.messages[-1]
    is_paused = bool(blocks) and blocks[-1]["type"] in SERVED
    ends = role == "assistant" and not is_paused
    return () if ends and asked.version >= (4, 6) else None


def _late_system(asked: MessagesRequest) -> Found:
    takes = asked.version >= ((4, 8) if asked.family == "opus" else (5, 0))
    return () if not takes and any(role == "system" for role, _ in asked.messages) else None


def _misplaced_system(asked: MessagesRequest) -> Found:
    for number, (role, _) in enumerate(asked.messages):
        if role == "system" and asked.messages[number - 1][0] != "user":
            return (number,)
    return None


CONVERSATION: tuple[MessagesRule, ...] = (
    MessagesRule(
        "user first", _starts_otherwise, 'messages: first message must use the "user" role'
    ),
    MessagesRule("content", _no_content, "messages.{}: {} messages must have non-empty content"),
    MessagesRule(
        "A17",
        _bad_id,
        "messages.{}.content.{}.{}: String should match pattern '^[a-zA-Z0-9_-]+$'",
    ),
    MessagesRule(
        "input", _bad_call, "messages.{}.content.{}.tool_use.input: Input should be an object"
    ),
    MessagesRule(
        "A17 image",
        _image_of_error,
        "messages.{}.content.{}: all content must be type `text` if `is_error` is true",
    ),
    MessagesRule(
        "image",
        _bad_image,
        "image.source.base64.media_type: Input should be 'image/jpeg', 'image/png', "
        "'image/gif' or 'image/webp', not {}",
    ),
    MessagesRule("A09", _unsigned, "messages.{}.content.{}.thinking.signature: Field required"),
    MessagesRule("A11", _empty_text, "messages: text content blocks must be non-empty"),
    MessagesRule(
        "A11 blank",
        _blank_text,
        "messages: text content blocks must contain non-whitespace text",
    ),
    MessagesRule(
        "A10",
        _many_marks,
        "A maximum of 4 blocks with cache_control may be provided. Found {}.",
    ),
    MessagesRule(
        "mark",
        _marked_thought,
        "messages.{}.content.{}.thinking.cache_control: Extra inputs are not permitted",
    ),
    MessagesRule("A22", _same_id, "messages: `tool_use` ids must be unique"),
    MessagesRule(
        "A02",
        _result_behind,
        "messages.{}: Did not find {} `tool_result` block(s) at the beginning of this message.",
    ),
    MessagesRule(
        "A02 apart",
        _result_apart,
        "messages.{}: Did not find {} `tool_result` block(s) at the beginning of this message.",
    ),
    MessagesRule(
        "A03",
        _stray_result,
        "messages.{}.content.{}: unexpected `tool_use_id` found in `tool_result` blocks: {}.",
    ),
    MessagesRule(
        "A01",
        _unanswered,
        "messages.{}: `tool_use` ids were found without `tool_result` blocks immediately "
        "after: {}.",
    ),
    MessagesRule(
        "A07",
        _edited_thought,
        "messages.{}.content.{}: `thinking` or `redacted_thinking` blocks in the latest "
        "assistant message cannot be modified.",
    ),
    MessagesRule(
        "A04",
        _false_signature,
        "messages.{}.content.{}: Invalid `signature` in `thinking` block",
    ),
    MessagesRule(
        "thought last",
        _thought_at_the_end,
        "messages.{}: The final block in an assistant message cannot be `thinking`.",
    ),
    MessagesRule(
        "A08",
        _no_thought,
        "messages.{}.content.0.type: Expected `thinking` or `redacted_thinking`, but found `{}`.",
    ),
    MessagesRule("A12", _prefilled, "This model does not support assistant message prefill."),
    MessagesRule("A21", _late_system, "role 'system' is not supported on this model"),
    MessagesRule(
        "A21 place",
        _misplaced_system,
        "messages.{}: a system message must follow a user message",
    ),
)
