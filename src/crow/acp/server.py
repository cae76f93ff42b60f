"""One connection from its first line to its end: the methods, and an orderly way out."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncGenerator, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from crow.acp.agent import AcpAgent
from crow.acp.connection import Connection
from crow.acp.dispatch import Dispatcher
from crow.acp.send_queue import SendQueue
from crow.acp.stdio import StdioTransport, endings
from crow.core.agent import Agent

ENDING = 0.95
FLUSHING = 0.1
PARENT_CHECK = 1.0


async def serve(agent: Agent, link: StdioTransport, *, is_process: bool) -> bool:
    """Serve one client until its input ends, then end what runs and close the agent.

    ``is_process``: the process is there for this client alone; it leaves when its parent does.
    False where something still runs: it ignored its cancellation.
    """
    before = asyncio.all_tasks()
    queue = SendQueue(link.send)
    connection = Connection(queue)
    async with leaving_with_parent(link, is_process=is_process):
        try:
            link.start()
            methods = Dispatcher(AcpAgent(agent, link, connection))
            await connection.serve(link.receive, methods)
            cancel_all(agent)
            connection.hang_up()
        finally:
            await finish(agent, connection, link, queue)
            await within(FLUSHING, connection.close())
    return asyncio.all_tasks() <= before


async def finish(
    agent: Agent, connection: Connection, link: StdioTransport, queue: SendQueue
) -> None:
    """Cancel what runs, wait for it, close the agent, and write what is left; within a second."""
    end = asyncio.get_running_loop().time() + ENDING
    await asyncio.sleep(0)  # what was read last is a task that has not begun yet
    cancel_all(agent)
    if connection.tasks:
        await asyncio.wait(set(connection.tasks), timeout=ENDING - FLUSHING)
    await asyncio.sleep(0)
    await within(max(end - asyncio.get_running_loop().time(), FLUSHING), agent.close())
    await within(FLUSHING, queue.drained())
    queue.close()


def cancel_all(agent: Agent) -> None:
    """End what runs and what waits in all sessions."""
    for session in list(agent.sessions.values()):
        agent.cancel(session)


async def within(seconds: float, work: Coroutine[Any, Any, object]) -> None:
    """Do something, but not for longer; what is late goes on by itself."""
    task = asyncio.ensure_future(work)
    await asyncio.wait({task}, timeout=seconds)
    if task.done() and not task.cancelled() and (error := task.exception()) is not None:
        raise error


@asynccontextmanager
async def leaving_with_parent(link: StdioTransport, *, is_process: bool) -> AsyncGenerator[None]:
    """Hang up when the parent process or the terminal is gone, or on SIGTERM: also a stuck loop."""
    if not is_process:
        yield
        return
    watch = asyncio.create_task(_watch_parent(link), name="crow-acp-parent")
    before = {
        number: signal.signal(number, lambda _number, _frame: link.hang_up())
        for number in endings()
    }
    try:
        yield
    finally:
        watch.cancel()
        await asyncio.wait({watch})
        for number, handler in before.items():
            signal.signal(number, handler)


async def _watch_parent(link: StdioTransport) -> None:
    while os.getppid() == link.parent:  # noqa: ASYNC110 - no event tells of it
        await asyncio.sleep(PARENT_CHECK)
    link.hang_up()
