"""The endpoint over HTTP: messages come by POST, and go out as server-sent events."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response

from crow.acp.jsonrpc import LIMIT, Message, as_object, decode, encode
from crow.acp.listen.delivery import NEEDS_SESSION, Delivery
from crow.acp.listen.forward import Forwarding, home_of
from crow.acp.listen.remote_client import RemoteClient, is_greeting
from crow.acp.listen.stream import Stream

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from crow.acp.listen.hub import Hub

CONNECTION = "Acp-Connection-Id"
SESSION = "Acp-Session-Id"
LAST = "Last-Event-Id"
JSON = "application/json"
EVENTS = "text/event-stream"


class Refused(Exception):  # noqa: N818 - it says no, and that is the answer
    """The reason why a request is not taken: the HTTP status, and a line for whoever sent it."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class Exchange:
    """The methods POST, GET and DELETE of the endpoint."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._forwarding = Forwarding(hub.node) if hub.node is not None else None

    async def answer(self, request: Request) -> Response:
        """The response to any of them, from the node that the connection is of."""
        try:
            if (forwarded := await self._from_elsewhere(request)) is not None:
                return forwarded
            match request.method:
                case "POST":
                    return await self._post(request)
                case "DELETE":
                    return self._delete(request)
                case _:
                    return self._get(request)
        except Refused as refused:
            return JSONResponse({"error": str(refused)}, refused.status)

    async def _from_elsewhere(self, request: Request) -> Response | None:
        connection_id = request.headers.get(CONNECTION, "")
        if self._hub.node is None or self._forwarding is None or self._hub.find(connection_id):
            return None
        url = home_of(connection_id, self._hub.node)
        if url is None:
            return None
        return await self._forwarding.answer(request, url, await whole(request))

    async def _post(self, request: Request) -> Response:
        """Take one message; only ``initialize`` is answered here."""
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != JSON:
            raise Refused(415, f"a message has the Content-Type {JSON}")
        body = await whole(request)
        if body.lstrip().startswith(b"["):
            raise Refused(501, "send one message at a time: batches are not supported")
        message, failure = decode(body)
        if failure is not None:
            return as_json(failure, 400)
        if message is None:
            return Response(status_code=202)
        if is_greeting(message):
            if CONNECTION in request.headers:
                raise Refused(400, "this connection is initialized already")
            return await self._initialize(message)
        connection, delivery = self._known(request)
        check_session(request, message)
        delivery.expect(message)
        await connection.take(message)
        return Response(status_code=202)

    async def _initialize(self, message: Message) -> Response:
        connection = self._hub.connect(Delivery())
        if connection is None:
            raise Refused(503, "too many clients are connected")
        reply = await connection.take(message)
        assert reply is not None
        if "error" in reply:
            self._hub.disconnect(connection)
            return as_json(reply, 400)
        return as_json(reply, 200, {CONNECTION: connection.id})

    def _get(self, request: Request) -> Response:
        """Open the stream of a connection, or of one session in it."""
        accepted = request.headers.get("accept", "*/*")
        if EVENTS not in accepted and "*/*" not in accepted:
            raise Refused(406, f"the stream is {EVENTS}: accept that")
        _connection, delivery = self._known(request)
        stream = delivery.stream(request.headers.get(SESSION))
        if stream is None:
            raise Refused(409, "this connection has too many streams")
        return EventStream(delivery, stream, last_of(request, stream))

    def _delete(self, request: Request) -> Response:
        connection, _delivery = self._known(request)
        self._hub.disconnect(connection)
        return Response(status_code=202)

    def _known(self, request: Request) -> tuple[RemoteClient, Delivery]:
        """The connection that a request names. Raises `Refused`."""
        connection_id = request.headers.get(CONNECTION)
        if connection_id is None:
            raise Refused(400, f"the header {CONNECTION} is missing: initialize first")
        connection = self._hub.find(connection_id)
        if connection is None or not isinstance(connection.sink, Delivery):
            raise Refused(404, "there is no such connection (any more): initialize again")
        delivery = connection.sink
        delivery.seen = asyncio.get_running_loop().time()
        return connection, delivery


class EventStream(Response):
    """A response that goes on until the client or the stream ends it."""

    def __init__(self, delivery: Delivery, stream: Stream, last: int | None) -> None:
        super().__init__(headers={"Content-Type": EVENTS, "Cache-Control": "no-store"})
        del self.headers["content-length"]
        self._delivery = delivery
        self._stream = stream
        self._last = last

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send events; to notice that the client is gone takes a look at what it sends."""
        del scope
        sending = asyncio.create_task(self._send(send))
        leaving = asyncio.create_task(gone(receive))
        try:
            await asyncio.wait({sending, leaving}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            sending.cancel()
            leaving.cancel()
            await asyncio.wait({sending, leaving})
            self._delivery.seen = asyncio.get_running_loop().time()

    async def _send(self, send: Send) -> None:
        start = {"type": "http.response.start", "status": 200, "headers": self.raw_headers}
        await send(start)
        await send({"type": "http.response.body", "body": b"", "more_body": True})
        async with aclosing(self._stream.frames(self._last)) as frames:
            async for frame in frames:
                if frame:
                    await send({"type": "http.response.body", "body": frame, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def gone(receive: Receive) -> None:
    """Wait until a client has hung up."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def whole(request: Request) -> bytes:
    """The body of a request. Raises `Refused` for one that is too long."""
    pieces: list[bytes] = []
    size = 0
    try:
        async for piece in request.stream():
            size += len(piece)
            if size > LIMIT:
                raise Refused(413, f"a message has at most {LIMIT} bytes")
            pieces.append(piece)
    except ClientDisconnect:
        raise Refused(400, "the message is not complete") from None
    return b"".join(pieces)


def check_session(request: Request, message: Message) -> None:
    """Raise `Refused` where the header that names the session is missing, or names another."""
    named = request.headers.get(SESSION)
    if named is None and message.get("method") in NEEDS_SESSION:
        raise Refused(400, f"the header {SESSION} is missing")
    if named is not None and as_object(message.get("params")).get("sessionId", named) != named:
        raise Refused(400, f"the header {SESSION} names another session than the message")


def last_of(request: Request, stream: Stream) -> int | None:
    """The last event that a returning client has got. Raises `Refused` where too much is gone."""
    told = request.headers.get(LAST)
    if told is None:
        return None
    if not (told.isascii() and told.isdigit() and stream.knows(int(told))):
        raise Refused(409, "what follows that event is not kept: initialize and load the session")
    return int(told)


def as_json(message: Message, status: int, headers: dict[str, str] | None = None) -> Response:
    """A message as a response."""
    return Response(encode(message), status, headers, JSON)
