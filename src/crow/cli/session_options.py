"""The options that name a session: a new one, a stored one, the latest one."""

from __future__ import annotations

import argparse
import re
from typing import TYPE_CHECKING, Any

from crow.cli.claude_options import directories_of, settle_session
from crow.cli.options import directory
from crow.cli.parser import Parser, UsageError
from crow.core.errors import HookError, SessionError
from crow.core.events import Notice
from crow.core.support.validation import first_implementing
from crow.ports.extensions import WorktreeProvider

if TYPE_CHECKING:
    from crow.core.agent import Agent
    from crow.core.ports.client import Client
    from crow.core.session import Session
    from crow.core.store import Store
    from crow.settings import Settings


ID = r"[\w-]{1,64}"
CONFIGURING = r"[\w.-]+=\S+$"
"""What codex takes behind ``-c``."""
CHOOSE = "?"
"""What stands for the id of a session that is to be chosen from a list."""


def declare_session(parser: Parser) -> None:
    """Which session to go on with."""
    parser.add_argument(
        *("--resume", "-r"),
        metavar="ID",
        nargs="?",
        const=CHOOSE,
        help="go on with a stored session; crow alone lets you choose where none is named",
    )
    parser.add_argument(
        *("--continue", "-c"),
        dest="latest",
        action="store_true",
        help="go on with the latest one here",
    )
    parser.add_argument("--name", "-n", metavar="TITLE", help="what the session is called")
    parser.add_argument("--fork-session", action="store_true", help="go on with a copy of it")
    parser.add_argument("--session-id", metavar="ID", help="the id of a new session")
    parser.add_argument(
        *("--worktree", "-w"),
        metavar="NAME",
        nargs="?",
        const="",
        help="work in a git worktree beside the project, made where there is none of that name",
    )


def check_session(options: argparse.Namespace, *, chooses: bool = False) -> None:
    """Raise `UsageError` where two sessions are meant, or one that nobody can choose."""
    if options.resume and options.latest:
        raise UsageError("--resume and --continue exclude each other")
    if options.latest and re.match(CONFIGURING, options.prompt or ""):
        told = "--continue, and takes no value: --model NAME, or --settings '{\"NAME\": VALUE}'"
        raise UsageError(f"-c is {told}")
    if options.fork_session and not (options.resume or options.latest):
        raise UsageError("--fork-session goes with --resume or --continue")
    if options.session_id and not re.fullmatch(ID, options.session_id, re.ASCII):
        raise UsageError("--session-id takes letters, digits, - and _, at most 64")
    if options.session_id and (options.resume or options.latest):
        raise UsageError("--session-id is for a new session: not with --resume and --continue")
    if options.resume == CHOOSE and not chooses:
        raise UsageError("--resume takes the ID of a session: crow sessions lists them")


async def session_of(
    agent: Agent, options: argparse.Namespace, settings: Settings, client: Client
) -> Session:
    """The session that was asked for, or a new one."""
    session = await _opened(agent, options, settings, client)
    settle_session(options, session)
    if options.worktree is not None:
        await enter_worktree(agent, session, options.worktree)
    return session


async def enter_worktree(agent: Agent, session: Session, name: str) -> None:
    """Let a session work in a working tree. Raises `SessionError` where there can be none."""
    used = agent.extensions_of(session).values()
    maker = first_implementing(used, WorktreeProvider)
    if maker is None:
        raise SessionError("nobody makes worktrees: the extension worktrees is not in use")
    try:
        told = await maker.enter_worktree(agent, session, name)
    except HookError as error:
        raise SessionError(str(error)) from error
    await session.client.update(session.id, Notice(told))


async def _opened(
    agent: Agent, options: argparse.Namespace, settings: Settings, client: Client
) -> Session:
    cwd, beside = str(directory(options)), directories_of(options)
    if not (options.resume or options.latest):
        if options.session_id:
            await refuse_known(agent, options.session_id)
        named = {"id": options.session_id, "mode": options.mode}
        given: dict[str, Any] = {name: value for name, value in named.items() if value}
        return await agent.new_session(cwd, client=client, directories=beside, **given)
    from crow.cli.session_lookup import store_of, store_with
    from crow.ports.stores import ForkStore

    store = store_of(agent)
    known, program = await (
        find_session(store, options.resume) if options.resume else latest(store, cwd)
    )
    if options.fork_session:
        known = await store_with(store, ForkStore).fork(known)
    more = {"directories": beside} if beside else {}
    session = await agent.load_session(known, client=client, source="resume", **more)
    session.mode = options.mode or session.mode
    if program:
        told = f"this goes on with what was said in {program}: {session.title}"
        await client.update(session.id, Notice(told))
    return session


async def find_session(store: Store, start: str) -> tuple[str, str]:
    """The id of the session that is meant, and the program whose conversation it was until now."""
    from crow.cli.session_lookup import WHOLE, ids, whole_id

    if len(start) != WHOLE and not await ids(store, start):
        from crow.cli.session_import import import_foreign

        if found := await import_foreign(store, start):
            return found
    return await whole_id(store, start), ""


async def refuse_known(agent: Agent, session_id: str) -> None:
    """Raise for the id of a session that is stored."""
    from crow.cli.session_lookup import ids

    if agent.store is not None and session_id in await ids(agent.store, session_id):
        raise SessionError(f"there is a session {session_id!r} already: --resume goes on with it")


async def latest(store: Store, cwd: str) -> tuple[str, str]:
    """The id of the session that was used last in a directory, and its program as in `meant`.

    Where there was none yet it is what somebody last said to another agent there.
    """
    found, _ = await store.sessions(cwd=cwd, limit=1)
    if found:
        return found[0].id, ""
    from crow.cli.session_import import import_latest

    if brought := await import_latest(store, cwd):
        return brought
    raise SessionError(f"there is no session in {cwd} to continue: crow sessions lists all")
