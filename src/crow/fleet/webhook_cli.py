"""``crow fleet webhook``: the addresses that a fleet posts its news to."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

from crow.cli.output import Output
from crow.cli.parser import UsageError, no_such
from crow.fleet.webhooks import Webhooks

if TYPE_CHECKING:
    from crow.fleet.board import Board

VERBS = ("list", "add", "test", "remove")


async def webhook(board: Board, options: argparse.Namespace, out: Output) -> int:
    """Add, list, test or remove addresses; 1 where a test was not taken."""
    webhooks = Webhooks(board)
    verb, *urls = options.words or ["list"]
    if verb not in VERBS:
        raise UsageError(f"{no_such('action of webhooks', verb, VERBS)} ({', '.join(VERBS)})")
    if len(urls) != (verb != "list"):
        raise UsageError(f"it is: crow fleet webhook {verb}{'' if verb == 'list' else ' URL'}")
    match verb:
        case "add":
            secret = await webhooks.add(urls[0])
            out.line(f"{urls[0]} is posted to; what comes is signed with")
            out.line(secret)
        case "test":
            said = await webhooks.test(urls[0])
            out.line(said)
            return 0 if said.startswith("HTTP 2") else 1
        case "remove":
            await webhooks.remove(urls[0])
            out.line(f"{urls[0]} is posted to no more")
        case _:
            await _list(webhooks, options, out)
    return 0


async def _list(webhooks: Webhooks, options: argparse.Namespace, out: Output) -> None:
    rows = await webhooks.listed()
    for row in rows:
        if options.json:
            out.verbatim(json.dumps(row, default=str))
            continue
        last = f"; the last one: {row['said']}" if row["said"] else ""
        out.line(f"{row['url']}  {row['over']} posted, {row['waiting']} to be{last}")
    if not rows and not options.json:
        out.line("no webhooks; crow fleet webhook add URL")
