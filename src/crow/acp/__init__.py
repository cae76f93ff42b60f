"""The ACP server: an agent behind the Agent Client Protocol.

Nothing heavy is imported before it is needed: ``initialize`` is answered before there is an agent.
"""

from __future__ import annotations

import gc
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from collections.abc import Callable

    from crow.acp.initialize import AgentCapabilities
    from crow.acp.stdio import StdioTransport
    from crow.core.agent import Agent

__all__ = ["open_stdio", "run_agent", "serve_stdio"]

LAST_GASP = 1.0
SWITCH = 0.001
"""Seconds after which a thread that computes lets others on: the client's messages go by three."""
SMALL = (30_000, 5, 5)
"""When garbage is collected, often enough not to take long."""


async def run_agent(
    agent: Agent,
    *,
    link: StdioTransport | None = None,
    source: int | None = None,
    sink: int | None = None,
) -> None:
    """Serve an agent to the editor that started this process, until the editor goes away.

    Standard input and output belong to the protocol from then on: what prints, prints to standard
    error. When the input ends, runs are cancelled and the agent is closed, within a second; a
    process that is stuck then is ended. ``source`` and ``sink`` are other file descriptors to
    speak on; they are not closed. ``link`` is one that was opened earlier, by `open_stdio`.
    """
    import asyncio

    from crow.acp.server import is_over, serve
    from crow.acp.stdio import StdioTransport

    before = asyncio.all_tasks()
    is_process = source is None or sink is None
    if link is None:
        offer = offer_of(agent)
        link = (
            open_stdio(offer)
            if source is None or sink is None
            else StdioTransport(source, sink, offer)
        )
    await serve(agent, link, is_process=is_process)
    if await is_over(before):
        link.close()


def open_stdio(offer: AgentCapabilities, *, is_command: bool = False) -> StdioTransport:
    """Claim standard input and output, and answer ``initialize`` from now on.

    The earlier the better: whatever is imported or printed after this disturbs nobody. With
    ``is_command`` the process ends at once when a client leaves that has only greeted.
    """
    from crow.acp.stdio import StdioTransport, claim_stdio

    source, sink = claim_stdio()
    return StdioTransport(source, sink, offer, last_gasp=LAST_GASP, is_command=is_command)


def serve_stdio(build: Callable[[], Agent], offer: AgentCapabilities | None = None) -> int:
    """Serve the agent that ``build`` makes, on standard input and output; for commands.

    ``initialize`` is answered before ``build`` is called, with ``offer`` (an agent that stores
    sessions and connects to MCP servers, unless it says otherwise). Raises what ``build`` raises.
    Where the client is gone the process ends here, behind what is registered with `atexit`. The
    exit status is 1 where the client was there, and could not be written to.
    """
    from crow.acp.initialize import AgentCapabilities
    from crow.acp.stdio import hearing_signals

    sys.setswitchinterval(SWITCH)
    offered = offer or AgentCapabilities(store=True, mcp=True)
    link = hearing_signals(lambda: open_stdio(offered, is_command=True))
    import asyncio

    async def main() -> NoReturn:
        from crow.acp.server import serve

        agent = build()
        spare_from_collection()
        await serve(agent, link, is_process=True)
        leave(link.report())

    return asyncio.run(main())


def spare_from_collection() -> None:
    """Keep what is there by now: to go through it takes longer than a client waits."""
    gc.freeze()
    gc.set_threshold(*SMALL)


def leave(status: int) -> NoReturn:
    """End the process at once, whatever threads there are: to take it to pieces takes longer."""
    import atexit
    import os

    atexit._run_exitfuncs()  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] - no other way
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(status)


def offer_of(agent: Agent) -> AgentCapabilities:
    """What an agent can do, as far as it shows."""
    from crow.acp.config_options import serves_mcp, takes_prompts
    from crow.acp.initialize import AgentCapabilities
    from crow.core.errors import ModelError
    from crow.core.support.validation import implements
    from crow.ports.models import has_routes, inputs_of
    from crow.ports.stores import ArchiveStore

    try:
        taken = inputs_of(agent.llm)
    except ModelError:
        taken = None
    return AgentCapabilities(
        store=agent.store is not None,
        mcp=serves_mcp(agent),
        archive=implements(agent.store, ArchiveStore),
        prompted=takes_prompts(agent),
        providers=has_routes(agent.llm),
        image=taken is None or "image" in taken,
        audio=taken is not None and "audio" in taken,
    )
