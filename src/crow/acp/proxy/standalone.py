"""The proxy by itself: it starts the agent, and speaks with the client on standard input."""

from __future__ import annotations

import asyncio
import os
import shlex
from collections.abc import Callable, Sequence
from contextlib import suppress
from textwrap import shorten

from crow.acp.proxy.peers import LEAVING, AgentProcess, StandardIO, lines
from crow.acp.proxy.relay import Relay
from crow.acp.stdio import endings
from crow.core.agent import Agent
from crow.core.errors import CrowError, message_of

FLUSHING = 1.0
DYING = 0.2
SHOWN = 100


async def serve(build: Callable[[], Agent], command: Sequence[str], source: int, sink: int) -> int:
    """Relay until the client or the agent is gone; the exit status."""
    client, agent = StandardIO(), AgentProcess(command)
    try:
        await agent.open()
    except (OSError, ValueError) as error:
        raise CrowError(
            f"the agent {command[0]!r} cannot be started: {message_of(error)}"
        ) from None
    try:
        relay = Relay(build(), client, agent)
        await client.open(source, sink)
        hang_up_at_signals(client)
        try:
            return await _relay(relay, client, agent)
        finally:
            await relay.close()
            await client.drained(FLUSHING)
    finally:
        await agent.leave()


async def _relay(relay: Relay, client: StandardIO, agent: AgentProcess) -> int:
    from_client = asyncio.create_task(relay.read_client(lines(client.stream)))
    from_agent = asyncio.create_task(relay.read_agent(lines(agent.stream)))
    try:
        await asyncio.wait({from_client, from_agent}, return_when=asyncio.FIRST_COMPLETED)
        if from_agent.done():
            return await _lose(relay, agent)
        agent.end_input()
        await asyncio.wait({from_agent}, timeout=LEAVING)
        return 0
    finally:
        from_client.cancel()
        from_agent.cancel()


async def _lose(relay: Relay, agent: AgentProcess) -> int:
    """The agent is gone before its client is: say so, and how."""
    await agent.wait(DYING)
    named = shorten(shlex.join(agent.command), SHOWN, placeholder=" ...")
    why = f"the agent ({named}) {agent.ending}"
    with suppress(OSError):
        os.write(2, f"crow: {why}\n".encode())
    await relay.lose_agent(why)
    return 1


def hang_up_at_signals(client: StandardIO) -> None:
    """Behave at a signal as if the client had gone."""
    loop = asyncio.get_running_loop()
    for number in endings():
        loop.add_signal_handler(number, client.hang_up)
