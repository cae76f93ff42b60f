"""Anthropic's Messages as a `Wire`: how a request is written, and what reads its reply."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from crow.core.errors import ModelError
from crow.core.messages import Message
from crow.core.ports.llm import Request
from crow.llm.http.assembly import Assembly
from crow.llm.http.encoding import Encoder, Piece, encode_clean
from crow.llm.http.request_format import RequestFormat, without_refused
from crow.llm.http.wire import Wire
from crow.llm.messages.conversation import encode, items_of, mark_last, marked, system_of
from crow.llm.messages.parameters import output_limit, parameters
from crow.llm.messages.refusals import BOUND, CACHE, LATE_SYSTEM, REFUSALS
from crow.llm.messages.reply import MessagesReply
from crow.llm.messages.serialization import WIRE, Turn, write
from crow.llm.messages.tools import tools_of
from crow.llm.models import ModelInfo

PATH = "/messages"
VERSION = "2023-06-01"
AT_VERTEX = "vertex-2023-10-16"
"""The version in the body, at Vertex AI, where the model stands in the path."""
INTERLEAVED = "interleaved-thinking-2025-05-14"
BINDING = "thinking-binding-controls-2026-08-01"
BYTES = 2
"""No token is shorter, on average: less than so many bytes a token cannot reach a minimum."""


class MessagesWire(Wire):
    """Anthropic's Messages as a `Wire`; see `AnthropicMessages`."""

    name = "AnthropicMessages"

    def __init__(
        self,
        info: ModelInfo,
        *,
        bearer: bool = False,
        at_vertex: bool = False,
        betas: Iterable[str] = (),
        cache_ttl: str | None = None,
        max_output_tokens: int | None = None,
    ) -> None:
        self._info = info
        self._bearer = bearer
        self._at_vertex = at_vertex
        self._betas = list(betas)
        self._mark = b',"cache_control":' + encode_clean(_ephemeral(cache_ttl))
        self._max_output = max_output_tokens or output_limit(info)
        self._signs = "claude" in info.model.lower()
        self._reported: set[str] = set()
        self.encoder = Encoder(self._piece)

    def path(self, model: str) -> str:
        """What stands behind the base URL."""
        return f"/models/{model}:streamRawPredict" if self._at_vertex else PATH

    def key_headers(self, key: str) -> Mapping[str, str]:
        """The key as one of Anthropic's, or as a bearer's."""
        return super().key_headers(key) if self._bearer else {"x-api-key": key}

    def headers(self, request: Request, form: RequestFormat) -> Mapping[str, str]:
        """The protocol's version, and the betas that the request needs."""
        betas = list(self._betas)
        if self._signs and self._info.thinking == "budget" and request.tools:
            betas.append(INTERLEAVED)
        if BOUND in form.without:
            betas.append(BINDING)
        named = {"anthropic-beta": ",".join(dict.fromkeys(betas))} if betas else {}
        return named if self._at_vertex else {"anthropic-version": VERSION, **named}

    def body(
        self, request: Request, model: str, params: Mapping[str, Any], form: RequestFormat
    ) -> bytes:
        """The request's JSON: the model and parameters, tools, system and messages.

        What the parameters have of ``tools`` (the endpoint's own) stands behind the request's.
        """
        pieces = self.encoder.follow(request.messages, request.session_id, form).pieces
        count = system_of(pieces)
        given = {**params}
        served: Sequence[Any] = given.pop("tools", None) or ()
        head = parameters(
            given,
            self._info,
            self._max_output,
            form.without,
            has_tools=bool(request.tools or served),
            may_think=self._info.thinking != "budget" or _may_think(pieces),
        )
        items = items_of(
            pieces[count:],
            late_system="late_system" in self._info.features and LATE_SYSTEM not in form.without,
            prefill="prefill" not in self._info.refuses,
        )
        tools = b",".join(
            [self.encoder.tools(request.tools, tools_of)[1:-1]] * bool(request.tools)
            + [encode_clean(each) for each in served]
        )
        system = b",".join(encoded for encoded, _ in pieces[:count] if encoded)
        if CACHE not in form.without and "cache_control" not in params:
            size = len(tools) + len(system)
            if self._can_cache(size + sum(len(encoded) for encoded, _ in pieces)):
                mark_last(items, self._mark)
                tools = marked(tools, self._mark) if self._can_cache(len(tools)) else tools
                system = marked(system, self._mark) if self._can_cache(size) else system
        named = {"anthropic_version": AT_VERTEX} if self._at_vertex else {"model": model}
        parts = [encode_clean({**named, "stream": True, **head})[:-1]]
        parts += [b',"tools":[', tools, b"]"] if tools else []
        parts += [b',"system":[', system, b"]"] if system else []
        return b"".join((*parts, b',"messages":[', encode(items), b"]}"))

    def milder(self, form: RequestFormat, error: ModelError) -> RequestFormat | None:
        """The form without what an endpoint has just refused."""
        return without_refused(form, error, REFUSALS)

    def reply(self, said: Assembly, form: RequestFormat) -> MessagesReply:
        """A new attempt at an answer."""
        return MessagesReply(said, form.origin + WIRE, self._reported)

    def _piece(self, form: RequestFormat, message: Message) -> Piece:
        return write(form, message, signs=self._signs)

    def _can_cache(self, size: int) -> bool:
        """Whether so many bytes may be as many tokens as a prefix must have to be cached."""
        return size >= BYTES * (self._info.cache_minimum or 0)


def _may_think(pieces: Sequence[Piece]) -> bool:
    """False in the middle of a turn that was begun without a thought."""
    turns: list[Turn] = [turn for encoded, turn in pieces if encoded]
    roles = [turn.role for turn in turns]
    last = max((at for at, role in enumerate(roles) if role == "assistant"), default=0)
    return "result" not in roles[last:] or turns[last].thinks


def _ephemeral(ttl: str | None) -> dict[str, str]:
    return {"type": "ephemeral", "ttl": ttl} if ttl else {"type": "ephemeral"}
