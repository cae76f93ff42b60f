"""The progress of a fleet, live: states, workers, jobs, cost, rate, time to go."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

from crow.fleet.board import Board
from crow.fleet.job_filter import JobFilter, table

if TYPE_CHECKING:
    from rich.console import RenderableType

    from crow.cli.output import Output

STATES = {
    "done": "green",
    "running": "cyan",
    "waiting": "yellow",
    "queued": "dim",
    "failed": "red",
    "stopped": "red",
    "cancelled": "dim",
}
SHOWN = 15
WIDTH = 60
EVERY = 1.0


async def watch(board: Board, where: JobFilter, out: Output, *, as_json: bool) -> int:
    """Show it until all has ended, or once where nobody watches; 1 where jobs have failed."""
    if as_json or not out.is_terminal:
        seen = await board.summary(where)
        out.verbatim(json.dumps(seen, default=str)) if as_json else out.line(line_of(seen))
        return _status(seen)
    from rich.console import Console
    from rich.live import Live

    with Live(console=Console(file=out.out), auto_refresh=False) as live:
        while True:
            seen = await board.summary(where)
            live.update(await screen(board, where, seen), refresh=True)
            if not _is_open(seen):
                return _status(seen)
            await asyncio.sleep(EVERY)


def _is_open(seen: dict[str, Any]) -> bool:
    return any(seen["states"].get(state) for state in ("queued", "running", "waiting"))


def _status(seen: dict[str, Any]) -> int:
    return 1 if seen["states"].get("failed") or seen["states"].get("stopped") else 0


def line_of(seen: dict[str, Any]) -> str:
    """All of it in a line."""
    states = [f"{seen['states'][name]} {name}" for name in STATES if seen["states"].get(name)]
    parts = [f"{seen['jobs']} jobs", *states, f"{seen['turns']} turns", f"${seen['cost']:.2f}"]
    rate = rate_of(seen)
    left = sum(seen["states"].get(state, 0) for state in ("queued", "running"))
    if rate:
        parts.append(f"{rate * 60:.1f} a minute")
        if left:
            parts.append(f"{spoken(left / rate)} to go")
    return ", ".join(parts)


def rate_of(seen: dict[str, Any]) -> float:
    """How many jobs have ended in a second, in the last five minutes."""
    return seen["recent"] / seen["seconds"] if seen["recent"] and seen["seconds"] else 0.0


def spoken(seconds: float) -> str:
    """A time as people say it."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = seconds / 60
    return f"{minutes:.0f} min" if minutes < 90 else f"{minutes / 60:.1f} h"


async def screen(board: Board, where: JobFilter, seen: dict[str, Any]) -> RenderableType:
    """The screen at one moment."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    lines = Table(box=None, pad_edge=False, header_style="dim")
    for name in ("job", "turns", "cost", "where", "what"):
        lines.add_column(name, no_wrap=True, overflow="ellipsis")
    open_ones = [
        *await board.jobs(_in(where, "waiting")),
        *await board.jobs(_in(where, "running")),
    ]
    for row in open_ones[:SHOWN]:
        said = table(row["question"]).get("text") or row["task"]["prompt"]
        style = STATES[row["state"]]
        place = row["who"] or "waits for a person"
        cells = (row["id"][:8], str(row["turns"]), f"${row['cost']:.2f}", place)
        lines.add_row(*cells, str(said).partition("\n")[0], style=style)
    parts: list[RenderableType] = [bar(seen), Text(line_of(seen)), lines]
    if len(open_ones) > SHOWN:
        parts.append(Text(f"and {len(open_ones) - SHOWN} more", style="dim"))
    workers = await board.workers()
    places = sum(worker["places"] for worker in workers)
    parts.append(Text(f"{len(workers)} workers with {places} places", style="dim"))
    return Group(*parts)


def _in(where: JobFilter, state: str) -> JobFilter:
    return JobFilter(where.batch, where.label, where.job, state)


def bar(seen: dict[str, Any]) -> RenderableType:
    """The states as one bar."""
    from rich.text import Text

    text, total, drawn = Text(), max(seen["jobs"], 1), 0
    counted = 0
    for state, style in STATES.items():
        counted += seen["states"].get(state, 0)
        until = round(counted / total * WIDTH)
        mark = "·" if state == "queued" else "█"
        text.append(mark * (until - drawn), style=style)
        drawn = until
    return text
