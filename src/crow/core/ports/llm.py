"""The port of a model: what it is asked, what it answers, and what it may have beside.

Whoever has the methods fits; nothing is inherited. What it may have beside are protocols: here
what the core asks for, in `crow.ports` what faces and extensions do.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Collection, Coroutine, Mapping
from dataclasses import field
from typing import Any, Literal, Protocol, TypeAlias, cast, runtime_checkable

from crow.core.errors import ModelError
from crow.core.events import CallDelta, Notice, Retrying, TextDelta, ThoughtDelta
from crow.core.messages import Message, ToolSpec, Usage
from crow.core.support.frozen import frozen, mutable
from crow.core.support.validation import implements
from crow.core.tools import Call

RETURNED = "the model's stream() returns: it is to yield what comes, a Completion at last"
FinishReason = Literal["stop", "tool_calls", "length", "content_filter"]


@mutable
class Request:
    """One request to a model. ``params`` go into the request's body as they are.

    ``messages`` starts with the system message where there is one. ``model`` None means the
    model that the endpoint was made with. ``session_id`` names the conversation to caches.
    ``trace_context`` is that of the span which the request is, for the headers of HTTP.
    """

    messages: list[Message]
    tools: list[ToolSpec] = field(default_factory=list[ToolSpec])
    model: str | None = None
    params: dict[str, Any] = field(default_factory=dict[str, Any])
    session_id: str = ""
    message_id: str = ""
    trace_context: Mapping[str, str] = field(default_factory=dict[str, str])


@frozen
class Completion:
    """A model's whole answer to one request.

    ``finish`` is why it ended; that calls are there, not the reason, decides whether tools run.
    Call ids are unique within a request. A completion that was cut off marks its calls with a
    ``fault``. ``opaque`` are fields of the message that the endpoint wants back as it sent them,
    its thoughts among them, and ``origin`` (see `Message`); without them the
    ``reasoning`` is kept as text.
    """

    text: str = ""
    calls: tuple[Call, ...] = ()
    reasoning: str = ""
    finish: FinishReason = "stop"
    usage: Usage | None = None
    model: str = ""
    opaque: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)

    def message(self) -> Message | None:
        """The assistant message for the history; None where the model said nothing at all."""
        if not self.text and not self.calls:
            return None
        message: Message = {"role": "assistant", "content": self.text or None}
        if self.calls:
            message["tool_calls"] = [call.as_message_part() for call in self.calls]
        if self.opaque:
            message.update(cast(Message, self.opaque))
        elif self.reasoning:
            message["reasoning_content"] = self.reasoning
        return message


Delta: TypeAlias = TextDelta | ThoughtDelta | CallDelta | Retrying | Notice
"""What a model yields before its `Completion`."""


class LLM(Protocol):
    """A model. ``stream`` yields deltas as they come and last of all one `Completion`.

    It raises `ModelError` where no answer can be had; retries are its own affair, and text that
    it has yielded is never yielded again. Closing the iterator frees the connection.

    It may have more: `NamedModels`, `PurposeModels` and `KeyUser` are asked for by the core, the
    protocols of `crow.ports.models` by faces and extensions.
    """

    @property
    def model(self) -> str:
        """The name of the model that answers where a request names none."""
        ...

    @property
    def context_window(self) -> int | None:
        """How many tokens a request may have, where that is known."""
        ...

    def stream(self, request: Request) -> AsyncGenerator[Delta | Completion, None]:
        """Ask the model."""
        ...


def deltas_of(llm: LLM, request: Request) -> AsyncGenerator[Delta]:
    """The answer of a model, as it comes. Raises `ModelError` where its ``stream`` returns one."""
    deltas: Any = llm.stream(request)
    if isinstance(deltas, Coroutine):
        deltas.close()
        raise ModelError(RETURNED, kind="protocol")
    return deltas


@runtime_checkable
class NamedModels(Protocol):
    """A model that gives those of other names."""

    def named(self, model: str) -> LLM:
        """The model of a name. Raises `ModelError` where there is none."""
        ...


@runtime_checkable
class PurposeModels(Protocol):
    """A model that knows others for what is asked beside a conversation."""

    @property
    def purposes(self) -> Mapping[str, str]:
        """Their names, by a word for what is asked, such as ``summary``."""
        ...


@runtime_checkable
class KeyUser(Protocol):
    """A model that uses keys."""

    @property
    def secrets(self) -> Collection[str]:
        """The keys that it has used, which no output shows."""
        ...


def model_named(llm: LLM, name: str | None) -> LLM:
    """The model of a name, itself without one or where it knows no others. Raises `ModelError`."""
    return llm.named(name) if name is not None and implements(llm, NamedModels) else llm
