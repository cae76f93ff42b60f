"""Claude Code's transcripts: JSON Lines, one a message or a block of one, linked by their parents.

They lie in ``~/.claude/projects/FOLDER/ID.jsonl``. A prompt that was taken back stays in the file
with what followed it; only what the last line comes from counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from crow.core.messages import Usage
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

PROGRAM = "claude"
SPOKEN = ("user", "assistant")
COMMAND = re.compile(r"<command-name>(.*?)</command-name>", re.DOTALL)
ARGS = re.compile(r"<command-args>(.*?)</command-args>", re.DOTALL)
TOLD = ("<local-command-", "<bash-", "<system-reminder>", "<task-notification>", "Caveat: ")
"""What a user's message begins with that its user did not write."""
USAGE = {
    "input_tokens": "input_tokens",
    "output_tokens": "output_tokens",
    "cache_read_input_tokens": "cached_tokens",
    "cache_creation_input_tokens": "cache_write_tokens",
}


def is_claude(first: Iterable[Object]) -> bool:
    """True where lines are those of a transcript."""
    return any(
        "sessionId" in each and each.get("type") in (*SPOKEN, "queue-operation") for each in first
    ) or any(each.get("type") == "summary" and "leafUuid" in each for each in first)


def read(text: str) -> Transcript:
    """The conversation of a transcript."""
    lines = list(objects(text))
    made = Transcript(PROGRAM)
    at = 0.0
    asked = ""
    for line in [each for each in lines if each.get("type") == "summary"]:
        made.title = str(line.get("summary") or "")
    for line in counting(lines):
        with suppress(*DAMAGES):  # a damaged line is passed over
            at = seconds(line.get("timestamp"), at)
            asked = _take(made, line, asked, at)
    return made


def _take(made: Transcript, line: Object, asked: str, at: float) -> str:
    """Add a line; what a compaction was begun by, which is said in the line before its summary."""
    made.id = made.id or text_in(line.get("sessionId"))
    made.cwd = text_in(line.get("cwd")) or made.cwd
    if line.get("type") == "system":
        return text_in(as_object(line.get("compactMetadata")).get("trigger")) or "auto"
    if line["type"] == "assistant":
        _assistant(made, line["message"], at)
    elif line.get("isCompactSummary"):
        made.compacted("\n".join(_texts(line["message"])), asked, at)
    else:
        _user(made, line, at)
    return asked


def counting(lines: list[Object]) -> list[Object]:
    """The lines of the conversation as it is by now, in order; none of sub-agents."""
    spoken = [each for each in lines if _counts(each)]
    parent = {
        text_in(each.get("uuid")): text_in(each.get("parentUuid") or each.get("logicalParentUuid"))
        for each in lines
    }
    here: set[str] = set()
    now = text_in(spoken[-1].get("uuid")) if spoken else ""
    while now and now not in here:
        here.add(now)
        now = parent.get(now, "")
    return [each for each in spoken if text_in(each.get("uuid")) in here or _is_result(each)]


def _counts(line: Object) -> bool:
    if line.get("isSidechain"):
        return False
    kind = text_in(line.get("type"))
    if kind == "system":
        return line.get("subtype") == "compact_boundary"
    return kind in SPOKEN and isinstance(line.get("message"), dict)


def _is_result(line: Object) -> bool:
    """True for results, for several of one answer are siblings; those of no call go later."""
    blocks = _blocks(line.get("message"))
    return line["type"] == "user" and any(each.get("type") == "tool_result" for each in blocks)


def _blocks(message: object) -> list[Object]:
    content = as_object(message).get("content")
    is_text = isinstance(content, str)
    return [{"type": "text", "text": content}] if is_text else as_objects(content)


def _texts(message: Any) -> list[str]:
    return [str(each.get("text") or "") for each in _blocks(message) if each.get("type") == "text"]


def _assistant(made: Transcript, message: Object, at: float) -> None:
    blocks = _blocks(message)
    thought = "".join(str(each.get("thinking") or "") for each in blocks)
    calls: list[Object] = [
        {"id": str(each.get("id")), "name": str(each.get("name")), "args": each.get("input") or {}}
        for each in blocks
        if each.get("type") == "tool_use"
    ]
    model = text_in(message.get("model"))
    made.model = made.model if model.startswith("<") else model or made.model
    made.answer("".join(_texts(message)), at, thought=thought, calls=calls)
    if message.get("stop_reason") and (usage := as_object(message.get("usage"))):
        made.spent(_usage(usage), at)


def _usage(given: Object) -> Usage:
    found = tokens(given, USAGE)
    known = sum(found.get(name, 0) for name in ("cached_tokens", "cache_write_tokens"))
    return {**found, "input_tokens": found.get("input_tokens", 0) + known}


def _user(made: Transcript, line: Object, at: float) -> None:
    said: list[str] = []
    pictures: list[str] = []
    for block in _blocks(line["message"]):
        match block.get("type"):
            case "tool_result":
                made.result(
                    str(block.get("tool_use_id")),
                    "\n".join(_texts(block)),
                    at,
                    failed=bool(block.get("is_error")),
                )
            case "text":
                said.append(str(block.get("text") or ""))
            case "image" if url := _url(block.get("source")):
                pictures.append(url)
            case _:
                pass
    text = "\n".join(said)
    if (command := COMMAND.search(text)) is not None:
        args = ARGS.search(text)
        text = f"{command[1]} {args[1] if args else ''}".strip()
    elif text and (line.get("isMeta") or text.startswith(TOLD)):
        made.context(text, at)
        return
    if text or pictures:
        made.prompt(text, at, pictures)


def _url(source: Any) -> str:
    given = as_object(source)
    if given.get("type") == "base64":
        return f"data:{given.get('media_type')};base64,{given.get('data')}"
    return str(given.get("url") or "")
