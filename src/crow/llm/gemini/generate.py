"""A model behind Google's generateContent, at AI Studio or at Vertex AI."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack
from urllib.parse import urlsplit

from crow.core.errors import ModelError
from crow.core.ports.llm import Request
from crow.llm.gemini.contents import contents, instruction
from crow.llm.gemini.options import request_fields
from crow.llm.gemini.reply import GeminiReply
from crow.llm.gemini.serialization import WIRE, write
from crow.llm.gemini.tools import declarations, name_for
from crow.llm.gemini.traits import OF_SIGNATURES, REFUSALS, SYSTEM, UNSIGNED, signs
from crow.llm.http import HttpModel, Options
from crow.llm.http.assembly import Assembly
from crow.llm.http.encoding import Encoder, encode_clean
from crow.llm.http.request_format import RequestFormat, without_refused
from crow.llm.http.wire import Wire
from crow.llm.models import UNKNOWN as NOTHING_KNOWN
from crow.llm.models import ModelInfo, model_info

PROVIDER = "google"
VERTEX = "aiplatform.googleapis.com"
API_KEYS = ("AIza", "AQ.")


def Gemini(  # noqa: N802 - who makes one makes a model
    model: str,
    base_url: str,
    api_key: str | None = None,
    *,
    max_output_tokens: int | None = None,
    bearer: bool | None = None,
    **options: Unpack[Options],
) -> HttpModel:
    """An LLM. ``base_url`` is what stands before ``/models/``; see `HttpModel`.

    At Vertex AI it ends in ``/projects/P/locations/L/publishers/google``, and the key is an access
    token, sent as a bearer's; ``bearer`` says so of another host, or denies it. What the model
    thought goes back to the same model at the same place as it came, signatures included. Of the
    parameters, those of chat completions (``reasoning_effort``, ``temperature``, ``max_tokens``,
    ``stop``, ``tool_choice``, ``response_format``) are put into Gemini's words; the others go into
    the body as they are, ``generationConfig`` piece by piece.
    """
    if bearer is None:
        vertex = (urlsplit(base_url).hostname or "").endswith(VERTEX)
        bearer = vertex and not (api_key or "").startswith(API_KEYS)
    info = options.setdefault("info", model_info(PROVIDER, model))
    wire = GeminiWire(info, max_output_tokens, bearer=bearer)
    return HttpModel(wire, model, base_url, api_key, **options)


class GeminiWire(Wire):
    """generateContent as a `Wire`.

    ``info`` is what is known of the model, ``limit`` the most tokens of an answer.
    """

    name = "Gemini"

    def __init__(
        self,
        info: ModelInfo = NOTHING_KNOWN,
        limit: int | None = None,
        *,
        bearer: bool = False,
    ) -> None:
        self._info = info
        self._limit = limit
        self._bearer = bearer
        self.encoder = Encoder(write, contents)
        self._names: dict[str, str] = {}

    def path(self, model: str) -> str:
        """What stands behind the base URL; a model's name may hold its collection."""
        where = model if "/" in model else f"models/{model}"
        return f"/{where}:streamGenerateContent?alt=sse"

    def key_headers(self, key: str) -> Mapping[str, str]:
        """The key as Google takes it."""
        return super().key_headers(key) if self._bearer else {"x-goog-api-key": key}

    def body(
        self, request: Request, model: str, params: Mapping[str, Any], form: RequestFormat
    ) -> bytes:
        """The request's JSON: options, the system's words, tools, contents."""
        head = request_fields(params, self._info_of(model), form, self._limit)
        said = self.encoder.messages(request.messages, request.session_id, form)
        if system := instruction(request.messages):
            if SYSTEM in form.without:
                said = encode_clean({"role": "user", "parts": system}) + b"," + said
            else:
                head["systemInstruction"] = {"parts": system}
        tools = b""
        if request.tools:
            names = (tool["function"]["name"] for tool in request.tools)
            self._names |= {sent: own for own in names if (sent := name_for(own)) != own}
            tools = b'"tools":%b,' % self.encoder.tools(request.tools, declarations)
        start = encode_clean(head)[:-1] + b"," if head else b"{"
        return b"".join((start, tools, b'"contents":[', said, b"]}"))

    def _info_of(self, model: str) -> ModelInfo:
        return self._info if model == self._info.model else model_info(PROVIDER, model)

    def milder(self, form: RequestFormat, error: ModelError) -> RequestFormat | None:
        """The form without what the endpoint has just refused of thoughts and options."""
        unsigned = [] if signs(form) else [(OF_SIGNATURES, UNSIGNED)]
        return without_refused(form, error, (*unsigned, *REFUSALS))

    def reply(self, said: Assembly, form: RequestFormat) -> GeminiReply:
        """A new attempt at an answer."""
        return GeminiReply(said, form.origin + WIRE, self._names)
