"""Codex' rollouts: JSON Lines of what went to the model and came from it, and of events beside.

They lie in ``~/.codex/sessions/YEAR/MONTH/DAY/rollout-TIME-ID.jsonl``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from crow.transcripts.transcript import (
    DAMAGES,
    Object,
    Transcript,
    as_object,
    as_objects,
    objects,
    seconds,
    text_in,
    tokens,
)

PROGRAM = "codex"
META = "session_meta"
TOLD = (
    "<environment_context>",
    "<user_instructions>",
    "# AGENTS.md instructions",
    "<turn_aborted>",
)
"""What messages of the user's begin with that the user did not write."""
ENDED = re.compile(r"^Process exited with code (\d+)$", re.MULTILINE)
USAGE = {
    "input_tokens": "input_tokens",
    "output_tokens": "output_tokens",
    "cached_input_tokens": "cached_tokens",
    "reasoning_output_tokens": "reasoning_tokens",
}


def is_codex(first: Iterable[Object]) -> bool:
    """True where lines are those of a rollout."""
    return any(each.get("type") == META and isinstance(each.get("payload"), dict) for each in first)


def read(text: str) -> Transcript:
    """The conversation of a rollout."""
    made = Transcript(PROGRAM)
    at = 0.0
    for line in objects(text):
        with suppress(*DAMAGES):  # a damaged line is passed over
            at = seconds(line.get("timestamp"), at)
            _take(made, str(line.get("type")), as_object(line.get("payload")), at)
    return made


def _take(made: Transcript, kind: str, payload: Object, at: float) -> None:
    match kind:
        case "session_meta":
            made.id = made.id or text_in(payload.get("id"))
            made.cwd = made.cwd or text_in(payload.get("cwd"))
        case "turn_context":
            made.cwd = text_in(payload.get("cwd")) or made.cwd
            made.model = text_in(payload.get("model")) or made.model
        case "response_item":
            _item(made, payload, at)
        case "compacted":
            made.compacted(str(payload.get("message") or ""), "auto", at)
        case "event_msg" if payload.get("type") == "token_count":
            if last := as_object(as_object(payload.get("info")).get("last_token_usage")):
                made.spent(tokens(last, USAGE), at)
        case _:
            pass


def _item(made: Transcript, item: Object, at: float) -> None:
    match item.get("type"):
        case "message":
            _message(made, str(item.get("role")), item, at)
        case "reasoning":
            thought = "\n".join(_texts(item.get("summary"), item.get("content")))
            made.answer("", at, thought=thought)
        case "local_shell_call":
            action = as_object(item.get("action"))
            _call(made, item, {"command": action.get("command")}, at, "local_shell")
        case "function_call":
            _call(made, item, _args(item.get("arguments")), at)
        case "custom_tool_call":
            _call(made, item, {"input": item.get("input")}, at)
        case "function_call_output" | "custom_tool_call_output":
            text, failed = _output(item.get("output"))
            made.result(str(item.get("call_id")), text, at, failed=failed)
        case _:
            pass


def _call(made: Transcript, item: Object, args: Any, at: float, name: str = "") -> None:
    call_id = str(item.get("call_id") or item.get("id"))
    called = {"id": call_id, "name": name or str(item.get("name")), "args": args}
    made.answer("", at, calls=[called])


def _message(made: Transcript, role: str, item: Object, at: float) -> None:
    text = "\n".join(_texts(item.get("content")))
    if role == "assistant":
        made.answer(text, at)
    elif role == "user" and not text.lstrip().startswith(TOLD):
        urls = (each.get("image_url") for each in as_objects(item.get("content")))
        made.prompt(text, at, [url for url in urls if isinstance(url, str)])


def _texts(*contents: Any) -> list[str]:
    return [
        str(each["text"])
        for content in contents
        for each in as_objects(content)
        if isinstance(each.get("text"), str)
    ]


def _args(text: Any) -> Any:
    try:
        return json.loads(text)
    except (TypeError, ValueError):
        return {"text": text}


def _output(output: Any) -> tuple[str, bool]:
    """What a tool gave, as text, and whether it failed as far as that is told."""
    if isinstance(output, str) and output.startswith("{"):
        output = _args(output)
    if given := as_object(output):
        code = as_object(given.get("metadata")).get("exit_code")
        text = given.get("output", given.get("content", given.get("text", "")))
        failed = bool(code) or given.get("success") is False
        return text if isinstance(text, str) else "\n".join(_texts(text)), failed
    text = output if isinstance(output, str) else "\n".join(_texts(output))
    ended = ENDED.search(text)
    return text, bool(ended) and ended[1] != "0"
