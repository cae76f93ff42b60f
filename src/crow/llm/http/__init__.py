"""A model behind an HTTP endpoint, whatever its wire: streamed, retried, its faults named."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict
from urllib.parse import SplitResult, urlencode, urlsplit

from crow.core.errors import ModelError
from crow.core.ports.llm import Completion, Delta, KeyUser, Request
from crow.core.support.validation import implements
from crow.llm.http.assembly import Assembly, Shown
from crow.llm.http.connection import Connection, Response
from crow.llm.http.faults import Redactor, RefusedError, error_of_response, named_error
from crow.llm.http.reply_reader import ReplyReader
from crow.llm.http.request_format import RequestFormat, RequestFormats
from crow.llm.http.retry import NO_RETRIES as NO_RETRIES
from crow.llm.http.retry import Batch, Clock, Retries, Timeouts, repeat
from crow.llm.models import UNKNOWN, ModelInfo

if TYPE_CHECKING:
    from crow.llm.http.wire import Wire, WireReply

MAX_OUTPUT = 8 * 1024 * 1024
ERROR_BODY = 64 * 1024
BYTES = 3
"""Of a token: so many for each that fits is a request that fills the window."""
EMPTY = "sent an empty answer to a request that fills its window"
AGENT = "crow"
PLAIN = RequestFormat()
FetchKey: TypeAlias = Callable[[str], Awaitable[str]]
"""Gives a key for a request, another than the one that was refused; ``""`` where none was."""
Sign: TypeAlias = Callable[[str, bytes], Awaitable[Mapping[str, str]]]
"""Gives the headers that vouch for a POST to a URL with a body."""
FindWindow: TypeAlias = Callable[[], Awaitable[int | None]]


class Options(TypedDict, total=False):
    """Options that every model over HTTP takes; see `HttpModel`."""

    headers: Mapping[str, str] | None
    params: Mapping[str, Any] | None
    context_window: int | None
    timeouts: Timeouts | None
    retries: Retries | None
    max_output: int
    key_origin: str
    key_header: str
    fetch_key: FetchKey | None
    sign: Sign | None
    query: Mapping[str, str] | None
    find_window: FindWindow | None
    info: ModelInfo
    inputs: Iterable[str] | None
    thought_levels: Iterable[str] | None


class HttpModel:
    """An LLM. ``base_url`` is what stands before the wire's own path.

    ``params`` go into every request's body, ``headers`` into every request. ``max_output`` bounds
    an answer in characters. ``form`` is how the endpoint is asked first; what it refuses it is not
    sent again. ``key_origin`` says where the key came from, for people; ``key_header`` carries it
    in the place of the wire's own, ``fetch_key`` gives it where there is none yet, and another one
    when it is refused; ``sign`` gives headers for each request. ``query`` stands behind every path.
    ``info`` is what is known of the model; ``context_window``, ``inputs`` (``image``, ``audio``:
    what it takes beside text) and ``thought_levels`` (what ``reasoning_effort`` can be) go before
    that. ``find_window`` is asked once, behind the first answer, for the window that the server
    has; a smaller one that the server names where a request is too long counts, too. Raises
    `ModelError` (unconfigured) where key, headers or URL cannot work.
    """

    def __init__(
        self,
        wire: Wire,
        model: str,
        base_url: str,
        api_key: str | None = None,
        *,
        headers: Mapping[str, str] | None = None,
        params: Mapping[str, Any] | None = None,
        context_window: int | None = None,
        timeouts: Timeouts | None = None,
        retries: Retries | None = None,
        max_output: int = MAX_OUTPUT,
        key_origin: str = "",
        key_header: str = "",
        fetch_key: FetchKey | None = None,
        sign: Sign | None = None,
        query: Mapping[str, str] | None = None,
        find_window: FindWindow | None = None,
        info: ModelInfo = UNKNOWN,
        inputs: Iterable[str] | None = None,
        thought_levels: Iterable[str] | None = None,
        form: RequestFormat = PLAIN,
    ) -> None:
        self.model = model
        self.info = info
        self._inputs = frozenset(info.inputs if inputs is None else inputs)
        self.thought_levels = tuple(info.levels if thought_levels is None else thought_levels)
        self.key_origin = key_origin
        self.context_window = context_window or info.context_window
        self.base_url = _checked_url(base_url, wire.path(model))
        self._wire = wire
        self._params = dict(params or {})
        self._timeouts = timeouts or Timeouts()
        self._retries = retries or Retries()
        self._max_output = max_output
        sees = "image" in self._inputs
        first = form if form.images == sees else replace(form, images=sees)
        self._forms = RequestFormats(first, wire.milder)
        self._find_window = find_window
        self._finding: asyncio.Task[None] | None = None
        self._writing = threading.Lock()
        self._fetch_key = fetch_key
        self._sign = sign
        self._fetched = ""
        self._query = urlencode(query or {})
        self._key_headers = partial(_named, key_header) if key_header else wire.key_headers
        self._keys = {api_key} if api_key else set[str]()
        self._redact = Redactor([*self._keys, *(headers or {}).values()])
        sent = _headers(self._key_headers, api_key, headers or {})
        self._connection = Connection(self.base_url, sent, self._timeouts)

    def __repr__(self) -> str:
        return f"{self._wire.name}({self.model!r}, {self.base_url!r})"

    @property
    def secrets(self) -> frozenset[str]:
        """The keys that it has used, fetched ones and what signs its requests among them."""
        signing = self._sign.secrets if implements(self._sign, KeyUser) else ()
        return frozenset({*self._keys, *signing})

    @property
    def timeouts(self) -> Timeouts:
        """How long the endpoint is waited for."""
        return self._timeouts

    @property
    def inputs(self) -> frozenset[str]:
        """What the model takes beside text, as far as is known."""
        return self._inputs if self._forms.form.images else self._inputs - {"image"}

    def stream(self, request: Request) -> AsyncGenerator[Delta | Completion, None]:
        """Ask the model; see `crow.core.ports.llm.LLM`."""
        clock = Clock(self._timeouts)
        origin = f"{self.base_url} {request.model or self.model}"
        is_own = request.model in (None, "", self.model)

        def attempt(shown: Shown) -> AsyncGenerator[Batch, None]:
            answer = partial(self._answer, request, shown, clock)
            images = partial(self._wire.encoder.images, request.session_id)
            return self._forms.ask(origin, answer, images, request.messages)

        def named(error: ModelError) -> ModelError:
            if isinstance(error, RefusedError) and error.overflow and is_own:
                self._at_most(error.overflow.window)
            who = f"{request.model or self.model} at {self.base_url}"
            return named_error(error, who, self._redact, self.key_origin)

        return repeat(attempt, self._retries, clock, named)

    async def aclose(self) -> None:
        """Close the connection; a later request opens it again."""
        finding = self._finding
        if finding and not finding.done() and finding.get_loop() is asyncio.get_running_loop():
            finding.cancel()
            await asyncio.wait([finding])
        await self._connection.aclose()

    async def _answer(
        self, request: Request, shown: Shown, clock: Clock, form: RequestFormat
    ) -> AsyncGenerator[Batch, None]:
        messages = request.messages
        known = partial(self._wire.encoder.ids, request.session_id, messages)
        said = Assembly(known, request.message_id, self._max_output, shown)
        reply = self._wire.reply(said, form)
        while True:
            try:
                async with aclosing(self._read(request, reply, shown, clock, form)) as pieces:
                    async for deltas in pieces:
                        yield shown.filter(deltas)
            except RefusedError as error:
                from crow.llm.http.failed_call import failed_call

                failed = failed_call(error, request) if reply.said_nothing else None
                if failed is None:
                    raise
                yield [failed]
                return
            resume = getattr(reply, "resume", None)
            so_far = resume() if resume is not None else None
            if so_far is None:
                break
            request = replace(request, messages=[*messages, so_far])
        yield [*shown.ending(request.message_id), self._completion(request, reply, form)]

    async def _read(
        self, request: Request, reply: WireReply, shown: Shown, clock: Clock, form: RequestFormat
    ) -> AsyncGenerator[list[Delta], None]:
        """Read one response into a reply. Raises `ModelError`."""
        response = await self._respond(request, clock, form)
        chunks = response.chunks()
        content_type = response.headers.get("content-type", "")
        reader = ReplyReader(chunks, reply, clock, self._connection.pace, content_type)
        whole = False
        try:
            while not reader.done:
                if deltas := await reader.deltas():
                    yield deltas
            whole = not reply.said.overflowed
        except ModelError as error:
            reply.said.remember(shown)
            if error.kind == "protocol" and reply.said_nothing:
                self._check_room(request, form)
            raise
        finally:
            await self._leave(response, chunks, whole=whole)

    def _completion(self, request: Request, reply: WireReply, form: RequestFormat) -> Completion:
        """A whole answer; the server's window is looked for behind it. Raises `ModelError`."""
        if self._find_window is not None and self._finding is None:
            finding = self._take_window(self._find_window)
            self._finding = asyncio.create_task(finding, name="window")
        completion = reply.completion()
        if not (completion.text or completion.calls or completion.reasoning):
            self._check_room(request, form)
        return completion

    def _check_room(self, request: Request, form: RequestFormat) -> None:
        """Call an answer that is empty an overflow where the request fills the window.

        Some servers refuse in no other way. Raises `ModelError` (context_length).
        """
        model = request.model or self.model
        if not self.context_window or model != self.model:
            return
        if len(self._body_in_turn(request, model, form)) >= BYTES * self.context_window:
            raise ModelError(EMPTY, kind="context_length")

    async def _take_window(self, find: FindWindow) -> None:
        """Let the window be what the server has."""
        self.context_window = await find() or self.context_window

    def _at_most(self, window: int | None) -> None:
        if window and (self.context_window is None or window < self.context_window):
            self.context_window = window

    async def _leave(
        self, response: Response, chunks: AsyncGenerator[bytes, None], *, whole: bool
    ) -> None:
        """Keep the connection of an answer that came whole; close any other at once."""
        if whole:
            self._connection.release(response, chunks)
            return
        await chunks.aclose()
        await response.aclose()

    async def _respond(self, request: Request, clock: Clock, form: RequestFormat) -> Response:
        """The response, if it is a success. Raises `ModelError`."""
        response = await self._post(request, clock, form, await self._key_fetched())
        if response.status == 401 and self._fetch_key:
            await self._leave(response, response.chunks(), whole=False)
            response = await self._post(request, clock, form, await self._key_fetched(refused=True))
        if 200 <= response.status < 300:
            return response
        body = await self._error_body(response, clock)
        raise error_of_response(response.status, response.headers, body)

    async def _post(
        self, request: Request, clock: Clock, form: RequestFormat, keyed: Mapping[str, str]
    ) -> Response:
        """The response, whatever it is. Raises `ModelError`."""
        model = request.model or self.model
        is_long = self._wire.encoder.is_long(request.messages, request.session_id)
        if not is_long and self._writing.acquire(blocking=False):
            try:
                body = self._body(request, model, form)
            finally:
                self._writing.release()
        else:
            from crow.core.support.threads import read_in_thread

            body = await read_in_thread(self._body_in_turn, request, model, form)
        path = self._path(model)
        own = {**self._wire.headers(request, form), **keyed, **_traced(request)}
        if self._sign is not None:
            own |= await self._sign(self.base_url + path, body)
        return await clock.headers(self._connection.post(path, body, own))

    async def _key_fetched(self, *, refused: bool = False) -> Mapping[str, str]:
        """The headers with a fetched key, another than the last one where that was refused."""
        if self._fetch_key is None:
            return {}
        self._fetched = await self._fetch_key(self._fetched if refused else "")
        self._keys.add(self._fetched)
        self._redact.add(self._fetched)
        return self._key_headers(self._fetched)

    def _path(self, model: str) -> str:
        path = self._wire.path(model)
        return f"{path}{'&' if '?' in path else '?'}{self._query}" if self._query else path

    async def _error_body(self, response: Response, clock: Clock) -> bytes:
        """As much of an error's body as is worth reading."""
        chunks = response.chunks()
        body = b""
        try:
            while len(body) < ERROR_BODY:
                chunk = await clock.event(anext(chunks, None), closing=True)
                if chunk is None:
                    break
                body += chunk
        except ModelError:
            pass  # the status says enough
        finally:
            await self._leave(response, chunks, whole=False)
        return body

    def _body_in_turn(self, request: Request, model: str, form: RequestFormat) -> bytes:
        """The body, behind one that a thread is writing: what is known of conversations is one."""
        with self._writing:
            return self._body(request, model, form)

    def _body(self, request: Request, model: str, form: RequestFormat) -> bytes:
        try:
            return self._wire.body(request, model, {**self._params, **request.params}, form)
        except (TypeError, ValueError) as error:
            what = f"cannot be asked: the request is no JSON: {error}"
            raise ModelError(what, kind="invalid_request") from error


def _traced(request: Request) -> dict[str, str]:
    """The headers by which an endpoint knows of the trace; baggage is none of its business."""
    told = request.trace_context
    return {name: told[name] for name in ("traceparent", "tracestate") if name in told}


def _named(header: str, key: str) -> Mapping[str, str]:
    return {header: key}


def _checked_url(base_url: str, path: str) -> str:
    """The URL without what stands behind its path. Raises `ModelError` (unconfigured)."""
    text = base_url.strip().rstrip("/").removesuffix(path)
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname or not _has_port(parts):
        what = f"{base_url!r} is no base URL of a model; it looks like http://localhost:11434/v1"
        raise ModelError(what, kind="unconfigured")
    if parts.username or parts.query:
        what = f"the base URL of {parts.hostname} carries a secret; put it into the key or headers"
        raise ModelError(what, kind="unconfigured")
    return text


def _has_port(parts: SplitResult) -> bool:
    """False where the port is none that there can be."""
    try:
        return parts.port != 0
    except ValueError:
        return False


def _headers(
    key_headers: Callable[[str], Mapping[str, str]], api_key: str | None, own: Mapping[str, str]
) -> dict[str, str]:
    """What every request carries. Raises `ModelError` (unconfigured) for what cannot be sent."""
    headers = {
        "content-type": "application/json",
        "accept": "text/event-stream",
        "accept-encoding": "identity",
        "user-agent": AGENT,
    }
    key = (api_key or "").strip()
    keyed: Mapping[str, str] = key_headers(key) if key else {}
    headers.update(keyed)
    headers.update({name.lower(): str(value) for name, value in own.items()})
    for name, value in headers.items():
        if not (value.isascii() and value.isprintable()):
            which = "API key" if name in keyed else f"header {name}"
            what = f"the {which} holds characters that cannot be sent; copy it again"
            raise ModelError(what, kind="unconfigured")
    return headers
