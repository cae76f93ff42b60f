"""An endpoint of a relay, with the requests that it has not answered yet."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from crow.acp.jsonrpc import notification
from crow.acp.proxy.line import Line
from crow.acp.proxy.peers import Peer

CANCEL_REQUEST = "$/cancel_request"
Taken = Callable[[Line], bool]
"""Takes an answer; True where it is not to be passed on."""


class Endpoint:
    """One end, and the requests that it has not answered yet."""

    def __init__(self, peer: Peer) -> None:
        self.asked: dict[Any, Taken | None] = {}
        self._peer = peer

    async def send(self, line: Line, taken: Taken | None = None) -> None:
        """Pass a message on; ``taken`` is called with the answer to a request."""
        if line.is_request:
            self.asked[line.id] = taken
        await self._peer.take(line)

    def takes(self, answer: Line) -> bool:
        """True where an answer is for somebody here."""
        taken = self.asked.pop(answer.id, None)
        return taken is not None and taken(answer)

    async def put(self, line: Line) -> asyncio.Future[Line]:
        """Pass a request on; its answer, when that comes, goes to whoever waits for it."""
        waiting: asyncio.Future[Line] = asyncio.get_running_loop().create_future()

        def take(answer: Line) -> bool:
            if not waiting.done():
                waiting.set_result(answer)
            return True

        await self.send(line, take)
        return waiting

    async def ask(self, line: Line) -> Line:
        """Pass a request on, and wait for the answer; cancelled, the request is taken back."""
        waiting = await self.put(line)
        try:
            return await waiting
        except asyncio.CancelledError:
            await self.send(Line.of(notification(CANCEL_REQUEST, {"requestId": line.id})))
            raise


class Judgement:
    """A request of the agent's that hooks judge; once it is ``forwarded`` the client answers."""

    def __init__(self, session_id: str, task: asyncio.Task[None]) -> None:
        self.session_id = session_id
        self.task = task
        self.forwarded = False

    def cancel(self) -> None:
        """Let nobody judge it any more; the client is left to answer what it was asked."""
        if not self.forwarded:
            self.task.cancel()
