"""What a user can choose in a session: its mode and its model."""

from __future__ import annotations

from collections.abc import Iterable

from crow.acp.jsonrpc import Message
from crow.core.agent import Agent
from crow.core.catalog import Mode
from crow.core.errors import ModelError
from crow.core.session import Session

MODE = "mode"
MODEL = "model"


def choices(agent: Agent, session: Session) -> Message:
    """The fields ``modes`` and ``configOptions`` of an answer, as far as there is a choice."""
    fields: Message = {}
    if offered := modes(agent, session):
        fields["modes"] = {
            "currentModeId": session.mode,
            "availableModes": [_mode(mode) for mode in offered],
        }
    if options := config_options(agent, session):
        fields["configOptions"] = options
    return fields


def config_options(agent: Agent, session: Session) -> list[Message]:
    """The complete list of options, as it is now."""
    options: list[Message] = []
    if offered := modes(agent, session):
        listed = [_value(mode.id, mode.name, mode.description) for mode in offered]
        options.append(_select(MODE, "Mode", session.mode, listed))
    names = models(agent, session)
    if names:
        current = session.model or names[0]
        options.append(_select(MODEL, "Model", current, [_value(name, name) for name in names]))
    return options


def values(agent: Agent, session: Session, name: str) -> list[str]:
    """What an option can be set to; nothing for one that there is not."""
    if name == MODE:
        return [mode.id for mode in modes(agent, session)]
    return models(agent, session) if name == MODEL else []


def modes(agent: Agent, session: Session) -> list[Mode]:
    """The modes on offer, the current one among them; none where extensions offer none."""
    offered = list(agent.modes.values())
    if offered and session.mode not in agent.modes:
        offered.insert(0, Mode(session.mode, session.mode.replace("_", " ").capitalize()))
    return offered


def models(agent: Agent, session: Session) -> list[str]:
    """The models on offer, the agent's own first; none where no model is configured.

    A model that knows of others has a ``models``, their names.
    """
    try:
        llm = agent.llm
    except ModelError:
        return []
    known: Iterable[str] = getattr(llm, "models", ())
    names = [llm.model, session.model, *known]
    return list(dict.fromkeys(name for name in names if name))


def _mode(mode: Mode) -> Message:
    fields: Message = {"id": mode.id, "name": mode.name}
    return {**fields, "description": mode.description} if mode.description else fields


def _value(value: str, name: str, description: str = "") -> Message:
    fields: Message = {"value": value, "name": name}
    return {**fields, "description": description} if description else fields


def _select(category: str, name: str, current: str, values: list[Message]) -> Message:
    return {
        "type": "select",
        "id": category,
        "category": category,
        "name": name,
        "currentValue": current,
        "options": values,
    }
