"""The hooks of every sub-agent: who it is, and the modes of the session that it works for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crow import hook
from crow.hooks import FIRST
from crow.project import use_front_matter

if TYPE_CHECKING:
    from crow import Message, SessionContext, ToolContext, TurnContext
    from crow.extensions.subagents.definition import Definition


USUAL = ("default", "manual")
WANTED = ("acceptEdits", "dontAsk")
"""Modes that an agent's file may choose where its caller has the usual one."""


class Role:
    """Puts a prompt as the system message in front of every request that has none."""

    name = "role"

    def __init__(self, prompt: str) -> None:
        self.prompt = prompt

    def before_llm_request(self, ctx: TurnContext) -> list[Message] | None:
        """Put it first."""
        messages = ctx.messages
        if messages and messages[0]["role"] in ("system", "developer"):
            return None
        return [{"role": "system", "content": self.prompt}, *messages]


class Beginning:
    """Lets hooks see the front matter of the file that defines the sub-agent."""

    name = "beginning"

    def __init__(self, definition: Definition) -> None:
        self.definition = definition

    @hook("on_session_start", order=FIRST)
    async def begin(self, ctx: SessionContext) -> None:
        """Fire ``on_front_matter`` before anybody else hears of the session."""
        if self.definition.front_matter:
            await use_front_matter(ctx, self.definition.source, self.definition.front_matter)


class CallerMode:
    """Lets calls be judged in the mode that the user has chosen by now.

    Where that is the usual one, the agent's ``own`` is taken; one that only plans always does.
    """

    name = "leash"

    def __init__(self, own: str = "") -> None:
        self.own = own

    def before_tool(self, ctx: ToolContext) -> None:
        """Take over the mode and the directories of the session that a person talks to."""
        root = ctx.session.root
        ctx.session.mode = mode_of(self.own, root.mode)
        ctx.session.directories = root.directories


def mode_of(own: str, callers: str) -> str:
    """The mode of a sub-agent that wants its ``own``, beside what the user has chosen by now."""
    if own == "plan" or (callers in USUAL and own in WANTED):
        return own
    return callers


class Turns:
    """Ends an agent's work before the request that would be one too many."""

    name = "turns"

    def __init__(self, most: int) -> None:
        self.most = most
        self.made = 0

    @hook("before_llm_request", order=FIRST)
    def count(self, ctx: TurnContext) -> None:
        """Count the request, or end the run in its place."""
        if self.made >= self.most:
            ctx.stop(f"its limit of {self.most} requests", stop_reason="max_turn_requests")
        self.made += 1
