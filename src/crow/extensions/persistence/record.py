"""The records of the log, as JSON: messages, tool calls and their results, segments, plans.

Kinds: ``message``; ``answer`` (a tool message whose content is that of the result before it);
``carried`` (a message that a new segment begins with); ``segment``; ``started`` and ``result`` of a
tool call; ``plan``; ``said`` (text that was shown and is in no message, with the ``prompt`` that it
answers in the model's place); ``ended``, why a run ended that did not end by itself; ``hooks``,
what they did; ``usage``, the tokens of a request; ``sent``, what was another in a request than in
the one before (`LastRequest`); ``opened``, which machine took up a session that machines share,
with its epoch, and from whom it was taken over.
Readers keep and pass over kinds that they do not know.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, field
from itertools import islice, takewhile
from typing import Any, Literal, cast

from crow import (
    Allow,
    Answer,
    Ask,
    Call,
    Continue,
    Deny,
    Message,
    Reply,
    RequestContext,
    RunContext,
    Stop,
    ToolContext,
    ToolResult,
)
from crow.dataclasses import frozen, mutable
from crow.errors import ModelError
from crow.events import PlanChanged, PlanEntry
from crow.hooks import Record
from crow.messages import user
from crow.tools import Diff, Location

Kind = Literal[
    "message",
    "answer",
    "carried",
    "segment",
    "started",
    "result",
    "plan",
    "said",
    "ended",
    "hooks",
    "usage",
    "sent",
    "opened",
]
OWNER = "persistence"
USER = "user"
"""The owner of a record that says what a person answered."""
TOGETHER = 1000
LONGEST = 32 * 1024
LONG = 64 * 1024
"""Characters that are made JSON of at once."""
SYSTEM = ("system", "developer")
UNSAID: Any = object()
VERDICTS = (Allow, Answer, Ask, Continue, Deny, Stop)


@mutable
class Row:
    """A row that is to be written. ``at`` is for people: ``seq`` alone orders.

    ``value`` is JSON, or a long message, which nobody changes and its writer makes JSON of, once.
    """

    seq: int
    segment: int
    kind: Kind
    value: str | Message
    at: float = field(default_factory=time.time)

    @property
    def data(self) -> str:
        """The row's JSON."""
        if not isinstance(self.value, str):
            self.value = dump_long(self.value)
        return self.value


@frozen
class Entry:
    """A row as it was read. ``data`` is None where the row is damaged."""

    seq: int
    segment: int
    kind: str
    data: dict[str, Any] | None


_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=str).encode


def dump(value: object) -> str:
    """JSON that SQLite can store: what is no JSON becomes text, lone surrogates are escaped."""
    text = _encode(value)
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":"), default=str)
    return text


def is_long(message: Message) -> bool:
    """True for a message of a text that others should not have to wait for."""
    content = message.get("content")
    return isinstance(content, str) and len(content) > LONG


def dump_long(message: Message) -> str:
    """`dump`, a slice at a time: one call for megabytes lets no other thread go on."""
    text, rest = str(message.get("content")), {k: v for k, v in message.items() if k != "content"}
    slices = (dump(text[start : start + LONG])[1:-1] for start in range(0, len(text), LONG))
    return f'{dump(rest)[:-1]},"content":"{"".join(slices)}"}}'


def read_entries(rows: Iterable[tuple[Any, ...]]) -> list[Entry]:
    """Rows (seq, segment, kind, data) with their JSON read, many at a time."""
    read: list[Entry] = []
    every = iter(rows)
    while some := list(islice(every, TOGETHER)):
        read += map(_entry, some, _values(some))
    return read


def together(entries: list[Entry], rows: Sequence[Row]) -> list[Entry]:
    """Rows that were read, and those that are on their way to the database, in order."""
    if not rows:
        return entries
    known = {entry.seq for entry in entries}
    late = [(r.seq, r.segment, r.kind, r.data) for r in rows if r.seq not in known]
    return sorted([*entries, *read_entries(late)], key=lambda entry: entry.seq)


def _entry(row: tuple[Any, ...], data: Any) -> Entry:
    return Entry(row[0], row[1], row[2], data if isinstance(data, dict) else None)  # pyright: ignore[reportUnknownArgumentType]


def _values(rows: list[tuple[Any, ...]]) -> list[Any]:
    """The JSON of some rows, as one text where all of it is whole: that is twice as fast."""
    try:
        values: list[Any] = json.loads(f"[{','.join([row[3] for row in rows])}]")
    except ValueError:
        values = []
    return values if len(values) == len(rows) else [_lenient(row[3]) for row in rows]


def _lenient(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


def started(ctx: ToolContext) -> dict[str, Any]:
    """The intent to run a tool, with the arguments that were permitted."""
    return {"call_id": ctx.call.id, "args": ctx.args, **_shown(ctx)}


def finished(ctx: ToolContext, result: ToolResult, printed: str) -> dict[str, Any]:
    """What came of a call, and what is needed to show it again: no file is kept whole.

    Of a call that did not come to its end that is what it had ``printed``.
    """
    from crow.tools import shortened

    return {
        "call_id": ctx.call.id,
        "name": ctx.name,
        "args": ctx.call.args,
        **_shown(ctx),
        "outcome": ctx.outcome,
        "duration": ctx.duration,
        "content": result.content,
        "error": result.error,
        "data": shortened(result.data, LONGEST),
        "diffs": [asdict(diff) for diff in result.diffs],
        "places": [asdict(place) for place in result.locations],
        **({"printed": printed} if printed and ctx.outcome == "cancelled" else {}),
    }


TELLING = frozenset({"around_llm_request", "on_llm_request", "after_turn"})
"""Events at which it tells something that a hook did nothing: see `_stand_ins`."""


def witnessed(records: Iterable[Record]) -> list[dict[str, Any]]:
    """What hooks did: all that touched a tool call, and of the others those that decided or failed.

    Histories, which some hooks answer with, are no part of it, nor is who writes this down, nor
    what happened to the pieces of text on their way to the client: there are thousands of them.
    """
    records = list(records)
    stand_ins = {id(each) for each in _stand_ins(records)}
    told = [
        each
        for each in records
        if (each.owner != OWNER and (each.call_id or each.error or _decided(each)))
        or (stand_ins and id(each) in stand_ins)
    ]
    return [_told(each, stands=id(each) in stand_ins) for each in told]


def _decided(record: Record) -> bool:
    answer = record.answer
    is_deed = answer is not None and isinstance(answer, (*VERDICTS, dict)) and answer != {}
    return is_deed and record.event != "on_update"


def _told(record: Record, *, stands: bool) -> dict[str, Any]:
    told: dict[str, Any] = {"event": record.event, "owner": record.owner, "hook": record.hook}
    if (answer := Answer("") if stands else record.answer) is not None:
        told["answer"] = _answer(answer)
    if record.changed:
        told["changed"] = {name: _json(record.values.get(name)) for name in record.changed}
    if record.error is not None:
        told["error"] = record.error
    if record.call_id is not None:
        told["call_id"] = record.call_id
    told["ms"] = round(record.seconds * 1000, 3)
    return told


def _stand_ins(records: Sequence[Record]) -> Iterator[Record]:
    """Hooks around a tool or a request that answered in its place.

    Those further in are recorded first, and what goes to the model before them.
    """
    failed = {each.call_id for each in records if each.event == "around_tool" and each.error}
    is_settled = False
    for each in records:
        match each.event:
            case "around_tool" if "result" not in each.values and each.call_id not in failed:
                yield each
            case "around_llm_request" if not (is_settled or each.error):
                is_settled = True
                yield each
            case "on_llm_request":
                is_settled = True
            case "after_turn":
                is_settled = False
            case _:
                pass


def _answer(answer: object) -> object:
    """An answer as JSON; a verdict says by ``type`` which one it is."""
    if not isinstance(answer, VERDICTS):
        return _json(answer)
    verdict: object = answer
    kept = {name: getattr(verdict, name, None) for name in ("reason", "rule", "message")}
    told = {name: value for name, value in kept.items() if value}
    return {"type": type(verdict).__name__.lower(), **told}


def _json(value: object) -> object:
    """A value that says something by itself; None for what is stored elsewhere anyway."""
    return cast("object", value) if isinstance(value, dict | str | int | float) else None


def _shown(ctx: ToolContext) -> dict[str, Any]:
    places = [asdict(place) for place in ctx.locations]
    return {"title": ctx.title, "kind": ctx.kind, "locations": places}


def result_of(data: dict[str, Any]) -> ToolResult:
    """The result that `finished` wrote; a client's terminal is gone with its client."""
    return ToolResult(
        data["content"],
        bool(data.get("error")),
        data.get("data"),
        tuple(Diff(**diff) for diff in data.get("diffs", ())),
        locations(data.get("places", ())),
    )


def call_of(data: dict[str, Any]) -> Call:
    """The call that `finished` wrote."""
    return Call(data["call_id"], data["name"], data.get("args", {}))


def locations(places: Iterable[dict[str, Any]]) -> tuple[Location, ...]:
    """Locations as they were written."""
    return tuple(Location(**place) for place in places)


def plan_of(data: dict[str, Any]) -> PlanChanged:
    """A plan as it was written."""
    return PlanChanged(tuple(PlanEntry(**entry) for entry in data["entries"]))


@mutable
class LastRequest:
    """The request that was sent last, as far as the conversation does not say that.

    A row has what is another in the next one: ``model``, ``params``, ``tools``, ``system`` (the
    messages in front of the conversation). From index ``since`` on it is the conversation again;
    where hooks have changed that, ``messages`` stand from index ``at`` on in its place. ``made`` is
    where those began last, or -1, ``front`` how many stand in front.
    """

    fields: dict[str, Any] = field(default_factory=dict[str, Any])
    messages: list[Message] = field(default_factory=list[Message])
    front: int = 0
    made: int = -1

    def changes(self, ctx: RequestContext) -> dict[str, Any]:
        """What is another in the next one, which is the last one from now on."""
        messages, known = ctx.messages, self.fields
        front = sum(1 for _ in takewhile(lambda message: message["role"] in SYSTEM, messages))
        now = {
            "model": ctx.model,
            "params": ctx.params,
            "tools": ctx.tools,
            "system": messages[:front],
        }
        told: dict[str, Any] = {n: v for n, v in now.items() if known.get(n, UNSAID) != v}
        since = self._since(messages, front)
        rest, said = messages[front + since :], _sendable(ctx.session.messages[since:])
        if rest != said:
            at = since + common(said, rest)
            told |= {"since": since, "at": at, "messages": messages[front + at :]}
            self.made = at
        elif self.made >= since:
            told["since"], self.made = since, -1
        self.fields, self.messages, self.front = now, messages, front
        return told

    def _since(self, messages: list[Message], front: int) -> int:
        """With how many messages behind those in front the next one begins as the last one did."""
        try:
            if self.messages <= messages and self.front == front:
                return len(self.messages) - front
        except TypeError:  # messages have no order, so one of them is another
            pass
        return common(self.messages[self.front :], messages[front:])


def _sendable(messages: Sequence[Message]) -> list[Message]:
    """Messages without what is for those alone who show the conversation again."""
    sent: list[Any] = [{k: v for k, v in m.items() if k != "written"} for m in messages]
    return sent


def common(before: Sequence[Message], now: Sequence[Message]) -> int:
    """With how many messages both begin."""
    if now[: len(before)] == before:
        return len(before)
    pairs = enumerate(zip(before, now, strict=False))
    return next((index for index, (was, item) in pairs if was != item), min(len(before), len(now)))


def aside(ctx: RunContext) -> Message | None:
    """A prompt that was answered in the model's place, as hooks left it; nothing refused."""
    answered = ctx.reply.error is None and ctx.reply.stop_reason == "end_turn"
    if ctx.stored or not answered:
        return None
    return ctx.sent if ctx.sent["content"] == ctx.prompt else user(ctx.prompt)


def ending(reply: Reply) -> dict[str, str] | None:
    """What its user was told of a run that did not end by itself.

    Where there is no model yet, another way to say so is the client's, and nothing has been said.
    """
    if isinstance(reply.error, ModelError) and reply.error.kind == "unconfigured":
        return None
    if reply.stop_reason == "error":
        return {"severity": "error", "detail": reply.detail or "the run failed"}
    by_itself = reply.stop_reason in ("end_turn", "cancelled") or not reply.detail
    return None if by_itself else {"severity": "warning", "detail": reply.detail}
