"""The conversation as plain data: dicts in the shape of OpenAI chat completions.

JSON by construction: whatever stands in a message survives ``json.dumps``. A message is
never changed in place once it is in a history; replace it instead.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any, Literal, NotRequired, Required, TypeAlias, TypedDict, cast

JSON: TypeAlias = "dict[str, JSON] | list[JSON] | str | int | float | bool | None"
Role = Literal["system", "developer", "user", "assistant", "tool"]


class TextPart(TypedDict):
    """A piece of text in a message of several parts."""

    type: Literal["text"]
    text: str


class ImageURL(TypedDict, total=False):
    """The address of an image: ``https:`` or ``data:``."""

    url: Required[str]
    detail: Literal["auto", "low", "high"]


class ImagePart(TypedDict):
    """An image in a message of several parts."""

    type: Literal["image_url"]
    image_url: ImageURL


class InputAudio(TypedDict):
    """Sound as base64, and its container."""

    data: str
    format: str


class AudioPart(TypedDict):
    """Sound in a message of several parts."""

    type: Literal["input_audio"]
    input_audio: InputAudio


Part: TypeAlias = TextPart | ImagePart | AudioPart
"""One piece of a message of several parts."""
Content: TypeAlias = str | list[Part]
"""What a message says: a text, or its parts."""


class FunctionCall(TypedDict):
    """The function that a model wants called; ``arguments`` is JSON text."""

    name: str
    arguments: str


class ToolCall(TypedDict):
    """A tool call as it stands in an assistant message.

    ``extra_content`` is what the endpoint sent with it, a signature of thoughts for instance.
    """

    id: str
    type: Literal["function"]
    function: FunctionCall
    extra_content: NotRequired[Any]


class Message(TypedDict, total=False):
    """One message of a conversation.

    What an endpoint sent of its model's thoughts stands under the names that it used, unchanged:
    ``reasoning_content``, ``reasoning``, ``reasoning_text``, ``reasoning_details``,
    ``thinking_blocks``, ``extra_content``. ``origin`` says which endpoint and model that was; they
    get it back, others do not. ``output_items`` is the whole reply as that endpoint sent it, where
    its wire has other words than these: the items of Responses, the blocks of Messages, the parts
    of Gemini.

    ``written`` is a prompt as its author's client sent it, where ``content`` says less: for those
    who show the conversation again. It is JSON, and part of no request (`unwritten`).
    """

    role: Required[Role]
    content: Required[Content | None]
    tool_calls: list[ToolCall]
    tool_call_id: str
    name: str
    reasoning_content: str
    reasoning: str
    reasoning_text: str
    reasoning_details: list[Any]
    thinking_blocks: list[Any]
    extra_content: Any
    output_items: list[Any]
    origin: str
    written: list[dict[str, Any]]


class FunctionSpec(TypedDict):
    """A tool as a model is told of it; ``parameters`` is JSON Schema of an object."""

    name: str
    description: str
    parameters: dict[str, Any]


class ToolSpec(TypedDict):
    """A tool as it stands in a request."""

    type: Literal["function"]
    function: FunctionSpec


class Usage(TypedDict, total=False):
    """Tokens of one request or the sum of several; ``cost`` in US dollars where known.

    ``input_tokens`` includes ``cached_tokens`` and ``cache_write_tokens``, ``output_tokens``
    includes ``reasoning_tokens``. ``total_tokens`` is input plus output.
    """

    input_tokens: int
    output_tokens: int
    total_tokens: int
    cached_tokens: int
    cache_write_tokens: int
    reasoning_tokens: int
    cost: float


class TokenCount(TypedDict):
    """The tokens in the model's window, anchored on what the provider reported.

    ``total_tokens`` is what the next request will have, about: the reported tokens plus a
    quarter of the characters since. ``fraction`` of the window is None where that is unknown.
    """

    total_tokens: int
    input_tokens: int
    cached_tokens: int
    context_window: int | None
    fraction: float | None


CONTEXT_OPEN = "<crow-context"
CONTEXT_CLOSE = "</crow-context>"
INTERRUPTED = "interrupted, outcome unknown"
"""The answer to a tool call that nobody answered."""


def user(content: Content) -> Message:
    """A message of the user's."""
    return {"role": "user", "content": content}


def prompt_of(content: Content, written: list[dict[str, Any]] | None) -> Message:
    """A prompt with what its client sent; it stays what it is if somebody changes ``content``."""
    return {**user(deepcopy(content)), "written": written} if written else user(content)


def unwritten(message: Message) -> Message:
    """A message without what its client sent, where that says more."""
    return cast(Message, {key: each for key, each in message.items() if key != "written"})


def context_block(text: str, source: str) -> Message:
    """A user message that holds injected context, marked so that it is not taken for a prompt."""
    return user(f'{CONTEXT_OPEN} source="{source}">\n{text}\n{CONTEXT_CLOSE}')


def tool_answer(call_id: str, content: Content) -> Message:
    """The one answer to one tool call."""
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def text_of(content: Content | None) -> str:
    """The text of a message's content; parts that are no text count as nothing."""
    if content is None or isinstance(content, str):
        return content or ""
    return "".join(part["text"] for part in content if part["type"] == "text")


def thought_of(message: Message) -> str:
    """What the model thought before a message, as text; under which name it came is no matter."""
    said = (message.get("reasoning_content"), message.get("reasoning"))
    return next(filter(None, (*said, message.get("reasoning_text"))), "")


def is_prompt(message: Message) -> bool:
    """True for what a person said, false for injected context and every other role."""
    content = message.get("content")
    is_user = message["role"] == "user" and content is not None
    return is_user and not text_of(content).startswith(CONTEXT_OPEN)


def weight(message: Message) -> int:
    """Characters of a message that a model reads."""
    calls = message.get("tool_calls", ())
    written = sum(len(c["function"]["name"]) + len(c["function"]["arguments"]) for c in calls)
    return len(text_of(message.get("content"))) + written


def add_usage(total: Usage, more: Usage | None) -> Usage:
    """The sum of two usages; a field that neither has stays absent."""
    both: Usage = {**total}
    if more and "total_tokens" not in more and (tokens := total_of(more)):
        more = {**more, "total_tokens": tokens}
    for key, value in (more or {}).items():
        both[key] = both.get(key, 0) + value  # type: ignore[literal-required]
    return both


def total_of(usage: Usage) -> int:
    """All tokens of a usage, also where a model of one's own does not add them up."""
    added = usage.get("input_tokens", 0) + usage.get("output_tokens", 0)
    return usage.get("total_tokens", added)
