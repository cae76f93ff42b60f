"""The proxy as a component: a conductor owns the processes, and both ends are at its one pipe.

What is for the agent is wrapped into ``proxy/successor``, and what the agent says comes so. The
proposal names the methods so; the SDK for Rust, which came first, puts an underscore in front. The
conductor's first message says which of the two it speaks.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable

from crow.acp.jsonrpc import INVALID_REQUEST, Oversized, as_object, failure
from crow.acp.proxy.endpoint import CANCEL_REQUEST
from crow.acp.proxy.line import Line, is_answer, parse, unread
from crow.acp.proxy.peers import StandardIO, lines
from crow.acp.proxy.relay import Relay
from crow.acp.proxy.standalone import FLUSHING, hang_up_at_signals
from crow.core.agent import Agent

INITIALIZE = "initialize"
GREETINGS = {"proxy/initialize": "proxy/successor", "_proxy/initialize": "_proxy/successor"}
"""How a conductor begins, and how it calls what is between a component and its successor."""
ALONE = "this is a component of a chain: start it by a conductor, or say crow acp --proxy -- AGENT"


async def serve_chain(build: Callable[[], Agent], source: int, sink: int) -> int:
    """Relay until the conductor is gone; the exit status."""
    conductor = StandardIO()
    successor = Successor(conductor)
    relay = Relay(build(), conductor, successor)
    await conductor.open(source, sink)
    hang_up_at_signals(conductor)
    try:
        await Chain(relay, conductor, successor).read(lines(conductor.stream))
    finally:
        await relay.close()
        await conductor.drained(FLUSHING)
    return 0


class Successor:
    """Whoever is behind this component; a `crow.acp.proxy.peers.Peer`.

    Answers tie to the conductor's requests, and a cancellation to a request of this hop: neither is
    wrapped.
    """

    def __init__(self, conductor: StandardIO) -> None:
        self.method = GREETINGS["proxy/initialize"]
        self._conductor = conductor

    async def take(self, line: Line) -> None:
        """Wrap a message, and write it when there is room."""
        if line.method and line.method != CANCEL_REQUEST:
            inner = {key: line.message[key] for key in ("method", "params") if key in line.message}
            line = Line.of({**line.message, "method": self.method, "params": inner})
        await self._conductor.take(line)

    def unwrapped(self, line: Line) -> Line:
        """What a successor says."""
        inner = {key: line.params[key] for key in ("method", "params") if key in line.params}
        outer = {key: value for key, value in line.message.items() if key != "params"}
        return Line.of({**outer, **inner})


class Chain:
    """Tells what comes from the client and what from the agent, and hands it to the relay."""

    def __init__(self, relay: Relay, conductor: StandardIO, successor: Successor) -> None:
        self._relay = relay
        self._conductor = conductor
        self._successor = successor

    async def read(self, raws: AsyncGenerator[bytes | Oversized]) -> None:
        """Pass on what a conductor says, until it says nothing more."""
        async for raw in raws:
            line = parse(raw)
            if isinstance(line, Line):
                await self._take(line)
            elif is_answer(raw):
                await self._take(unread(raw, line))
            else:
                await self._conductor.take(unread(raw, line))

    async def _take(self, line: Line) -> None:
        method = line.method
        if method in GREETINGS:
            self._successor.method = GREETINGS[method]
            await self._relay.from_client(Line.of({**line.message, "method": INITIALIZE}))
        elif method == INITIALIZE:
            await self._conductor.take(Line.of(failure(line.id, INVALID_REQUEST, ALONE)))
        elif method in GREETINGS.values():
            await self._from_successor(line)
        elif self._is_of_successor(line):
            await self._relay.from_agent(line)
        else:
            await self._relay.from_client(line)

    async def _from_successor(self, line: Line) -> None:
        if isinstance(line.params.get("method"), str):
            await self._relay.from_agent(self._successor.unwrapped(line))
        elif line.is_request:
            told = failure(
                line.id, INVALID_REQUEST, "Invalid request", details="nothing is wrapped"
            )
            await self._conductor.take(Line.of(told))

    def _is_of_successor(self, line: Line) -> bool:
        """True for an answer to a request to the agent, and where the agent takes back its own."""
        if not line.method:
            return line.id in self._relay.agent.asked
        wanted = as_object(line.message.get("params")).get("requestId")
        return line.method == CANCEL_REQUEST and self._relay.has_of_agent(wanted)
