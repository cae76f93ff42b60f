"""pi's sessions: JSON Lines of entries that name the one before them, so that there are branches.

They lie in ``~/.pi/agent/sessions/--FOLDER--/TIME_ID.jsonl``. What was said last is at the end of
the branch that counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any, cast

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
)

PROGRAM = "pi"
USAGE = {
    "input_tokens": ("input", "cacheRead", "cacheWrite"),
    "output_tokens": ("output",),
    "cached_tokens": ("cacheRead",),
}


def is_pi(first: Iterable[Object]) -> bool:
    """True where lines are those of a session."""
    head = next(iter(first), Object())
    return head.get("type") == "session" and "cwd" in head and "timestamp" in head


def read(text: str) -> Transcript:
    """The conversation of a session, by its last branch."""
    head, *entries = objects(text)
    made = Transcript(PROGRAM, text_in(head.get("id")), text_in(head.get("cwd")))
    at = seconds(head.get("timestamp"))
    for entry in _in_order(list(_branch(entries))):
        with suppress(*DAMAGES):  # a damaged entry is passed over
            at = seconds(entry.get("timestamp"), at)
            _take(made, entry, at)
    return made


def _branch(entries: list[Object]) -> Iterator[Object]:
    """The entries from the first to the last; those of the first version have no ids."""
    if not all("id" in each for each in entries):
        yield from entries
        return
    known = {str(each["id"]): each for each in entries}
    chain: dict[str, Object] = {}
    at = str(entries[-1]["id"]) if entries else ""
    while at in known and at not in chain:
        chain[at] = known[at]
        at = str(known[at].get("parentId"))
    yield from reversed(chain.values())


def _in_order(branch: list[Object]) -> list[Object]:
    """The branch with each summary where it begins to stand in for what was before."""
    ordered: list[Object] = []
    for entry in branch:
        kept = entry.get("firstKeptEntryId") if entry.get("type") == "compaction" else None
        ids = [each.get("id") for each in ordered]
        ordered.insert(ids.index(kept) if kept in ids else len(ordered), entry)
    return ordered


def _take(made: Transcript, entry: Object, at: float) -> None:
    match entry.get("type"):
        case "message":
            _message(made, as_object(entry["message"]), at)
        case "compaction":
            made.compacted(str(entry.get("summary") or ""), "auto", at)
        case "branch_summary" if entry.get("summary"):
            made.context(str(entry["summary"]), at)
        case "custom_message":
            made.context(_text(entry.get("content")), at)
        case "session_info" if text_in(entry.get("name")):
            made.title = text_in(entry.get("name"))
        case "model_change":
            made.model = text_in(entry.get("modelId")) or made.model
        case _:
            pass


def _message(made: Transcript, message: Object, at: float) -> None:
    match message.get("role"):
        case "user":
            given = message.get("content")
            shown = (each for each in as_objects(given) if each.get("type") == "image")
            urls = [f"data:{each['mimeType']};base64,{each['data']}" for each in shown]
            made.prompt(_text(given), at, urls)
        case "assistant":
            _answer(made, message, at)
        case "toolResult":
            text = _text(message.get("content"))
            failed = message.get("isError") is True
            made.result(str(message.get("toolCallId")), text, at, failed=failed)
        case "bashExecution" if not message.get("excludeFromContext"):
            told = f"The user ran `{message.get('command')}`:\n{message.get('output')}"
            made.context(told, at)
        case _:
            pass


def _answer(made: Transcript, message: Object, at: float) -> None:
    parts = as_objects(message.get("content"))
    calls: list[Object] = [
        {"id": str(each["id"]), "name": str(each["name"]), "args": as_object(each["arguments"])}
        for each in parts
        if each.get("type") == "toolCall"
    ]
    thought = "\n".join(str(each.get("thinking") or "") for each in parts if "thinking" in each)
    made.model = text_in(message.get("model")) or made.model
    made.answer(_text(parts), at, thought=thought.strip(), calls=calls)
    if given := as_object(message.get("usage")):
        used = {
            ours: sum(int(given.get(each) or 0) for each in names) for ours, names in USAGE.items()
        }
        made.spent(cast(Usage, used), at)


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(str(it["text"]) for it in as_objects(content) if it.get("type") == "text")
