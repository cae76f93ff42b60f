"""One reply, put together from the events of its stream."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from crow.core.events import Notice
from crow.core.messages import Message, Usage, add_usage
from crow.core.ports.llm import Completion, Delta, FinishReason
from crow.llm.http.assembly import Assembly
from crow.llm.http.faults import error_of_event
from crow.llm.http.text import clean_value, is_array, is_object
from crow.llm.http.toolcalls import CUT_OFF
from crow.llm.messages.blocks import Block
from crow.llm.messages.partial_block import PartialBlock

FINISHES: Mapping[str, FinishReason] = {
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "content_filter",
    "sensitive": "content_filter",
}
PAUSED = "pause_turn"
REFUSED = ("refusal", "sensitive")
PIECES: Mapping[str, str] = {
    "text_delta": "text",
    "thinking_delta": "thinking",
    "input_json_delta": "partial_json",
}
"""Types of deltas that are a piece of a text, and where it stands in them."""
BETWEEN_THOUGHTS = "\n\n"
DROPPED = "thinking_dropped"
WHY: Mapping[str, str] = {
    "prefix_binding_mismatch": "what stood before it was changed",
    "model_binding_mismatch": "another model thought it",
    "organization_binding_mismatch": "it belongs to another account",
    "end_user_binding_mismatch": "it belongs to another user",
}


class MessagesReply:
    """One attempt at an answer: takes events, gives deltas, and at the end a `Completion`.

    ``complete`` once the endpoint said that nothing more comes. ``origin`` names endpoint and model
    in what they want back as they sent it. ``reported`` are the places of thoughts of which it was
    said already that the endpoint left them out.

    An endpoint may pause, and goes on when it gets what it said so far: the reply takes the events
    of all these responses.
    """

    __slots__ = (
        "_blocks",
        "_finish",
        "_growing",
        "_model",
        "_origin",
        "_reported",
        "_usages",
        "complete",
        "said",
    )

    def __init__(self, said: Assembly, origin: str, reported: set[str]) -> None:
        self.said = said
        self._blocks: list[Block] = []
        self._growing: dict[str, PartialBlock] = {}
        self._finish: str | None = None
        self._usages: list[dict[str, Any]] = []
        self._model = ""
        self._origin = origin
        self._reported = reported
        self.complete = False

    @property
    def finished(self) -> bool:
        """True once the endpoint gave its reason for ending."""
        return self._finish is not None

    @property
    def said_nothing(self) -> bool:
        """True where nothing at all came."""
        return not (self._blocks or self.finished)

    def resume(self) -> Message | None:
        """What was said before the endpoint paused, if it did; what follows is taken then."""
        waits = any(block["type"] == "tool_use" for block in self._blocks)
        if self._finish != PAUSED or not self._blocks or waits or self.said.overflowed:
            return None
        so_far = self.completion().message() or self._silent()
        self._finish, self.complete = None, False
        return so_far

    def take(self, event: dict[str, Any], deltas: list[Delta]) -> None:
        """Add one event; what it shows goes to ``deltas``. Raises `ModelError` for an error."""
        match event.get("type"):
            case "content_block_delta":
                self._add(event, deltas)
            case "content_block_start":
                self._begin(event, deltas)
            case "content_block_stop":
                self._close(event, deltas)
            case _:
                self._take_message(event, deltas)

    def end(self, deltas: list[Delta]) -> None:
        """Show what was held back."""
        for index in list(self._growing):
            self._close({"index": index}, deltas)
        self.said.end(deltas)

    def completion(self) -> Completion:
        """The whole answer; its calls are marked where it was cut off."""
        finish = self._finish_reason()
        calls = self.said.calls(CUT_OFF if finish in ("length", "content_filter") else None)
        called = iter(calls)
        blocks: list[Block] = [
            {**block, "input": {}} if block["type"] == "tool_use" and next(called).fault else block
            for block in self._blocks
        ]
        opaque = {"output_items": clean_value(blocks), "origin": self._origin}
        if self.said.reasoning:
            opaque["reasoning_content"] = self.said.reasoning
        return Completion(
            text=self.said.text,
            calls=calls,
            reasoning=self.said.reasoning,
            finish=finish,
            usage=self._usage(),
            model=self._model,
            opaque=opaque if blocks and finish != "content_filter" else {},
        )

    def _take_message(self, event: dict[str, Any], deltas: list[Delta]) -> None:
        """An event of the message, and not of one of its blocks."""
        match event.get("type"):
            case "message_start":
                self._open(event.get("message"), deltas)
            case "message_delta":
                self._stop(event.get("delta"), deltas)
                self._count(event, deltas)
            case "message_stop":
                self.complete = True
            case "message":
                self._read(event, deltas)
            case _:
                if (error := error_of_event(event)) is not None:
                    raise error

    def _open(self, message: Any, deltas: list[Delta]) -> None:
        """A response begins, the first or one after a pause."""
        self._growing.clear()
        self._usages.append({})
        if is_object(message):
            self._model = str(message.get("model") or self._model)
            self._count(message, deltas)

    def _begin(self, event: dict[str, Any], deltas: list[Delta]) -> None:
        """A block begins; most are empty yet."""
        given = event.get("content_block")
        if not is_object(given) or not isinstance(given.get("type"), str):
            return
        block = {**given}
        growing = self._growing[str(event.get("index"))] = PartialBlock(block, len(self._blocks))
        self._blocks.append(block)
        match block:
            case {"type": "tool_use"}:
                self._call(growing, "", deltas)
            case {"type": "text", "text": str(text)} if text:
                self.said.say(text, deltas)
            case {"type": "thinking"}:
                between = BETWEEN_THOUGHTS if self.said.reasoning else ""
                if text := between + str(block.get("thinking") or ""):
                    self.said.think(text, deltas)
            case _:
                pass

    def _add(self, event: dict[str, Any], deltas: list[Delta]) -> None:
        """A piece of a block."""
        growing, delta = self._growing.get(str(event.get("index"))), event.get("delta")
        if growing is None or not is_object(delta):
            return
        kind = delta.get("type")
        text = delta.get(PIECES.get(str(kind), ""))
        if isinstance(text, str) and text:
            growing.parts.append(text)
            if kind == "text_delta":
                self.said.say(text, deltas)
            elif kind == "thinking_delta":
                self.said.think(text, deltas)
            else:
                self._call(growing, text, deltas)
        elif kind == "signature_delta":
            growing.sign(delta.get("signature"))
        elif kind == "citations_delta":
            growing.cite(delta.get("citation"))

    def _close(self, event: dict[str, Any], deltas: list[Delta]) -> None:
        """A block is whole."""
        if (growing := self._growing.pop(str(event.get("index")), None)) is not None:
            if text := growing.whole_input:
                self._call(growing, text, deltas)
            growing.close()

    def _call(self, growing: PartialBlock, text: str, deltas: list[Delta]) -> None:
        """A piece of a call's arguments, if the block is a call."""
        block = growing.block
        if block["type"] == "tool_use":
            function = {"name": block.get("name"), "arguments": text}
            piece = {"index": growing.number, "id": block.get("id"), "function": function}
            self.said.call([piece], deltas)

    def _stop(self, why: Any, deltas: list[Delta]) -> None:
        """The endpoint gives its reason to end."""
        told = why if is_object(why) else {}
        reason = told.get("stop_reason")
        if isinstance(reason, str) and reason:
            self._finish = reason
            if reason in REFUSED:
                self._refuse(reason, told.get("stop_details"), deltas)

    def _refuse(self, reason: str, details: Any, deltas: list[Delta]) -> None:
        """Say why the model refused, where the endpoint told."""
        known = details if is_object(details) else {}
        said = known.get("explanation") or f"[refused: {known.get('category') or reason}]"
        if known.get("explanation") or not self.said.text:
            self.said.say(("\n\n" if self.said.text else "") + str(said), deltas)

    def _count(self, told: dict[str, Any], deltas: list[Delta]) -> None:
        """Keep what is told of tokens, and say which thoughts the endpoint left out."""
        if is_object(usage := told.get("usage")):
            if not self._usages:
                self._usages.append({})
            self._usages[-1] |= {name: value for name, value in usage.items() if value is not None}
        if is_array(changes := told.get("input_transformations")):
            dropped = [each for each in changes if is_object(each) and each.get("type") == DROPPED]
            new = [each for each in dropped if each.get("path") not in self._reported]
            if new:
                self._reported.update(str(each.get("path")) for each in new)
                deltas.append(Notice(_dropped(new), "info"))

    def _read(self, event: dict[str, Any], deltas: list[Delta]) -> None:
        """A whole message, as endpoints send it that do not stream."""
        self._open(event, deltas)
        for index, block in enumerate(event.get("content") or ()):
            self._begin({"index": index, "content_block": block}, deltas)
            self._close({"index": index}, deltas)
        self._stop(event, deltas)
        self.complete = True

    def _usage(self) -> Usage | None:
        """The tokens of all responses, where the endpoint told."""
        total: Usage = {}
        for each in filter(None, self._usages):
            total = add_usage(total, usage_of(each))
        return total or None

    def _silent(self) -> Message:
        """The message of a reply that said nothing to the client so far."""
        items, origin = clean_value(self._blocks), self._origin
        return {"role": "assistant", "content": None, "output_items": items, "origin": origin}

    def _finish_reason(self) -> FinishReason:
        return "length" if self.said.overflowed else FINISHES.get(self._finish or "", "stop")


def usage_of(told: Mapping[str, Any]) -> Usage:
    """Tokens as Crow counts them: what was read from a cache or written to it is input, too."""

    def number(name: str, of: Any = told) -> int:
        value = of.get(name) if is_object(of) else None
        return value if isinstance(value, int) else 0

    cached, written = number("cache_read_input_tokens"), number("cache_creation_input_tokens")
    given, said = number("input_tokens") + cached + written, number("output_tokens")
    usage: Usage = {"input_tokens": given, "output_tokens": said, "total_tokens": given + said}
    if "cache_read_input_tokens" in told:
        usage["cached_tokens"] = cached
    if "cache_creation_input_tokens" in told:
        usage["cache_write_tokens"] = written
    if is_object(details := told.get("output_tokens_details")) and "thinking_tokens" in details:
        usage["reasoning_tokens"] = number("thinking_tokens", details)
    return usage


def _dropped(changes: list[dict[str, Any]]) -> str:
    """Which thoughts an endpoint left out, and why, in a line."""
    why = {str(each.get("reason")): None for each in changes}
    reasons = "; ".join(WHY.get(each, each) for each in why)
    count = len(changes)
    what = "a thought" if count == 1 else f"{count} thoughts"
    return f"the endpoint left out {what} that was sent back: {reasons}"
