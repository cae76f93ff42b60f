"""One reply, put together from the events of its stream; its items are kept as they came."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, TypeAlias

from crow.core.errors import ModelError
from crow.core.messages import Usage
from crow.core.ports.llm import Completion, Delta, FinishReason
from crow.llm.http.assembly import Assembly
from crow.llm.http.faults import error_of_event
from crow.llm.http.text import clean_value, is_array, is_object
from crow.llm.http.toolcalls import CUT_OFF
from crow.llm.http.usage import usage_of
from crow.llm.responses.items import BETWEEN, is_refusal, text_in, thought_in

KINDS = (
    ("context_length_exceeded", "context_length"),
    ("insufficient_quota", "billing"),
    ("usage_limit_reached", "billing"),
    ("rate_limit_exceeded", "rate_limit"),
    ("server_is_overloaded", "overloaded"),
    ("slow_down", "overloaded"),
    ("server_error", "server"),
    ("image", "invalid_request"),
    ("policy", "invalid_request"),
    ("unsupported_", "invalid_request"),
    ("invalid_", "invalid_request"),
)
"""What stands in the code of a failure, and its kind; the first that is found counts."""

Take: TypeAlias = "Callable[[ResponsesReply, dict[str, Any], list[Delta]], None]"


class ResponsesReply:
    """One attempt at an answer, as `crow.llm.http.wire.WireReply` has it.

    ``origin`` names endpoint and model in the items that they get back.
    """

    __slots__ = (
        "_items",
        "_origin",
        "_refused",
        "_response",
        "_seen",
        "_thinks",
        "complete",
        "said",
    )

    def __init__(self, said: Assembly, origin: str) -> None:
        self.said = said
        self._origin = origin
        self._items: dict[Any, Any] = {}
        self._response: dict[str, Any] = {}
        self._seen: dict[Any, str] = {}  # by place: the kind of delta that an item comes in
        self._thinks = False
        self._refused = False
        self.complete = False

    @property
    def finished(self) -> bool:
        """True once the endpoint said how it ended."""
        return self.complete

    @property
    def said_nothing(self) -> bool:
        """True where nothing at all came."""
        return self.said.is_empty and not (self.complete or self._seen)

    def take(self, event: dict[str, Any], deltas: list[Delta]) -> None:
        """Add one event; what it shows goes to ``deltas``. Raises `ModelError` for an error."""
        take = self._TAKES.get(event.get("type"))
        if take is not None:
            take(self, event, deltas)
        elif event.get("object") == "response":  # asked to stream, it did not
            self._take_end({"response": event}, deltas)
        elif "type" not in event:
            self._fail(event, deltas)

    def end(self, deltas: list[Delta]) -> None:
        """Show what was held back. Raises `ModelError` where the reply has no end."""
        if not (self.complete or self.said.overflowed):
            raise ModelError("broke off before it said how its answer ends", kind="network")
        self.said.end(deltas)

    def completion(self) -> Completion:
        """The whole answer; its calls are marked where it was cut off."""
        finish = self._finish_reason()
        calls = self.said.calls(CUT_OFF if finish != "stop" else None)
        return Completion(
            text=self.said.text,
            calls=calls,
            reasoning=self.said.reasoning,
            finish="tool_calls" if calls and finish == "stop" else finish,
            usage=self.usage,
            model=str(self._response.get("model") or ""),
            opaque=self._opaque(),
        )

    @property
    def usage(self) -> Usage | None:
        """The tokens, where the endpoint told."""
        return usage_of(self._response.get("usage"))

    def _take_text(self, event: dict[str, Any], deltas: list[Delta]) -> None:
        if (text := event.get("delta")) and isinstance(text, str):
            self._say(event.get("output_index"), text, deltas)

    def _take_refusal(self, event: dict[str, Any], deltas: list[Delta]) -> None:
        self._refused = True
        self._take_text(event, deltas)

    def _say(self, place: Any, text: str, deltas: list[Delta]) -> None:
        if not self._seen.get(place):
            self._seen[place] = "text"
            if self.said.text:
                text = BETWEEN + text
        self.said.say(text, deltas)

    def _take_thought(self, event: dict[str, Any], deltas: list[Delta]) -> None:
        place, text = event.get("output_index"), event.get("delta")
        if not self._seen.get(place):
            self._seen[place] = event["type"]
            self._thinks = False
        if self._seen[place] == event["type"] and isinstance(text, str):
            self._think(text, deltas)  # else the same thought in other words

    def _begin_thought(self, event: dict[str, Any], deltas: list[Delta]) -> None:
        self._thinks = False

    def _think(self, text: str, deltas: list[Delta]) -> None:
        if not self._thinks and self.said.reasoning:
            text = BETWEEN + text
        self._thinks = True
        self.said.think(text, deltas)

    def _take_arguments(self, event: dict[str, Any], deltas: list[Delta]) -> None:
        place = event.get("output_index")
        self._seen[place] = "arguments"
        self._call(place, deltas, arguments=event.get("delta"))

    def _call(self, place: Any, deltas: list[Delta], **function: Any) -> None:
        self.said.call([{"index": place, "function": function}], deltas)

    def _begin_item(self, event: dict[str, Any], deltas: list[Delta]) -> None:
        place, item = event.get("output_index"), event.get("item")
        if not is_object(item) or place in self._seen:
            return
        self._seen[place] = ""
        if item.get("type") == "function_call":
            named = {"name": item.get("name")}
            self.said.call([{"index": place, "id": item.get("call_id"), "function": named}], deltas)

    def _end_item(self, event: dict[str, Any], deltas: list[Delta]) -> None:
        """Keep an item, and show it where nothing of it came in pieces."""
        place, item = event.get("output_index"), event.get("item")
        if not is_object(item):
            return
        self._begin_item(event, deltas)
        self._items[place] = item
        self._refused = self._refused or is_refusal(item)
        if self._seen[place]:
            return
        match item.get("type"):
            case "message" if text := text_in(item):
                self._say(place, text, deltas)
            case "reasoning" if thought := thought_in(item):
                self._thinks = False
                self._think(thought, deltas)
            case "function_call":
                self._call(place, deltas, arguments=item.get("arguments"))
            case _:
                pass

    def _take_end(self, event: dict[str, Any], deltas: list[Delta]) -> None:
        response = event.get("response")
        self._response = response if is_object(response) else {}
        status = self._response.get("status") or str(event.get("type")).rpartition(".")[2]
        if status in ("failed", "cancelled"):
            self._fail({"error": self._response.get("error") or f"the answer {status}"}, deltas)
        self._compare(self._response.get("output"), deltas)
        if status == "completed" and self._seen.keys() - self._items.keys():
            raise ModelError("ended its answer in the middle of an item", kind="protocol")
        self.complete = True

    def _compare(self, output: Any, deltas: list[Delta]) -> None:
        """Take the items that did not end, and thoughts that were encrypted only at the end."""
        for place, item in enumerate(output if is_array(output) else ()):
            known = self._items.get(place)
            if known is None:
                self._end_item({"output_index": place, "item": item}, deltas)
            elif item.get("encrypted_content") and not known.get("encrypted_content"):
                self._items[place] = item

    def _fail(self, event: dict[str, Any], deltas: list[Delta]) -> None:
        """Raise the `ModelError` that an event reports, if it reports one."""
        error = error_of_event(event)
        if error is not None:
            fault = event.get("error") or event
            error.kind = _kind(fault, error.kind)
            raise error

    def _finish_reason(self) -> FinishReason:
        if self.said.overflowed:
            return "length"
        details = self._response.get("incomplete_details")
        reason = details.get("reason") if is_object(details) else None
        if self._refused or reason == "content_filter":
            return "content_filter"
        is_cut_off = reason or self._response.get("status") == "incomplete"
        return "length" if is_cut_off else "stop"

    def _opaque(self) -> Mapping[str, Any]:
        """The items, and the thoughts in them for those who read the conversation."""
        if not self._items:
            return {}
        items = [self._items[place] for place in sorted(self._items, key=_place)]
        opaque: dict[str, Any] = {"output_items": clean_value(items), "origin": self._origin}
        if reasoning := self.said.reasoning:
            opaque["reasoning_content"] = reasoning
        return opaque

    _TAKES: ClassVar[dict[Any, Take]] = {
        "response.output_text.delta": _take_text,
        "response.refusal.delta": _take_refusal,
        "response.reasoning_summary_text.delta": _take_thought,
        "response.reasoning_text.delta": _take_thought,
        "response.reasoning_summary_part.added": _begin_thought,
        "response.function_call_arguments.delta": _take_arguments,
        "response.output_item.added": _begin_item,
        "response.output_item.done": _end_item,
        "response.completed": _take_end,
        "response.incomplete": _take_end,
        "response.failed": _take_end,
        "response.cancelled": _take_end,
        "error": _fail,
    }


def _place(place: Any) -> int:
    return place if isinstance(place, int) else 0


def _kind(fault: Any, otherwise: str) -> str:
    code = str(fault.get("code") or "") if is_object(fault) else ""
    return next((kind for part, kind in KINDS if part in code), otherwise)
