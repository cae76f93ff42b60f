"""A server from its first to its last moment: uvicorn, signals, an orderly way out."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from threading import Thread, current_thread, main_thread
from typing import TYPE_CHECKING

from uvicorn import Config, Server

from crow.acp.jsonrpc import LIMIT
from crow.acp.listen.app import application
from crow.acp.listen.hub import Hub
from crow.acp.listen.session_pool import SessionPool
from crow.acp.server import within
from crow.acp.stdio import endings
from crow.core.support.validation import implements
from crow.ports.stores import SharedStore

if TYPE_CHECKING:
    import socket

    from crow.acp.initialize import AgentCapabilities
    from crow.acp.listen.guard import Guard
    from crow.acp.listen.node import Node
    from crow.core.agent import Agent

PING = 20.0
PONG = 60.0  # one that is stopped, or busy with a flood, is not gone
MOST_SOCKETS = 1024
CLOSING = 0.2
PAUSE = 0.005
LAST_GASP = 0.95
INTERRUPTED = 130


async def serve(
    agent: Agent,
    listening: socket.socket,
    guard: Guard,
    offer: AgentCapabilities,
    node: Node | None,
    *,
    patience: float,
    idle: float,
    ready: Callable[[Node | None], object],
) -> None:
    """Serve an agent on a socket until SIGTERM or SIGINT, then end within a second.

    ``ready`` is called when clients can connect, with the ``node`` where others are told of it.
    """
    quiet()
    stop = asyncio.Event()
    pool = SessionPool(agent, patience=patience, idle=idle)
    node = node if announced(agent, node) else None
    hub = Hub(agent, pool, offer, node)
    server = Server(configuration(hub, guard))
    server.config.load()
    server.lifespan = server.config.lifespan_class(server.config)
    await server.startup(sockets=[listening])
    ticking = asyncio.create_task(tick(server))
    try:
        with hearing_signals(stop):
            ready(node)
            async with hub.tidying():
                await stop.wait()
    finally:
        for accepting in server.servers:
            accepting.close()
        await hub.close()
        await within(CLOSING, disconnect_all(server))
        ticking.cancel()
        await asyncio.wait({ticking})


def announced(agent: Agent, node: Node | None) -> bool:
    """Have the store tell others where this node is; False where it is for this machine alone."""
    store = agent.store
    return node is not None and implements(store, SharedStore) and store.announce(node.url)


async def disconnect_all(server: Server) -> None:
    """Close all connections; uvicorn's own way takes 0.1 seconds where there is none, too."""
    state = server.server_state
    for connection in list(state.connections):
        connection.shutdown()
    while state.connections or state.tasks:  # noqa: ASYNC110 - no event tells of it
        await asyncio.sleep(PAUSE)


async def tick(server: Server) -> None:
    """What uvicorn's own loop does ten times a second: keep the Date header right."""
    while True:
        await server.on_tick(0)
        await asyncio.sleep(1.0)


def configuration(hub: Hub, guard: Guard) -> Config:
    """How uvicorn is to work: it says nothing, and notices who is gone."""
    return Config(
        application(hub, guard),
        http="h11",
        ws="websockets-sansio",
        loop="none",
        lifespan="off",
        log_config=None,
        log_level="error",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=MOST_SOCKETS,
        ws_max_size=LIMIT,
        ws_ping_interval=PING,
        ws_ping_timeout=PONG,
        ws_per_message_deflate=False,
    )


def quiet() -> None:
    """Let nobody write into the log that a client went away: that is what clients do."""
    logging.getLogger("asyncio").setLevel(logging.ERROR)


@contextmanager
def hearing_signals(stop: asyncio.Event) -> Generator[None]:
    """Stop on the first signal that wants it, even while the loop is stuck; end on the second."""
    if current_thread() is not main_thread():
        yield
        return
    loop = asyncio.get_running_loop()
    heard: list[int] = []

    def hear(number: int, _frame: object) -> None:
        if heard:
            os._exit(INTERRUPTED)
        heard.append(number)
        Thread(target=end_soon, name="crow-acp-ending", daemon=True).start()
        loop.call_soon_threadsafe(stop.set)

    before = {number: signal.signal(number, hear) for number in (signal.SIGINT, *endings())}
    try:
        yield
    finally:
        if not heard:
            for number, handler in before.items():
                signal.signal(number, handler)


def end_soon() -> None:
    """End the process, whatever it still does by then."""
    time.sleep(LAST_GASP)
    os._exit(0)
