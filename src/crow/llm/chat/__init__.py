"""A model behind an OpenAI-compatible endpoint: chat completions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Unpack

from crow.core.errors import ModelError
from crow.core.messages import ImagePart, Message
from crow.core.ports.llm import Request
from crow.llm.chat.params import KNOWN_IN_ADVANCE, NO_TOOLS, REFUSALS, taken, tools_for
from crow.llm.chat.reply import ChatReply
from crow.llm.chat.serialization import following, write
from crow.llm.http import HttpModel, Options
from crow.llm.http.assembly import Assembly
from crow.llm.http.encoding import CACHE_BYTES, Encoder, Piece, encode_clean, ids_in
from crow.llm.http.request_format import RequestFormat, without_refused
from crow.llm.http.wire import Wire
from crow.llm.models import UNKNOWN, ModelInfo

PATH = "/chat/completions"
READ = b'{"role":"assistant","content":"I have the results."}'


def ChatCompletions(  # noqa: N802 - who makes one makes a model
    model: str,
    base_url: str,
    api_key: str | None = None,
    *,
    echo_reasoning: bool = False,
    images_in_results: bool = False,
    cache_key: str | None = None,
    **options: Unpack[Options],
) -> HttpModel:
    """An LLM. ``base_url`` is what stands before ``/chat/completions``; see `HttpModel`.

    What the endpoint itself sent of the model's thoughts goes back to it as it came;
    ``echo_reasoning`` sends other models' reasoning, too, and an empty one where there was none,
    which some endpoints need and others refuse. ``images_in_results`` is for endpoints that take
    images in a tool's result, and want no message of the user's behind it. An endpoint that
    refuses an image, such fields or what is in `crow.llm.chat.params` is asked again in another
    form, and from then on; what ``info`` knows to be refused is not even sent the first time.
    ``cache_key`` names the body's field that gets the session's id, for endpoints that route by
    it.
    """
    info = options.get("info", UNKNOWN)
    form = RequestFormat(
        echoes=echo_reasoning,
        images_in_results=images_in_results,
        without=info.refuses & KNOWN_IN_ADVANCE,
    )
    wire = ChatWire(cache_key, info)
    return HttpModel(wire, model, base_url, api_key, form=form, **options)


class ChatWire(Wire):
    """Chat completions as a `Wire`; about ``limit`` bytes of what was encoded are remembered.

    ``info`` says how the model is told to think, and whether its prefixes are marked for a cache.
    """

    name = "ChatCompletions"

    def __init__(
        self,
        cache_key: str | None = None,
        info: ModelInfo = UNKNOWN,
        limit: int = CACHE_BYTES,
    ) -> None:
        self._cache_key = cache_key
        self._info = info
        self.encoder = Encoder(_piece, self._join, limit)
        self._answered = False

    def path(self, model: str) -> str:
        """What stands behind the base URL."""
        return PATH

    def body(
        self, request: Request, model: str, params: Mapping[str, Any], form: RequestFormat
    ) -> bytes:
        """The request's JSON: the model and parameters, the tools, the messages."""
        head: dict[str, Any] = {"model": model, "stream": True}
        if form.usage:
            head["stream_options"] = {"include_usage": True}
        if self._cache_key and request.session_id:
            head[self._cache_key] = request.session_id
        if "cache_control" in self._info.features:
            head["cache_control"] = {"type": "ephemeral"}
        self._answered = form.answered
        own = taken(params, self._info, form.without, has_tools=bool(request.tools))
        start = encode_clean({**head, **own})[:-1]
        tools = b""
        if request.tools:
            tools = b',"tools":' + self.encoder.tools(tools_for(request.tools, form.without))
        messages = self.encoder.messages(request.messages, request.session_id, form)
        if not request.tools and NO_TOOLS in form.without and ids_in(request.messages):
            tools = b',"tools":[]'
        return b"".join((start, tools, b',"messages":[', messages, b"]}"))

    def milder(self, form: RequestFormat, error: ModelError) -> RequestFormat | None:
        """The form without what an endpoint has just refused of options and thoughts."""
        return without_refused(form, error, REFUSALS)

    def _join(
        self, messages: Sequence[Message], pieces: Sequence[Piece], *, is_plain: bool
    ) -> list[bytes] | None:
        """All messages, images behind the results that they belong to."""
        if is_plain and not self._answered:
            return None
        items: list[bytes] = []
        waiting: list[ImagePart] = []
        before = ""
        for message, (encoded, moved) in zip(messages, pieces, strict=True):
            if waiting and message["role"] != "tool":
                items += self._shown(waiting)
                waiting, before = [], "user"
            if self._answered and (before, message["role"]) == ("tool", "user"):
                items.append(READ)
            items.append(encoded)
            waiting += moved
            before = message["role"]
        return [*items, *self._shown(waiting)] if waiting else items

    def _shown(self, images: Sequence[ImagePart]) -> list[bytes]:
        """The message of the user's that shows what tools returned as images."""
        shown = encode_clean(following(images))
        return [READ, shown] if self._answered else [shown]

    def reply(self, said: Assembly, form: RequestFormat) -> ChatReply:
        """A new attempt at an answer."""
        return ChatReply(said, form.origin)


def _piece(form: RequestFormat, message: Message) -> Piece:
    """A message, and the images that must follow the results that it stands among."""
    written, moved = write(form, message)
    return encode_clean(written), moved
