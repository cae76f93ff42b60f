"""The conversation as a file of compact JSON Lines, in the shape that Claude Code's hooks read.

A mirror that is brought up to date before hooks run; the session itself stays the source.
"""

from __future__ import annotations

import json
import os
import re
import uuid
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from crow import Usage, __version__
from crow.messages import is_prompt, text_of

if TYPE_CHECKING:
    from crow import Message, Session


DATA = re.compile(r"data:([^;,]+);base64,")


class Transcript:
    """One session's file. ``usages`` and ``failed`` are what the history does not say.

    ``answered`` is when the model last answered, as an earlier process wrote it; else empty.
    """

    def __init__(self, path: Path, session: Session) -> None:
        self.path = path
        self.session = session
        self.usages: dict[str, tuple[Usage, str]] = {}
        self.failed: set[str] = set()
        self._segment, self._count = session.segment, 0
        self._kept: list[Message] = []
        self._last: str | None = None
        self._there, self.answered = _found(path)

    def sync(self) -> None:
        """Write what is new in the history; what cannot be written is left out."""
        session = self.session
        known: set[int] = set()
        if session.segment != self._segment:
            known = set(map(id, self._kept))
            self._segment, self._count, self._kept = session.segment, 0, []
        fresh = session.messages[self._count :]
        lines: list[str] = []
        for number, message in enumerate(fresh, self._count):
            if id(message) not in known:
                lines += self._lines(message, number)
        self._count = len(session.messages)
        self._kept += fresh
        if lines or not self._there:
            self._append(lines)

    def seconds_since_last(self) -> int | None:
        """How long ago an earlier process wrote the model's last answer; None if unknown."""
        try:
            then = datetime.fromisoformat(self.answered)
        except ValueError:
            return None
        return max(0, round((datetime.now(UTC) - then).total_seconds()))

    def _append(self, lines: list[str]) -> None:
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write("".join(f"{line}\n" for line in lines).encode("utf-8", "replace"))
        except OSError:
            return
        self._there.add("")

    def _lines(self, message: Message, number: int) -> Iterator[str]:
        session = self.session
        message_id = f"{session.id}.{session.segment}.{number}"
        line_id = str(uuid.uuid5(uuid.NAMESPACE_OID, message_id))
        inner = self._message(message, message_id)
        previous, self._last = self._last, line_id
        if inner is None or line_id in self._there:
            return
        line: dict[str, Any] = {
            "parentUuid": previous,
            "isSidechain": session.parent is not None,
            "userType": "external",
            "cwd": session.cwd,
            "sessionId": _root(session).id,
            "type": inner["role"],
            "message": inner,
            "uuid": line_id,
            "timestamp": now(),
            "version": __version__,
        }
        if message["role"] == "user" and not is_prompt(message):
            line["isMeta"] = True
        yield json.dumps(line, ensure_ascii=False, separators=(",", ":"), default=str)

    def _message(self, message: Message, message_id: str) -> dict[str, Any] | None:
        match message["role"]:
            case "user":
                return {"role": "user", "content": _blocks(message)}
            case "tool":
                call_id = message.get("tool_call_id", "")
                result: dict[str, Any] = {
                    "tool_use_id": call_id,
                    "type": "tool_result",
                    "content": _blocks(message),
                }
                if call_id in self.failed:
                    result["is_error"] = True
                return {"role": "user", "content": [result]}
            case "assistant":
                return self._assistant(message, message_id)
            case _:
                return None

    def _assistant(self, message: Message, message_id: str) -> dict[str, Any]:
        usage, model = self.usages.get(message_id, (Usage(), self.session.model or ""))
        text = text_of(message.get("content"))
        blocks: list[dict[str, Any]] = [{"type": "text", "text": text}] if text else []
        for call in message.get("tool_calls", ()):
            function = call["function"]
            used = {"type": "tool_use", "id": call["id"], "name": function["name"]}
            blocks.append({**used, "input": _arguments(function["arguments"])})
        return {
            "id": f"msg_{message_id}",
            "type": "message",
            "role": "assistant",
            "model": model,
            "content": blocks,
            "stop_reason": "tool_use" if message.get("tool_calls") else "end_turn",
            "stop_sequence": None,
            "usage": counted(usage),
        }


def now() -> str:
    """This moment in ISO 8601, UTC, with milliseconds."""
    return f"{datetime.now(UTC).replace(tzinfo=None).isoformat('T', 'milliseconds')}Z"


def counted(usage: Mapping[str, Any]) -> dict[str, int]:
    """Tokens under the names of Anthropic's API, where those from the cache are counted apart."""
    cached, written = usage.get("cached_tokens", 0), usage.get("cache_write_tokens", 0)
    return {
        "input_tokens": max(0, usage.get("input_tokens", 0) - cached - written),
        "cache_creation_input_tokens": written,
        "cache_read_input_tokens": cached,
        "output_tokens": usage.get("output_tokens", 0),
    }


def _blocks(message: Message) -> str | list[dict[str, Any]]:
    content = message.get("content")
    if content is None or isinstance(content, str):
        return content or ""
    return [
        {"type": "text", "text": part["text"]} if part["type"] == "text" else _picture(part)
        for part in content
    ]


def _picture(part: Any) -> dict[str, Any]:
    """A part that is no text: a picture as Anthropic's API has it, anything else by its kind."""
    where: str = part.get("image_url", {}).get("url", "")
    if (found := DATA.match(where)) is not None:
        source = {"type": "base64", "media_type": found[1], "data": where[found.end() :]}
        return {"type": "image", "source": source}
    if where:
        return {"type": "image", "source": {"type": "url", "url": where}}
    return {"type": "text", "text": f"[{part['type']}]"}


def _arguments(text: str) -> Any:
    try:
        return json.loads(text or "{}")
    except ValueError:
        return {}


def _root(session: Session) -> Session:
    while session.parent is not None:
        session = session.parent
    return session


def _found(path: Path) -> tuple[set[str], str]:
    """Ids of the lines that an earlier process wrote, and when the model last answered."""
    try:
        lines = path.read_text("utf-8", "replace").splitlines()
    except OSError:
        return set(), ""
    found, answered = {""}, ""
    for line in lines:
        written = cast("dict[str, Any]", _arguments(line))
        if isinstance(written, dict):  # pyright: ignore[reportUnnecessaryIsInstance] - any file
            found.add(str(written.get("uuid")))
            if written.get("type") == "assistant":
                answered = str(written.get("timestamp", ""))
    return found, answered
