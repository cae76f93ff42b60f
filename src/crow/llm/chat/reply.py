"""One reply, put together from the events of its stream, whatever their dialect is."""

from __future__ import annotations

from typing import Any

from crow.core.errors import ModelError
from crow.core.messages import Usage
from crow.core.ports.llm import Completion, Delta, FinishReason
from crow.llm.chat.reasoning_fields import ReasoningFields
from crow.llm.http.assembly import Assembly
from crow.llm.http.faults import error_of_event
from crow.llm.http.text import is_array, is_object
from crow.llm.http.toolcalls import CUT_OFF
from crow.llm.http.wire import WireReply

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


class ChatReply(WireReply):
    """One attempt at an answer: takes events, gives deltas, and at the end a `Completion`.

    What goes beyond the assembly's cap is cut off as if the model had reached its limit.
    ``complete`` once nothing more is to be expected: a reason to end, and usage with it or after
    it. ``origin`` names endpoint and model in what they want back as they sent it.
    """

    __slots__ = (
        "_finish",
        "_given_usage",
        "_model",
        "_opaque",
        "_origin",
        "_refused",
        "complete",
        "said",
    )

    def __init__(self, said: Assembly, origin: str) -> None:
        self.said = said
        self._finish: str | None = None
        self._given_usage: object = None
        self._model = ""
        self._opaque = ReasoningFields()
        self._origin = origin
        self._refused = False
        self.complete = False

    @property
    def finished(self) -> bool:
        """True once the endpoint gave its reason for ending."""
        return self._finish is not None

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

    def completion(self) -> Completion:
        """The whole answer; its calls are marked where it was cut off.

        Raises `ModelError` (context_length) where nothing of it had room.
        """
        finish = self._finish_reason()
        if finish == "length" and self.said.is_empty:
            raise ModelError("had no room left for an answer", kind="context_length")
        cut_off = finish in ("length", "content_filter")
        calls = self.said.calls(CUT_OFF if cut_off else None)
        opaque = self._opaque.fields
        if opaque or any(call.extra_content is not None for call in calls):
            opaque["origin"] = self._origin
        return Completion(
            text=self.said.text,
            calls=calls,
            reasoning=self.said.reasoning,
            finish=finish,
            usage=self.usage,
            model=self._model,
            opaque=opaque,
        )

    @property
    def usage(self) -> Usage | None:
        """The tokens, where the endpoint told."""
        from crow.llm.http.usage import usage_of

        return usage_of(self._given_usage)

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
                self.said.say(content, deltas)
            else:
                self._take_parts(content, deltas)
        if len(delta) > 1 or not content:
            self._take_rest(delta, deltas)

    def _take_rest(self, delta: dict[str, Any], deltas: list[Delta]) -> None:
        """Everything but text."""
        if thought := self._opaque.take(delta):
            self.said.think(thought, deltas)
        calls = delta.get("tool_calls")
        if is_array(calls):
            self.said.call(calls, deltas)
        elif function := delta.get("function_call"):
            self.said.call([{"index": 0, "function": function}], deltas)
        refusal = delta.get("refusal")
        if refusal and isinstance(refusal, str):
            self._refused = True
            self.said.say(refusal, deltas)

    def _take_parts(self, parts: Any, deltas: list[Delta]) -> None:
        """Text and thinking as lists of typed parts, as one provider sends them."""
        for part in filter(is_object, parts if is_array(parts) else []):
            if isinstance(text := part.get("text"), str):
                self.said.say(text, deltas)
            elif is_array(thoughts := part.get("thinking")):
                for thought in filter(is_object, thoughts):
                    self.said.think(str(thought.get("text") or ""), deltas)

    def _take_finish(self, reason: str, choice: dict[str, Any]) -> None:
        if reason == "error":
            raise error_of_event({"error": choice.get("error") or "the model failed"}) or (
                ModelError("the model failed", kind="server")
            )
        self._finish = reason

    def _finish_reason(self) -> FinishReason:
        if self.said.overflowed:
            return "length"
        if self._refused:
            return "content_filter"
        return FINISHES.get((self._finish or "stop").lower(), "stop")


def _first_choice(choices: Any) -> dict[str, Any] | None:
    """The choice of index 0, or of none; one answer was asked for."""
    listed = choices if is_array(choices) else []
    return next((each for each in listed if is_object(each) and not each.get("index")), None)
