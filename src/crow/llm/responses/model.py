"""A model behind an endpoint that speaks OpenAI's Responses protocol."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, Literal, Unpack

from crow.core.errors import ModelError
from crow.core.messages import Message
from crow.core.ports.llm import Request
from crow.llm.http import HttpModel, Options
from crow.llm.http.assembly import Assembly
from crow.llm.http.encoding import Encoder, Piece, encode_clean
from crow.llm.http.request_format import Refusal, RequestFormat, without_refused
from crow.llm.http.wire import Wire
from crow.llm.models import UNKNOWN, ModelInfo
from crow.llm.responses.items import WIRE
from crow.llm.responses.params import REASONING, in_words_of_responses, tools_of
from crow.llm.responses.reply import ResponsesReply
from crow.llm.responses.serialization import items_of

PATH = "/responses"
CACHE_KEY = "prompt_cache_key"
LONGEST_KEY = 64
ENCRYPTED = "reasoning.encrypted_content"
UNTAKEN = "unsupported|not supported|unknown|unrecogni[sz]ed|not permitted|not allowed|verified"
SUMMARY = "reasoning[. ]summar"
OF_THESE = r"invalid_encrypted_content|encrypted content.{0,200}could not be|without its required"
"""What is said of thoughts in the request, and not of thoughts as such."""
REFUSALS: tuple[Refusal, ...] = (
    (OF_THESE, {"doubts": True}),
    (r"encrypted.content|items are not persisted", {"thoughts": False}),
    (
        (
            rf"(?:{UNTAKEN}).{{0,40}}{SUMMARY}|{SUMMARY}.{{0,60}}(?:{UNTAKEN})"
            rf"|(?:{UNTAKEN})[^.]{{0,20}}'reasoning"
        ),
        REASONING,
    ),
    (rf"(?:{UNTAKEN})[^.]{{0,40}}\bphase\b", "phase"),
    (rf"(?:{UNTAKEN}).{{0,40}}{CACHE_KEY}|{CACHE_KEY}.{{0,60}}(?:{UNTAKEN})", CACHE_KEY),
)

Role = Literal["developer", "system"]


def Responses(  # noqa: N802 - who makes one makes a model
    model: str,
    base_url: str,
    api_key: str | None = None,
    *,
    reasoning: bool = True,
    system_role: Role | None = None,
    cache_key: bool = True,
    **options: Unpack[Options],
) -> HttpModel:
    """An LLM. ``base_url`` is what stands before ``/responses``; see `HttpModel`.

    The endpoint stores nothing: what it sent, encrypted thoughts included, goes back to it as it
    came, and to nobody else. ``reasoning`` asks for the thoughts, which models that have none
    refuse; ``system_role`` is who speaks the system's message, the developer where the model's
    ``info`` does not say that it refuses that. ``cache_key`` sends the session's
    id, for endpoints that route by it. An endpoint that refuses encrypted thoughts, a summary
    of them, an image or the key is asked again without, and from then on.
    """
    form = RequestFormat(
        images_in_results=True,
        thoughts=reasoning,
        without=frozenset() if reasoning else frozenset({REASONING}),
    )
    info = options.get("info", UNKNOWN)
    role = system_role or ("system" if "developer" in info.refuses else "developer")
    wire = ResponsesWire(info, role, cache_key=cache_key)
    return HttpModel(wire, model, base_url, api_key, form=form, **options)


class ResponsesWire(Wire):
    """Responses as a `Wire`."""

    name = "Responses"

    def __init__(
        self,
        info: ModelInfo = UNKNOWN,
        role: Role = "developer",
        *,
        cache_key: bool = True,
    ) -> None:
        self._info = info
        self._role = role
        self._cache_key = cache_key
        self.encoder = Encoder(self._piece)

    def path(self, model: str) -> str:
        """What stands behind the base URL."""
        return PATH

    def body(
        self, request: Request, model: str, params: Mapping[str, Any], form: RequestFormat
    ) -> bytes:
        """The request's JSON: the model and parameters, the tools, the items."""
        head: dict[str, Any] = {"model": model, "stream": True, "store": False}
        if form.thoughts:
            head["include"] = [ENCRYPTED]
        if self._cache_key and request.session_id and CACHE_KEY not in form.without:
            head[CACHE_KEY] = _short(request.session_id)
        start = encode_clean({**head, **in_words_of_responses(params, form, self._info)})[:-1]
        tools = b""
        if request.tools:
            tools = b',"tools":' + self.encoder.tools(request.tools, tools_of)
        items = self.encoder.messages(request.messages, request.session_id, form)
        return b"".join((start, tools, b',"input":[', items, b"]}"))

    def milder(self, form: RequestFormat, error: ModelError) -> RequestFormat | None:
        """The form without what an endpoint has just refused of `REFUSALS`."""
        return without_refused(form, error, REFUSALS)

    def reply(self, said: Assembly, form: RequestFormat) -> ResponsesReply:
        """A new attempt at an answer."""
        return ResponsesReply(said, form.origin + WIRE)

    def _piece(self, form: RequestFormat, message: Message) -> Piece:
        """The items that a message becomes."""
        return b",".join(map(encode_clean, items_of(form, message, self._role))), None


def _short(session_id: str) -> str:
    """A session's id, or what stands for it where it is too long."""
    if len(session_id) <= LONGEST_KEY:
        return session_id
    return hashlib.sha256(session_id.encode()).hexdigest()
