"""A conversation on the wire as a text that people read and tests compare.

What differs from run to run, and where a stream was cut into pieces, does not show.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

Message = dict[str, Any]
Entry = tuple[bool, Message]

WIDTH = 96
SESSION = re.compile(r"\b[0-9a-f]{32}\b")
TIME = re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)")
CHUNKS = ("agent_message_chunk", "agent_thought_chunk")
PROGRESS = {"sessionUpdate", "toolCallId", "content"}


def transcript(log: Iterable[Entry], names: Mapping[str, str]) -> str:
    """All messages of a log, both ways: ``→`` to the agent, ``←`` from it.

    ``names`` says what stands in place of texts that differ from run to run; sessions are counted,
    and times are all the same.
    """
    steady = Steady(names)
    entries = [(is_sent, steady.of(message)) for is_sent, message in merged(log)]
    return "\n".join(line for entry in entries for line in _lines(*entry)) + "\n"


class Steady:
    """Puts what is the same in every run in place of what is not."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self._names = sorted(names.items(), key=lambda pair: -len(pair[0]))
        self._sessions: dict[str, str] = {}

    def of(self, value: Any) -> Any:
        """A value with such texts in it."""
        match value:
            case str():
                return self._text(value)
            case list():
                return [self.of(each) for each in value]  # pyright: ignore[reportUnknownVariableType]
            case dict():
                return {name: self.of(each) for name, each in value.items()}  # pyright: ignore[reportUnknownVariableType]
            case _:
                return value

    def _text(self, text: str) -> str:
        for found, name in self._names:
            text = text.replace(found, name)
        return TIME.sub("<time>", SESSION.sub(self._session, text))

    def _session(self, match: re.Match[str]) -> str:
        return self._sessions.setdefault(match[0], f"<session {len(self._sessions) + 1}>")


def merged(log: Iterable[Entry]) -> Iterator[Entry]:
    """The log with each text and each command's output in one piece."""
    waiting: Entry | None = None
    for entry in log:
        joined = _joined(waiting, entry) if waiting is not None else None
        if waiting is not None and joined is None:
            yield waiting
        waiting = joined or entry
    if waiting is not None:
        yield waiting


def _joined(first: Entry, then: Entry) -> Entry | None:
    """Two pieces of the same as one; None where they are not."""
    if first[0] or then[0]:
        return None
    one, other = _update(first[1]), _update(then[1])
    kind = one.get("sessionUpdate")
    if _session(first[1]) != _session(then[1]) or kind != other.get("sessionUpdate"):
        return None
    if kind in CHUNKS and one["messageId"] == other["messageId"]:
        text = one["content"]["text"] + other["content"]["text"]
        return _with(then, {**other, "content": {"type": "text", "text": text}})
    if one.get("toolCallId") == other.get("toolCallId"):
        return _progressed(one, then)
    return None


def _progressed(one: Message, then: Entry) -> Entry | None:
    """Two updates of a running call: content takes the place of content, output is added."""
    other = _update(then[1])
    if set(one) == set(other) == PROGRESS:
        return then
    match one, other:
        case {"_meta": {"terminal_output": before}}, {"_meta": {"terminal_output": after}} if set(
            one
        ) == set(other):
            whole = {**after, "data": before["data"] + after["data"]}
            return _with(then, {**other, "_meta": {"terminal_output": whole}})
        case _:
            return None


def _session(message: Message) -> str | None:
    return message.get("params", {}).get("sessionId")


def _update(message: Message) -> Message:
    is_update = message.get("method") == "session/update"
    return message["params"]["update"] if is_update else {}


def _with(entry: Entry, update: Message) -> Entry:
    message = entry[1]
    return entry[0], {**message, "params": {**message["params"], "update": update}}


def _lines(is_sent: bool, message: Message) -> Iterator[str]:
    """One message: what it is, then each of its fields."""
    named = [str(message["id"])] if "id" in message else []
    title = message.get("method") or ("result" if "result" in message else "error")
    fields: Any = message.get("params") or message.get("result") or message.get("error") or {}
    if update := _update(message):
        title = f"{title} {update['sessionUpdate']}"
        fields = {"sessionId": fields["sessionId"], **update}
        del fields["sessionUpdate"]
    yield " ".join(["→" if is_sent else "←", *named, title])
    yield from _fields(fields, "    ")


def _fields(value: Any, pad: str) -> Iterator[str]:
    """A value over as many lines as it takes."""
    for name, each in _pairs(value):
        head = f"{pad}-" if name == "-" else f"{pad}{name}:"
        text = json.dumps(each, ensure_ascii=False)
        if len(head) + len(text) < WIDTH or not isinstance(each, dict | list):
            yield f"{head} {text}"
        else:
            yield head
            yield from _fields(each, pad + "    ")


def _pairs(value: Any) -> Iterable[tuple[str, Any]]:
    return value.items() if isinstance(value, dict) else [("-", each) for each in value]  # pyright: ignore[reportUnknownVariableType]
