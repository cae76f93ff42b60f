"""Talk with the agent: a prompt, its answer, the next prompt.

Ctrl-C ends an answer, Ctrl-D or /exit all.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from typing import TYPE_CHECKING, Any

from crow.cli.ask import LEAVING, Asker, leaves
from crow.cli.interrupt import Interrupts
from crow.cli.opening import check_session, declare_session, session_of
from crow.cli.options import agent_of, declare_agent, refuse_unread, settings_of, tell_problems
from crow.cli.output import Output
from crow.cli.parser import Parser
from crow.cli.run import INTERRUPTED, conclude, idle
from crow.cli.view import View
from crow.project.home import state_directory

if TYPE_CHECKING:
    from prompt_toolkit import PromptSession

    from crow.core.agent import Agent
    from crow.core.contexts import CommandContext
    from crow.core.session import Session

MARK = "> "


def declare(parser: Parser) -> None:
    """The options of ``crow`` alone."""
    declare_agent(parser)
    declare_session(parser)


def main(options: argparse.Namespace, out: Output) -> int:
    """Run ``crow``."""
    check_session(options)
    try:
        return asyncio.run(chat(options, out))
    except asyncio.CancelledError:
        return INTERRUPTED


async def chat(options: argparse.Namespace, out: Output) -> int:
    """Answer prompt after prompt."""
    from crow.app import live_of

    settings = settings_of(options)
    refuse_unread(settings)
    agent = agent_of(options, settings)
    tell_problems(settings, agent, out)
    live_of(agent).asks = True
    model = agent.llm.model
    async with agent:
        asker = Asker(out)
        view = View(out, cwd=".", asker=asker)
        with Interrupts(agent, out, asker, opening=True):
            session = await session_of(agent, options, settings, view)
        view.cwd = session.cwd
        inside = await held(session)
        text = f"crow in {session.cwd}, with {model}{inside}. Ctrl-C ends an answer, /exit all."
        out.line(text, "dim")
        offer_leaving(agent, session)
        lines = reader(agent, session)
        while (prompt := await read(lines, out)) is not None:
            if not prompt.strip():
                continue
            if leaves(prompt.strip()):
                break
            out.line()
            with Interrupts(agent, out, asker):
                reply = await agent.prompt(session, prompt)
                await idle(session)
            view.conclude(reply)
            view.cwd = session.cwd
            if asker.is_left:
                break
            if reply.stop_reason == "cancelled":
                out.note("interrupted")
            else:
                conclude(reply, view, out)
            out.line()
            view.begin()
        await agent.close_session(session, "prompt_input_exit")
    out.note(f"crow --resume {session.id[:8]} goes on")
    return 0


async def held(session: Session) -> str:
    """What commands run in, in a few words; nothing where nobody looks after that."""
    from crow.keys import SANDBOX

    sandbox = SANDBOX.get(session)
    if sandbox is None:
        return ", without a sandbox"
    name = await asyncio.to_thread(lambda: sandbox.name)
    return f", commands in a sandbox ({name})" if name else ", without a sandbox"


def offer_leaving(agent: Agent, session: Session) -> None:
    """List the words that leave among the commands, where nobody else has taken them."""
    from crow.core.scope import Command

    for name in LEAVING:
        if name not in agent.commands_of(session):
            agent.add_command(Command(name, "Leave", leave))


async def leave(ctx: CommandContext) -> None:
    """Do nothing: whoever reads the words leaves by themselves."""


def reader(agent: Agent, session: Session) -> PromptSession[str]:
    """Reads lines, with a history that outlives the session and the slash commands completed."""
    from prompt_toolkit import PromptSession
    from prompt_toolkit.completion import WordCompleter
    from prompt_toolkit.history import FileHistory

    path = state_directory() / "history"
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    commands = WordCompleter(
        lambda: [f"/{name}" for name in agent.commands_of(session)], sentence=True
    )
    options: dict[str, Any] = {"history": FileHistory(str(path)), "completer": commands}
    return PromptSession(MARK, complete_while_typing=False, **options)


async def read(lines: PromptSession[str], out: Output) -> str | None:
    """The next prompt; None at the end. What is said meanwhile stands above it."""
    from prompt_toolkit.patch_stdout import patch_stdout

    while True:
        try:
            with patch_stdout(raw=True), out.through(sys.stdout, sys.stderr):
                return await lines.prompt_async()
        except KeyboardInterrupt:
            continue
        except EOFError:
            return None
