"""Which session a command line means: a new one, a stored one, the latest one."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from crow.cli.options import directory
from crow.cli.parser import Parser, UsageError
from crow.core.errors import SessionError

if TYPE_CHECKING:
    from crow.core.agent import Agent
    from crow.core.ports import Client
    from crow.core.session import Session, Store
    from crow.settings import Settings


CHOOSE = "?"
"""What stands for the id of a session that is to be chosen from a list."""


def declare_session(parser: Parser) -> None:
    """Which session to go on with."""
    parser.add_argument(
        "-r",
        "--resume",
        metavar="ID",
        nargs="?",
        const=CHOOSE,
        help="go on with a stored session; crow alone lets you choose where none is named",
    )
    parser.add_argument(
        "-c",
        "--continue",
        dest="latest",
        action="store_true",
        help="go on with the latest one here",
    )


def check_session(options: argparse.Namespace, *, chooses: bool = False) -> None:
    """Raise `UsageError` where two sessions are meant, or one that nobody can choose."""
    if options.resume and options.latest:
        raise UsageError("--resume and --continue exclude each other")
    if options.resume == CHOOSE and not chooses:
        raise UsageError("--resume takes the ID of a session: crow sessions lists them")


async def session_of(
    agent: Agent, options: argparse.Namespace, settings: Settings, client: Client
) -> Session:
    """The session that was asked for, or a new one."""
    cwd = str(directory(options))
    if not (options.resume or options.latest):
        return await new_session(agent, cwd, settings, client)
    from crow.cli.stored import stored, whole_id

    store = stored(agent)
    known = await (whole_id(store, options.resume) if options.resume else latest(store, cwd))
    session = await agent.load_session(known, client=client, source="resume")
    session.mode = options.mode or session.mode
    session.model = None if options.model else session.model
    return session


async def new_session(agent: Agent, cwd: str, settings: Settings, client: Client) -> Session:
    """A new session, with the directories beside that the settings name."""
    from crow.app import place_of

    directories = tuple(map(place_of, settings.permissions.directories))
    return await agent.new_session(cwd, client=client, directories=directories)


async def latest(store: Store, cwd: str) -> str:
    """The id of the session that was used last in a directory."""
    found, _ = await store.sessions(cwd=cwd, limit=1)
    if not found:
        raise SessionError(f"there is no session in {cwd} to continue: crow sessions lists all")
    return found[0].id
