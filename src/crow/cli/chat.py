"""Talk with the agent: a prompt, its answer, the next prompt.

Enter sends, and steers what is at work; Tab lets it wait; Esc stops. Ctrl-D or /exit leaves.
docs/terminal.md has every key.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import select
import signal
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from crow.cli.answering import CUT_OFF, INTERRUPTED, SUCCESSES, idle
from crow.cli.ask import leaves
from crow.cli.conversing import Conversing, held, model_of, offer_leaving
from crow.cli.extras import Extras
from crow.cli.opening import CHOOSE, check_session, declare_session, session_of
from crow.cli.options import (
    agent_of,
    declare_agent,
    declare_face,
    directory,
    is_plain,
    refuse_unread,
    settings_of,
    tell_problems,
)
from crow.cli.output import Output
from crow.cli.parser import Parser
from crow.cli.remembering import is_to_remember, remember
from crow.project.home import state_directory

if TYPE_CHECKING:
    from crow.cli.desk import Desk
    from crow.core.agent import Agent
    from crow.core.session import Reply, Session
    from crow.settings import Settings
    from crow.terminal.conversation import Offered
    from crow.terminal.terminal import Terminal

ENDING = (signal.SIGTERM, signal.SIGHUP) if sys.platform != "win32" else ()
"""Signals that end a talk as its user does."""


def declare(parser: Parser) -> None:
    """The options of ``crow`` alone."""
    declare_agent(parser)
    declare_session(parser)
    declare_face(parser)


def main(options: argparse.Namespace, out: Output) -> int:
    """Run ``crow``."""
    check_session(options, chooses=not is_plain(options))
    try:
        if is_plain(options):
            return asyncio.run(chat(options, out))
        with typed_ahead() as typed:
            return asyncio.run(chat(options, out, typed))
    except asyncio.CancelledError:
        return INTERRUPTED


@contextmanager
def typed_ahead() -> Generator[str]:
    """What was typed before there was anybody to read it; what is typed next is kept as it is."""
    import termios

    before, now = termios.tcgetattr(0), termios.tcgetattr(0)
    now[0] &= ~termios.ICRNL
    now[3] &= ~(termios.ECHO | termios.ICANON)
    termios.tcsetattr(0, termios.TCSANOW, now)
    waits = select.select([0], [], [], 0)[0]
    try:
        yield os.read(0, 65536).decode(errors="replace") if waits else ""
    finally:
        termios.tcsetattr(0, termios.TCSANOW, before)


async def chat(options: argparse.Namespace, out: Output, typed: str = "") -> int:
    """Answer prompt after prompt."""
    if is_plain(options):
        from crow.cli import plain

        settings, agent = prepared(options, out)
        await plain.talk(agent, options, settings, out)
        return 0
    talk = Talk(options, out)
    talk.terminal.type(typed)
    return await talk.run()


def prepared(options: argparse.Namespace, out: Output) -> tuple[Settings, Agent]:
    """The settings and the agent, whose user can be asked."""
    from crow.app import live_of

    settings = settings_of(options)
    refuse_unread(settings)
    agent = agent_of(options, settings)
    tell_problems(settings, agent, out)
    live_of(agent).asks = True
    return settings, agent


class Talk:
    """A talk on the screen, from its first line to the way back to it.

    The agent is made when there is a prompt already: whoever types need not wait for it.
    """

    def __init__(self, options: argparse.Namespace, out: Output) -> None:
        from crow.terminal.completion import PromptCompleter
        from crow.terminal.terminal import Terminal

        self.options = options
        self.out = out
        self.files: list[str] = []
        self._status = 0
        self.conversing: Conversing | None = None
        self.terminal: Terminal = Terminal(
            str(directory(options)),
            history=state_directory() / "history",
            completer=PromptCompleter(self._commands, lambda: self.files),
        )

    async def run(self) -> int:
        """Talk; the exit status."""
        loop = asyncio.get_running_loop()
        for number in ENDING:
            loop.add_signal_handler(number, self._end, number)
        session = await self.terminal.run(self._talk())
        if session is None:
            return self._status or INTERRUPTED
        self.out.note(f"crow --resume {session.id[:8]} goes on")
        return self._status

    def _end(self, number: signal.Signals) -> None:
        """A signal ends the talk, whatever is being done."""
        self._status = 128 + number
        self.terminal.leave()

    async def _talk(self) -> Session | None:
        terminal = self.terminal
        with self.out.through(sys.stdout, sys.stderr):
            settings, agent = prepared(self.options, self.out)
            adopt(terminal, settings, self.out)
            async with agent:
                await self._choose_session(agent)
                session = await session_of(agent, self.options, settings, terminal)
                if terminal.is_left:
                    return None
                desk = self._desk(agent, session, settings)
                await self._begin(agent, session, settings)
                await self._choose_model(agent, session, settings)
                while (prompt := await terminal.next_prompt()) is not None:
                    if leaves(prompt.strip()):
                        break
                    if not await desk.obey(prompt):
                        await self._answer(desk.session, prompt)
                await agent.close_session(desk.session, "prompt_input_exit")
        return desk.session

    def _desk(self, agent: Agent, session: Session, settings: Settings) -> Desk:
        """What the person can do with sessions."""
        from crow.cli.desk import DESK, Desk

        async def shows(another: Session, tells: bool) -> None:
            self.conversing = attach(self.terminal, agent, another, settings)
            if tells:
                await self._replay(agent, another)
            another.spawn(self._list_files())

        desk = Desk(agent, session, self.terminal, shows)
        desk.offer(DESK)
        return desk

    async def _choose_session(self, agent: Agent) -> None:
        """Let the person choose which session to go on with, if they want to; else a new one."""
        if self.options.resume != CHOOSE:
            return
        from crow.cli.choosing import choose_session
        from crow.cli.stored import stored

        cwd = str(directory(self.options))
        self.options.resume = await choose_session(stored(agent), cwd, "", self.terminal)

    async def _begin(self, agent: Agent, session: Session, settings: Settings) -> None:
        """Show what there is, and let keys reach the session."""
        from crow._version import __version__

        terminal = self.terminal
        self.conversing = attach(terminal, agent, session, settings)
        offer_leaving(agent, session)
        place = session.cwd.replace(str(Path.home()), "~", 1)
        terminal.tell(f"crow {__version__} in {place}; / lists commands, Ctrl-D leaves")
        session.spawn(self._list_files())
        if self.options.resume or self.options.latest:
            await self._replay(agent, session)

    async def _choose_model(self, agent: Agent, session: Session, settings: Settings) -> None:
        """Ask a newcomer which model is to answer."""
        from crow.cli import first_start

        if first_start.lacks_model(agent, session, self.options, settings):
            await first_start.choose_model(agent, session, self.terminal)
            self.terminal.status.model = model_of(agent, session)

    async def _list_files(self) -> None:
        if self.conversing is not None:
            self.files = await self.conversing.files()

    async def _replay(self, agent: Agent, session: Session) -> None:
        """Show what was said before."""
        from crow.acp.replay import replay

        async for event in replay(agent, session):
            await self.terminal.update(session.id, event)
        self.terminal.transcript.end()

    async def _answer(self, session: Session, prompt: str) -> None:
        """Work on one prompt."""
        assert self.conversing is not None
        reply = await work(self.conversing, self.terminal, prompt)
        if reply is not None:
            self._conclude(reply)
            session.spawn(self._list_files())

    def _conclude(self, reply: Reply) -> None:
        """Say how the run ended, where that was not simply the end."""
        if reply.stop_reason in (*SUCCESSES, "cancelled"):
            return
        cut = CUT_OFF if reply.stop_reason == "max_tokens" else reply.stop_reason
        self.terminal.tell(reply.detail or cut, is_error=True)

    def _commands(self) -> Sequence[Offered]:
        return self.conversing.commands() if self.conversing is not None else ()


def adopt(terminal: Terminal, settings: Settings, out: Output) -> None:
    """Have the terminal look and listen as the settings want it."""
    from crow.terminal import wishes

    for text in wishes.adopt(terminal, settings.terminal):
        out.error(text)


def attach(terminal: Terminal, agent: Agent, session: Session, settings: Settings) -> Conversing:
    """Let the terminal's keys reach the session, and its last line tell of that."""
    from crow.terminal.status import Status, branch_of

    conversing = terminal.conversation = Conversing(agent, session)
    transcript = terminal.transcript
    transcript.session_id, transcript.cwd, transcript.plan = session.id, session.cwd, ()
    branch = branch_of(Path(session.cwd))
    terminal.status = Status(model_of(agent, session), session.mode, branch=branch)

    async def look() -> None:
        terminal.status.sandbox = await held(session)
        terminal.screen.refresh()

    session.spawn(look())
    extras = Extras(agent, session, terminal)
    terminal.use(extras)
    extras.bind()
    if settings.status_line:
        from crow.cli.status_line import StatusLine

        StatusLine(settings.status_line, agent, session, terminal).start()
    return conversing


async def work(conversing: Conversing, terminal: Terminal, prompt: str) -> Reply | None:
    """Work on one prompt to its end; None where that was a command of the person's own."""
    session = conversing.session
    terminal.begin(prompt)
    if prompt.startswith("!"):
        await conversing.run_command(prompt[1:].strip(), terminal)
        terminal.finish()
        return None
    if is_to_remember(prompt):
        await remember(conversing, terminal, prompt)
        terminal.finish()
        return None
    content = conversing.content_of(prompt, terminal.tell)
    terminal.transcript.show(content)
    reply = await conversing.agent.prompt(session, content)
    await idle(session)
    terminal.transcript.cwd = session.cwd
    terminal.finish(interrupted=reply.stop_reason == "cancelled")
    return reply
