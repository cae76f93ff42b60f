"""``crow fleet schedule``: batches that are submitted again and again."""

from __future__ import annotations

import argparse
import json
from datetime import datetime
from typing import TYPE_CHECKING, Any

from crow.cli.output import Output
from crow.cli.parser import UsageError, no_such
from crow.fleet.schedules import Schedule, Schedules, zone_of
from crow.fleet.task import Task

if TYPE_CHECKING:
    from crow.fleet.board import Board

FORMS = {
    "list": "list [NAME]",
    "add": 'add NAME "CRON LINE" FILE [--zone ZONE] [--overlap] [--catch-up] [--budget DOLLARS]',
    "remove": "remove NAME",
    "pause": "pause NAME",
    "resume": "resume NAME",
    "run-now": "run-now NAME",
}
TAKES = {"list": (0, 1), "add": (3, 3)}


def checked(words: list[str]) -> tuple[str, list[str]]:
    """What is to be done, with which words. Raises `UsageError`."""
    verb, rest = (words[0], words[1:]) if words else ("list", [])
    if verb not in FORMS:
        raise UsageError(f"{no_such('action of schedules', verb, FORMS)} ({', '.join(FORMS)})")
    least, most = TAKES.get(verb, (1, 1))
    if not least <= len(rest) <= most:
        raise UsageError(f"it is: crow fleet schedule {FORMS[verb]}")
    return verb, rest


async def schedule(
    board: Board, options: argparse.Namespace, out: Output, tasks: list[Task]
) -> int:
    """Do what `checked` has found."""
    schedules = Schedules(board)
    verb, words = checked(options.words)
    name = words[0] if words else ""
    match verb:
        case "add":
            kept = Schedule(
                name,
                words[1],
                options.zone,
                tasks,
                options.budget,
                options.overlap,
                options.catch_up,
            )
            due = await schedules.add(kept)
            out.line(f"{name}: {explained(words[1])}, next at {at(due, options.zone)}")
        case "list" if name:
            for row in await schedules.ticks(name):
                _tell(
                    row,
                    f"{at(row['tick'], row['zone'])}  {row['outcome']:9}  {row['batch'] or ''}",
                    options,
                    out,
                )
        case "list":
            await _list(schedules, options, out)
        case "run-now":
            out.line(f"{await schedules.run_now(name)} is submitted")
        case "remove":
            await schedules.remove(name)
            out.line(f"{name} is removed; its batches stay")
        case _:
            await schedules.pause(name, paused=verb == "pause")
            out.line(f"{name} {'stands still' if verb == 'pause' else 'goes on'}")
    return 0


async def _list(schedules: Schedules, options: argparse.Namespace, out: Output) -> None:
    rows = await schedules.listed()
    for row in rows:
        next_one = "paused" if row["paused"] else f"next at {at(row['due'], row['zone'])}"
        last = f"; last {at(row['tick'], row['zone'])} {row['outcome']}" if row["tick"] else ""
        row["tasks"] = len(row["tasks"])
        count = f"{row['tasks']} task{'' if row['tasks'] == 1 else 's'},"
        text = f"{row['name']}  {explained(row['cron'])}, {count} {next_one}{last}"
        _tell(row, text, options, out)
    if not rows and not options.json:
        out.line(f"no schedules; crow fleet schedule {FORMS['add']}")


def _tell(row: dict[str, Any], text: str, options: argparse.Namespace, out: Output) -> None:
    out.verbatim(json.dumps(row, default=str)) if options.json else out.line(text)


def at(time: datetime | None, zone: str = "UTC") -> str:
    """A time as people say it in a zone."""
    return f"{time.astimezone(zone_of(zone)):%Y-%m-%d %H:%M %Z}" if time is not None else "never"


def explained(cron: str) -> str:
    """A cron line in words."""
    from cronsim import CronSim

    return cron if cron.startswith("@") else CronSim(cron, datetime(2026, 1, 1)).explain()  # noqa: DTZ001
