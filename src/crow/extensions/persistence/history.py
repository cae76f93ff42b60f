"""From the log back to the conversation: as messages for a model, as events for a client."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast

from crow import Call, Message, ToolResult
from crow.events import (
    Compacted,
    Event,
    Notice,
    TextDelta,
    ThoughtDelta,
    ToolEnded,
    ToolPending,
    ToolProgress,
    ToolStarted,
    UserMessage,
)
from crow.extensions.persistence.record import USER, Entry, call_of, locations, plan_of, result_of
from crow.messages import INTERRUPTED, Content, is_prompt, text_of, thought_of, tool_answer
from crow.tools import Outcome

NOT_STARTED = "not executed: interrupted before it was started"
ROLES = frozenset({"system", "developer", "user", "assistant", "tool"})


@dataclass(slots=True)
class History:
    """The messages of a segment, whole: every call has its answer.

    ``closing`` are the answers that were added at the end, for calls that nobody answered.
    ``damaged`` are the seqs of rows that could not be read.
    """

    messages: list[Message] = field(default_factory=list[Message])
    closing: list[Message] = field(default_factory=list[Message])
    damaged: list[int] = field(default_factory=list[int])
    _open: list[str] = field(default_factory=list[str])
    _started: set[str] = field(default_factory=set[str])
    _results: dict[str, Content] = field(default_factory=dict[str, Content])

    @classmethod
    def of(cls, entries: Iterable[Entry], shown: dict[str, str] | None = None) -> History:
        """The history that these rows of one segment tell.

        ``shown`` is what running tools had printed when the process died, by call id.
        """
        history = cls()
        for entry in entries:
            try:
                history._take(entry)
            except (KeyError, TypeError):
                history.damaged.append(entry.seq)
        history.closing = history._close(shown or {})
        return history

    def _take(self, entry: Entry) -> None:
        data = entry.data
        if data is None:
            raise TypeError
        match entry.kind:
            case "message" | "carried":
                self._add(cast(Message, data))
            case "answer":
                call_id = data["call_id"]
                self._answer(tool_answer(call_id, self._results.get(call_id, INTERRUPTED)))
            case "started":
                self._started.add(data["call_id"])
            case "result":
                self._results[data["call_id"]] = data["content"]
            case _:
                pass

    def _add(self, message: Message) -> None:
        role = message["role"]
        if role not in ROLES:
            raise KeyError(role)
        if role == "tool":
            return self._answer(message)
        calls = [call["id"] for call in message.get("tool_calls", ())]
        self._close({})
        self.messages.append(message)
        self._open = calls
        return None

    def _answer(self, message: Message) -> None:
        """Take the answer to an open call; any other answers nothing and is left out."""
        call_id = message.get("tool_call_id", "")
        if call_id in self._open:
            self._open.remove(call_id)
            self.messages.append(message)

    def _close(self, shown: dict[str, str]) -> list[Message]:
        """Answer what is open: by the result that was recorded, or by saying that none was."""
        closing = [tool_answer(call_id, self._outcome(call_id, shown)) for call_id in self._open]
        self.messages += closing
        self._open = []
        self._started.clear()
        self._results.clear()
        return closing

    def _outcome(self, call_id: str, shown: dict[str, str]) -> Content:
        if call_id in self._results:
            return self._results[call_id]
        if call_id not in self._started:
            return NOT_STARTED
        output = shown.get(call_id)
        return f"{INTERRUPTED}; its output until then:\n{output}" if output else INTERRUPTED


Deeds: TypeAlias = dict[tuple[str, int], list[dict[str, Any]]]
"""What hooks did to calls, by the id of a call and the row of the message that it is in."""


def deeds(entries: Iterable[Entry]) -> Deeds:
    """What hooks did, of which rows tell that may stand behind the ends of the calls."""
    found: Deeds = {}
    rows: dict[str, int] = {}
    for entry in entries:
        data = entry.data or {}
        try:
            if entry.kind == "hooks":
                for record in data["records"]:
                    if (call_id := record.get("call_id", "")) and record.get("owner") != USER:
                        found.setdefault((call_id, rows.get(call_id, -1)), []).append(record)
            elif entry.kind == "message" and "tool_calls" in data:
                rows.update(dict.fromkeys([call["id"] for call in data["tool_calls"]], entry.seq))
        except (KeyError, TypeError, AttributeError):
            continue
    return found


@dataclass(slots=True)
class Replay:
    """Tells a conversation again, from its first segment on, as events.

    ``asked``: only the calls in it that its user was asked about.
    """

    session_id: str
    deeds: Deeds
    asked: bool = False
    _segment: int = 0
    _index: int = 0
    _open: dict[str, Call] = field(default_factory=dict[str, Call])
    _told: set[str] = field(default_factory=set[str])
    _questions: set[str] = field(default_factory=set[str])
    _rows: dict[str, int] = field(default_factory=dict[str, int])

    def events(self, entries: Iterable[Entry]) -> Iterator[Event]:
        """The events of rows in order; a damaged row is passed over."""
        every = self._all(entries)
        return self._asked(every) if self.asked else every

    def _asked(self, events: Iterable[Event]) -> Iterator[Event]:
        for event in events:
            call = getattr(event, "call", None)
            if call is not None and call.id in self._questions:
                yield event
            if isinstance(event, ToolEnded):
                self._questions.discard(event.call.id)

    def _all(self, entries: Iterable[Entry]) -> Iterator[Event]:
        for entry in entries:
            try:
                yield from list(self._tell(entry))
            except (KeyError, TypeError, ValueError):
                continue
        yield from self._interrupted()

    def _tell(self, entry: Entry) -> Iterator[Event]:
        if entry.segment != self._segment:
            self._segment, self._index = entry.segment, 0
        data = entry.data
        if data is None:
            return
        match entry.kind:
            case "message":
                yield from self._message(cast(Message, data), entry.seq)
                self._index += 1
            case "answer" | "carried":
                self._index += 1
            case _:
                yield from self._beside(entry, data)

    def _beside(self, entry: Entry, data: dict[str, Any]) -> Iterator[Event]:
        """What stands in the log beside the messages."""
        match entry.kind:
            case "segment" if data.get("summary"):
                yield Compacted(data["summary"], data["trigger"])
            case "started":
                yield from self._started(data)
            case "result":
                yield from self._result(data)
            case "plan":
                yield plan_of(data)
            case "said":
                yield from self._aside(data, f".said.{entry.seq}" if "text" in data else "")
            case "ended":
                yield Notice(data["detail"], data["severity"])
            case "hooks":
                self._note(data["records"])
            case _:
                return

    def _note(self, records: Iterable[dict[str, Any]]) -> None:
        """Know of which calls the user was asked."""
        for record in records:
            if record.get("owner") == USER and (call_id := record.get("call_id", "")):
                self._questions.add(call_id)

    def _done_to(self, call: Call) -> tuple[dict[str, Any], ...]:
        """What hooks did to a call."""
        return tuple(self.deeds.get((call.id, self._rows.get(call.id, -1)), ()))

    @property
    def _id(self) -> str:
        return f"{self.session_id}.{self._segment}.{self._index}"

    def _message(self, message: Message, seq: int) -> Iterator[Event]:
        if message["role"] == "tool":
            yield from self._answer(message)
            return
        yield from self._interrupted()
        if is_prompt(message):
            sent = message.get("written", ())
            yield UserMessage(message.get("content") or "", self._id, sent)
        if message["role"] == "assistant":
            text = text_of(message.get("content"))
            yield from self._said({"thought": thought_of(message), "text": text}, self._id)
            self._open = {call.id: call for call in map(_call, message.get("tool_calls", ()))}
            self._rows.update(dict.fromkeys(self._open, seq))

    def _aside(self, data: dict[str, Any], mark: str) -> Iterator[Event]:
        """What entered no history: the next message has the number that it was shown with."""
        if prompt := data.get("prompt"):
            said_id, sent = f"{self._id}{mark}.prompt", prompt.get("written", ())
            yield UserMessage(prompt["content"], said_id, sent)
        yield from self._said(data, f"{self._id}{mark}")

    def _said(self, data: dict[str, Any], message_id: str) -> Iterator[Event]:
        if data.get("thought"):
            yield ThoughtDelta(data["thought"], message_id)
        if data.get("text"):
            yield TextDelta(data["text"], message_id)

    def _started(self, data: dict[str, Any]) -> Iterator[Event]:
        call = self._open.get(data["call_id"])
        if call is not None:
            yield from self._pending(call, data)
            yield ToolStarted(call, data["args"], data["title"])

    def _result(self, data: dict[str, Any]) -> Iterator[Event]:
        call = self._open.get(data["call_id"]) or call_of(data)
        did = self._done_to(call)
        ended = ToolEnded(call, data["outcome"], result_of(data), data["duration"], did)
        yield from self._pending(call, data)
        self._open.pop(call.id, None)
        if printed := data.get("printed"):
            yield ToolProgress(call.id, printed)
        yield ended

    def _answer(self, message: Message) -> Iterator[Event]:
        """An answer that no result was recorded for."""
        call = self._open.pop(message.get("tool_call_id", ""), None)
        if call is not None:
            yield from self._ended(call, message.get("content") or "")

    def _interrupted(self) -> Iterator[Event]:
        for call in self._open.values():
            yield from self._ended(call, INTERRUPTED)
        self._open = {}
        self._told.clear()

    def _ended(self, call: Call, content: Content) -> Iterator[Event]:
        text = text_of(content)
        lost = text.startswith((INTERRUPTED, NOT_STARTED))
        outcome: Outcome = "cancelled" if lost else "ok"
        yield from self._pending(call, {"title": call.name, "kind": "other"})
        result = ToolResult(content, error=lost)
        yield ToolEnded(call, outcome, result, 0.0, self._done_to(call))

    def _pending(self, call: Call, data: dict[str, Any]) -> Iterator[Event]:
        if call.id not in self._told:
            self._told.add(call.id)
            places = locations(data.get("locations", ()))
            yield ToolPending(call, data["title"], data["kind"], places)


def _call(part: Any) -> Call:
    raw: str = part["function"]["arguments"]
    try:
        args = json.loads(raw or "{}")
    except ValueError:
        args = {}
    return Call(part["id"], part["function"]["name"], args if isinstance(args, dict) else {}, raw)  # pyright: ignore[reportUnknownArgumentType]
