"""A run on the terminal: one prompt with the cards, questions and keys of a talk."""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
from typing import TYPE_CHECKING

from crow.cli.chat import ENDING, adopt, attach, work
from crow.cli.options import agent_of, directory, tell_problems
from crow.cli.output import Output
from crow.cli.prompt_run import INTERRUPTED, conclude, refuse_unknown, run_to_end
from crow.cli.session_options import session_of
from crow.project.home import state_directory

if TYPE_CHECKING:
    from crow.core.hooks.run_context import Reply
    from crow.settings import Settings


class TerminalRun:
    """A run that is looked at. What is said meanwhile steers it, or is answered before it ends."""

    def __init__(
        self, options: argparse.Namespace, settings: Settings, prompt: str, out: Output
    ) -> None:
        from crow.terminal.terminal import Terminal

        self.options = options
        self.settings = settings
        self.prompt = prompt
        self.out = out
        self.terminal = Terminal(str(directory(options)), history=state_directory() / "history")
        self._status: int | None = None

    async def run(self) -> int:
        """Show it to its end; the exit status."""
        loop = asyncio.get_running_loop()
        for number in ENDING:
            loop.add_signal_handler(number, self._end, number)
        reply = await self.terminal.run(self._run())
        if reply is None:
            return self._status or INTERRUPTED
        if self.out.err.isatty():
            self.out.note(f"session {reply.session.id[:8]}")
        return conclude(reply, (), self.out, self._status)

    def _end(self, number: signal.Signals) -> None:
        """A signal ends the run, whatever is being done."""
        self._status = 128 + number
        self.terminal.end()

    async def _run(self) -> Reply | None:
        tab, out = self.terminal.front, self.out
        with out.through(sys.stdout, sys.stderr):
            agent = agent_of(self.options, self.settings)
            tell_problems(self.settings, agent, out)
            adopt(self.terminal, self.settings, out)
            agent.llm.model  # noqa: B018 - a model that cannot be had is said before anything else
            async with agent:
                session = await session_of(agent, self.options, self.settings, tab)
                if tab.is_left:
                    return None
                control = attach(tab, agent, session, self.settings)
                refuse_unknown(agent, session, self.prompt)
                tab.begin()
                content = control.content_of(self.prompt, tab.tell)
                tab.transcript.show(content)
                reply = await run_to_end(agent, session, content, out)
                tab.finish(interrupted=reply.stop_reason == "cancelled", tells=False)
                while tab.outbox and not tab.is_left:
                    said = await tab.next_prompt()
                    reply = await work(control, tab, said or "") or reply
                self.terminal.editor.clear()
        return reply
