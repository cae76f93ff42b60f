"""An endpoint of the Messages protocol that looks at every request before it answers."""

from __future__ import annotations

import json
from typing import Any

from crow.testing.endpoint import Received, Response, Step, respond
from crow.testing.messages.replies import (
    MessagesReply,
    Said,
    events_of,
    reason_of,
    sealed,
    streamed,
)
from crow.testing.messages.request import ROLES, THOUGHTS, MessagesRequest, Prefix, signed
from crow.testing.messages.rules import RULES
from crow.testing.strict import Rule, StrictEndpoint

LOOKBACK = 20
"""How many blocks before a mark the cache is looked through for."""
BOUND = Rule(
    "A05",
    "{}: Invalid `signature` in `thinking` block. The block is bound to a different conversation.",
    lambda _: (),
    {},
)
"""What binds thoughts where the account has that."""


class StrictMessages(StrictEndpoint):
    """``async with StrictMessages() as endpoint``; ``endpoint.say(...)`` adds a reply.

    A request that breaks a rule is answered as the real endpoint does, with status 400, and takes
    no reply from the script: ``refused`` has the rules that were broken. Thoughts are signed; a
    model that binds them to what stood before refuses or drops them where that was changed.
    ``enforces`` is False for an account on which that is only looked at. ``cached`` counts the
    tokens that were read from its cache in each request that was answered.
    """

    _rules = RULES

    def __init__(self, *, enforces: bool = True) -> None:
        super().__init__()
        self.enforces = enforces
        self.cached: list[int] = []
        self._replies: list[MessagesReply | Response] = []
        self._cache: set[str] = set()
        self._count = 0

    def say(
        self, *said: Said, stop: str | None = None, details: dict[str, Any] | None = None
    ) -> None:
        """Add a reply: texts and blocks, and why it ends, if that does not follow from them."""
        why: dict[str, Any] = {"stop_reason": stop} if stop else {}
        self._replies.append(MessagesReply(said, {**why, "stop_details": details}))

    def play(self, *responses: Response) -> None:
        """Add responses as they are sent; whoever asks for them must keep the rules, too."""
        self._replies.extend(responses)

    def _read(self, received: Received) -> MessagesRequest:
        return MessagesRequest.at(received.path, received.body, received.headers)

    def _reply(self, asked: MessagesRequest, received: Received) -> Response:
        lost = mismatches(asked)
        bound = [each for each in lost if each["reason"] == "prefix_binding_mismatch"]
        if bound and self.enforces and not asked.drops:
            return self._refuse(BOUND, BOUND.says.format(bound[0]["path"]))
        if not self._replies:
            return respond(418, "past the script")
        reply = self._replies.pop(0)
        return self._streamed(asked, reply, lost) if isinstance(reply, MessagesReply) else reply

    def _streamed(
        self, asked: MessagesRequest, reply: MessagesReply, lost: list[dict[str, Any]]
    ) -> list[Step]:
        self._count += 1
        blocks = sealed(asked, reply.said, self._count)
        told = {"input_transformations": lost} if asked.drops else {}
        why = {"stop_reason": reason_of(blocks), **reply.stop}
        return streamed(events_of(asked, blocks, why, self._usage(asked), told))

    def _refusal(
        self, text: str, status: int = 400, kind: str = "invalid_request_error"
    ) -> Response:
        error = {"type": kind, "message": text}
        return respond(status, {"type": "error", "error": error, "request_id": "req_1"})

    def _usage(self, asked: MessagesRequest) -> dict[str, int]:
        """The tokens of a request; the marks in it are kept, and looked for from then on."""
        prefix, hashes, sizes, marks = Prefix(), list[str](), list[int](), list[int]()
        for place, block in asked.parts():
            prefix.add(place, block)
            hashes.append(prefix.value)
            sizes.append(len(json.dumps(block)) // 4 + (sizes[-1] if sizes else 0))
            if "cache_control" in block:
                marks.append(len(hashes) - 1)
        looked = {at for mark in marks for at in range(mark, max(mark - LOOKBACK, -1), -1)}
        found = max((at for at in looked if hashes[at] in self._cache), default=-1)
        self._cache |= {hashes[at] for at in marks}
        read = sizes[found] if found >= 0 else 0
        written = sizes[marks[-1]] - read if marks else 0
        self.cached.append(read)
        return {
            "input_tokens": sizes[-1] - read - written,
            "cache_read_input_tokens": read,
            "cache_creation_input_tokens": written,
            "output_tokens": 1,
        }


def mismatches(asked: MessagesRequest) -> list[dict[str, Any]]:
    """The thoughts that were made by another model, or behind something else than now."""
    lost: list[dict[str, Any]] = []
    paths = iter(
        f"messages.{number}.content.{at}"
        for number, (_, blocks) in enumerate(asked.messages)
        for at in range(len(blocks))
    )
    prefix = Prefix()
    for place, block in asked.parts():
        path = next(paths) if place in ROLES else ""
        made = signed(block) if block.get("type") in THOUGHTS else None
        if made is not None and (reason := _reason(asked, made, prefix.value)):
            lost.append({"type": "thinking_dropped", "path": path, "reason": reason})
        prefix.add(place, block)
    return lost


def _reason(asked: MessagesRequest, made: tuple[str, str], prefix: str) -> str:
    if made[0] != asked.model:
        return "model_binding_mismatch"
    return "prefix_binding_mismatch" if asked.binds and made[1] != prefix else ""
