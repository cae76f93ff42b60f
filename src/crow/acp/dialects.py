"""Which version of the protocol a client is spoken with, after its ``initialize``."""

from __future__ import annotations

from crow.acp.handshake import DRAFT_VERSION, AgentCapabilities, version_of
from crow.acp.jsonrpc import Message
from crow.acp.projection import Dialect
from crow.acp.updates import V1
from crow.core.agent import Agent


def dialect_of(agent: Agent, hello: Message, offer: AgentCapabilities) -> Dialect:
    """The version that the parameters of ``initialize`` were answered with; 1 without any."""
    if version_of(hello.get("protocolVersion"), offer) != DRAFT_VERSION:
        return V1()
    from crow.acp.v2.dialect import V2

    return V2(agent)
