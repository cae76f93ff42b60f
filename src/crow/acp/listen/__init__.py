"""The agent over a network: many clients of one process, and sessions that outlive them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn

    from crow.acp.initialize import AgentCapabilities
    from crow.acp.listen.address import Address
    from crow.acp.listen.node import Node
    from crow.core.agent import Agent

__all__ = ["serve_listening"]


def serve_listening(
    build: Callable[[], Agent],
    offer: AgentCapabilities,
    address: Address,
    token: str,
    *,
    patience: float,
    idle: float,
    ready: Callable[[Address, Node | None], object],
    find_node: Callable[[Address], Node | None],
) -> None:
    """Serve the agent that ``build`` makes to clients over HTTP and WebSocket; for commands.

    The process ends here after SIGTERM or SIGINT, within a second, behind what is registered with
    `atexit`. ``ready`` is told the real address when clients can connect, and the node that the
    server is among others; ``find_node`` says how others would reach it, None where they cannot. A
    question waits ``patience`` seconds for a client that is gone, and a session that nobody uses
    is closed after ``idle`` seconds. Raises `AddressError`, and what ``build`` raises.
    """
    import asyncio
    import sys
    from functools import partial

    from crow.acp import SWITCH, leave, spare_from_collection
    from crow.acp.listen.guard import Guard

    listening, real = address.bind()
    node = find_node(real)
    guard = Guard(token, address.host, node)

    async def main() -> NoReturn:
        from crow.acp.listen.server import serve

        agent = build()
        spare_from_collection()
        told = partial(ready, real)
        with listening:
            await serve(
                agent, listening, guard, offer, node, patience=patience, idle=idle, ready=told
            )
        leave(0)

    sys.setswitchinterval(SWITCH)
    asyncio.run(main())
