"""One reply, put together from the chunks of a generateContent stream."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from crow.core.errors import ModelError
from crow.core.messages import Usage
from crow.core.ports.llm import Completion, Delta, FinishReason
from crow.llm.gemini.parts import CALL, Parts
from crow.llm.gemini.usage import usage_of
from crow.llm.http.assembly import Assembly
from crow.llm.http.faults import error_of_event
from crow.llm.http.retry import BotchedError
from crow.llm.http.stream import snippet
from crow.llm.http.text import is_array, is_object
from crow.llm.http.toolcalls import CUT_OFF
from crow.llm.http.wire import WireReply

BLOCKED = frozenset(
    {
        "SAFETY",
        "RECITATION",
        "LANGUAGE",
        "BLOCKLIST",
        "PROHIBITED_CONTENT",
        "SPII",
        "ESCALATION",
        "MODEL_ARMOR",
        "IMAGE_SAFETY",
        "IMAGE_PROHIBITED_CONTENT",
        "IMAGE_RECITATION",
    }
)
BOTCHED = frozenset(
    {
        "MALFORMED_FUNCTION_CALL",
        "MALFORMED_RESPONSE",
        "UNEXPECTED_TOOL_CALL",
        "TOO_MANY_TOOL_CALLS",
        "OTHER",
    }
)
UNSPECIFIED = ("", "FINISH_REASON_UNSPECIFIED", "BLOCKED_REASON_UNSPECIFIED")
UNSIGNED = "MISSING_THOUGHT_SIGNATURE"
PROMPT_BLOCKED = "[The prompt was blocked: {}]"
ANSWER_BLOCKED = "[The answer was blocked: {}]"


class GeminiReply(WireReply):
    """One attempt at an answer; see `crow.llm.http.wire.WireReply`.

    Nothing marks the end of a stream: it is whole where the body ends after a reason to finish.
    ``names`` has tools' own names by those under which they were declared, where they differ.
    """

    __slots__ = ("_calls", "_finish", "_model", "_names", "_origin", "_parts", "_usage", "said")
    complete = False

    def __init__(self, said: Assembly, origin: str, names: Mapping[str, str]) -> None:
        self.said = said
        self._calls = 0
        self._finish = ""
        self._model = ""
        self._names = names
        self._origin = origin
        self._parts = Parts()
        self._usage: dict[str, Any] = {}

    @property
    def finished(self) -> bool:
        """True once there was a reason to finish."""
        return bool(self._finish)

    @property
    def usage(self) -> Usage | None:
        """The tokens, where the endpoint told."""
        return usage_of(self._usage)

    def take(self, event: dict[str, Any], deltas: list[Delta]) -> None:
        """Add one chunk; what it shows goes to ``deltas``. Raises `ModelError` for an error."""
        if usage := event.get("usageMetadata"):
            self._usage |= usage
        if (candidates := event.get("candidates")) and "error" not in event:
            self._take_candidate(candidates, deltas)
        elif feedback := event.get("promptFeedback"):
            self._take_feedback(feedback, deltas)
        elif (error := error_of_event(event)) is not None:
            raise error
        if not self._model:
            self._model = str(event.get("modelVersion") or "")

    def completion(self) -> Completion:
        """The whole answer; its calls are marked where it was cut off."""
        cut_off = self.said.overflowed or self._finish == "MAX_TOKENS" or self._finish in BLOCKED
        calls = self.said.calls(CUT_OFF if cut_off else None)
        opaque: dict[str, Any] = {}
        if parts := self._parts.kept():
            opaque = {"output_items": parts, "origin": self._origin}
            if self.said.reasoning:
                opaque["reasoning_content"] = self.said.reasoning
        return Completion(
            text=self.said.text,
            calls=calls,
            reasoning=self.said.reasoning,
            finish=self._finish_reason(called=bool(calls)),
            usage=self.usage,
            model=self._model,
            opaque=opaque,
        )

    def _finish_reason(self, *, called: bool) -> FinishReason:
        if self.said.overflowed or self._finish == "MAX_TOKENS":
            return "length"
        if self._finish in BLOCKED:
            return "content_filter"
        return "tool_calls" if called else "stop"

    def _take_candidate(self, candidates: Any, deltas: list[Delta]) -> None:
        candidate = candidates[0] if is_array(candidates) else None
        if not is_object(candidate) or candidate.get("index"):
            return
        content = candidate.get("content")
        if is_object(content) and is_array(parts := content.get("parts")):
            for part in filter(is_object, parts):
                self._take_part(part, deltas)
        reason = candidate.get("finishReason")
        if reason and reason not in UNSPECIFIED:
            self._take_finish(str(reason), str(candidate.get("finishMessage") or ""), deltas)

    def _take_part(self, part: dict[str, Any], deltas: list[Delta]) -> None:
        text, call = part.get("text"), part.get(CALL)
        if is_object(call):
            self._take_call(call, deltas)
        elif text and isinstance(text, str):
            if part.get("thought"):
                self.said.think(text, deltas)
            else:
                self.said.say(text, deltas)
        self._parts.add(part)

    def _take_call(self, call: dict[str, Any], deltas: list[Delta]) -> None:
        name = str(call.get("name") or "")
        arguments: Any = call.get("args") or {}
        function: Any = {"name": self._names.get(name, name), "arguments": arguments}
        piece: Any = {"index": self._calls, "id": call.get("id"), "function": function}
        self._calls += 1
        self.said.call([piece], deltas)

    def _take_finish(self, reason: str, message: str, deltas: list[Delta]) -> None:
        why = f"{reason}: {snippet(message)}" if message else reason
        if reason in BOTCHED:
            raise BotchedError(f"failed to write an answer ({why})", kind="protocol")
        if reason == UNSIGNED:
            what = f"got calls of its own back without their thought signatures ({why})"
            raise ModelError(what, kind="invalid_request")
        if reason in BLOCKED and self.said.is_empty:
            self.said.say(ANSWER_BLOCKED.format(why), deltas)
        self._finish = reason

    def _take_feedback(self, feedback: Any, deltas: list[Delta]) -> None:
        reason = str(feedback.get("blockReason") or "") if is_object(feedback) else ""
        if reason in UNSPECIFIED or self.finished:
            return
        message = str(feedback.get("blockReasonMessage") or "")
        why = f"{reason}: {snippet(message)}" if message else reason
        self.said.say(PROMPT_BLOCKED.format(why), deltas)
        self._finish = "SAFETY"
