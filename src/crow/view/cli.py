"""A page on this machine that shows what happened: what was said, run, decided and changed.

  crow view            the list of sessions, with a search over all of them
  crow view SESSION    one; the first letters of its id are enough
  crow view FILE       a conversation in a file: an export of Crow, a transcript of Claude Code, a
                       rollout of Codex, an ATIF trajectory, traces of OpenTelemetry

One process, on loopback, for the browser that opens the address; Ctrl-C ends it. A session at work
grows while you look.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import signal
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from crow.cli import Output, declare_agent, load_agent
from crow.cli.session_lookup import store_of, store_with, whole_id
from crow.core.agent import Agent
from crow.core.errors import SessionError
from crow.core.store import SessionInfo, Store
from crow.ports.stores import ExportStore, OverviewStore

MANY = 200


def declare(parser: argparse.ArgumentParser) -> None:
    """The options of ``crow view``."""
    parser.add_argument(
        "session", metavar="SESSION", nargs="?", help="its id, or how that begins; or a file"
    )
    parser.add_argument("--port", type=int, default=0, help="where to listen; any that is free")
    parser.add_argument("--no-browser", action="store_true", help="print the address alone")
    declare_agent(parser)


def main(options: argparse.Namespace, out: Output) -> int:
    """Run ``crow view`` until it is interrupted."""
    return asyncio.run(serve(load_agent(options, out, reads=True), options, out))


async def serve(agent: Agent, options: argparse.Namespace, out: Output) -> int:
    """Serve the page."""
    from crow.view.server import Server

    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    async with agent:
        path = Path(os.path.expanduser(options.session or ""))
        if await asyncio.to_thread(path.is_file):
            place, told = await asyncio.to_thread(of_file, path)
        else:
            store = store_of(agent)
            place = f"#{await whole_id(store, options.session)}" if options.session else ""
            told = answers(agent, store)
        with Server(told, loop, options.port) as server:
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
        rows = await store_with(store, OverviewStore).overview(text, limit=MANY)
        return [_row(row) for row in rows]

    async def session(query: Mapping[str, str]) -> Any:
        from crow.core.secrets import scrubbed
        from crow.view.document import document
        from crow.view.markdown import dressed

        lines = await store_with(store, ExportStore).export(query.get("id", ""))
        made = await asyncio.to_thread(lambda: dressed(document(lines)))
        return made if made["count"] != int(query.get("known", -1)) else scrubbed(None, ())

    return {"sessions": sessions, "session": session}


def of_file(path: Path) -> tuple[str, dict[str, Any]]:
    """The place of the conversation in a file, and what the page asks for of it.

    Raises `SessionError` for a file that has none.
    """
    from crow.view.document import document
    from crow.view.markdown import dressed

    made = dressed(document(lines_of(path)))
    about, prompts = made["session"], [e for e in made["entries"] if e["kind"] == "prompt"]
    info = SessionInfo(about["id"], about["cwd"], about["title"], about["updated"], made["count"])
    row = {**asdict(info), "prompt": prompts[0]["text"] if prompts else "", "turns": len(prompts)}
    row |= {"cost": about["usage"].get("cost"), "used_by": "", "snippet": "", "outcome": ""}

    async def sessions(query: Mapping[str, str]) -> Any:
        return [row]

    async def session(query: Mapping[str, str]) -> Any:
        return made if made["count"] != int(query.get("known", -1)) else None

    return f"#{info.id}", {"sessions": sessions, "session": session}


def lines_of(path: Path) -> str:
    """The conversation in a file, as an export of Crow's. Raises `SessionError`."""
    from crow.transcripts import UnknownTranscriptError, read

    try:
        made = read(path.read_text("utf-8", "replace"))
    except OSError as error:
        raise SessionError(f"{path} cannot be read: {error.strerror}") from error
    except UnknownTranscriptError as error:
        raise SessionError(f"{path}: {error}") from None
    return made if isinstance(made, str) else made.lines()


def _row(row: Any) -> dict[str, Any]:
    return {
        **asdict(row.session),
        "prompt": row.prompt,
        "turns": row.turns,
        "cost": row.cost,
        "used_by": row.used_by,
        "outcome": row.outcome,
        "snippet": row.snippet,
    }
