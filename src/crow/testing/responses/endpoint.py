"""A strict double of OpenAI's Responses: it judges requests by the rules that are published.

What it has said itself it knows again: a thought that was changed, that is another model's, or
that comes without the item which it belongs to, is refused as there.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from crow.testing.endpoint import END, Received, Response, Step, begin, piece, respond
from crow.testing.responses.events import Item, events
from crow.testing.responses.rules import RULES, TOO_LONG, Issued
from crow.testing.strict import Asked, StrictEndpoint


class ScriptedResponse(list[Step]):
    """A response that knows which items it consists of."""

    def __init__(self, items: Sequence[Item], steps: Iterable[Step]) -> None:
        super().__init__(steps)
        self.items = list(items)


class StrictResponses(StrictEndpoint):
    """``async with StrictResponses() as endpoint``; ``endpoint.reply(*items)`` adds a response.

    A request that breaks one of `RULES` is answered as OpenAI would, and the rule's id is added to
    ``refused``; the script stays where it is. ``window`` bounds a request's bytes. As Azure does
    it, ``late_thoughts`` sends encrypted thoughts with the end of the response alone.
    """

    _rules = RULES

    def __init__(self, *, window: int | None = None, late_thoughts: bool = False) -> None:
        super().__init__()
        self.window = window
        self.late_thoughts = late_thoughts
        self.issued = Issued()

    def reply(self, *items: Item, status: str = "completed", **fields: Any) -> None:
        """Add a response that consists of these items; ``fields`` are those of its end."""
        told = events(items, status=status, **fields)
        if self.late_thoughts:
            told = [_without_encrypted(event) for event in told]
        self.play(ScriptedResponse(items, stream(*told)))

    def fail(self, code: str, message: str) -> None:
        """Add a response that begins with status 200, and fails."""
        told = events([], status="failed", error={"code": code, "message": message})
        self.play(stream(*told))

    def _answer(self, received: Received) -> Response:
        if self.window is not None and len(received.raw) > self.window:
            return self._refuse(TOO_LONG, TOO_LONG.says)
        return super()._answer(received)

    def _read(self, received: Received) -> Asked:
        return Asked(received.body, self.issued)

    def _reply(self, asked: Asked, received: Received) -> Response:
        response = super()._reply(asked, received)
        if isinstance(response, ScriptedResponse):
            self.issued.add(response.items, asked.body["model"])
        return response

    def _refusal(self, text: str, code: str | None = None, param: str | None = "input") -> Response:
        fault = {"message": text, "type": "invalid_request_error", "param": param, "code": code}
        return respond(400, {"error": fault})


def stream(*told: Item) -> list[Step]:
    """A streamed response of named events."""
    lines = (f"event: {each['type']}\ndata: {json.dumps(each)}\n\n".encode() for each in told)
    return [begin(), *map(piece, lines), END]


def _without_encrypted(event: Item) -> Item:
    item = event.get("item")
    if item is None or "encrypted_content" not in item:
        return event
    kept = {name: value for name, value in item.items() if name != "encrypted_content"}
    return {**event, "item": kept}
