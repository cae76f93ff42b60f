"""Version 2 of the protocol, as one client speaks it."""

from __future__ import annotations

from dataclasses import replace

from crow.acp.capabilities import ClientCapabilities
from crow.acp.jsonrpc import Message
from crow.acp.projection import Projection
from crow.acp.prompts import Prompts
from crow.acp.session_view import SessionView
from crow.acp.tool_calls import RunningCalls, ToolCalls
from crow.acp.v2.cancelling import Cancelling
from crow.core.agent import Agent


class Version2:
    """Version 2; a `crow.acp.versions.Version`.

    ``prompts`` are the ones that are being worked on, ``running`` the tool calls, which
    ``cancelling`` ends by themselves.
    """

    number = 2

    def __init__(self, agent: Agent) -> None:
        self.prompts = Prompts()
        self.running = RunningCalls()
        self.cancelling = Cancelling.of(agent)

    def capabilities(self, hello: Message) -> ClientCapabilities:
        """What the client announced; notices and the like need no announcement any more."""
        return replace(
            ClientCapabilities.of(hello),
            files=False,
            terminals=False,
            terminal_output=False,
            notices=True,
            compaction=True,
            plans=True,
            subagents=True,
            boolean_options=True,
        )

    def projection(self, view: SessionView) -> Projection:
        """A session in the words of version 2."""
        return Projection(view, self.prompts, ToolCalls(view, self.running))
