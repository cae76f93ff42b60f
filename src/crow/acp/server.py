"""One connection from its first line to its end: the methods, and an orderly way out."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
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
PAUSE = 0.005
PARENT_CHECK = 1.0


async def serve(agent: Agent, link: StdioTransport, *, is_process: bool) -> None:
    """Serve one client until its input ends, then end what runs and close the agent.

    ``is_process``: the process is there for this client alone; it leaves when its parent does.
    """
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


async def is_over(before: set[asyncio.Task[Any]]) -> bool:
    """True as soon as nothing runs but these tasks; False where something ignores its end."""
    loop = asyncio.get_running_loop()
    end = loop.time() + FLUSHING
    while asyncio.all_tasks() - before or any(map(is_at_work, threading.enumerate())):
        if loop.time() > end:
            return False
        await asyncio.sleep(PAUSE)
    return True


def is_at_work(thread: threading.Thread) -> bool:
    """True for a thread of an executor's that does something: the interpreter waits for it."""
    frame = sys._current_frames().get(thread.ident or 0)  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
    if thread.daemon or frame is None or thread is threading.main_thread():
        return False
    frames: list[str] = []
    while frame is not None:
        frames.append(frame.f_code.co_name)
        frame = frame.f_back
    return "_worker" in frames[1:]


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
