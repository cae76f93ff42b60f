"""Version 2 of the protocol: what the client can do, and how a session is told of."""

from __future__ import annotations

from dataclasses import replace

from crow.acp.capabilities import ClientCapabilities
from crow.acp.jsonrpc import Message
from crow.acp.v2.cancelling import Cancelling
from crow.acp.v2.prompts import Prompts
from crow.acp.v2.tool_calls import Calls
from crow.acp.v2.updates import Translation
from crow.core.agent import Agent
from crow.core.session import Session


class V2:
    """Version 2; a `crow.acp.projection.Dialect`.

    ``prompts`` are the ones that are being worked on, ``calls`` the tool calls that run now, which
    ``cancelling`` ends by themselves.
    """

    version = 2

    def __init__(self, agent: Agent) -> None:
        self.prompts = Prompts()
        self.calls = Calls()
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
            boolean_options=True,
        )

    def projection(
        self,
        agent: Agent,
        session: Session,
        capabilities: ClientCapabilities,
        *,
        live: bool = True,
        prefix: str = "",
        parent: str = "",
        told: int | None = None,
    ) -> Translation:
        """A session in the words of version 2."""
        del capabilities
        return Translation(
            self.prompts,
            self.calls,
            agent,
            session,
            live=live,
            prefix=prefix,
            parent=parent,
            told=told,
        )
