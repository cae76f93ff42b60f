"""The clients of one server: many connections to one agent, and the sessions they share in turn."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from crow.acp.listen.delivery import Delivery
from crow.acp.listen.remote_client import RemoteClient
from crow.acp.listen.session_pool import SessionPool
from crow.acp.server import within

if TYPE_CHECKING:
    from crow.acp.initialize import AgentCapabilities
    from crow.acp.listen.node import Node
    from crow.acp.send_queue import MessageSink
    from crow.core.agent import Agent

MOST = 64
GRACE = 30.0
TICK = 1.0
ENDING = 0.6
FLUSHING = 0.1


class Hub:
    """Serves an agent to at most ``MOST`` clients at a time.

    A client over HTTP that reads no stream and sends nothing for ``GRACE`` seconds is gone.
    ``node`` is this one of several servers, None where it is the only one.
    """

    def __init__(
        self, agent: Agent, pool: SessionPool, offer: AgentCapabilities, node: Node | None = None
    ) -> None:
        self._agent = agent
        self._pool = pool
        self._offer = offer
        self.node = node
        self._connections: dict[str, RemoteClient] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def connect(self, sink: MessageSink, *, is_node: bool = False) -> RemoteClient | None:
        """A new client; None where there are too many. A node's are counted there."""
        if len(self._connections) >= MOST and not is_node:
            return None
        connection = RemoteClient(
            self._agent, self._pool, self._offer, sink, self.node, is_node=is_node
        )
        self._connections[connection.id] = connection
        task = asyncio.create_task(connection.serve(), name="crow-acp-connection")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(lambda _done: self.disconnect(connection))
        return connection

    def find(self, connection_id: str) -> RemoteClient | None:
        """A client's connection."""
        return self._connections.get(connection_id)

    def disconnect(self, connection: RemoteClient) -> None:
        """A client is gone."""
        self._connections.pop(connection.id, None)
        connection.hang_up()

    @asynccontextmanager
    async def tidying(self) -> AsyncGenerator[None]:
        """Let go of clients and sessions that nobody uses, from time to time."""
        task = asyncio.create_task(self._tidy(), name="crow-acp-tidying")
        try:
            yield
        finally:
            task.cancel()

    async def _tidy(self) -> None:
        while True:
            await asyncio.sleep(TICK)
            now = asyncio.get_running_loop().time()
            for connection in list(self._connections.values()):
                way = connection.sink
                if isinstance(way, Delivery) and not way.is_watched and now - way.seen > GRACE:
                    self.disconnect(connection)
            taken = self._pool.tidy()
            for connection in [*self._connections.values()] if taken else ():
                connection.follow(taken)

    async def close(self) -> None:
        """Cancel what runs, answer what was asked, close the agent; within a second."""
        loop = asyncio.get_running_loop()
        end = loop.time() + ENDING
        connections = list(self._connections.values())
        for session in list(self._agent.sessions.values()):
            self._agent.cancel(session)
        if requests := {task for connection in connections for task in connection.requests}:
            await asyncio.wait(requests, timeout=ENDING - FLUSHING)
        await asyncio.sleep(0)
        await within(max(end - loop.time(), FLUSHING), self._agent.close())
        drained = asyncio.gather(*(each.sink.drained() for each in connections))
        await asyncio.wait({drained}, timeout=FLUSHING)
        for connection in connections:
            self.disconnect(connection)
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=FLUSHING)
