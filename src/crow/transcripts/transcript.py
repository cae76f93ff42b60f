"""A conversation as it is put together: rows in the shape of an export of Crow's."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from datetime import UTC, datetime
from typing import Any, cast

from crow.core.messages import Message, Usage, context_block, text_of, user
from crow.core.support.frozen import mutable

Object = dict[str, Any]
ORIGIN = "imported"
"""Whose thoughts these are: of no endpoint that Crow asks, so that none gets them back."""
KINDS = {
    "execute": ("Bash", "bash", "shell", "exec_command", "local_shell", "shell_command"),
    "read": ("Read", "read", "NotebookRead", "view_image"),
    "edit": ("Edit", "edit", "MultiEdit", "NotebookEdit", "Write", "write", "apply_patch"),
    "search": ("Glob", "glob", "Grep", "grep", "find", "WebSearch", "websearch"),
    "fetch": ("WebFetch", "webfetch"),
    "think": ("TodoWrite", "todowrite", "update_plan"),
}
KIND_OF = {name: kind for kind, names in KINDS.items() for name in names}
TITLED = (
    "command",
    "cmd",
    "file_path",
    "filePath",
    "path",
    "pattern",
    "url",
    "query",
    "description",
)
TITLE_LENGTH = 60


@mutable
class Transcript:
    """A conversation of another program. ``id`` is that program's, ``model`` the last it asked.

    Rows are added in order; ``at`` are seconds of the epoch. `lines` is the whole.
    """

    program: str
    id: str = ""
    cwd: str = ""
    title: str = ""
    model: str = ""
    rows: list[Object] = field(default_factory=list[Object])
    segment: int = 0
    start: int = 0
    messages: int = 0
    usage: Usage = field(default_factory=Usage)
    calls: dict[str, Object] = field(default_factory=dict[str, Object])

    @property
    def session_id(self) -> str:
        """The id that it has with Crow: always the same for the same conversation."""
        return uuid.uuid5(uuid.NAMESPACE_OID, f"{self.program}:{self.id}").hex

    @property
    def latest(self) -> float:
        """When the last thing was said."""
        return self.rows[-1]["at"] if self.rows else 0.0

    def prompts(self) -> list[str]:
        """What its user said."""
        return [text_of(row["data"]["content"]) for row in self.rows if row.get("prompt")]

    def prompt(self, text: str, at: float, pictures: Iterable[str] = ()) -> None:
        """The user says something; pictures are told by their URLs."""
        first = next((line.strip() for line in text.splitlines() if line.strip()), "")
        self.title = self.title or first[:TITLE_LENGTH]
        shown: list[Any] = [{"type": "image_url", "image_url": {"url": url}} for url in pictures]
        content: Any = [{"type": "text", "text": text}, *shown] if shown else text
        self._message(user(content), at, prompt=True)

    def context(self, text: str, at: float) -> None:
        """The model is told something that its user did not say."""
        self._message(context_block(text, self.program), at)

    def answer(
        self, text: str, at: float, *, thought: str = "", calls: Sequence[Object] = ()
    ) -> None:
        """The model says something, and calls tools: each with ``id``, ``name`` and ``args``.

        Calls that directly follow others belong to the same answer.
        """
        is_message = bool(self.rows) and self.rows[-1]["kind"] == "message"
        last = as_object(self.rows[-1]["data"] if is_message else None)
        parts = [_part(each) for each in calls]
        for each in calls:
            self.calls[each["id"]] = {**each, "at": at}
        if parts and not text and not thought and last.get("role") == "assistant":
            last["tool_calls"] = [*last.get("tool_calls", ()), *parts]
            return
        message: Message = {"role": "assistant", "content": text or None}
        if thought:
            message["reasoning_content"], message["origin"] = thought, ORIGIN
        if parts:
            message["tool_calls"] = cast(Any, parts)
        if text or thought or parts:
            self._message(message, at)

    def result(
        self, call_id: str, content: str, at: float, *, failed: bool = False, outcome: str = ""
    ) -> None:
        """A call has its result; one of a call that nobody made is left out.

        ``outcome`` says more than that it has ``failed``: that it was denied, or cancelled.
        """
        call = self.calls.pop(call_id, None)
        if call is None:
            return
        args, name = call["args"], call["name"]
        about: Object = {
            "call_id": call_id,
            "name": name,
            "args": args,
            "title": titled(name, args),
            "kind": KIND_OF.get(name, "other"),
            "locations": [],
        }
        ended: Object = {
            "outcome": outcome or ("error" if failed else "ok"),
            "duration": max(at - call["at"], 0.0),
            "content": content,
            "error": failed,
            "data": None,
            "diffs": [] if failed else list(diffs(args)),
            "places": [],
        }
        self._row("result", about | ended, at)
        self._row("answer", {"call_id": call_id}, at)
        self.messages += 1

    def spent(self, last: Usage, at: float) -> None:
        """A request has taken so many tokens."""
        total = last.get("input_tokens", 0) + last.get("output_tokens", 0)
        last = {**last, "total_tokens": total}
        for name, value in last.items():
            cast(Object, self.usage)[name] = cast(Object, self.usage).get(name, 0) + value
        self._row("usage", {"last": last, "context": total, "window": None}, at)

    def hooks(self, records: Sequence[Object], at: float) -> None:
        """Hooks ran: records as Crow keeps them."""
        self._row("hooks", {"records": [*records]}, at)

    def compacted(self, summary: str, trigger: str, at: float) -> None:
        """A summary takes the place of what was said before."""
        self.segment += 1
        self.start = len(self.rows)
        self._row("segment", {"summary": summary, "trigger": trigger}, at)
        if summary:
            self._row("carried", context_block(summary, "summary"), at)

    def lines(self) -> str:
        """It as JSON Lines: the session, then its rows."""
        whole = [
            {name: value for name, value in row.items() if name != "prompt"} for row in self.rows
        ]
        first = whole[0]["at"] if whole else 0.0
        head: Object = {
            "kind": "session",
            "id": self.session_id,
            "cwd": self.cwd,
            "directories": [],
            "title": self.title,
            "created": stamp(first),
            "updated": stamp(self.latest),
            "model": self.model or None,
            "mode": "default",
            "options": {},
            "usage": {"total": self.usage, "last": None, "anchor": 0},
            "parent": None,
            "agent_type": "",
            "forked_from": None,
            "segment": self.segment,
            "start": self.start,
            "messages": self.messages,
            "archived": 0,
            "state": {},
        }
        return "".join(f"{json.dumps(row)}\n" for row in (head, *whole))

    def _message(self, message: Message, at: float, *, prompt: bool = False) -> None:
        self.messages += 1
        self._row("message", message, at)
        if prompt:
            self.rows[-1]["prompt"] = True

    def _row(self, kind: str, data: Any, at: float) -> None:
        row = {"seq": len(self.rows), "segment": self.segment, "kind": kind, "at": at, "data": data}
        self.rows.append(row)


def _part(call: Object) -> Object:
    args = call["args"] if isinstance(call["args"], str) else json.dumps(call["args"])
    return {
        "id": call["id"],
        "type": "function",
        "function": {"name": call["name"], "arguments": args},
    }


def titled(name: str, args: Any) -> str:
    """A call in a line."""
    given = as_object(args)
    about = next((given[key] for key in TITLED if isinstance(given.get(key), str)), "")
    return " ".join(about.split())[:TITLE_LENGTH] or name


def diffs(args: Any) -> Iterable[Object]:
    """The changes that the arguments of a call name, as far as they name both sides."""
    given = as_object(args)
    path = _first(given, "file_path", "filePath", "path")
    for change in [given, *as_objects(given.get("edits"))]:
        if isinstance(path, str):
            old = _first(change, "old_string", "oldString", "oldText")
            new = _first(change, "new_string", "newString", "newText", "content")
            if isinstance(new, str):
                yield {"path": path, "old": old if isinstance(old, str) else None, "new": new}


def _first(given: Object, *names: str) -> Any:
    """What has the first of some names that is there: programs call the same thing otherwise."""
    return next((given[name] for name in names if name in given), None)


DAMAGES = (KeyError, TypeError, AttributeError, ValueError, OverflowError)
"""What reading something raises that is not what it should be."""


def text_in(value: object) -> str:
    """A text; an empty one for anything else."""
    return value if isinstance(value, str) else ""


def seconds(timestamp: object, otherwise: float = 0.0) -> float:
    """A time in ISO 8601 as seconds of the epoch."""
    if not isinstance(timestamp, str):
        return otherwise
    try:
        return datetime.fromisoformat(timestamp).timestamp()
    except ValueError:
        return otherwise


def stamp(at: float) -> str:
    """Seconds of the epoch in ISO 8601, UTC."""
    text = datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")


def tokens(told: Object, names: Mapping[str, str]) -> Usage:
    """A usage as Crow counts it; ``names`` are Crow's, by those of the program."""
    return cast(Usage, {ours: int(told.get(name) or 0) for name, ours in names.items()})


def as_object(value: object) -> Object:
    """An object; an empty one for anything else."""
    return cast(Object, value) if isinstance(value, dict) else {}


def as_objects(value: object) -> list[Object]:
    """The objects of a list; none for anything else."""
    items = cast("list[object]", value) if isinstance(value, list) else []
    return [cast(Object, each) for each in items if isinstance(each, dict)]


def objects(text: str) -> Iterable[Object]:
    """The objects of JSON Lines; lines that are none are passed over."""
    for line in text.splitlines():
        try:
            value = json.loads(line)
        except ValueError:
            continue
        if isinstance(value, dict):
            yield cast(Object, value)
