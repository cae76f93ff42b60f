"""The talk for screen readers and for terminals that can do nothing: line after line.

Nothing that stands is drawn again. Questions have numbers; a bell says that an answer is done.
"""

from __future__ import annotations

import argparse
import asyncio
import signal
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from crow.cli.ask import Asker, leaves, read_line
from crow.cli.interrupt import Interrupts
from crow.cli.line_client import LineClient
from crow.cli.output import Output
from crow.cli.prompt_run import conclude, idle
from crow.cli.session_commands import SESSION_COMMANDS, SessionCommands
from crow.cli.session_control import held, offer_leaving
from crow.cli.session_options import session_of
from crow.core.ports.client import Question

if TYPE_CHECKING:
    from crow.core.agent import Agent
    from crow.settings import Settings

MARK = "> "
NOTABLE = 10.0
"""Seconds after which somebody is called when an answer is done."""


async def chat(agent: Agent, options: argparse.Namespace, settings: Settings, out: Output) -> None:
    """Answer prompt after prompt."""
    asker = Asker(out)
    view = LineClient(out, cwd=".", asker=asker)
    async with agent:
        with Interrupts(agent, out, asker, opening=True):
            session = await session_of(agent, options, settings, view)
        view.cwd = session.cwd
        inside = await held(session)
        name = session.model or agent.llm.model
        text = f"crow in {session.cwd}, with {name}, {inside}. Ctrl-C ends an answer, /exit all."
        out.line(text, "dim")
        offer_leaving(agent, session)
        commands = SessionCommands(agent, session, Lines(out, asker))
        commands.offer(SESSION_COMMANDS)
        given = [options.prompt] if options.prompt else []
        while (prompt := given.pop() if given else await read(out)) is not None:
            if not prompt:
                continue
            if leaves(prompt):
                break
            if await commands.obey(prompt):
                continue
            began = time.monotonic()
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
                conclude(reply, view.unasked, out)
            if (took := time.monotonic() - began) > NOTABLE:
                out.note(f"done in {took:.0f} s")
                out.obey("\a")
            out.line()
            view.begin()
        await agent.close_session(session, "prompt_input_exit")
    out.note(f"crow --resume {session.id[:8]} goes on")


class Lines:
    """A face in lines: the person is told and asked."""

    def __init__(self, out: Output, asker: Asker) -> None:
        self._out = out
        self._asker = asker

    def tell(self, text: str, *, is_error: bool = False) -> None:
        """Say something."""
        (self._out.error if is_error else self._out.note)(text)

    async def ask(self, session_id: str, question: Question) -> object:
        """Ask something."""
        del session_id
        return await self._asker.question(question)


async def read(out: Output) -> str | None:
    """The next prompt; None at the end. Ctrl-C takes back what was typed."""
    loop = asyncio.get_running_loop()

    def take_back() -> None:
        out.line("(/exit leaves)", "dim")
        out.write(MARK)

    with suppress(NotImplementedError):  # Windows, where the loop hears of no signal
        loop.add_signal_handler(signal.SIGINT, take_back)
    try:
        out.write(MARK)
        line = await read_line()
    finally:
        with suppress(NotImplementedError):
            loop.remove_signal_handler(signal.SIGINT)
    out.at_start = line is not None
    return line
