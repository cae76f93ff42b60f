"""The options that a user can set in a session: its mode, its model, and how hard that thinks."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from crow.core.agent import Agent
from crow.core.catalog import Mode
from crow.core.errors import ModelError
from crow.core.ports.llm import model_named
from crow.core.session import Session
from crow.core.support.validation import implementing, implements
from crow.ports.faces import ChoiceProvider, ClientPrompter, McpConnector, SwitchProvider
from crow.ports.models import ListedModels, inputs_of, names_of, thought_levels_of

if TYPE_CHECKING:
    import crow.acp.v2.outgoing as v2

    Values = list[v2.SessionConfigSelectOption] | list[v2.SessionConfigSelectGroup]

MODE = "mode"
MODEL = "model"
THOUGHT = "thought_level"
EFFORT = "reasoning_effort"
OTHERS = "others"
"""The group of the models whose provider is not known by their names."""
SEVERAL = 2
UNSAID = "default"
"""The thought level that leaves the choice to the model's provider."""


def config_options(
    agent: Agent, session: Session, *, switches: bool
) -> list[v2.SessionConfigOption]:
    """The complete list of options, as it is now; switches for clients that show such."""
    options: list[v2.SessionConfigOption] = []
    if offered := modes(agent, session):
        listed = [_value(mode.id, mode.name, mode.description) for mode in offered]
        options.append(_select(MODE, "Mode", session.mode, listed))
    if names := models(agent, session):
        own = listed_name(agent, session.model)
        current = own if own in names else names[0]
        options.append(_select(MODEL, "Model", current, _by_provider(names)))
    if levels := thought_levels(agent, session):
        listed = [_value(level, level.capitalize()) for level in levels]
        options.append(_select(THOUGHT, "Thinking", thought_level(session), listed))
    for name, (title, values) in choices_of(agent).items():
        listed = [_value(each, each, about) for each, about in values.items()]
        current = str(session.options.get(name) or session.cache.get(name) or "")
        if current in values:
            chosen = _select(name, title, current, listed)
            chosen["category"] = f"_{name}"
            options.append(chosen)
    if switches:
        options += [_switch(name, *said, session) for name, said in switches_of(agent).items()]
    return options


def choices_of(agent: Agent) -> dict[str, tuple[str, Mapping[str, str]]]:
    """What there are several of to choose from: its title, and what each is about, by name.

    What was chosen is in the session's ``options``, and, where nothing was, in its ``cache``.
    """
    found: dict[str, tuple[str, Mapping[str, str]]] = {}
    for each in implementing(agent.extensions.values(), ChoiceProvider):
        found |= each.choices
    return found


def switches_of(agent: Agent) -> dict[str, tuple[str, str]]:
    """What can be on or off in a session, with its name and what it is about."""
    found: dict[str, tuple[str, str]] = {}
    for each in implementing(agent.extensions.values(), SwitchProvider):
        found |= each.switches
    return found


def option_values(agent: Agent, session: Session, name: str) -> Sequence[str | bool]:
    """What an option can be set to; nothing for one that there is not."""
    if name in switches_of(agent):
        return (True, False)
    if name in (offered := choices_of(agent)):
        return [*offered[name][1]]
    if name == MODE:
        return [mode.id for mode in modes(agent, session)]
    if name == THOUGHT:
        return thought_levels(agent, session)
    return models(agent, session) if name == MODEL else []


def option_changes(agent: Agent, session: Session, name: str, value: Any) -> dict[str, Any]:
    """What `crow.core.agent.Agent.configure` is to be told for a choice."""
    if name == THOUGHT:
        return {"params": _with_effort(session, value)}
    if name == MODEL and thought_level(session) not in (UNSAID, *levels_of(agent, value)):
        return {MODEL: value, "params": _with_effort(session, UNSAID)}
    return {name: value}


def _with_effort(session: Session, level: str) -> dict[str, Any]:
    kept = {name: value for name, value in params(session).items() if name != EFFORT}
    return kept if level == UNSAID else {**kept, EFFORT: level}


def params(session: Session) -> dict[str, Any]:
    """What goes into every request of a session."""
    return session.options.get("params", {})


def thought_level(session: Session) -> str:
    """The level that was chosen."""
    return str(params(session).get(EFFORT, UNSAID))


def thought_levels(agent: Agent, session: Session) -> list[str]:
    """The levels on offer; none where the model has none to choose from."""
    levels = levels_of(agent, session.model)
    return list(dict.fromkeys([UNSAID, *levels, thought_level(session)])) if levels else []


def levels_of(agent: Agent, model: str | None) -> tuple[str, ...]:
    """How hard a model can be made to think."""
    try:
        return thought_levels_of(model_named(agent.llm, model))
    except ModelError:
        return ()


def accepted_inputs(agent: Agent, session: Session) -> Collection[str] | None:
    """What the model of a session takes beside text; None where it does not say."""
    try:
        return inputs_of(model_named(agent.llm, session.model))
    except ModelError:
        return None


def modes(agent: Agent, session: Session) -> list[Mode]:
    """The modes on offer, the current one among them; none where extensions offer none."""
    known = agent.modes_of(session)
    offered = list(known.values())
    if offered and session.mode not in known:
        words = re.sub("(?<=[a-z])(?=[A-Z])", " ", session.mode.replace("_", " "))
        offered.insert(0, Mode(session.mode, words.capitalize()))
    return offered


def serves_mcp(agent: Agent) -> bool:
    """True where an extension connects to the MCP servers that an editor names."""
    return any(each.serves_mcp for each in implementing(agent.extensions.values(), McpConnector))


def takes_prompts(agent: Agent) -> bool:
    """True where an extension puts a client's system prompt into the requests."""
    used = implementing(agent.extensions.values(), ClientPrompter)
    return any(each.takes_prompts for each in used)


def models(agent: Agent, session: Session) -> list[str]:
    """The models on offer, the agent's own first; none where no model is configured."""
    try:
        known = names_of(agent.llm)
    except ModelError:
        return []
    named = [*known, session.model] if session.model else known
    listed = [listed_name(agent, name) for name in named]
    return list(dict.fromkeys([listed_name(agent, None), *listed] if _has_own(agent) else listed))


def listed_name(agent: Agent, model: str | None) -> str:
    """The one name of a model, the agent's own without one, whoever has written it how."""
    llm = agent.llm
    return llm.listed_name(model) if implements(llm, ListedModels) else model or llm.model


def _has_own(agent: Agent) -> bool:
    """True where there is a model that is asked without a choice."""
    try:
        return bool(agent.llm.model)
    except ModelError:
        return False


def _by_provider(names: list[str]) -> Values:
    """Models as values; in groups where several providers have some of them."""
    groups: dict[str, list[v2.SessionConfigSelectOption]] = {}
    for name in names:
        provider = _provider(name)
        shown = name.removeprefix(f"{provider}/")
        groups.setdefault(provider, []).append(_value(name, shown))
    if len(groups.keys() - {OTHERS}) < SEVERAL:
        return [_value(name, name) for name in names]
    return [{"groupId": name, "name": name, "options": listed} for name, listed in groups.items()]


def _provider(name: str) -> str:
    """Who has a model, as far as its name says."""
    from crow.llm.presets import provider_meant

    before, slash, _ = name.partition("/")
    return before if slash else provider_meant(name) or OTHERS


def _value(value: str, name: str, description: str = "") -> v2.SessionConfigSelectOption:
    fields: v2.SessionConfigSelectOption = {"value": value, "name": name}
    return {**fields, "description": description} if description else fields


def _switch(name: str, title: str, about: str, session: Session) -> v2.SessionConfigOption:
    return {
        "type": "boolean",
        "configId": name,
        "category": "model_config",
        "name": title,
        "description": about,
        "currentValue": session.options.get(name) is not False,
    }


def _select(category: str, name: str, current: str, values: Values) -> v2.SessionConfigOption:
    return {
        "type": "select",
        "configId": category,
        "category": category,
        "name": name,
        "currentValue": current,
        "options": values,
    }
