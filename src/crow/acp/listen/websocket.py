"""The endpoint over WebSocket: one socket a client, one message a text frame, both ways."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from starlette.responses import JSONResponse
from starlette.websockets import WebSocketDisconnect

from crow.acp.jsonrpc import decode
from crow.acp.listen.http import CONNECTION
from crow.acp.send_queue import SendQueue

if TYPE_CHECKING:
    from starlette.websockets import WebSocket

    from crow.acp.listen.hub import Hub
    from crow.acp.listen.remote_client import RemoteClient

Batch = tuple[bytes, Callable[[], object]]


async def speak(websocket: WebSocket, hub: Hub, *, is_node: bool) -> None:
    """Serve one client, or another node's, for as long as its socket is open."""
    batches: asyncio.Queue[Batch] = asyncio.Queue()
    queue = SendQueue(lambda data, written: batches.put_nowait((data, written)))
    connection = hub.connect(queue, is_node=is_node)
    if connection is None:
        refusal = JSONResponse({"error": "too many clients are connected"}, 503)
        await websocket.send_denial_response(refusal)
        return
    sending = asyncio.create_task(write(websocket, batches))
    try:
        await websocket.accept(headers=[(CONNECTION.lower().encode(), connection.id.encode())])
        reading = asyncio.create_task(read(websocket, connection, queue))
        await asyncio.wait({reading, sending}, return_when=asyncio.FIRST_COMPLETED)
        reading.cancel()
    finally:
        hub.disconnect(connection)
        sending.cancel()


async def read(websocket: WebSocket, connection: RemoteClient, queue: SendQueue) -> None:
    """Take messages until the client is gone; what is none is answered."""
    while (event := await websocket.receive())["type"] != "websocket.disconnect":
        text = event.get("text")
        if text is None:  # a binary frame carries no message
            continue
        message, reply = decode(text.encode("utf-8", "surrogatepass"))
        if message is not None:
            reply = await connection.take(message)
        if reply is not None:
            queue.post(reply)
            await queue.room()


async def write(websocket: WebSocket, batches: asyncio.Queue[Batch]) -> None:
    """Send messages, until nobody takes them any more."""
    while True:
        data, written = await batches.get()
        try:
            for line in filter(None, data.split(b"\n")):
                await websocket.send_text(line.decode())
        except (OSError, RuntimeError, WebSocketDisconnect):
            return
        written()
