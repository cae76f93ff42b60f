"""Events as messages: a block of an answer a message, as soon as it is complete."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Generator, Mapping
from typing import Any

from crow.core.events import (
    CallDelta,
    Compacted,
    ConfigChanged,
    Event,
    Notice,
    Retrying,
    RunEnded,
    TextDelta,
    ThoughtDelta,
    ToolEnded,
    ToolPending,
    UsageReported,
    UserMessage,
)
from crow.core.messages import Usage, text_of
from crow.core.session import Session
from crow.stream_json.lines import Message

ENDINGS: Message = {"stop_sequence": None, "stop_details": None, "container": None}
"""What a model of Anthropic says of an ending, beside the reason."""
DELTAS = {"text": "text_delta", "thinking": "thinking_delta", "tool_use": "input_json_delta"}
ERRORS = {
    "authentication": "authentication_failed",
    "billing": "billing_error",
    "context_length": "invalid_request",
    "invalid_request": "invalid_request",
    "model_not_found": "model_not_found",
    "overloaded": "overloaded",
    "rate_limit": "rate_limit",
    "server": "server_error",
}
"""Why a request has failed, in the words of the protocol, by the kind of the error."""
ENDED = {"completed": "completed", "cancelled": "stopped"}
"""How a sub-agent has ended, in the words of the protocol."""
STARTS: Mapping[str, Message] = {"thinking": {"signature": ""}, "text": {"citations": None}}
"""What a block has beside its text."""
FIELDS = {"text": "text", "thinking": "thinking", "tool_use": "partial_json"}


class Projection:
    """A conversation in the words of the protocol: the session's, or a sub-agent's.

    ``parent`` is the call that a sub-agent works for; of one only its calls and their results are
    told, unless ``tells_all``. With ``partial`` each piece of an answer is told as it comes.
    """

    def __init__(
        self,
        session_id: str,
        model: Callable[[], str],
        *,
        parent: str | None = None,
        partial: bool = False,
        tells_all: bool = True,
    ) -> None:
        self.session_id = session_id
        self.parent = parent
        self._model = model
        self._partial = partial and parent is None
        self._tells_all = tells_all
        self._id = ""
        self._kind = ""
        self._text: list[str] = []
        self._index = -1
        self._open = False
        self._begun: set[str] = set()
        self._usage = usage_of({})
        self._tokens = 0

    def messages(self, event: Event) -> Generator[Message]:
        """What an event is told as; nothing for what the protocol has no words for."""
        match event:
            case TextDelta() | ThoughtDelta() if not self._tells_all:
                pass
            case TextDelta(text, message_id):
                yield from self._piece("text", text, message_id)
            case ThoughtDelta(text, message_id):
                yield from self._piece("thinking", text, message_id)
            case CallDelta():
                yield from self._call_piece(event)
            case ToolPending():
                yield from self._called(event)
            case ToolEnded():
                yield from self._ended(event)
            case UsageReported() | RunEnded():
                yield from self._closed(event)
            case _:
                yield from self._beside(event)

    def denied(self, event: ToolEnded) -> Message:
        """A call was refused, and the program was not asked."""
        call = event.call
        told = {"tool_name": call.name, "tool_use_id": call.id, "message": event.result.text}
        return self._system("permission_denied", **told)

    def began(self, worker: Session) -> Message:
        """A sub-agent begins to work."""
        return self._system(
            "task_started",
            task_id=worker.id,
            tool_use_id=self.parent,
            task_type="local_agent",
            subagent_type=worker.agent_type,
            description=worker.title or "",
            is_backgrounded=False,
        )

    def concluded(self, task_id: str, text: str, data: Message) -> Message:
        """A sub-agent has come to its end; ``data`` is what its call has answered beside."""
        spent = {"total_tokens": "totalTokens", "tool_uses": "totalToolUseCount"}
        usage = {name: data.get(key) or 0 for name, key in spent.items()}
        return self._system(
            "task_notification",
            task_id=task_id,
            tool_use_id=self.parent,
            status=ENDED.get(str(data.get("status")), "failed"),
            output_file="",
            summary=text,
            usage={**usage, "duration_ms": data.get("totalDurationMs") or 0},
        )

    # an answer

    def _piece(self, kind: str, text: str, message_id: str = "") -> Generator[Message]:
        if kind != self._kind or (message_id and message_id != self._id):
            yield from self._block_ended()
            yield from self._begin(message_id)
            self._kind = kind
            yield from self._block_begun({"type": kind, FIELDS[kind]: "", **STARTS[kind]})
        self._text.append(text)
        yield from self._delta(text)

    def _call_piece(self, event: CallDelta) -> Generator[Message]:
        if event.call_id not in self._begun:
            yield from self._block_ended()
            yield from self._begin()
            self._begun.add(event.call_id)
            yield from self._call_begun(event.call_id, event.name)
        if event.text:
            yield from self._delta(event.text)

    def _call_begun(self, call_id: str, name: str) -> Generator[Message]:
        self._kind = "tool_use"
        yield from self._block_begun({"type": "tool_use", "id": call_id, "name": name, "input": {}})

    def _called(self, event: ToolPending) -> Generator[Message]:
        """A call is complete: it is told whole, and its answer is no longer being written."""
        call = event.call
        yield from self._block_ended()
        block = {"type": "tool_use", "id": call.id, "name": call.name, "input": dict(call.args)}
        yield self._said(block)

    def _begin(self, message_id: str = "") -> Generator[Message]:
        if self._open:
            return
        self._open = True
        self._id = message_id
        self._index = -1
        self._usage = usage_of({})
        yield from self._streamed({"type": "message_start", "message": self._message([])})

    def _block_begun(self, block: Message) -> Generator[Message]:
        self._index += 1
        yield from self._streamed(
            {"type": "content_block_start", "index": self._index, "content_block": block}
        )

    def _delta(self, text: str) -> Generator[Message]:
        delta: Message = {"type": DELTAS[self._kind], FIELDS[self._kind]: text}
        if self._kind == "thinking":
            delta["estimated_tokens"] = None
        yield from self._streamed(
            {"type": "content_block_delta", "index": self._index, "delta": delta}
        )

    def _block_ended(self) -> Generator[Message]:
        """The block that is being written is complete."""
        kind, text = self._kind, "".join(self._text)
        self._kind, self._text = "", []
        if kind in ("text", "thinking") and text:
            yield self._said({"type": kind, FIELDS[kind]: text, **STARTS[kind]})
        if kind:
            yield from self._streamed({"type": "content_block_stop", "index": self._index})

    def _closed(self, event: UsageReported | RunEnded) -> Generator[Message]:
        """The answer is complete."""
        reason = "tool_use" if self._kind == "tool_use" else "end_turn"
        if isinstance(event, UsageReported):
            self._usage, self._tokens = usage_of(event.last), event.context_tokens
        yield from self._block_ended()
        if not self._open:
            return
        self._open = False
        kept = ("cache_creation", "inference_geo", "service_tier", "speed")
        usage = {key: value for key, value in self._usage.items() if key not in kept}
        delta = {"stop_reason": reason, **ENDINGS}
        ended = {"type": "message_delta", "delta": delta, "usage": usage}
        yield from self._streamed({**ended, "context_management": None})
        yield from self._streamed({"type": "message_stop"})

    def _said(self, block: Message) -> Message:
        return self._whole({"type": "assistant", "message": self._message([block])})

    def _message(self, content: list[Message]) -> Message:
        self._id = self._id or uuid.uuid4().hex
        return {
            "id": f"msg_{self._id}",
            "type": "message",
            "role": "assistant",
            "model": self._model(),
            "content": content,
            "stop_reason": None,
            **ENDINGS,
            "context_management": None,
            "diagnostics": None,
            "usage": self._usage,
        }

    def _streamed(self, event: Message) -> Generator[Message]:
        if self._partial:
            yield self._whole({"type": "stream_event", "event": event})

    # what is beside it

    def _ended(self, event: ToolEnded) -> Generator[Message]:
        """A call has its result; what is said next is another message."""
        self._id = ""
        is_error = event.outcome not in ("ok", "answered") or event.result.error
        text = event.result.text
        block = {
            "tool_use_id": event.call.id,
            "type": "tool_result",
            "content": text,
            "is_error": is_error,
        }
        data = f"Error: {text}" if is_error else event.result.data or text
        told = {"type": "user", "message": {"role": "user", "content": [block]}}
        yield {**self._whole(told), "tool_use_result": data}

    def _beside(self, event: Event) -> Generator[Message]:
        match event:
            case UserMessage(content):
                message = {"role": "user", "content": text_of(content)}
                yield {**self._whole({"type": "user", "message": message}), "isSynthetic": True}
            case Compacted(trigger=trigger):
                about = {
                    "trigger": "manual" if trigger == "manual" else "auto",
                    "pre_tokens": self._tokens,
                }
                yield self._system("compact_boundary", compact_metadata=about)
            case Retrying(attempt, delay, reason, kind, status, limit):
                yield self._system(
                    "api_retry",
                    attempt=attempt,
                    max_retries=limit,
                    retry_delay_ms=round(delay * 1000),
                    error_status=status,
                    error=ERRORS.get(kind, "unknown"),
                    reason=reason,
                )
            case ConfigChanged({"mode": mode}):
                yield self._system("status", status=None, permissionMode=mode)
            case Notice(text, severity, source):
                yield self._system("notice", text=text, severity=severity, source=source)
            case _:
                pass

    def _system(self, subtype: str, **fields: Any) -> Message:
        said = self._whole({"type": "system", "subtype": subtype, **fields})
        del said["parent_tool_use_id"]
        return said

    def _whole(self, message: Message) -> Message:
        return {
            **message,
            "parent_tool_use_id": self.parent,
            "session_id": self.session_id,
            "uuid": str(uuid.uuid4()),
        }


def usage_of(usage: Usage | Mapping[str, Any]) -> Message:
    """Tokens in the words of the protocol, where what a cache had is no input."""
    cached, written = usage.get("cached_tokens", 0), usage.get("cache_write_tokens", 0)
    return {
        "input_tokens": max(0, usage.get("input_tokens", 0) - cached - written),
        "cache_creation_input_tokens": written,
        "cache_read_input_tokens": cached,
        "output_tokens": usage.get("output_tokens", 0),
        "cache_creation": {"ephemeral_5m_input_tokens": written, "ephemeral_1h_input_tokens": 0},
        "output_tokens_details": {"thinking_tokens": usage.get("reasoning_tokens", 0)},
        "server_tool_use": {"web_search_requests": 0, "web_fetch_requests": 0},
        "service_tier": "standard",
        "inference_geo": "",
        "iterations": [],
        "speed": "standard",
        "fallback_credit": None,
    }
