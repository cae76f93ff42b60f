"""Sessions by the hundred, on any number of machines that share a PostgreSQL database.

  crow fleet submit FILE      add the tasks of a file (JSON Lines, JSON, TOML) to a batch
  crow fleet work             run what is queued, --concurrency at once; SIGTERM drains
  crow fleet watch            how far it all is, live
  crow fleet list             the jobs; with --state, --label, or the beginning of an ID
  crow fleet show ID          one job: what it said, and which machines it was on
  crow fleet results          what came of them; --json, or --html for a page
  crow fleet patch ID         what a session changed, as a patch
  crow fleet inbox            what waits for a person; --listen HOST:PORT serves it over HTTP
  crow fleet answer ID TEXT   answers it; the session goes on anywhere
  crow fleet cancel [ID]      retry [ID], drain [WORKER]
  crow fleet schedule         batches by a cron line: add NAME "0 2 * * *" FILE, list, pause,
                              resume, run-now, remove
  crow fleet webhook          addresses that questions and ends of batches are posted to:
                              add URL, list, test, remove

A line of FILE: {"prompt": "...", "workspace": {"git": "https://..."}, "allow": ["Bash(pytest:*)"]}
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import os
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from crow.cli.output import Output
from crow.cli.parser import Parser, UsageError, no_such
from crow.fleet.board import LEASE, Board
from crow.fleet.inbox import answer, job_of, waiting
from crow.fleet.job_filter import JobFilter, table
from crow.fleet.queue import chosen_queue
from crow.fleet.schedule_cli import checked, schedule
from crow.fleet.task import FleetError, Task, read_tasks
from crow.fleet.webhook_cli import webhook

ADDRESS = ("postgresql://", "postgres://")
AWAY = 60.0
"""Seconds for which a worker that begins waits for the database."""
ROOT = Path("~/.local/state/crow/fleet")
TAKES = {
    "submit": (1, 1),
    "work": (0, 0),
    "watch": (0, 0),
    "list": (0, 1),
    "show": (1, 1),
    "results": (0, 1),
    "patch": (1, 1),
    "inbox": (0, 0),
    "answer": (2, 2),
    "cancel": (0, 1),
    "retry": (0, 1),
    "drain": (0, 1),
    "schedule": (0, 9),
    "webhook": (0, 9),
}
"""How many words stand behind each action."""


def declare(parser: Parser) -> None:
    """The options of ``crow fleet``."""
    add = parser.add_argument
    add("action", metavar="ACTION", nargs="?", default="watch", help=", ".join(TAKES))
    add("words", metavar="FILE|ID", nargs="*")
    add("--store", metavar="URL", help="the database; CROW_STORE without it")
    add("--batch", metavar="NAME", help="submit: which batch; else only jobs of this one")
    add("--budget", metavar="DOLLARS", type=float, help="submit: what the batch may cost in all")
    add("--label", metavar="NAME[=TEXT]", default="", help="only jobs with this label")
    add("--zone", metavar="ZONE", default="UTC", help="schedule: such as Europe/Berlin (UTC)")
    add("--overlap", action="store_true", help="schedule: also while the last batch runs")
    add("--catch-up", action="store_true", help="schedule: make up for the last missed tick")
    add("--state", metavar="STATE", default="", help="only jobs in this state")
    add("--concurrency", metavar="N", type=int, default=4, help="work: sessions at once (4)")
    add("--model", metavar="NAME", help="work: for tasks that name none")
    add("--folder", metavar="DIR", type=Path, default=ROOT, help=f"work: for trees ({ROOT})")
    add("--containers", metavar="FILE", help="work: the kinds of containers that tasks can name")
    add("--grace", metavar="SECONDS", type=float, default=30.0, help="work: for draining (30)")
    add("--until-empty", action="store_true", help="work: end when nothing is left to do")
    add("--lease", metavar="SECONDS", type=float, default=LEASE, help=argparse.SUPPRESS)
    add("--listen", metavar="HOST:PORT", help="inbox: serve it; the token is CROW_ACP_TOKEN, or")
    add("--token-file", metavar="FILE", help="inbox: one in a file, made where there is none")
    add("--json", action="store_true", help="an object a line")
    add("--html", metavar="FILE", type=Path, help="results: as a page")


def main(options: argparse.Namespace, out: Output) -> int:
    """Run ``crow fleet``."""
    action, words = options.action, options.words
    if action not in TAKES:
        raise UsageError(f"{no_such('action', action, TAKES)} ({', '.join(TAKES)})")
    least, most = TAKES[action]
    if not least <= len(words) <= most:
        wants = {(0, 0): "nothing", (1, 1): "one word", (2, 2): "an ID and a text"}
        raise UsageError(f"crow fleet {action} takes {wants.get((least, most), 'one ID at most')}")
    if options.concurrency < 1:
        raise UsageError("--concurrency must be at least 1")
    address = options.store or os.environ.get("CROW_STORE", "")
    if not address.startswith(ADDRESS):
        raise UsageError(
            "a fleet needs a PostgreSQL database: --store postgresql://..., CROW_STORE"
        )
    file = file_of(action, words)
    tasks = read_tasks(home(file)) if file else []
    try:
        import procrastinate as _  # noqa: F401 - first of all: it takes half a second
    except ImportError as error:
        raise FleetError("a fleet needs an extra of Crow's: uv add 'crow-acp[fleet]'") from error
    logging.getLogger("psycopg.pool").setLevel(logging.CRITICAL)  # it says each loss of each one
    return asyncio.run(_with_board(address, options, out, tasks))


async def _with_board(
    address: str, options: argparse.Namespace, out: Output, tasks: list[Task]
) -> int:
    works = options.action == "work"
    size = 4 + options.concurrency // 8 if works else 2
    patience = AWAY if works else 0.0
    queue = chosen_queue(options.concurrency)
    async with Board(
        address, lease=options.lease, size=size, patience=patience, queue=queue
    ) as board:
        if options.action == "submit":
            return await submit(board, tasks, options, out)
        if options.action == "schedule":
            return await schedule(board, options, out, tasks)
        return await ACTIONS[options.action](board, options, out)


def file_of(action: str, words: list[str]) -> str:
    """The file of tasks that is meant; empty where none is. Raises `UsageError`."""
    if action == "schedule":
        verb, rest = checked(words)
        return rest[2] if verb == "add" else ""
    return words[0] if action == "submit" else ""


def home(path: str | Path) -> Path:
    """A path, with a tilde at its beginning as the home that it means."""
    return Path(os.path.expanduser(path))


def chosen(options: argparse.Namespace, job: str = "") -> JobFilter:
    """The jobs that the options mean."""
    job = job or (options.words[0] if options.words else "")
    return JobFilter(options.batch or "", options.label, job, options.state)


async def submit(board: Board, tasks: list[Task], options: argparse.Namespace, out: Output) -> int:
    """Add tasks to a batch."""
    batch = options.batch or Path(options.words[0]).stem
    new, known = await board.submit(batch, tasks, options.budget)
    if options.json:
        out.verbatim(json.dumps({"batch": batch, "new": new, "known": known}))
    else:
        more = f"; {known} were there already" if known else ""
        out.line(f"{new} jobs were added to the batch {batch}{more}")
    return 0


async def work(board: Board, options: argparse.Namespace, out: Output) -> int:
    """Run what is queued."""
    from crow.extensions.persistence import PersistenceHook
    from crow.fleet.agents import builder
    from crow.fleet.containers import read_kinds
    from crow.fleet.worker import Worker

    store = PersistenceHook(board.address, required=True)
    worker = Worker(
        board,
        builder(store, options.model),
        home(options.folder),
        concurrency=options.concurrency,
        grace=options.grace,
        until_empty=options.until_empty,
        kinds=read_kinds(home(options.containers)) if options.containers else {},
        ended=lambda running, left: _tell(running, left, options, out),
    )
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, worker.drain)
    out.note(f"{worker.who} works, {options.concurrency} sessions at once")
    await worker.run()
    return 0


def _tell(running: Any, left: Any, options: argparse.Namespace, out: Output) -> None:
    state = "lost" if left is None else left.state
    detail = "" if left is None else str(table(left.outcome or left.question).get("detail") or "")
    row = {"id": running.claimed.job, "state": state, "turns": running.turns, "cost": running.cost}
    if options.json:
        out.verbatim(json.dumps({**row, "detail": detail}))
    else:
        said = f": {detail}" if detail else ""
        out.line(f"{row['id'][:8]}  {state:9}  {row['turns']} turns  ${row['cost']:.2f}{said}")


async def listing(board: Board, options: argparse.Namespace, out: Output) -> int:
    """The jobs, a line each."""
    rows = await board.jobs(chosen(options))
    for row in rows:
        if options.json:
            out.verbatim(json.dumps(row, default=str))
            continue
        prompt = str(row["task"]["prompt"]).partition("\n")[0]
        text = f"{row['id'][:8]}  {row['state']:9}  {row['turns']:4} turns  ${row['cost']:8.2f}  "
        out.line(text + prompt[: max(out.width - len(text), 20)])
    if not rows and not options.json:
        out.line("no jobs; crow fleet submit FILE adds some")
    return 0


async def show(board: Board, options: argparse.Namespace, out: Output) -> int:
    """One job."""
    row = await job_of(board, options.words[0])
    moves = await board.moves(row["id"])
    if options.json:
        out.verbatim(json.dumps({**row, "moves": moves}, default=str))
        return 0
    out.line(f"{row['id']}  {row['state']}  batch {row['batch']}, {row['turns']} turns")
    out.line(str(row["task"]["prompt"]))
    for move in moves:
        out.line(f"  {moved(move)}", "dim")
    for name, text in table(row["outcome"] or row["question"]).items():
        if text and name not in ("choices", "args"):
            out.line(f"{name}: {text}")
    said = row["id"][:8]
    out.line(
        f"crow view {said} shows what ran where; crow sessions show {said} what was said", "dim"
    )
    return 0


def moved(move: dict[str, Any]) -> str:
    """A machine that a job was on, as a line."""
    until = "now" if move["until"] is None else move["until"]
    turns = "no turn" if until == move["since"] else f"turns {move['since'] + 1} to {until}"
    how = f", {move['how']} at {move['ended']:%H:%M:%S}" if move["ended"] else ""
    begin = f"{move['began']:%Y-%m-%d %H:%M:%S}  epoch {move['epoch']}"
    return f"{begin} on {move['who']}: {turns}{how}"


async def results(board: Board, options: argparse.Namespace, out: Output) -> int:
    """What came of jobs; 1 where some of them have failed."""
    rows = await board.jobs(chosen(options))
    ended = [row for row in rows if row["ended"] is not None]
    if options.html is not None:
        from crow.fleet.html_report import page

        options.html.write_text(page(ended), "utf-8")
        out.line(f"{len(ended)} results: {options.html}")
    for row in ended if options.html is None else ():
        outcome = table(row["outcome"])
        if options.json:
            told = {name: row[name] for name in ("id", "key", "batch", "state", "labels", "turns")}
            out.verbatim(json.dumps({**told, "cost": row["cost"], **outcome}, default=str))
            continue
        text = str(outcome.get("text") or outcome.get("detail") or "").strip()
        out.line(f"{row['id'][:8]}  {row['state']:9}  {outcome.get('branch') or ''}", "bold")
        out.line(text)
    return 1 if any(row["state"] in ("failed", "stopped") for row in ended) else 0


async def patch(board: Board, options: argparse.Namespace, out: Output) -> int:
    """What a session changed."""
    row = await job_of(board, options.words[0])
    changed = await board.patch(row["id"])
    if changed is None:
        raise FleetError(f"{row['id'][:8]} has changed nothing that git would keep")
    out.verbatim(changed.decode(errors="replace").rstrip("\n"))
    return 0


async def inbox(board: Board, options: argparse.Namespace, out: Output) -> int:
    """What waits for a person."""
    if options.listen:
        return await _serve_inbox(board, options, out)
    rows = await waiting(board, chosen(options))
    for row in rows:
        question, short = row["question"], row["id"][:8]
        if options.json:
            out.verbatim(json.dumps(row, default=str))
            continue
        out.line(f"{short}  {question.get('text', '')}", "bold")
        if question.get("args"):
            out.line(f"  {question.get('tool')} {json.dumps(question['args'], ensure_ascii=False)}")
        if question.get("choices"):
            out.line(f"  crow fleet answer {short} {'|'.join(question['choices'])}", "dim")
    if not rows and not options.json:
        out.line("nothing waits for a person")
    return 0


async def _serve_inbox(board: Board, options: argparse.Namespace, out: Output) -> int:
    from crow.acp.listen.address import Address
    from crow.acp.listen.token import new_token, token_of
    from crow.fleet.inbox_server import serve

    given = token_of(None, options.token_file)
    token = given or new_token()

    def ready(address: Address) -> None:
        out.line(f"{address.url.removesuffix('/acp')}/inbox")
        if given is None:
            out.line(f"the token, this time: {token}")

    await serve(board, chosen(options), Address.parse(options.listen), token, ready)
    return 0


async def give_answer(board: Board, options: argparse.Namespace, out: Output) -> int:
    """Answer what a job waits for."""
    job = await answer(board, *options.words)
    out.line(f"{job[:8]} goes on")
    return 0


async def cancel(board: Board, options: argparse.Namespace, out: Output) -> int:
    """Cancel jobs."""
    out.line(f"{await board.cancel(_meant(options))} jobs are cancelled")
    return 0


async def retry(board: Board, options: argparse.Namespace, out: Output) -> int:
    """Let jobs go on that failed, were stopped or cancelled."""
    out.line(f"{await board.retry(_meant(options))} jobs go on")
    return 0


def _meant(options: argparse.Namespace) -> JobFilter:
    if not (options.words or options.batch or options.label or options.state):
        raise UsageError(f"crow fleet {options.action} wants an ID, --batch, --label or --state")
    return chosen(options)


async def drain(board: Board, options: argparse.Namespace, out: Output) -> int:
    """Ask workers to begin nothing more."""
    number = await board.drain(options.words[0] if options.words else "")
    out.line(f"{number} workers begin nothing more, and end when theirs has ended")
    return 0


async def watch(board: Board, options: argparse.Namespace, out: Output) -> int:
    """How far it all is."""
    from crow.fleet.progress import watch as look

    return await look(board, chosen(options), out, as_json=options.json)


Action = Callable[[Board, argparse.Namespace, Output], Awaitable[int]]
ACTIONS: dict[str, Action] = {
    "work": work,
    "watch": watch,
    "list": listing,
    "show": show,
    "results": results,
    "patch": patch,
    "inbox": inbox,
    "answer": give_answer,
    "cancel": cancel,
    "retry": retry,
    "drain": drain,
    "webhook": webhook,
}
