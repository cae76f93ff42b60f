"""OpenTelemetry traces in OTLP's JSON, as collectors write them: one request, or one a line.

Read are the conventions for generative AI (``invoke_agent``, ``chat``, ``execute_tool``) and Crow's
own ``execute_hook`` and ``crow.permission``. What was said is in traces only where that was asked
for; else the calls, the hooks and the tokens are what there is. Of several conversations in a file
it is the first.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any, cast

from crow.core.messages import CONTEXT_OPEN, Usage
from crow.core.support.frozen import frozen
from crow.transcripts.transcript import (
    DAMAGES,
    Object,
    Transcript,
    as_object,
    as_objects,
    objects,
    text_in,
)

PROGRAM = "otlp"
CONVERSATION = "gen_ai.conversation.id"
USAGE = {
    "gen_ai.usage.input_tokens": "input_tokens",
    "gen_ai.usage.output_tokens": "output_tokens",
    "gen_ai.usage.cache_read.input_tokens": "cached_tokens",
}


@frozen
class Span:
    """A span; times are seconds of the epoch."""

    id: str
    parent: str
    name: str
    began: float
    ended: float
    attributes: Object

    @property
    def operation(self) -> str:
        """What it is: ``chat``, ``execute_tool``, ..."""
        return text_in(self.attributes.get("gen_ai.operation.name")) or self.name

    def text(self, name: str) -> str:
        """An attribute that is a text."""
        return text_in(self.attributes.get(name))

    def value(self, name: str) -> Any:
        """An attribute that holds JSON; None where there is none."""
        try:
            return json.loads(self.text(name))
        except ValueError:
            return None


def is_otlp(value: object) -> bool:
    """True for a request with spans."""
    return isinstance(value, dict) and isinstance(cast(Object, value).get("resourceSpans"), list)


def read(text: str) -> Transcript:
    """The conversation of a file of traces."""
    spans = sorted(_spans(_requests(text)), key=lambda span: span.began)
    wanted = next((each.text(CONVERSATION) for each in spans if each.text(CONVERSATION)), "")
    reader = Reader(Transcript(PROGRAM, wanted), {each.id: each for each in spans})
    for span in spans:
        if span.text(CONVERSATION) in (wanted, ""):
            with suppress(*DAMAGES):  # a damaged span is passed over
                reader.take(span)
    return reader.made


class Reader:
    """Makes a conversation of spans, one after the other."""

    def __init__(self, made: Transcript, spans: dict[str, Span]) -> None:
        self.made = made
        self._spans = spans
        self._told = 0

    def take(self, span: Span) -> None:
        """Take the next span."""
        match span.operation:
            case "chat":
                self._chat(span)
            case "execute_tool":
                self._call(span)
            case "execute_hook" | "crow.permission":
                self.made.hooks([self._record(span)], span.ended)
            case "crow.compact":
                self.made.compacted("", span.text("crow.compact.trigger"), span.began)
            case _:
                pass

    def _chat(self, span: Span) -> None:
        self.made.model = span.text("gen_ai.response.model") or span.text("gen_ai.request.model")
        given = as_objects(span.value("gen_ai.input.messages"))
        for message in given[self._told :]:
            self._message(message, span.began)
        said = as_objects(span.value("gen_ai.output.messages"))
        for message in said:
            self._message(message, span.ended)
        self._told = len(given) + len(said)
        used = {
            ours: int(span.attributes[name])
            for name, ours in USAGE.items()
            if name in span.attributes
        }
        if used:
            self.made.spent(cast(Usage, used), span.ended)

    def _message(self, message: Object, at: float) -> None:
        parts = as_objects(message.get("parts"))
        text = "\n".join(
            text_in(each.get("content")) for each in parts if each.get("type") == "text"
        )
        match message.get("role"):
            case "user" if text.startswith(CONTEXT_OPEN):
                self.made.context(text, at)
            case "user":
                self.made.prompt(text, at)
            case "assistant":
                calls = [_part(each) for each in parts if each.get("type") == "tool_call"]
                self.made.answer(text, at, calls=calls)
            case _:
                for each in parts:
                    self.made.result(str(each.get("id")), text_in(each.get("response")), at)

    def _call(self, span: Span) -> None:
        call_id, name = span.text("gen_ai.tool.call.id"), span.text("gen_ai.tool.name")
        args = span.value("gen_ai.tool.call.arguments")
        if call_id not in self.made.calls:
            self.made.answer(
                "", span.began, calls=[{"id": call_id, "name": name, "args": args or {}}]
            )
        outcome = span.text("crow.outcome") or (
            "error" if "error.type" in span.attributes else "ok"
        )
        self.made.calls[call_id]["at"] = span.began
        result = span.text("gen_ai.tool.call.result")
        self.made.result(call_id, result, span.ended, failed=outcome != "ok", outcome=outcome)

    def _record(self, span: Span) -> Object:
        """A hook that ran, or what was decided, as Crow keeps it."""
        call = self._spans.get(span.parent)
        ms = round((span.ended - span.began) * 1000, 3)
        if span.operation == "execute_hook":
            about: Object = {
                "event": span.text("crow.hook.point"),
                "owner": span.text("crow.hook.owner"),
                "hook": span.text("crow.hook.name"),
            }
            if verdict := span.text("crow.hook.verdict"):
                about["answer"] = {"type": verdict}
            if changed := span.attributes.get("crow.hook.changed"):
                about["changed"] = dict.fromkeys(changed, "another value, which the trace has not")
            if error := span.text("error.type"):
                about["error"] = error
        else:
            by = span.text("crow.permission.by")
            about = {
                "event": "on_permission",
                "owner": by,
                "hook": span.text("crow.permission.option") or by,
            }
            about["answer"] = {"type": span.text("crow.permission.decision")}
            if rule := span.text("crow.permission.rule"):
                about["answer"]["rule"] = rule
        call_id = call.text("gen_ai.tool.call.id") if call else ""
        return {**about, "ms": ms, **({"call_id": call_id} if call_id else {})}


def _part(part: Object) -> Object:
    args = part.get("arguments")
    with suppress(ValueError):
        args = json.loads(args) if isinstance(args, str) else args
    return {"id": str(part.get("id")), "name": str(part.get("name")), "args": args or {}}


def _requests(text: str) -> Iterable[Object]:
    try:
        whole = json.loads(text)
    except ValueError:
        return objects(text)
    return as_objects(whole) or [as_object(whole)]


def _spans(requests: Iterable[Object]) -> Iterator[Span]:
    for request in requests:
        for resource in as_objects(request.get("resourceSpans")):
            for scope in as_objects(resource.get("scopeSpans")):
                for span in as_objects(scope.get("spans")):
                    with suppress(*DAMAGES):  # a damaged span is passed over
                        yield _span(span)


def _span(span: Object) -> Span:
    began, ended = (int(span[name]) / 1e9 for name in ("startTimeUnixNano", "endTimeUnixNano"))
    attributes = {each["key"]: _plain(each["value"]) for each in as_objects(span.get("attributes"))}
    known = (
        text_in(span.get("spanId")),
        text_in(span.get("parentSpanId")),
        text_in(span.get("name")),
    )
    return Span(*known, began, ended, attributes)


def _plain(value: Any) -> Any:
    """A value of OTLP's, which says its type by its key."""
    match value:
        case {"stringValue": text}:
            return text
        case {"intValue": number}:
            return int(number)
        case {"doubleValue": number}:
            return float(number)
        case {"boolValue": truth}:
            return bool(truth)
        case {"arrayValue": several}:
            return [_plain(each) for each in as_objects(as_object(several).get("values"))]
        case _:
            return None
