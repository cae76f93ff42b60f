"""A page on this machine that shows what happened: what was said, run, decided and changed.

  crow view            the list of sessions, with a search over all of them
  crow view SESSION    one; the first letters of its id are enough

One process, on loopback, for the browser that opens the address; Ctrl-C ends it. A session at work
grows while you look.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import signal
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from crow.cli import Output, declare_agent, load_agent
from crow.cli.stored import able, stored, whole_id
from crow.core.agent import Agent
from crow.core.session import Store

MANY = 200


def declare(parser: argparse.ArgumentParser) -> None:
    """The options of ``crow view``."""
    parser.add_argument("session", metavar="SESSION", nargs="?", help="its id, or how that begins")
    parser.add_argument("--port", type=int, default=0, help="where to listen; any that is free")
    parser.add_argument("--no-browser", action="store_true", help="print the address alone")
    declare_agent(parser)


def main(options: argparse.Namespace, out: Output) -> int:
    """Run ``crow view`` until it is interrupted."""
    return asyncio.run(serve(load_agent(options, out), options, out))


async def serve(agent: Agent, options: argparse.Namespace, out: Output) -> int:
    """Serve the page."""
    from crow.view.server import Server

    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    async with agent:
        store = stored(agent)
        place = f"#{await whole_id(store, options.session)}" if options.session else ""
        with Server(answers(agent, store), loop, options.port) as server:
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.add_signal_handler(number, ended.set)
            out.line(server.url + place)
            if not options.no_browser:
                import webbrowser

                with contextlib.suppress(webbrowser.Error):
                    await asyncio.to_thread(webbrowser.open, server.url + place)
            await ended.wait()
    return 0


def answers(agent: Agent, store: Store) -> dict[str, Any]:
    """What the page asks for, by name."""

    async def sessions(query: Mapping[str, str]) -> Any:
        text = query.get("q", "").strip()
        rows: list[Any] = await able(store, "overview")(text, limit=MANY)
        return [_row(row) for row in rows]

    async def session(query: Mapping[str, str]) -> Any:
        from crow.core.scrub import scrubbed
        from crow.view.document import document
        from crow.view.words import dressed

        lines = await able(store, "export")(query.get("id", ""))
        made = await asyncio.to_thread(lambda: dressed(document(lines)))
        return made if made["count"] != int(query.get("known", -1)) else scrubbed(None, ())

    return {"sessions": sessions, "session": session}


def _row(row: Any) -> dict[str, Any]:
    return {
        **asdict(row.session),
        "prompt": row.prompt,
        "turns": row.turns,
        "cost": row.cost,
        "used_by": row.used_by,
        "snippet": row.snippet,
    }
