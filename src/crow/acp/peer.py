"""The client at the other end of one connection: requests to it, updates for it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from crow.acp.capabilities import ClientCapabilities
from crow.acp.jsonrpc import METHOD_NOT_FOUND, NOT_FOUND, Message, as_object
from crow.acp.outbox import Outgoing

if TYPE_CHECKING:
    from acp.connection import Connection
    from acp.exceptions import RequestError

UPDATE = "session/update"
PROGRESS = {"sessionUpdate", "toolCallId", "content"}
CHUNKS = ("agent_message_chunk", "agent_thought_chunk")
REFUSED = ("denied", "not permitted", "not allowed", "forbidden", "refused", "rejected", "outside")


class ClientError(OSError):
    """The client answered a request with an error."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code

    @property
    def is_unknown_method(self) -> bool:
        """True where the client does not know the method at all."""
        return self.code == METHOD_NOT_FOUND

    @property
    def is_not_found(self) -> bool:
        """True where the client has no such file."""
        text = str(self).lower()
        return self.code == NOT_FOUND or "not found" in text or "no such file" in text

    @property
    def is_refusal(self) -> bool:
        """True where the client, or its user, does not want it; the protocol has no code for it."""
        text = str(self).lower()
        return any(word in text for word in REFUSED)


class Peer:
    """A connected client. ``capabilities`` is what it announced."""

    def __init__(self, outbox: Outgoing) -> None:
        self._connection: Connection | None = None
        self._outbox = outbox
        self._is_connected = asyncio.Event()
        self.capabilities = ClientCapabilities()

    def connect(self, connection: Connection) -> None:
        """Send requests through this."""
        self._connection = connection
        self._is_connected.set()

    async def connected(self) -> None:
        """Wait until requests can be sent."""
        await self._is_connected.wait()

    async def close(self) -> None:
        """Ask nothing more, and end what still answers."""
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()

    async def request(self, method: str, params: Message, timeout: float | None = None) -> Message:
        """Ask the client for something.

        Raises ``OSError``: a `ClientError`, a ``TimeoutError`` or a ``ConnectionError``.
        """
        if self._connection is None:
            raise ConnectionError("the client is not connected")
        from acp.exceptions import RequestError

        try:
            async with asyncio.timeout(timeout):
                result = await self._connection.send_request(method, params)
        except RequestError as error:
            raise ClientError(error.code, _reason(error)) from None
        except TimeoutError:
            raise TimeoutError(f"the client did not answer {method} in {timeout:g} s") from None
        return as_object(result)

    def post(self, session_id: str, update: Message) -> None:
        """Queue a ``session/update``."""
        kind = update["sessionUpdate"]
        text = update.get("content", {}).get("text") if kind in CHUNKS else None
        if text is not None:
            self._post_text(session_id, update, text)
        else:
            self._outbox.post(_notification(session_id, update), _progress_key(session_id, update))

    async def send(self, session_id: str, update: Message) -> None:
        """Queue a ``session/update`` and wait while the client cannot take more."""
        self.post(session_id, update)
        await self.room()

    @property
    def has_room(self) -> bool:
        """True where `room` would not wait."""
        return self._outbox.has_room

    async def room(self) -> None:
        """Wait while the client cannot take more."""
        await self._outbox.room()

    def _post_text(self, session_id: str, update: Message, text: str) -> None:
        def build(text: str) -> Message:
            content = {"type": "text", "text": text}
            return _notification(session_id, {**update, "content": content})

        key = (session_id, update["sessionUpdate"], update.get("messageId"))
        self._outbox.post_text(build, text, key)


def _reason(error: RequestError) -> str:
    """What a client says of its error; many say it in the data, below a title that says nothing."""
    details = as_object(error.data).get("details")
    return f"{error}: {details}" if isinstance(details, str) else str(error)


def _notification(session_id: str, update: Message) -> Message:
    params = {"sessionId": session_id, "update": update}
    return {"jsonrpc": "2.0", "method": UPDATE, "params": params}


def _progress_key(session_id: str, update: Message) -> object:
    """What makes the next update of a running call take the place of this one."""
    if update["sessionUpdate"] == "tool_call_update" and set(update) == PROGRESS:
        return session_id, update["toolCallId"]
    return None
