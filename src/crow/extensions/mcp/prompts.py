"""The prompts of servers as slash commands: ``/mcp__server__prompt first second``."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from typing import TYPE_CHECKING

from crow import Agent, Answer, Command, CommandContext, Session
from crow.extensions.mcp.failure import Gone, Refused, plain
from crow.extensions.mcp.naming import full_name, unambiguous
from crow.extensions.mcp.result import as_text

if TYPE_CHECKING:
    from mcp.types import GetPromptResult, Prompt

    from crow.extensions.mcp.server import Server

Offered = tuple["Server", "Prompt"]
LONGEST = 200


class Prompts:
    """The commands of one session."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._offered: dict[str, Offered] = {}
        self._disposers: list[Callable[[], None]] = []

    def offer(self, agent: Agent, servers: list[Server]) -> bool:
        """Offer what the servers have now; True where the commands have changed."""
        pairs = [(server, prompt) for server in servers for prompt in server.prompts]
        alone, _ambiguous = unambiguous(pairs, lambda pair: full_name(pair[0].name, pair[1].name))
        taken = set(agent.commands_of(self._session)) - set(self._offered)
        offered = {name: pair for name, pair in alone.items() if name not in taken}
        if offered == self._offered:
            return False
        self.forget()
        self._offered = offered
        for name, pair in offered.items():
            self._disposers.append(self._session.add_command(_command(name, *pair)))
        return True

    def forget(self) -> None:
        """Offer nothing any more."""
        for dispose in self._disposers:
            dispose()
        self._disposers, self._offered = [], {}


def _command(name: str, server: Server, prompt: Prompt) -> Command:
    async def run(ctx: CommandContext) -> str | Answer | None:
        return await fill_in(server, prompt, ctx.args)

    about = plain(prompt.description or prompt.title or prompt.name)[:LONGEST]
    hint = " ".join(
        f"<{arg.name}>" if arg.required else f"[{arg.name}]" for arg in prompt.arguments or ()
    )
    return Command(name, about, run, plain(hint))


async def fill_in(server: Server, prompt: Prompt, line: str) -> str | Answer:
    """The prompt's text for what was typed behind the command."""
    wanted = prompt.arguments or []
    words = _words(line, len(wanted))
    args = {argument.name: word for argument, word in zip(wanted, words, strict=False)}
    missing = [each.name for each in wanted if each.required and each.name not in args]
    if missing:
        return Answer(f"the prompt {prompt.name} needs {', '.join(missing)}")
    try:
        filled = await server.prompt(prompt.name, args)
    except (Gone, Refused) as error:
        return Answer(str(error))
    heading = f"The user chose the prompt {prompt.name!r} of the MCP server {server.name!r}:"
    return f"{heading}\n\n{_said(filled)}"


def _words(line: str, count: int) -> list[str]:
    """The arguments; the last one takes all that is left."""
    try:
        words = shlex.split(line)
    except ValueError:
        words = line.split()
    if count and len(words) > count:
        words = [*words[: count - 1], " ".join(words[count - 1 :])]
    return words


def _said(filled: GetPromptResult) -> str:
    return "\n\n".join(
        f"{'Assistant: ' if message.role == 'assistant' else ''}{as_text(message.content)}"
        for message in filled.messages
    )
