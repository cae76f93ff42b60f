"""A model behind somebody else's client: any object with ``.chat.completions.create``."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import AsyncGenerator, Mapping
from functools import partial
from typing import Any

from crow.core.errors import ModelError
from crow.core.messages import Message
from crow.core.ports.llm import Completion, Delta, Request
from crow.llm.chat import ChatWire
from crow.llm.chat.reply import ChatReply
from crow.llm.chat.serialization import messages_for
from crow.llm.client_answers import as_event, chunks_of, hang_up
from crow.llm.http import Retries, Timeouts
from crow.llm.http.assembly import Assembly, Shown
from crow.llm.http.encoding import ids_in
from crow.llm.http.faults import Redactor, error_of_event, error_of_response, named_error
from crow.llm.http.reply_reader import Pace
from crow.llm.http.request_format import RequestFormat, RequestFormats, images_in
from crow.llm.http.retry import Batch, Clock, repeat
from crow.llm.http.text import clean_value, is_object

MAX_OUTPUT = 8 * 1024 * 1024
PIECE = 160
"""Bytes of a chunk, about; the client knows, and does not say."""
NETWORK = frozenset({"APIConnectionError", "NetworkError", "ProtocolError", "TransportError"})


class ClientModel:
    """An LLM. ``client`` is for instance an ``openai.AsyncOpenAI``; a sync one runs in threads.

    It gets ``create(model=..., messages=..., tools=..., stream=True, **params)`` and may answer
    with chunks as objects or dicts, or with one whole completion. Clients of the ``openai``
    library get messages, tools and parameters in ``extra_body``: the same JSON on the wire,
    without the library's walk over every message. ``retries`` come on top of the client's own.
    """

    def __init__(
        self,
        client: Any,
        model: str,
        params: Mapping[str, Any] | None = None,
        context_window: int | None = None,
        *,
        timeouts: Timeouts | None = None,
        retries: Retries | None = None,
        max_output: int = MAX_OUTPUT,
        echo_reasoning: bool = False,
    ) -> None:
        self.model = model
        self.context_window = context_window
        self._client = client
        self._params = dict(params or {})
        self._timeouts = timeouts or Timeouts()
        self._retries = retries or Retries(limit=2)
        self._max_output = max_output
        self._forms = RequestFormats(RequestFormat(echoes=echo_reasoning), ChatWire().milder)
        self._is_openai = type(client).__module__.partition(".")[0] == "openai"

    def __repr__(self) -> str:
        return f"ClientModel({type(self._client).__name__}, {self.model!r})"

    @property
    def base_url(self) -> str | None:
        """Where the client sends its requests, if it says so."""
        where = getattr(self._client, "base_url", None)
        return None if where is None else str(where)

    @property
    def secrets(self) -> frozenset[str]:
        """The client's key, if it has one that can be seen."""
        key = getattr(self._client, "api_key", None)
        return frozenset({key} if isinstance(key, str) else ())

    def stream(self, request: Request) -> AsyncGenerator[Delta | Completion, None]:
        """Ask the model; see `crow.core.ports.llm.LLM`."""
        clock = Clock(self._timeouts)
        where = self.base_url or type(self._client).__name__
        model = request.model or self.model
        redact = Redactor(self.secrets)

        def attempt(shown: Shown) -> AsyncGenerator[Batch, None]:
            answer = partial(self._answer, request, shown, clock)
            return self._forms.ask(f"{where} {model}", answer, partial(images_in, request.messages))

        def named(error: ModelError) -> ModelError:
            return named_error(error, f"{model} at {where.rstrip('/')}", redact)

        return repeat(attempt, self._retries, clock, named)

    async def _answer(
        self, request: Request, shown: Shown, clock: Clock, form: RequestFormat
    ) -> AsyncGenerator[Batch, None]:
        answer = await self._respond(request, clock, form)
        chunks = chunks_of(answer)
        known = partial(ids_in, request.messages)
        said = Assembly(known, request.message_id, self._max_output, shown)
        reply = ChatReply(said, form.origin)
        pace = Pace()
        try:
            while not reply.said.overflowed:
                deltas: list[Delta] = []
                if not await _read(chunks, reply, clock, deltas):
                    break
                if deltas:
                    clock.progress()
                    yield shown.filter(deltas)
                if pace.is_up(PIECE):
                    await pace.turn(0)
            yield [*shown.filter(_ending(reply)), *shown.ending(request.message_id)]
        except ModelError:
            reply.said.remember(shown)
            raise
        finally:
            await hang_up(chunks, answer)
        yield [reply.completion()]

    async def _respond(self, request: Request, clock: Clock, form: RequestFormat) -> Any:
        """What the client answers. Raises `ModelError`."""
        try:
            return await clock.headers(self._create(request, form))
        except ModelError:
            raise
        except Exception as error:  # whatever somebody else's library raises
            raise fault_of(error) from error

    async def _create(self, request: Request, form: RequestFormat) -> Any:
        create = self._client.chat.completions.create
        try:
            return await _called(create, self._arguments(request, request.messages, form))
        except UnicodeEncodeError:
            messages = clean_value(request.messages)
            return await _called(create, self._arguments(request, messages, form))

    def _arguments(
        self, request: Request, messages: list[Message], form: RequestFormat
    ) -> dict[str, Any]:
        arguments: dict[str, Any] = {"model": request.model or self.model, "stream": True}
        if form.usage:
            arguments["stream_options"] = {"include_usage": True}
        body = {**self._params, **request.params, "messages": messages_for(form, messages)}
        if request.tools:
            body["tools"] = request.tools
        if self._is_openai:
            return {**arguments, "messages": [], "extra_body": body}
        return {**arguments, **body}


async def _called(create: Any, arguments: dict[str, Any]) -> Any:
    """What ``create`` gives; in a thread unless it is known to be asynchronous."""
    if inspect.iscoroutinefunction(inspect.unwrap(create)):
        return await create(**arguments)
    answer = await asyncio.to_thread(create, **arguments)
    return await answer if inspect.isawaitable(answer) else answer


async def _read(
    chunks: AsyncGenerator[Any, None], reply: ChatReply, clock: Clock, deltas: list[Delta]
) -> bool:
    """Add the next chunk to the reply; False at the end. Raises `ModelError`."""
    finished = reply.finished
    try:
        chunk = await clock.event(anext(chunks, None), closing=finished)
    except ModelError:
        if finished:
            return False
        raise
    except Exception as error:  # whatever somebody else's library raises
        if finished:
            return False
        raise fault_of(error) from error
    if chunk is None:
        return False
    reply.take(as_event(chunk), deltas)
    return True


def _ending(reply: ChatReply) -> list[Delta]:
    """What was held back. Raises `ModelError` where the answer is none."""
    if reply.said_nothing:
        raise ModelError("sent an empty answer", kind="protocol")
    if not (reply.finished or reply.said.overflowed):
        raise ModelError("broke off in the middle of its answer", kind="network")
    deltas: list[Delta] = []
    reply.end(deltas)
    return deltas


def fault_of(error: Exception) -> ModelError:
    """Somebody else's exception in the words of the core, judged by status, body and name."""
    status = getattr(error, "status_code", None)
    body = getattr(error, "body", None)
    said = str(error) or type(error).__name__
    if isinstance(status, int):
        response = getattr(error, "response", None)
        headers = getattr(response, "headers", None)
        told = json.dumps({"error": body}, default=str) if is_object(body) else said
        return error_of_response(status, headers or {}, told.encode())
    names = {each.__name__ for each in type(error).__mro__}
    if any("Timeout" in name for name in names):
        return ModelError(f"took too long: {said}", kind="timeout")
    if names & NETWORK or isinstance(error, OSError):
        return ModelError(f"broke the connection: {said}", kind="network")
    if "APIError" in names:
        event = {"error": {**body, "message": said} if is_object(body) else said}
        return error_of_event(event) or ModelError(said, kind="server")
    if isinstance(error, ValueError):
        return ModelError(f"sent something that is no chat completion: {said}", kind="protocol")
    return ModelError(f"cannot be asked: {type(error).__name__}: {said}", kind="unknown")
