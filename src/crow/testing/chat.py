"""A strict double of chat completions, as the endpoints of thinking models have them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from crow.core.support.frozen import frozen
from crow.testing.endpoint import USAGE, Endpoint, Received, Response, delta, respond, stream

THOUGHT, EXTRA = "reasoning_content", "extra_content"
FIELDS: dict[str, frozenset[str]] = {
    "system": frozenset({"role", "content", "name"}),
    "developer": frozenset({"role", "content", "name"}),
    "user": frozenset({"role", "content", "name"}),
    "tool": frozenset({"role", "content", "tool_call_id"}),
    "assistant": frozenset({"role", "content", "refusal", "tool_calls", THOUGHT}),
}
LONGEST = 40


class StrictChat(Endpoint):
    """``async with StrictChat() as endpoint``; ``endpoint.say(text, ...)`` adds a reply.

    A request that breaks one of `RULES` is answered with status 400, and its id is added to
    ``refused``; the script stays where it is. What was thought and signed must come back as it was
    said, and nobody else's.
    """

    def __init__(self) -> None:
        super().__init__()
        self.refused: list[str] = []
        self.said: dict[str, dict[str, Any]] = {}

    def say(self, text: str, *calls: dict[str, Any], thought: str = "") -> None:
        """Add a reply: a text, calls as `use` makes them, a thought."""
        message: dict[str, Any] = {"content": text or None}
        if thought:
            message[THOUGHT] = thought
        if calls:
            message["tool_calls"] = list(calls)
        self.said[_key(message)] = message
        pieces: list[Any] = [delta(reasoning_content=thought)] if thought else []
        pieces += [text] if text else []
        pieces += [delta(tool_calls=[{"index": at, **call}]) for at, call in enumerate(calls)]
        self.play(stream(*pieces, delta(finish="tool_calls" if calls else "stop"), USAGE))

    def _steps(self, received: Received) -> Response:
        if received.path.endswith("/models"):
            return super()._steps(received)
        for rule in RULES:
            if (subject := next(rule.breaches(received.body, self.said), None)) is not None:
                self.requests.append(received)
                self.asked.set()
                self.refused.append(rule.id)
                fault = {"message": rule.says.format(*subject), "type": "invalid_request_error"}
                return respond(400, {"error": fault})
        return super()._steps(received)


def use(name: str, call_id: str, /, signature: str = "", **args: Any) -> dict[str, Any]:
    """A call of a function, with a signature of thoughts as one provider has it."""
    function = {"name": name, "arguments": json.dumps(args)}
    call: dict[str, Any] = {"id": call_id, "type": "function", "function": function}
    return {**call, EXTRA: {"google": {"thought_signature": signature}}} if signature else call


Breaches: TypeAlias = Callable[[Any, dict[str, Any]], Iterator["tuple[object, ...]"]]


@frozen
class ChatRule:
    """A rule: ``breaches`` gives what breaks it, ``says`` is the sentence for that."""

    id: str
    breaches: Breaches
    says: str


def _unanswered(body: Any, said: dict[str, Any]) -> Iterator[tuple[object, ...]]:
    waiting: list[str] = []
    end: Any = {"role": "user"}
    for message in [*body["messages"], end]:
        if message["role"] == "tool":
            if message.get("tool_call_id") in waiting:
                waiting.remove(message["tool_call_id"])
            continue
        if waiting:
            yield (waiting[0],)
        waiting = [call["id"] for call in message.get("tool_calls") or ()]


def _orphans(body: Any, said: dict[str, Any]) -> Iterator[tuple[object, ...]]:
    asked: set[str] = set()
    for at, message in enumerate(body["messages"]):
        asked |= {call["id"] for call in message.get("tool_calls") or ()}
        if message["role"] == "tool" and message.get("tool_call_id") not in asked:
            yield (at,)


def _too_long(body: Any, said: dict[str, Any]) -> Iterator[tuple[object, ...]]:
    ids = (call["id"] for message in body["messages"] for call in message.get("tool_calls") or ())
    return ((len(each),) for each in ids if len(each) > LONGEST)


def _unknown(body: Any, said: dict[str, Any]) -> Iterator[tuple[object, ...]]:
    for at, message in enumerate(body["messages"]):
        for name in sorted(message.keys() - FIELDS[message["role"]]):
            yield at, name


def _images_of_tools(body: Any, said: dict[str, Any]) -> Iterator[tuple[object, ...]]:
    for message in body["messages"]:
        if message["role"] == "tool" and not isinstance(message["content"], str):
            yield ()


def _forgotten(body: Any, said: dict[str, Any]) -> Iterator[tuple[object, ...]]:
    for message in body["messages"]:
        own = said.get(_key(message))
        if own is not None and (message.get(THOUGHT), _signed(message)) != (
            own.get(THOUGHT),
            _signed(own),
        ):
            yield ()


def _foreign(body: Any, said: dict[str, Any]) -> Iterator[tuple[object, ...]]:
    for at, message in enumerate(body["messages"]):
        if _key(message) not in said and (THOUGHT in message or any(_signed(message))):
            yield (at,)


RULES = (
    ChatRule("C00", _unknown, "messages.{}.{}: Extra inputs are not permitted"),
    ChatRule(
        "C03",
        _unanswered,
        "An assistant message with 'tool_calls' must be followed by tool messages responding to "
        "each 'tool_call_id'. The following tool_call_ids did not have response messages: {}",
    ),
    ChatRule("C17", _orphans, "messages.{}: role 'tool' must follow a message with 'tool_calls'."),
    ChatRule(
        "C04", _too_long, "Expected a string with maximum length 40, but got one of {} instead."
    ),
    ChatRule("C11", _images_of_tools, "unknown variant `image_url`, expected `text`"),
    ChatRule(
        "C05",
        _forgotten,
        "The `reasoning_content` in the thinking mode must be passed back to the API.",
    ),
    ChatRule("C18", _foreign, "messages.{}: the thought was made by another model."),
)
"""What is refused, in the order in which it is looked at."""


def _key(message: Any) -> str:
    """What a message says and calls for; the thoughts in it and the ids aside."""
    calls = [call["function"] for call in message.get("tool_calls") or ()]
    return json.dumps([message.get("content") or None, calls, message.get("role", "assistant")])


def _signed(message: Any) -> list[Any]:
    return [call.get(EXTRA) for call in message.get("tool_calls") or ()]
