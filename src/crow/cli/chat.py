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
from collections.abc import Coroutine, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crow.cli.ask import leaves
from crow.cli.extension_widgets import ExtensionWidgets
from crow.cli.line_client import counted
from crow.cli.memory import is_to_remember, remember
from crow.cli.options import (
    agent_of,
    declare_agent,
    declare_face,
    directory,
    is_plain,
    refuse_unread,
    settings_of,
    tell_news,
    tell_problems,
)
from crow.cli.output import Output
from crow.cli.parser import Parser
from crow.cli.prompt_run import CUT_OFF, INTERRUPTED, SUCCESSES, idle
from crow.cli.session_control import SessionControl, held, model_of, offer_leaving
from crow.cli.session_options import CHOOSE, check_session, declare_session, session_of
from crow.core.ports.client import Question
from crow.keys import INITIAL_PROMPT
from crow.project.home import from_home, state_directory

if TYPE_CHECKING:
    from crow.cli.session_commands import ScreenCommands
    from crow.core.agent import Agent
    from crow.core.hooks.run_context import Reply
    from crow.core.session import Session
    from crow.settings import Settings
    from crow.terminal.conversation import Offered
    from crow.terminal.tab import Tab
    from crow.terminal.terminal import Terminal

ENDING = (signal.SIGTERM, signal.SIGHUP) if sys.platform != "win32" else ()
"""Signals that end a talk as its user does."""


def declare(parser: Parser) -> None:
    """What ``crow`` alone takes."""
    parser.add_argument("prompt", metavar="PROMPT", nargs="?", help="what to begin with")
    declare_options(parser)


def declare_options(parser: Parser) -> None:
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
        from crow.cli import plain_chat

        settings, agent = prepared(options, out)
        await plain_chat.chat(agent, options, settings, out)
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
    tell_news(settings, out)
    live_of(agent).asks = True
    return settings, agent


class Talk:
    """A talk on the screen, from its first line to the way back to it.

    The agent is made when there is a prompt already: whoever types need not wait for it.
    """

    agent: Agent
    settings: Settings

    def __init__(self, options: argparse.Namespace, out: Output) -> None:
        from crow.terminal.completion import PromptCompleter
        from crow.terminal.terminal import Terminal

        self.options = options
        self.out = out
        self._status = 0
        self._left: list[str] = []
        self._doing: set[asyncio.Task[Any]] = set()
        self._done: asyncio.Queue[asyncio.Task[Any]] = asyncio.Queue()
        self.terminal: Terminal = Terminal(
            str(directory(options)),
            history=state_directory() / "history",
            completer=PromptCompleter(self._commands, self._files),
        )

    async def run(self) -> int:
        """Talk; the exit status."""
        loop = asyncio.get_running_loop()
        for number in ENDING:
            loop.add_signal_handler(number, self._end, number)
        await self.terminal.run(self._talk())
        for session_id in self._left:
            self.out.note(f"crow --resume {session_id[:8]} goes on")
        return self._status if self._left else self._status or INTERRUPTED

    def _end(self, number: signal.Signals) -> None:
        """A signal ends the talk, whatever is being done."""
        self._status = 128 + number
        self.terminal.end()

    async def _talk(self) -> None:
        tab, options = self.terminal.front, self.options
        with self.out.through(sys.stdout, sys.stderr):
            self.settings, self.agent = prepared(options, self.out)
            adopt(self.terminal, self.settings, self.out)
            async with self.agent as agent:
                await self._choose_session(tab)
                session = await session_of(agent, options, self.settings, tab)
                if tab.is_left:
                    return
                await self._begin(tab, session)
                await self._choose_model(tab, session)
                if begin := options.prompt or INITIAL_PROMPT.pop(session):
                    begin_with(tab, begin)
                self._start(self._answer_all(tab, session))
                await self._finish()

    # sessions

    def _start(self, work: Coroutine[Any, Any, Any]) -> None:
        """Do something beside the rest of the talk, which ends where that fails."""
        task = asyncio.create_task(work)
        self._doing.add(task)
        task.add_done_callback(self._done.put_nowait)

    async def _finish(self) -> None:
        """Wait until every tab is left."""
        try:
            while self._doing:
                task = await self._done.get()
                self._doing.discard(task)
                task.result()
        finally:
            for task in self._doing:
                task.cancel()

    async def _answer_all(self, tab: Tab, session: Session) -> None:
        """Answer prompt after prompt, until the person leaves."""
        commands = self._screen_commands(tab, session)
        while (prompt := await tab.next_prompt()) is not None:
            if leaves(prompt.strip()):
                await self._leave(tab)
            elif not await commands.obey(prompt):
                await self._answer(tab, commands.session, prompt)
        await self.agent.close_session(commands.session, "prompt_input_exit")
        if len(self.terminal.tabs) == 1 or self.terminal.is_left:
            self._left.append(commands.session.id)
            return
        self.terminal.close(tab)
        self.terminal.front.tell(f"closed; crow --resume {commands.session.id[:8]} goes on with it")

    async def _leave(self, tab: Tab) -> None:
        """End the talk, unless that would stop what the person wants to go on."""
        others = self.terminal.busy(beside=tab)
        asked = f"{counted(len(others), 'other session')} would be stopped. Leave?"
        if not others or await tab.ask("", Question(asked, "confirm")):
            self.terminal.end()

    def _screen_commands(self, tab: Tab, session: Session) -> ScreenCommands:
        """What the person can do with sessions."""
        from crow.cli.session_commands import SCREEN_COMMANDS, LocalCommand, ScreenCommands

        async def shows(another: Session, tells: bool) -> None:
            control = attach(tab, self.agent, another, self.settings)
            if tells:
                await self._replay(tab, another)
            another.spawn(control.list_files())

        commands = ScreenCommands(self.agent, session, tab, shows)
        begins = "Begin another session beside this one"
        commands.offer(
            {**SCREEN_COMMANDS, "new": LocalCommand(begins, self._new, "[PROMPT]", at_once=True)}
        )

        def takes_at_once(text: str) -> bool:
            own = commands.meant(text)
            if own is None or not own.at_once:
                return False
            self._start(commands.obey(text))
            return True

        tab.takes_at_once = takes_at_once
        return commands

    async def _new(self, commands: ScreenCommands, prompt: str) -> None:
        """Begin another session, whose tab is in front then."""
        tab = self.terminal.open(commands.session.cwd)
        session = await self.agent.new_session(commands.session.cwd, client=tab)
        session.model = commands.session.model
        control = attach(tab, self.agent, session, self.settings)
        session.spawn(control.list_files())
        if prompt:
            begin_with(tab, prompt)
        if len(self.terminal.tabs) == 2:  # once known, it is
            tab.tell("another session: Alt-1 … Alt-9 and /sessions go to one, /close ends this one")
        self.terminal.show(tab)
        self._start(self._answer_all(tab, session))

    async def _choose_session(self, tab: Tab) -> None:
        """Let the person choose which session to go on with, if they want to; else a new one."""
        if self.options.resume != CHOOSE:
            return
        from crow.cli.pickers import choose_session
        from crow.cli.session_lookup import store_of

        cwd = str(directory(self.options))
        self.options.resume = await choose_session(store_of(self.agent), cwd, tab)

    async def _begin(self, tab: Tab, session: Session) -> None:
        """Show what there is, and let keys reach the session."""
        from crow._version import __version__

        control = attach(tab, self.agent, session, self.settings)
        offer_leaving(self.agent, session)
        tab.tell(f"crow {__version__} in {from_home(session.cwd)}; / lists commands, Ctrl-D leaves")
        session.spawn(control.list_files())
        if self.options.resume or self.options.latest:
            await self._replay(tab, session)

    async def _choose_model(self, tab: Tab, session: Session) -> None:
        """Ask a newcomer which model is to answer."""
        from crow.cli import first_start

        if first_start.lacks_model(self.agent, session, self.options, self.settings):
            await first_start.choose_model(self.agent, session, tab)
            tab.status.model = model_of(self.agent, session)

    async def _replay(self, tab: Tab, session: Session) -> None:
        """Show what was said before."""
        from crow.acp.replay import replay

        async for event in replay(self.agent, session):
            await tab.update(session.id, event)
        tab.transcript.end()

    # prompts

    async def _answer(self, tab: Tab, session: Session, prompt: str) -> None:
        """Work on one prompt."""
        control = tab.conversation
        assert isinstance(control, SessionControl)
        reply = await work(control, tab, prompt)
        if reply is not None:
            conclude(tab, reply)
            session.spawn(control.list_files())

    def _commands(self) -> Sequence[Offered]:
        control = self.terminal.front.conversation
        return control.commands() if control is not None else ()

    def _files(self) -> Sequence[str]:
        control = self.terminal.front.conversation
        return control.listed if control is not None else ()


def begin_with(tab: Tab, prompt: str) -> None:
    """Let a prompt be the first that is answered."""
    tab.first = prompt
    tab.outbox.put(prompt)


def conclude(tab: Tab, reply: Reply) -> None:
    """Say how the run ended, where that was not simply the end."""
    if reply.stop_reason in (*SUCCESSES, "cancelled"):
        return
    cut = CUT_OFF if reply.stop_reason == "max_tokens" else reply.stop_reason
    if reply.detail and tab.transcript.complaint.endswith(reply.detail):
        return
    tab.tell(reply.detail or cut, is_error=True)


def adopt(terminal: Terminal, settings: Settings, out: Output) -> None:
    """Have the terminal look and listen as the settings want it."""
    from crow.terminal import preferences

    for text in preferences.apply_settings(terminal, settings.terminal):
        out.error(text)


def attach(tab: Tab, agent: Agent, session: Session, settings: Settings) -> SessionControl:
    """Let the tab's keys reach the session, and its last line tell of that."""
    from crow.terminal.status import Status, branch_of

    control = tab.conversation = SessionControl(agent, session)
    transcript = tab.transcript
    transcript.session_id, transcript.cwd, transcript.plan = session.id, session.cwd, ()
    branch = branch_of(Path(session.cwd))
    tab.status = Status(model_of(agent, session), session.mode, branch=branch)

    async def look() -> None:
        tab.status.sandbox = await held(session)
        tab.refresh()

    session.spawn(look())
    extras = ExtensionWidgets(agent, session, tab)
    tab.use(extras)
    extras.bind()
    if settings.status_line:
        from crow.cli.status_line import StatusLine

        StatusLine(settings.status_line, agent, session, tab).start()
    return control


async def work(control: SessionControl, tab: Tab, prompt: str) -> Reply | None:
    """Work on one prompt to its end; None where that was a command of the person's own."""
    session = control.session
    tab.begin(prompt)
    if prompt.startswith("!"):
        await control.run_command(prompt[1:].strip(), tab)
        tab.finish()
        return None
    if is_to_remember(prompt):
        await remember(control, tab, prompt)
        tab.finish()
        return None
    content = control.content_of(prompt, tab.tell)
    tab.transcript.show(content)
    reply = await control.agent.prompt(session, content)
    await idle(session)
    tab.transcript.cwd = session.cwd
    tab.finish(interrupted=reply.stop_reason == "cancelled")
    return reply
