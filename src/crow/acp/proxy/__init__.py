"""Crow in front of another agent: its hooks and permissions on that one's traffic."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import NoReturn

    from crow.core.agent import Agent

__all__ = ["GUARDS", "serve_proxy"]

GUARDS = frozenset({"permissions", "shell_hooks", "hook_log", "setup"})
"""The built-in extensions that make sense in front of another agent; the rest is for Crow's own."""


def serve_proxy(build: Callable[[], Agent], command: Sequence[str]) -> int:
    """Stand between whoever started this process and the agent that ``command`` starts.

    Without a command this is a component in the chain of a conductor. ``build`` makes the agent
    whose hooks judge, while the other one starts. The process ends here when one of the two is
    gone, behind what is registered with `atexit`. Raises what ``build`` raises, and `CrowError` for
    an agent that cannot be started.
    """
    import asyncio
    import sys

    from crow.acp import SWITCH, leave
    from crow.acp.stdio import claim_stdio

    source, sink = claim_stdio()

    async def main() -> NoReturn:
        if command:
            from crow.acp.proxy.standalone import serve

            leave(await serve(build, command, source, sink))
        from crow.acp.proxy.chain import serve_chain

        leave(await serve_chain(build, source, sink))

    sys.setswitchinterval(SWITCH)
    return asyncio.run(main())
