"""One reply, read and put together from the events of its stream, whatever their dialect is."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from typing import Any

from crow.core.errors import ModelError
from crow.core.events import TextDelta, ThoughtDelta
from crow.core.messages import Usage
from crow.core.ports import Completion, Delta, FinishReason
from crow.llm.chat.faults import error_of_event
from crow.llm.chat.opaque import Opaque
from crow.llm.chat.retry import Clock
from crow.llm.chat.splice import Shown
from crow.llm.chat.stream import EventStream
from crow.llm.chat.text import TextFlow, is_array, is_object
from crow.llm.chat.toolcalls import CUT_OFF, ToolCalls

FINISHES: dict[str, FinishReason] = {
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "tool_use": "tool_calls",
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",
    "content_filter": "content_filter",
    "refusal": "content_filter",
    "safety": "content_filter",
}


class Reply:
    """One attempt at an answer: takes events, gives deltas, and at the end a `Completion`.

    ``cap`` bounds its characters; what goes beyond is cut off as if the model had reached its
    limit. ``complete`` once nothing more is to be expected: a reason to end, and usage with it or
    after it. ``known`` gives the ids of the calls that the conversation holds already. ``origin``
    names endpoint and model in what they want back as they sent it.
    """

    __slots__ = (
        "_calls", "_cap", "_finish", "_flow", "_given_usage", "_id", "_model", "_opaque", "_origin",
        "_reasoning", "_refused", "_size", "_text", "_thought_flow", "complete",
    )  # fmt: skip

    def __init__(
        self,
        known: Callable[[], set[str]],
        message_id: str,
        cap: int,
        shown: Shown,
        origin: str = "",
    ) -> None:
        self._calls = ToolCalls(known, shown.calls)
        self._cap = cap
        self._finish: str | None = None
        self._flow = TextFlow()
        self._given_usage: object = None
        self._id = message_id
        self._model = ""
        self._opaque = Opaque()
        self._origin = origin
        self._reasoning: list[str] = []
        self._refused = False
        self._size = 0
        self._text: list[str] = []
        self._thought_flow = TextFlow()
        self.complete = False

    @property
    def finished(self) -> bool:
        """True once the endpoint gave its reason for ending."""
        return self._finish is not None

    @property
    def overflowed(self) -> bool:
        """True where the reply is longer than it may be."""
        return self._size + self._calls.size > self._cap

    def take(self, event: dict[str, Any], deltas: list[Delta]) -> None:
        """Add one event; what it shows goes to ``deltas``. Raises `ModelError` for an error."""
        choices = event.get("choices")
        if not choices or "error" in event:
            error = error_of_event(event)
            if error is not None:
                raise error
        if choices and is_array(choices):
            self._take_choice(choices, deltas)
        usage = event.get("usage")
        if usage:
            self._given_usage = usage
            self.complete = self.finished
        if not self._model and isinstance(model := event.get("model"), str):
            self._model = model

    def end(self, deltas: list[Delta]) -> None:
        """Show what was held back."""
        if half := self._flow.end():
            self._say(half, deltas)
        deltas.extend(self._calls.end())

    def completion(self) -> Completion:
        """The whole answer; its calls are marked where it was cut off."""
        finish = self._finish_reason()
        cut_off = finish in ("length", "content_filter")
        calls = self._calls.calls(CUT_OFF if cut_off else None)
        opaque = self._opaque.fields
        if opaque or any(call.extra_content is not None for call in calls):
            opaque["origin"] = self._origin
        return Completion(
            text="".join(self._text),
            calls=calls,
            reasoning="".join(self._reasoning),
            finish=finish,
            usage=self.usage,
            model=self._model,
            opaque=opaque,
        )

    @property
    def usage(self) -> Usage | None:
        """The tokens, where the endpoint told."""
        return usage_of(self._given_usage)

    @property
    def said_nothing(self) -> bool:
        """True where neither text nor calls nor a reason to end came."""
        return not (self._text or self._calls or self._reasoning or self.finished)

    def remember(self, shown: Shown) -> None:
        """Keep what was shown of this attempt, which broke off."""
        shown.keep("".join(self._text), "".join(self._reasoning), self._calls.shown())

    def _take_choice(self, choices: Any, deltas: list[Delta]) -> None:
        choice = choices[0] if len(choices) == 1 else _first_choice(choices)
        if not is_object(choice) or choice.get("index"):
            return
        delta = choice.get("delta") or choice.get("message")
        if is_object(delta):
            self._take_delta(delta, deltas)
        reason = choice.get("finish_reason")
        if reason and isinstance(reason, str):
            self._take_finish(reason, choice)

    def _take_delta(self, delta: dict[str, Any], deltas: list[Delta]) -> None:
        content = delta.get("content")
        if content:
            if isinstance(content, str):
                self._say(self._flow.take(content), deltas)
            else:
                self._take_parts(content, deltas)
        if len(delta) > 1 or not content:
            self._take_rest(delta, deltas)

    def _take_rest(self, delta: dict[str, Any], deltas: list[Delta]) -> None:
        """Everything but text."""
        if thought := self._opaque.take(delta):
            self._think(thought, deltas)
        calls = delta.get("tool_calls")
        if is_array(calls):
            deltas.extend(self._calls.take(calls))
        elif function := delta.get("function_call"):
            deltas.extend(self._calls.take([{"index": 0, "function": function}]))
        refusal = delta.get("refusal")
        if refusal and isinstance(refusal, str):
            self._refused = True
            self._say(self._flow.take(refusal), deltas)

    def _take_parts(self, parts: Any, deltas: list[Delta]) -> None:
        """Text and thinking as lists of typed parts, as one provider sends them."""
        for part in filter(is_object, parts if is_array(parts) else []):
            if isinstance(text := part.get("text"), str):
                self._say(self._flow.take(text), deltas)
            elif is_array(thoughts := part.get("thinking")):
                for thought in filter(is_object, thoughts):
                    self._think(str(thought.get("text") or ""), deltas)

    def _take_finish(self, reason: str, choice: dict[str, Any]) -> None:
        if reason == "error":
            raise error_of_event({"error": choice.get("error") or "the model failed"}) or (
                ModelError("the model failed", kind="server")
            )
        self._finish = reason

    def _say(self, text: str, deltas: list[Delta]) -> None:
        if text:
            self._text.append(text)
            self._size += len(text)
            deltas.append(TextDelta(text, self._id))

    def _think(self, thought: str, deltas: list[Delta]) -> None:
        thought = self._thought_flow.take(thought)
        if thought:
            self._reasoning.append(thought)
            self._size += len(thought)
            deltas.append(ThoughtDelta(thought, self._id))

    def _finish_reason(self) -> FinishReason:
        if self.overflowed:
            return "length"
        if self._refused:
            return "content_filter"
        return FINISHES.get((self._finish or "stop").lower(), "stop")


def _first_choice(choices: Any) -> dict[str, Any] | None:
    """The choice of index 0, or of none; one answer was asked for."""
    listed = choices if is_array(choices) else []
    return next((each for each in listed if is_object(each) and not each.get("index")), None)


def usage_of(reported: object) -> Usage | None:
    """A usage report in any of its known shapes; None where there is none.

    OpenAI's names, the ones of the responses and messages protocols, and the cache counts of
    DeepSeek and Moonshot are understood.
    """
    if not is_object(reported) or not reported:
        return None
    report = reported
    given = _first(report, "prompt_tokens", "input_tokens")
    written = _first(report, "completion_tokens", "output_tokens")
    total = _number(report.get("total_tokens"))
    if given is None and written is None and total is None:
        return None
    given, written = given or 0, written or 0
    usage: Usage = {
        "input_tokens": given,
        "output_tokens": written,
        "total_tokens": total or given + written,
    }
    _add_details(usage, report)
    return usage


def _add_details(usage: Usage, report: dict[str, Any]) -> None:
    before = report.get("prompt_tokens_details") or report.get("input_tokens_details")
    after = report.get("completion_tokens_details") or report.get("output_tokens_details")
    cached = _inside(before, "cached_tokens")
    if cached is None:
        cached = _first(report, "prompt_cache_hit_tokens", "cached_tokens")
    reasoning = _inside(after, "reasoning_tokens")
    cost = report.get("cost")
    if cached is not None:
        usage["cached_tokens"] = cached
    if reasoning is not None:
        usage["reasoning_tokens"] = reasoning
    if isinstance(cost, int | float):
        usage["cost"] = float(cost)


def _first(report: dict[str, Any], *names: str) -> int | None:
    numbers = (_number(report.get(name)) for name in names)
    return next((number for number in numbers if number is not None), None)


def _inside(details: Any, name: str) -> int | None:
    return _number(details.get(name)) if is_object(details) else None


def _number(value: Any) -> int | None:
    return int(value) if isinstance(value, int | float) else None


class Reading:
    """Reads ``chunks`` into a reply.

    The answer is whole at ``[DONE]``, at its finish reason and usage, or at the end of the body
    once a finish reason was given; the end of the body is not waited for.
    """

    __slots__ = ("_at_end", "_chunks", "_clock", "_events", "_reply")

    def __init__(
        self, chunks: AsyncGenerator[bytes, None], reply: Reply, clock: Clock, content_type: str
    ) -> None:
        self._chunks = chunks
        self._reply = reply
        self._clock = clock
        self._events = EventStream(content_type)
        self._at_end = False

    @property
    def done(self) -> bool:
        """True once nothing more has to be read."""
        reply = self._reply
        return self._at_end or self._events.done or reply.complete or reply.overflowed

    async def deltas(self) -> list[Delta]:
        """What the next chunk shows. Raises `ModelError` where the answer breaks off."""
        chunk = await self._chunk()
        self._at_end = chunk is None
        events = self._events.end() if chunk is None else self._events.feed(chunk)
        deltas: list[Delta] = []
        for event in events:
            self._reply.take(event, deltas)
        if self.done:
            self._check_end()
            self._reply.end(deltas)
        if deltas:
            self._clock.progress()
        return deltas

    async def _chunk(self) -> bytes | None:
        finished = self._reply.finished
        try:
            return await self._clock.event(anext(self._chunks, None), closing=finished)
        except ModelError:
            if finished:
                return None
            raise

    def _check_end(self) -> None:
        if self._reply.said_nothing:
            raise ModelError("sent an empty answer", kind="protocol")
        if self._at_end and not (self._events.done or self._reply.finished):
            raise ModelError("broke off in the middle of its answer", kind="network")
