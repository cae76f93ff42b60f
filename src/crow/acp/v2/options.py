"""What can be chosen in a session, in the words of version 2: options only, and no modes."""

from __future__ import annotations

from crow.acp.jsonrpc import Message
from crow.acp.options import config_options as options_of_version_1
from crow.core.agent import Agent
from crow.core.session import Session

RENAMED = {"id": "configId"}
RENAMED_IN_GROUP = {"group": "groupId"}


def config_options(agent: Agent, session: Session) -> list[Message]:
    """The complete list of options, as it is now."""
    return [_option(each) for each in options_of_version_1(agent, session, switches=True)]


def commands(agent: Agent, session: Session) -> list[Message]:
    """The slash commands on offer."""
    listed: list[Message] = []
    for command in agent.commands_of(session).values():
        told = {"type": "command", "name": command.name, "description": command.description}
        hint = {"type": "text", "hint": command.hint}
        listed.append({**told, "input": hint} if command.hint else told)
    return listed


def _option(told: Message) -> Message:
    option = {RENAMED.get(name, name): value for name, value in told.items()}
    if "options" in told:
        option["options"] = [_grouped(value) for value in told["options"]]
    return option


def _grouped(value: Message) -> Message:
    return {RENAMED_IN_GROUP.get(name, name): each for name, each in value.items()}
