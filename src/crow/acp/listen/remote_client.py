"""One client of the server: what it says comes in, what is for it goes out, an agent answers."""

from __future__ import annotations

import asyncio
import secrets
from collections import deque
from typing import TYPE_CHECKING

from crow.acp.agent import AcpAgent
from crow.acp.connection import Connection, Methods
from crow.acp.dispatch import Dispatcher
from crow.acp.initialize import PRESUMED, AgentCapabilities, initialize
from crow.acp.jsonrpc import Message
from crow.acp.listen.forward import with_home
from crow.acp.listen.peer_node import PeerNode
from crow.acp.listen.remote_sessions import RemoteSessions
from crow.acp.listen.session_pool import SharedAccess
from crow.acp.send_queue import MessageSink

if TYPE_CHECKING:
    from crow.acp.listen.node import Node
    from crow.acp.listen.session_pool import SessionPool
    from crow.core.agent import Agent

BACKLOG = 256
INITIALIZE = "initialize"


class RemoteClient:
    """A client, however it is connected. ``id`` is what it calls the connection in its headers.

    Whoever reads from the network calls `take` with each message, and `hang_up` at the end.
    """

    def __init__(
        self,
        agent: Agent,
        pool: SessionPool,
        offer: AgentCapabilities,
        sink: MessageSink,
        node: Node | None = None,
        *,
        is_node: bool = False,
    ) -> None:
        self.id = with_home(secrets.token_hex(16), node)
        self.offer = offer
        self.hello: Message = {}
        self.sink = sink
        self._agent = agent
        self._connection = Connection(sink)
        self._access = SharedAccess(pool)
        here = Dispatcher(AcpAgent(agent, self, self._connection, self._access))
        self._elsewhere: RemoteSessions | None = None
        self._methods: Methods = here
        if is_node:
            self._methods = PeerNode(here, pool)
        elif node is not None:
            self._methods = self._elsewhere = RemoteSessions(here, self, self._connection, node)
        self._inbox: deque[Message] = deque()
        self._space = asyncio.Semaphore(BACKLOG)
        self._news = asyncio.Event()
        self._is_over = False

    @property
    def requests(self) -> set[asyncio.Task[object]]:
        """What the client waits for."""
        return set(self._connection.tasks)

    async def take(self, message: Message) -> Message | None:
        """A message of the client's; an answer to it that is there at once, as to ``initialize``.

        Waits while too many are there that nobody has looked at.
        """
        if is_greeting(message):
            reply = initialize(message, self.offer, self.hello)
            if "result" in reply:
                self.hello = message["params"]
            return reply
        if not self.hello and "method" in message and "id" in message:
            self.hello = PRESUMED
        await self._space.acquire()
        self._inbox.append(message)
        self._news.set()
        return None

    def hang_up(self) -> None:
        """The client is gone."""
        self._is_over = True
        self._news.set()

    def follow(self, taken: set[str]) -> None:
        """Go on, for this client, with sessions that other nodes have taken over."""
        if self._elsewhere is not None:
            self._elsewhere.follow(taken)

    async def ready(self) -> bool:
        """Wait for a message; False at the end."""
        while not self._inbox and not self._is_over:
            self._news.clear()
            await self._news.wait()
        return bool(self._inbox)

    async def receive(self) -> Message | None:
        """The next message; None at the end."""
        if not await self.ready():
            return None
        self._space.release()
        return self._inbox.popleft()

    async def serve(self) -> None:
        """Answer the client until it is gone; what it has begun goes on without it."""
        try:
            await self._connection.serve(self.receive, self._methods)
        finally:
            self._connection.hang_up()
            self._access.leave()
            self.sink.close()
            if self._elsewhere is not None:
                await self._elsewhere.close()
        while self._connection.tasks:
            await asyncio.wait(self.requests)


def is_greeting(message: Message) -> bool:
    """True for a request to initialize."""
    return message.get("method") == INITIALIZE and "id" in message
