"""One client's way to another node: its requests go there, and what is for it comes from there.

For that node it is a client like others, with the same capabilities and name; messages are passed
on in the order in which they come, and no faster than the client reads them.
"""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

from crow.acp.connection import UPDATE, Connection
from crow.acp.errors import ClientError, Refusal
from crow.acp.jsonrpc import (
    CANCEL,
    LIMIT,
    Message,
    as_object,
    encode,
    failure,
    notification,
    success,
)
from crow.acp.listen.node_errors import explained, is_failure

if TYPE_CHECKING:
    from websockets.asyncio.client import ClientConnection

    from crow.acp.listen.node import Node
    from crow.acp.words import Update

PATIENCE = 5.0
"""Seconds for another node to be reached in."""
PING, PONG = 5.0, 60.0
"""Seconds between two looks whether it is still there, and for its answer.

An answer comes behind all that the client has not read yet.
"""
UNHEARD = 8
"""Seconds after which a machine is gone that does not even confirm what was sent to it."""
OPEN = ("pending", "in_progress")


class UnreachableError(Exception):
    """A node cannot be reached, or is gone; the text says why.

    ``is_alive``: it answers, and keeps what it has, so that there is nothing to wait for.
    """

    def __init__(self, text: str, *, is_alive: bool = False) -> None:
        super().__init__(text)
        self.is_alive = is_alive


class Upstream:
    """A connection to the node at ``url``. ``running`` are the calls that run there, by session.

    ``ended`` is called when the other node is gone, and not by `close`. Made by `reach`.
    """

    def __init__(
        self,
        url: str,
        connection: ClientConnection,
        client: Connection,
        ended: Callable[[Upstream], object],
    ) -> None:
        self.url = url
        self.running: dict[str, set[str]] = {}
        self._socket = connection
        self._client = client
        self._ended = ended
        self._count = 0
        self._waiting: dict[int, tuple[asyncio.Future[Message], asyncio.Task[Any] | None]] = {}
        self._questions: dict[Any, asyncio.Task[None]] = {}
        self._is_over = False
        self._reading = asyncio.create_task(self._read(), name="crow-acp-upstream")

    @classmethod
    async def reach(
        cls,
        node: Node,
        url: str,
        hello: Message,
        client: Connection,
        ended: Callable[[Upstream], object],
    ) -> Upstream:
        """Connect to another node as a client that said ``hello``. Raises `UnreachableError`."""
        from websockets.asyncio.client import connect
        from websockets.exceptions import InvalidStatus

        if url == node.url:
            said = "that is where this node is: each needs a --node-url of its own"
            raise UnreachableError(said, is_alive=True)
        try:
            async with asyncio.timeout(PATIENCE):
                connection = await connect(
                    url.replace("http", "ws", 1),
                    additional_headers={"Authorization": f"Bearer {node.proof(url)}"},
                    compression=None,
                    proxy=None,
                    max_size=LIMIT,
                    ping_interval=PING,
                    ping_timeout=PONG,
                    close_timeout=1,
                )
                notice_silence(connection)
                greeting = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello}
                await connection.send(encode(greeting).decode())
                greeted = json.loads(await connection.recv())
        except Exception as error:
            if not is_failure(error):
                raise
            refused = isinstance(error, InvalidStatus)
            raise UnreachableError(explained(error), is_alive=refused) from error
        if "error" in greeted:
            said = f"it does not take this client: {greeted['error']['message']}"
            raise UnreachableError(said, is_alive=True)
        return cls(url, connection, client, ended)

    async def request(self, method: str, params: Message, *, is_last: bool = True) -> Message:
        """Ask the other node; its result, before anything else that it says is passed on.

        ``is_last``: the task that asks has nothing more to do than to answer the client. Raises
        `Refusal` and `UnreachableError`.
        """
        number = self._count = self._count + 1
        waiting: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        self._waiting[number] = waiting, asyncio.current_task() if is_last else None
        try:
            await self._send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
            answer = await waiting
        except asyncio.CancelledError:
            await self.notify(CANCEL, {"requestId": number})
            raise
        finally:
            self._waiting.pop(number, None)
        if "error" in answer:
            error = as_object(answer["error"])
            raise Refusal(error["code"], error["message"], **as_object(error.get("data")))
        return as_object(answer["result"])

    async def notify(self, method: str, params: Message) -> None:
        """Tell the other node something, if it is still there."""
        with suppress(UnreachableError):
            await self._send(notification(method, params))

    async def close(self) -> None:
        """Leave: the client is gone."""
        self._is_over = True
        await self._socket.close()
        await asyncio.wait({self._reading})

    async def _send(self, message: Message) -> None:
        if self._is_over:
            raise UnreachableError("the node is gone")
        try:
            await self._socket.send(encode(message).decode())
        except Exception as error:
            if not is_failure(error):
                raise
            raise UnreachableError(explained(error)) from error

    # what the other node says

    async def _read(self) -> None:
        try:
            async for text in self._socket:
                await self._take(json.loads(text))
                await self._client.room()
        except Exception as error:
            if not is_failure(error):
                raise
        finally:
            self._end()

    def _end(self) -> None:
        was_over, self._is_over = self._is_over, True
        for question in self._questions.values():
            question.cancel()
        for waiting, _task in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(UnreachableError("the node is gone"))
        if not was_over:
            self._ended(self)

    async def _take(self, message: Message) -> None:
        method = message.get("method")
        if method is None:
            await self._settle(message)
        elif "id" in message:
            question = asyncio.create_task(self._ask(message))
            self._questions[message["id"]] = question
            await asyncio.sleep(0)  # it is in the queue by then
        elif method == CANCEL:
            question = self._questions.get(message["params"].get("requestId"))
            if question is not None:
                question.cancel()
                await asyncio.wait({question})
        elif method == UPDATE:
            self._note(**message["params"])
        else:
            self._client.relay(message)

    async def _settle(self, answer: Message) -> None:
        waiting, task = self._waiting.pop(answer["id"], (None, None))
        if waiting is not None and not waiting.done():
            waiting.set_result(answer)
            if task is not None:
                await asyncio.wait({task})

    async def _ask(self, message: Message) -> None:
        """Ask the client what the other node wants to know of it."""
        number = message["id"]
        try:
            answer = success(
                number, await self._client.request(message["method"], message["params"])
            )
        except ClientError as error:
            answer = failure(number, error.code, str(error))
        except OSError:
            return
        finally:
            self._questions.pop(number, None)
        with suppress(UnreachableError):
            await self._send(answer)

    def _note(self, sessionId: str, update: Message, **_other: Any) -> None:  # noqa: N803
        """Pass on an update, and remember which calls run."""
        call_id = update.get("toolCallId")
        if call_id is not None and "status" in update:
            running = self.running.setdefault(sessionId, set())
            (running.add if update["status"] in OPEN else running.discard)(call_id)
        self._client.post(sessionId, cast("Update", update))


def notice_silence(connection: ClientConnection) -> None:
    """Have the system look whether the other machine is there, where it can."""
    raw = connection.transport.get_extra_info("socket")
    if raw is not None and hasattr(socket, "TCP_USER_TIMEOUT"):
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, UNHEARD * 1000)
