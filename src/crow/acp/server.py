"""One connection from its first line to its end: the library, the face, an orderly way out."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from importlib import import_module
from threading import Thread
from typing import TYPE_CHECKING, Any

from crow.acp.jsonrpc import Message, as_object
from crow.acp.link import Link
from crow.acp.outbox import Outbox
from crow.core.agent import Agent

if TYPE_CHECKING:
    from acp.connection import Connection

    from crow.acp.face import Face

SETTLING = 0.85
CLOSING = 0.3
PARENT_CHECK = 1.0
OPENS_SESSION = ("session/new", "session/load", "session/resume", "session/fork")


async def serve(agent: Agent, link: Link, *, is_process: bool) -> bool:
    """Serve one client until its input ends, then end what runs and close the agent.

    ``is_process``: the process is there for this client alone; it leaves when its parent does.
    False where something ignored its cancellation and still runs.
    """
    before = asyncio.all_tasks()
    library = load_library()
    outbox = Outbox(link.send)
    async with leaving_with_parent(link, is_process=is_process):
        try:
            if await link.ready():
                await library
                link.start()
                await converse(agent, link, outbox)
        finally:
            link.start()
            await within(CLOSING, agent.close())
            await within(CLOSING, outbox.drained())
            outbox.close()
    return asyncio.all_tasks() <= before


def load_library() -> asyncio.Future[None]:
    """Import the protocol's library in a thread; it takes a while."""
    loop = asyncio.get_running_loop()
    loaded: asyncio.Future[None] = loop.create_future()
    loaded.add_done_callback(lambda future: future.cancelled() or future.exception())

    def settle(error: BaseException | None) -> None:
        if loaded.done():
            return
        if error is None:
            loaded.set_result(None)
        else:
            loaded.set_exception(error)

    def load() -> None:
        error: BaseException | None = None
        try:
            import_module("crow.acp.face")
        except ImportError as failed:
            error = failed
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(settle, error)

    Thread(target=load, name="crow-acp-import", daemon=True).start()
    return loaded


async def converse(agent: Agent, link: Link, outbox: Outbox) -> None:
    """Answer requests until the input ends; then cancel what runs and wait a moment for it."""
    face, connection = connect(agent, link, outbox)
    try:
        await connection.main_loop()
    finally:
        for session in list(agent.sessions.values()):
            agent.cancel(session)
        turns = {turn for running in face.turns.values() for turn in running}
        if turns:
            await asyncio.wait(turns, timeout=SETTLING)
        await asyncio.sleep(0)
        await within(CLOSING, outbox.drained())
        await within(CLOSING, connection.close())


def connect(agent: Agent, link: Link, outbox: Outbox) -> tuple[Face, Connection]:
    """The library's connection and router, with an agent's face behind it."""
    from acp.agent.router import build_agent_router
    from acp.connection import Connection
    from acp.exceptions import RequestError

    from crow.acp.face import Face
    from crow.acp.peer import Peer
    from crow.acp.transport import LinkTransport

    async def handle(method: str, params: Any, is_notification: bool) -> Any:
        try:
            return await route(method, accepted(method, params), is_notification)
        except RequestError:
            if not is_notification:
                raise
        except ValueError as error:
            if not is_notification:
                raise RequestError.invalid_params({"details": brief(error)}) from error

    connection = Connection(handle, LinkTransport(link, outbox), listening=False)
    face = Face(agent, link, Peer(connection, outbox))
    route = build_agent_router(face, use_unstable_protocol=True)  # type: ignore[arg-type]
    return face, connection


def accepted(method: str, params: Any) -> Message:
    """Parameters as the router is to see them: it would take ``_meta`` for more of them."""
    given = as_object(params)
    if method.startswith("_"):
        return given
    taken: Message = {key: value for key, value in given.items() if key != "_meta"}
    if method in OPENS_SESSION:
        taken.setdefault("mcpServers", [])
    return taken


def brief(error: ValueError) -> str:
    """What is wrong with parameters, in a line; without the parameters themselves."""
    errors: Callable[..., list[Any]] | None = getattr(error, "errors", None)
    if errors is None:
        return str(error)
    found = errors(include_url=False, include_context=False, include_input=False)
    return "; ".join(f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in found[:5])


async def within(seconds: float, work: Coroutine[Any, Any, object]) -> None:
    """Do something, but not for longer; what is late goes on by itself."""
    task = asyncio.ensure_future(work)
    await asyncio.wait({task}, timeout=seconds)
    if task.done() and not task.cancelled() and (error := task.exception()) is not None:
        raise error


@asynccontextmanager
async def leaving_with_parent(link: Link, *, is_process: bool) -> AsyncGenerator[None]:
    """Hang up when the parent process is gone, or on SIGTERM."""
    if not is_process:
        yield
        return
    loop = asyncio.get_running_loop()
    watch = asyncio.create_task(_watch_parent(link), name="crow-acp-parent")
    can_hear = sys.platform != "win32"
    if can_hear:
        loop.add_signal_handler(signal.SIGTERM, link.hang_up)
    try:
        yield
    finally:
        watch.cancel()
        if can_hear:
            loop.remove_signal_handler(signal.SIGTERM)


async def _watch_parent(link: Link) -> None:
    parent = os.getppid()
    while os.getppid() == parent:  # noqa: ASYNC110 - no event tells of it
        await asyncio.sleep(PARENT_CHECK)
    link.hang_up()
