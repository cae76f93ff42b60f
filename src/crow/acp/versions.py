"""The versions of the protocol: what is told of the same session in the words of each."""

from __future__ import annotations

from typing import Protocol

from crow.acp.capabilities import ClientCapabilities
from crow.acp.initialize import DRAFT_VERSION, AgentCapabilities, version_of
from crow.acp.jsonrpc import Message
from crow.acp.projection import Projection
from crow.acp.session_view import SessionView
from crow.acp.v1 import Version1
from crow.core.agent import Agent


class Version(Protocol):
    """A version of the protocol, as one client speaks it.

    No turn is decided here: sessions, prompts and questions are the same for every version.
    """

    @property
    def number(self) -> int: ...

    def capabilities(self, hello: Message) -> ClientCapabilities:
        """What the parameters of ``initialize`` say of the client."""
        ...

    def projection(self, view: SessionView) -> Projection:
        """A session in the words of this version."""
        ...


def version_spoken(agent: Agent, hello: Message, offer: AgentCapabilities) -> Version:
    """The version that the parameters of ``initialize`` were answered with; 1 without any."""
    if version_of(hello.get("protocolVersion"), offer) != DRAFT_VERSION:
        return Version1()
    from crow.acp.v2.version import Version2

    return Version2(agent)
