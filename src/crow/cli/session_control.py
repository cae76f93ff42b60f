"""The control of a session from the terminal's keys: stopped, steered, set to another mode."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

from crow.cli.ask import LEAVING
from crow.core.errors import ModelError
from crow.core.events import ToolEnded, ToolPending, ToolProgress, ToolStarted
from crow.core.messages import context_block, user
from crow.core.support.validation import implementing, implements
from crow.core.tools import Call, ToolResult
from crow.ports.faces import CompletingCommand, MentionProvider

if TYPE_CHECKING:
    from crow.core.agent import Agent
    from crow.core.events import Event
    from crow.core.hooks.contexts import CommandContext
    from crow.core.messages import Content, Message
    from crow.core.ports.tool import SlashCommand
    from crow.core.session import Session
    from crow.terminal.conversation import Offered
    from crow.terminal.tab import Tab
    from crow.tools.process import Process

LISTING = ("git", "-c", "core.fsmonitor=false", "ls-files", "-zco", "--exclude-standard")
UNOFFERED = ("dontAsk", "bypassPermissions")
"""Modes that no key leads to: they ask nobody."""


class Steered:
    """Something that was said to a run that is on."""

    def __init__(self, session: Session, message: Message) -> None:
        self._session = session
        self._message = message

    @property
    def is_delivered(self) -> bool:
        """True once it is in the conversation."""
        return all(each is not self._message for each in self._session.pending)

    def take_back(self) -> None:
        """Let it not be said."""
        self._session.take_back(self._message)


class SessionControl:
    """The control that the keys of a terminal have over a session."""

    def __init__(self, agent: Agent, session: Session) -> None:
        self.agent = agent
        self.session = session
        self._listed: list[str] = []
        self._command: Process | None = None

    @property
    def title(self) -> str:
        """What the session is called."""
        return self.session.title or ""

    def interrupt(self) -> None:
        """End what is running, sub-agents too."""
        for session in self.agent.sessions.values():
            if session.root is self.session:
                self.agent.cancel(session)
        if self._command is not None:
            self._command.kill()

    def steer(self, text: str) -> Steered:
        """Say something to the run that is on."""
        message = user(self.content_of(text, lambda _: None))
        self.session.pending.append(message)
        return Steered(self.session, message)

    def content_of(self, text: str, tell: Callable[[str], object]) -> Content:
        """A prompt with the pictures that it names; what is wrong with them is told."""
        from crow.acp.config_options import accepted_inputs
        from crow.terminal.pictures import paths_in, with_pictures

        paths = paths_in(text, self.session.cwd) if not text.startswith("/") else []
        taken = accepted_inputs(self.agent, self.session) if paths else None
        if taken is not None and "image" not in taken:
            tell("the model takes no pictures: they stay paths")
            paths = []
        content, wrong = with_pictures(text, paths)
        for each in wrong:
            tell(each)
        return content

    def commands(self) -> Sequence[Offered]:
        """The slash commands on offer."""
        known = self.agent.commands_of(self.session)
        return [offered(known[name], self.session) for name in sorted(known)]

    def next_mode(self) -> None:
        """Go on in the next mode that asks."""
        modes = [each for each in self.agent.modes_of(self.session) if each not in UNOFFERED]
        if modes:
            at = modes.index(self.session.mode) if self.session.mode in modes else -1
            mode = modes[(at + 1) % len(modes)]
            self.session.spawn(self.agent.configure(self.session, mode=mode))

    @property
    def listed(self) -> Sequence[str]:
        """What can stand behind ``@``: files, and what extensions say (``mentions(session)``)."""
        used = implementing(self.agent.extensions_of(self.session).values(), MentionProvider)
        more = [each.mentions(self.session) for each in used]
        return [*self._listed, *chain.from_iterable(more)]

    async def list_files(self) -> None:
        """See which files there are, for ``listed``."""
        self._listed = await self._files()

    async def _files(self) -> list[str]:
        """The files of the project, as git knows them."""
        from crow.process import run

        with suppress(OSError):
            done = await run(LISTING, cwd=self.session.cwd)
            return [os.fsdecode(path) for path in done.out.split(b"\0") if path]
        return []

    async def run_command(self, command: str, tab: Tab) -> None:
        """Run what the person wants to have run; the model is told of it with the next prompt."""
        from crow.tools.bash import LIMIT, follow
        from crow.tools.errors import ToolError
        from crow.tools.shells import SHELLS, Shells

        call = Call(f"own{time.monotonic_ns()}", "!", {"command": command})

        async def tell(event: Event) -> None:
            await tab.update(self.session.id, event)

        async def progress(text: str) -> None:
            await tell(ToolProgress(call.id, text))

        await tell(ToolPending(call, command, "execute"))
        await tell(ToolStarted(call, dict(call.args), command))
        began = time.monotonic()
        shells = SHELLS.setdefault(self.session, Shells(self.session.id))
        shells.secrets = self.agent.secrets
        try:
            process = self._command = await shells.start(
                command, self.session.cwd, limit=LIMIT, is_background=False, environment=os.environ
            )
            result = await follow(process, progress)
            shells.release(process)
        except ToolError as error:
            result = ToolResult(str(error), error=True)
        self._command = None
        status = "error" if result.error else "ok"
        await tell(ToolEnded(call, status, result, time.monotonic() - began))
        told = f"The user ran a command:\n$ {command}\n{result.text}"
        self.session.pending.append(context_block(told, "shell"))


def offered(command: SlashCommand, session: Session) -> Offered:
    """A command as the terminal offers it."""
    from crow.terminal.conversation import Offered

    completes = implements(command, CompletingCommand)
    asked = partial(command.complete, session) if completes and command.complete else None
    return Offered(command.name, command.description, command.hint, asked)


async def held(session: Session) -> str:
    """What commands run in, in a few words."""
    from crow.keys import SANDBOX

    sandbox = SANDBOX.get(session)
    name = await asyncio.to_thread(lambda: sandbox.name) if sandbox is not None else ""
    return f"sandbox ({name})" if name else "no sandbox"


def offer_leaving(agent: Agent, session: Session) -> None:
    """List the words that leave among the commands, where nobody else has taken them."""
    from crow.core.catalog import Command

    for name in LEAVING:
        if name not in agent.commands_of(session):
            agent.add_command(Command(name, "Leave", leave))


async def leave(ctx: CommandContext) -> None:
    """Do nothing: whoever reads the words leaves by themselves."""


def model_of(agent: Agent, session: Session) -> str:
    """The name of the model that is asked; empty where there is none yet."""
    try:
        return session.model or agent.llm.model
    except ModelError:
        return ""
