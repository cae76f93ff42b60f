"""Stored sessions: list, show, search, rename, copy, export, archive and delete them.

crow sessions                   the sessions of this directory, the last used first
crow sessions --all             those of every directory
crow sessions --live            those that are open now, anywhere: which work, which wait for you
crow sessions show ID           what was said and done; the first letters of the id are enough
crow sessions search TEXT       sessions in which all words of TEXT were said together; tool:Bash,
                                file:app.py, hook:guard, is:denied and is:error narrow it
crow sessions rename ID TITLE
crow sessions fork ID           a copy to go on with, even where the session is in use
crow sessions rewind ID         its prompts; with a number files and conversation as before that one
crow sessions export ID         all of it but secrets, as JSON Lines; --format has others' shapes
crow sessions import FILE       takes one in: an export, or a conversation of Claude Code or Codex
crow sessions foreign [TEXT]    conversations of Claude Code, Codex, opencode and pi, to go on with
crow sessions archive ID        put it away: editors list it no more; unarchive takes it back
crow sessions delete ID
"""

from __future__ import annotations

import argparse
import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from crow.cli.interrupt import run_async
from crow.cli.line_client import LineClient, counted
from crow.cli.options import agent_of, declare_place, directory, settings_of
from crow.cli.output import Output, Style
from crow.cli.parser import Parser, UsageError, no_such
from crow.cli.session_lookup import store_of, store_with, whole_id
from crow.core.errors import SessionError
from crow.core.events import UserMessage
from crow.core.messages import text_of
from crow.core.secrets import scrubbed
from crow.core.support.validation import first_implementing, implements, members_of
from crow.ports.faces import OpenSession, PresenceProvider
from crow.ports.stores import (
    ArchiveStore,
    ExportStore,
    ForkStore,
    ReplayStore,
    SearchStore,
    SegmentStore,
    TitleStore,
)
from crow.project.home import from_home
from crow.text import columns, one_line, shorten

if TYPE_CHECKING:
    from crow.core.agent import Agent
    from crow.core.store import SessionInfo, Store

TAKES = {
    "list": "",
    "show": "ID",
    "search": "TEXT",
    "rename": "ID TITLE",
    "fork": "ID",
    "rewind": "ID",
    "export": "ID",
    "import": "FILE",
    "foreign": "[TEXT]",
    "archive": "ID",
    "unarchive": "ID",
    "delete": "ID",
}
WORDS: dict[str, tuple[str, Style]] = {
    "waits": ("waits for you", "yellow"),
    "works": ("works", "green"),
    "idle": ("idle", "dim"),
}
"""What the state of an open session is called, and how that looks."""
FORMATS = ("lines", "atif", "claude")
SHORT = 8
PAGE = 20


def declare(parser: Parser) -> None:
    """The options of ``crow sessions``."""
    parser.add_argument("action", metavar="ACTION", nargs="?", default="list")
    parser.add_argument("words", metavar="ID|TEXT", nargs="*")
    parser.add_argument("--all", action="store_true", help="sessions of every directory")
    parser.add_argument("--live", action="store_true", help="sessions that are open now, anywhere")
    parser.add_argument("--limit", type=int, default=PAGE, metavar="N", help="how many at once")
    parser.add_argument("--cursor", metavar="CURSOR", help="where the next page begins")
    parser.add_argument("--yes", action="store_true", help="with rewind: do it unasked")
    parser.add_argument("--files", action="store_true", help="with rewind: files alone")
    parser.add_argument(
        "--overwrite", action="store_true", help="with rewind: also what others changed since"
    )
    parser.add_argument("--json", action="store_true", help="one object a line, for programs")
    parser.add_argument(
        "--format",
        choices=FORMATS,
        default="lines",
        help="of export: lines, with all; atif, a trajectory; claude, as Claude Code keeps them",
    )
    parser.add_argument(
        "--map",
        action="append",
        default=[],
        metavar="OLD=NEW",
        help="with import: a folder that is another one here, wherever it is named",
    )
    declare_place(parser)


def main(options: argparse.Namespace, out: Output) -> int:
    """Run ``crow sessions``."""
    if options.action not in TAKES:
        raise UsageError(f"{no_such('action', options.action, TAKES)} (crow sessions --help)")
    if options.limit < 1:
        raise UsageError("--limit takes a number from 1 on")
    takes = TAKES[options.action]
    needed = [word for word in takes.split() if not word.startswith("[")]
    if len(options.words) < len(needed) or (options.words and not takes):
        raise UsageError(f"crow sessions {options.action} {takes}".rstrip() + " is how to say it")
    return run_async(act(options, out))


async def act(options: argparse.Namespace, out: Output) -> int:
    """Do what was asked for, with the store that the settings name."""
    agent = agent_of(options, settings_of(options), reads=True)
    async with agent:
        if options.live:
            list_present(agent, options, out)
            return 0
        if options.action == "foreign":
            from crow.cli.session_import import list_foreign

            list_foreign(options, out, age)
            return 0
        store = store_of(agent)
        if options.action == "rewind":
            from crow.cli.sessions_rewind import rewind

            return await rewind(agent, store, options, out)
        if options.action in ("delete", "export"):
            await {"delete": delete, "export": export}[options.action](agent, store, options, out)
        else:
            await ACTIONS[options.action](store, options, out)
    return 0


async def listing(store: Store, options: argparse.Namespace, out: Output) -> None:
    """List a page of sessions."""
    cwd = None if options.all else str(directory(options))
    page, cursor = await store.sessions(cwd=cwd, cursor=options.cursor, limit=options.limit)
    kept = page if options.json else [info for info in page if info.messages or info.title]
    write_infos(kept, options, out)
    if len(kept) < len(page):
        out.line(f"{len(page) - len(kept)} more without a message: crow sessions --json", "dim")
    if not page and not options.json:
        where = "" if options.all else f" in {cwd}; crow sessions --all lists those of all others"
        out.line(f"there are no sessions{where}")
    if cursor and not options.json:
        out.line(f"more: crow sessions{' --all' if options.all else ''} --cursor {cursor}", "dim")
    elif cursor:
        out.verbatim(json.dumps({"next_cursor": cursor}))


def list_present(agent: Agent, options: argparse.Namespace, out: Output) -> None:
    """List what is open now: what waits for the user comes first."""
    who = first_implementing(agent.extensions.values(), PresenceProvider)
    if who is None:
        raise SessionError("nobody knows what is open: the extension presence is not in use")
    found = who.present()
    for each in found:
        if options.json:
            out.verbatim(
                json.dumps({name: getattr(each, name) for name in members_of(OpenSession)})
            )
            continue
        word, colour = WORDS[each.state]
        since = age(datetime.fromtimestamp(each.since, UTC).isoformat())
        head = f"{each.id[:SHORT]}  {out.styled(f'{word:13}', colour)}"
        place = from_home(each.cwd)
        title, program = one_line(each.title) or "(no title)", one_line(each.program)
        rest = f"  {since:>9}  {program:10}  {title}  [{one_line(place)}]"
        room = out.width - SHORT - 2 - 13 if out.is_terminal else 10_000
        out.raw(head + shorten(rest, room))
        if each.asks:
            out.line(f"          {shorten(one_line(each.asks), max(10, out.width - 10))}", "dim")
    if not found and not options.json:
        out.line("no session is open")


def write_infos(page: list[SessionInfo], options: argparse.Namespace, out: Output) -> None:
    """One session a line."""
    for info in page:
        if options.json:
            out.verbatim(json.dumps(described(info)))
            continue
        when = age(info.updated)
        head = f"{info.id[:SHORT]}  {when:>9}  {counted(info.messages, 'message'):>12}  "
        title = one_line(info.title) or "(no title)"
        if info.archived:
            title = f"{title}  (archived)"
        if options.all:
            title = f"{title}  [{info.cwd}]"
        room = out.width - columns(head) if out.is_terminal else 10_000
        out.raw(f"{out.styled(head, 'dim')}{shorten(title, room)}")


def described(info: SessionInfo) -> dict[str, Any]:
    """A session as a JSON object."""
    return {
        "id": info.id,
        "cwd": info.cwd,
        "title": info.title,
        "updated": info.updated,
        "messages": info.messages,
        "archived": info.archived,
    }


def age(updated: str) -> str:
    """How long ago something was, in short words."""
    try:
        then = datetime.fromisoformat(updated)
    except ValueError:
        return updated
    then = then if then.tzinfo else then.replace(tzinfo=UTC)
    seconds = (datetime.now(UTC) - then).total_seconds()
    for size, unit in ((86_400, "day"), (3_600, "hour"), (60, "min")):
        if seconds >= size:
            number = int(seconds // size)
            return f"{number} {unit}{'s' if number > 1 and unit != 'min' else ''}"
    return "just now"


async def show(store: Store, options: argparse.Namespace, out: Output) -> None:
    """Print what was said and done in a session."""
    session_id = await whole_id(store, options.words[0])
    if options.json or not implements(store, ReplayStore):
        await show_messages(store, session_id, out)
        return
    info = await find(store, session_id)
    out.line(f"session {session_id}", "bold")
    out.line(f"{info.cwd}  {counted(info.messages, 'message')}", "dim")
    view = LineClient(out, cwd=info.cwd, asker=None)
    async for event in store.replay(session_id):
        if isinstance(event, UserMessage):
            out.line()
            out.line(f"> {text_of(event.content)}", "bold")
            out.line()
        else:
            await view.update(session_id, event)
    out.line()
    out.line(f'crow run --resume {session_id[:SHORT]} "..." goes on', "dim")


async def find(store: Store, session_id: str) -> SessionInfo:
    """What the list says about a session."""
    cursor = None
    while True:
        page, cursor = await store.sessions(cursor=cursor, limit=500)
        for info in page:
            if info.id == session_id:
                return info
        if cursor is None:
            raise SessionError(f"there is no session {session_id!r}")


async def show_messages(store: Store, session_id: str, out: Output) -> None:
    """Print the messages as the model sees them, one JSON object a line."""
    if implements(store, SegmentStore):
        messages = (await store.segments(session_id))[-1]
    else:
        messages = (await store.load(session_id)).messages
    for message in messages:
        out.verbatim(json.dumps(message))


async def search(store: Store, options: argparse.Namespace, out: Output) -> None:
    """List the sessions in which a text was said or is the title, the best first."""
    wanted = " ".join(options.words)
    cwd = None if options.all else str(directory(options))
    found = await store_with(store, SearchStore).search(wanted, cwd=cwd, limit=options.limit)
    write_infos([each.session for each in found], options, out)
    if not found and not options.json:
        out.line(f"no session holds {wanted!r}{'' if options.all else '; --all looks everywhere'}")


async def rename(store: Store, options: argparse.Namespace, out: Output) -> None:
    """Give a session another title."""
    name = store_with(store, TitleStore).rename
    session_id = await whole_id(store, options.words[0])
    title = " ".join(options.words[1:])
    await name(session_id, title)
    out.line(f"session {session_id[:SHORT]} is called {title!r}")


async def fork(store: Store, options: argparse.Namespace, out: Output) -> None:
    """Copy a session, which may be in use."""
    copy = store_with(store, ForkStore).fork
    session_id = await whole_id(store, options.words[0])
    new_id = await copy(session_id)
    out.line(f"session {new_id[:SHORT]} is a copy of {session_id[:SHORT]}")


async def export(agent: Agent, store: Store, options: argparse.Namespace, out: Output) -> None:
    """Print all that is stored of a session, without the secrets that Crow knows."""
    lines = store_with(store, ExportStore).export
    stored_lines: str = await lines(await whole_id(store, options.words[0]))
    text: str = scrubbed(stored_lines.rstrip("\n"), agent.secrets)
    if options.format == "lines":
        out.verbatim(text)
        return
    from crow.cli.trajectory import claude_lines, trajectory

    rows = list(map(json.loads, text.splitlines()))
    made = [trajectory(rows)] if options.format == "atif" else claude_lines(rows)
    for each in made:
        out.verbatim(json.dumps(each, ensure_ascii=False))


async def bring_in(store: Store, options: argparse.Namespace, out: Output) -> None:
    """Store a conversation of elsewhere."""
    from crow.cli import session_import

    await session_import.import_file(store, options, out)


async def archive(store: Store, options: argparse.Namespace, out: Output) -> None:
    """Put sessions away, or take them back."""
    put_away, archived = store_with(store, ArchiveStore).archive, options.action == "archive"
    for start in options.words:
        session_id = await whole_id(store, start)
        await put_away(session_id, archived=archived)
        out.line(f"session {session_id[:SHORT]} is {'' if archived else 'no longer '}archived")


async def delete(agent: Agent, store: Store, options: argparse.Namespace, out: Output) -> None:
    """Delete sessions for good, with all that is kept of them."""
    for start in options.words:
        session_id = await whole_id(store, start)
        await agent.delete_session(session_id)
        out.line(f"deleted session {session_id[:SHORT]}")


ACTIONS = {
    "list": listing,
    "show": show,
    "search": search,
    "rename": rename,
    "fork": fork,
    "import": bring_in,
    "archive": archive,
    "unarchive": archive,
}
