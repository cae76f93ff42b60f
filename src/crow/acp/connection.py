"""The connection with a client, JSON-RPC both ways: its requests are answered, and ours asked."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from crow.acp.capabilities import ClientCapabilities
from crow.acp.errors import ClientError, Refusal
from crow.acp.initialize import OPENING, AgentCapabilities
from crow.acp.jsonrpc import (
    CANCEL,
    INTERNAL_ERROR,
    REQUEST_CANCELLED,
    Message,
    Sent,
    as_object,
    failure,
    is_id,
    notification,
    success,
)
from crow.acp.send_queue import MessageSink

if TYPE_CHECKING:
    from crow.acp.words import Update

Receive = Callable[[], Awaitable[Message | None]]
"""The next message of a client's; None at the end."""
UPDATE = "session/update"
PROGRESS = {"sessionUpdate", "toolCallId", "content"}
CHUNKS = ("agent_message_chunk", "agent_thought_chunk")
logger = logging.getLogger(__name__)


class Result(dict[str, Any]):
    """The result of a request, with what is to be done as soon as it stands in the queue."""

    def __init__(self, fields: Sent, sent: Callable[[], object]) -> None:
        super().__init__(fields)
        self.sent = sent


class Transport(Protocol):
    """The way of a client's messages: a `crow.acp.stdio.StdioTransport`, for instance.

    ``initialize`` is answered there, with what is on ``offer``; ``hello`` are its parameters.
    """

    @property
    def offer(self) -> AgentCapabilities: ...
    @property
    def hello(self) -> Message: ...
    async def receive(self) -> Message | None: ...


class Methods(Protocol):
    """Whoever answers a client, method by method."""

    async def answer(self, method: str, params: Message) -> Sent | None:
        """The result of a request. Raises `Refusal`."""
        ...

    async def notice(self, method: str, params: Message) -> None:
        """Take a notification."""
        ...


class Connection:
    """A connected client. ``capabilities`` is what it announced, ``tasks`` what it waits for."""

    def __init__(self, queue: MessageSink) -> None:
        self.capabilities = ClientCapabilities()
        self.tasks: set[asyncio.Task[Any]] = set()
        self._queue = queue
        self._answering: dict[Any, asyncio.Task[Any]] = {}
        self._asked: dict[int, asyncio.Future[Message]] = {}
        self._count = 0
        self._is_over = False

    # what the client says

    async def serve(self, receive: Receive, methods: Methods) -> None:
        """Take messages until the input ends."""
        while (message := await receive()) is not None:
            self.take(message, methods)

    def take(self, message: Message, methods: Methods) -> asyncio.Task[Any] | None:
        """Begin with what a message wants; the task of a request."""
        method, params = message.get("method"), as_object(message.get("params"))
        if method is None:
            self._settle(message)
            return None
        if "id" in message:
            request_id = message["id"]
            task = self._begin(methods.answer(method, params), partial(self._reply, request_id))
            task.set_name(method)
            self._answering[request_id] = task
            return task
        if method == CANCEL:
            self._cancel(params)
        else:
            self._begin(methods.notice(method, params), _report)
        return None

    def hang_up(self) -> None:
        """Ask and open nothing more: the client is gone, and whoever waits for it is told so."""
        self._is_over = True
        for task in self.tasks:
            if task.get_name() in OPENING:
                task.cancel()
        while self._asked:
            _number, waiting = self._asked.popitem()
            if not waiting.done():
                waiting.set_exception(ConnectionError("the client is gone"))

    async def close(self) -> None:
        """Ask nothing more, and end what still answers."""
        self.hang_up()
        for task in self.tasks:
            task.cancel()
        if self.tasks:
            await asyncio.wait(self.tasks)

    def _begin(
        self, work: Coroutine[Any, Any, Any], done: Callable[[asyncio.Task[Any]], object]
    ) -> asyncio.Task[Any]:
        task = asyncio.create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        task.add_done_callback(done)
        return task

    def _reply(self, request_id: Any, task: asyncio.Task[Any]) -> None:
        """Answer a request: its task is done."""
        if self._answering.get(request_id) is task:
            del self._answering[request_id]
        self._queue.post(reply_of(request_id, task))
        if not task.cancelled() and task.exception() is None and isinstance(task.result(), Result):
            task.result().sent()

    def _cancel(self, params: Message) -> None:
        """End the work on a request, if there is any."""
        request_id = params.get("requestId", object())
        if is_id(request_id) and request_id in self._answering:
            self._answering[request_id].cancel()

    def _settle(self, answer: Message) -> None:
        """Pass on the answer to a request of ours, if somebody still waits for it."""
        waiting = self._asked.pop(answer["id"], None)
        if waiting is None or waiting.done():
            return
        if "error" in answer:
            waiting.set_exception(ClientError.of(answer["error"]))
        else:
            waiting.set_result(as_object(answer["result"]))

    # what the client is asked and told

    async def request(self, method: str, params: Sent, timeout: float | None = None) -> Message:
        """Ask the client for something.

        Raises ``OSError``: a `ClientError`, a ``TimeoutError`` or a ``ConnectionError``.
        """
        if self._is_over:
            raise ConnectionError("the client is not connected")
        number, self._count = self._count, self._count + 1
        waiting = self._asked[number] = asyncio.get_running_loop().create_future()
        self._queue.post({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        try:
            async with asyncio.timeout(timeout):
                return await waiting
        except TimeoutError:
            raise TimeoutError(f"the client did not answer {method} in {timeout:g} s") from None
        finally:
            if self._asked.pop(number, None) is not None:  # behind what whoever has cancelled says
                taken_back = notification(CANCEL, {"requestId": number})
                asyncio.get_running_loop().call_soon(self._queue.post, taken_back)

    def notify(self, method: str, params: Sent) -> None:
        """Queue a notification."""
        self._queue.post(notification(method, params))

    def post(self, session_id: str, update: Update) -> None:
        """Queue a ``session/update``."""
        is_chunk = update["sessionUpdate"] in CHUNKS
        text = as_object(update.get("content")).get("text") if is_chunk else None
        if text is not None:
            self._post_text(session_id, update, text)
        else:
            self._queue.post(_told(session_id, update), _progress_key(session_id, update))

    def relay(self, message: Message) -> None:
        """Queue a message of somebody else's, as it is."""
        self._queue.post(message)

    async def send(self, session_id: str, update: Update) -> None:
        """Queue a ``session/update`` and wait while the client cannot take more."""
        self.post(session_id, update)
        await self.room()

    @property
    def has_room(self) -> bool:
        """True where `room` would not wait."""
        return self._queue.has_room

    @property
    def is_attended(self) -> bool:
        """False where the client reads nothing, as far as that is known."""
        return self.has_room and getattr(self._queue, "is_watched", True)

    async def room(self) -> None:
        """Wait while the client cannot take more."""
        await self._queue.room()

    def _post_text(self, session_id: str, update: Update, text: str) -> None:
        def build(text: str) -> Message:
            told: Sent = {**update, "content": {"type": "text", "text": text}}
            return _told(session_id, told)

        key = (session_id, update["sessionUpdate"], update.get("messageId"))
        self._queue.post_text(build, text, key)


def reply_of(request_id: Any, task: asyncio.Task[Any]) -> Message:
    """The answer to a request whose task is done."""
    if task.cancelled():
        return failure(request_id, REQUEST_CANCELLED, "Request cancelled")
    error = task.exception()
    if error is None:
        return success(request_id, task.result())
    if isinstance(error, Refusal):
        return failure(request_id, error.code, str(error), **error.data)
    _report(task)
    return failure(request_id, INTERNAL_ERROR, "Internal error", details=str(error))


def _report(task: asyncio.Task[Any]) -> None:
    """Log what went wrong in a way that nobody had thought of."""
    if not task.cancelled() and (error := task.exception()) is not None:
        logger.error("a message of the client's was not handled", exc_info=error)


def _told(session_id: str, update: Sent) -> Message:
    return notification(UPDATE, {"sessionId": session_id, "update": update})


def _progress_key(session_id: str, update: Update) -> object:
    """What makes the next update of a running call take the place of this one."""
    if update["sessionUpdate"] == "tool_call_update" and set(update) == PROGRESS:
        return session_id, update["toolCallId"]
    return None
