"""A strict double of chat completions, as the endpoints of thinking models have them."""

from __future__ import annotations

import json
from typing import Any

from crow.testing.endpoint import USAGE, Received, Response, delta, respond, stream
from crow.testing.strict import Asked, Breaches, Rules, StrictEndpoint

THOUGHT, EXTRA = "reasoning_content", "extra_content"
FIELDS: dict[str, frozenset[str]] = {
    "system": frozenset({"role", "content", "name"}),
    "developer": frozenset({"role", "content", "name"}),
    "user": frozenset({"role", "content", "name"}),
    "tool": frozenset({"role", "content", "tool_call_id"}),
    "assistant": frozenset({"role", "content", "refusal", "tool_calls", THOUGHT}),
}
LONGEST = 40
RULES = Rules()


@RULES.add("C00", "messages.{}.{}: Extra inputs are not permitted")
def _unknown(asked: Asked) -> Breaches:
    for at, message in enumerate(asked.body["messages"]):
        for name in sorted(message.keys() - FIELDS[message["role"]]):
            yield at, name


@RULES.add(
    "C03",
    "An assistant message with 'tool_calls' must be followed by tool messages responding to "
    "each 'tool_call_id'. The following tool_call_ids did not have response messages: {}",
)
def _unanswered(asked: Asked) -> Breaches:
    waiting: list[str] = []
    end: Any = {"role": "user"}
    for message in [*asked.body["messages"], end]:
        if message["role"] == "tool":
            if message.get("tool_call_id") in waiting:
                waiting.remove(message["tool_call_id"])
            continue
        if waiting:
            yield (waiting[0],)
        waiting = _ids(message)


@RULES.add("C17", "messages.{}: role 'tool' must follow a message with 'tool_calls'.")
def _orphans(asked: Asked) -> Breaches:
    called: set[str] = set()
    for at, message in enumerate(asked.body["messages"]):
        called.update(_ids(message))
        if message["role"] == "tool" and message.get("tool_call_id") not in called:
            yield (at,)


@RULES.add("C04", "Expected a string with maximum length 40, but got one of {} instead.")
def _too_long(asked: Asked) -> Breaches:
    ids = (each for message in asked.body["messages"] for each in _ids(message))
    return ((len(each),) for each in ids if len(each) > LONGEST)


@RULES.add("C11", "unknown variant `image_url`, expected `text`")
def _images_of_tools(asked: Asked) -> Breaches:
    for message in asked.body["messages"]:
        if message["role"] == "tool" and not isinstance(message["content"], str):
            yield ()


@RULES.add("C05", "The `reasoning_content` in the thinking mode must be passed back to the API.")
def _forgotten(asked: Asked) -> Breaches:
    for message in asked.body["messages"]:
        own = asked.known.get(_key(message), message)
        if (message.get(THOUGHT), _signed(message)) != (own.get(THOUGHT), _signed(own)):
            yield ()


@RULES.add("C18", "messages.{}: the thought was made by another model.")
def _foreign(asked: Asked) -> Breaches:
    for at, message in enumerate(asked.body["messages"]):
        if _key(message) not in asked.known and (THOUGHT in message or any(_signed(message))):
            yield (at,)


class StrictChat(StrictEndpoint):
    """``async with StrictChat() as endpoint``; ``endpoint.say(text, ...)`` adds a reply.

    A request that breaks one of `RULES` is answered with status 400, and its id is added to
    ``refused``; the script stays where it is. What was thought and signed must come back as it was
    said, and nobody else's.
    """

    _rules = RULES

    def __init__(self) -> None:
        super().__init__()
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

    def _read(self, received: Received) -> Asked:
        return Asked(received.body, self.said)

    def _refusal(self, text: str) -> Response:
        return respond(400, {"error": {"message": text, "type": "invalid_request_error"}})


def use(name: str, call_id: str, /, signature: str = "", **args: Any) -> dict[str, Any]:
    """A call of a function, with a signature of thoughts as one provider has it."""
    function = {"name": name, "arguments": json.dumps(args)}
    call: dict[str, Any] = {"id": call_id, "type": "function", "function": function}
    return {**call, EXTRA: {"google": {"thought_signature": signature}}} if signature else call


def _ids(message: Any) -> list[str]:
    return [call["id"] for call in message.get("tool_calls") or ()]


def _key(message: Any) -> str:
    """What a message says and calls for; the thoughts in it and the ids aside."""
    calls = [call["function"] for call in message.get("tool_calls") or ()]
    return json.dumps([message.get("content") or None, calls, message.get("role", "assistant")])


def _signed(message: Any) -> list[Any]:
    return [call.get(EXTRA) for call in message.get("tool_calls") or ()]
