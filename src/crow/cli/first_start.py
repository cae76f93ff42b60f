"""The first start, without a model yet: a key, a server on this machine, or the rehearsal."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable, Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crow.app.models import claude_model
from crow.core.errors import ModelError
from crow.core.ports.client import Question

if TYPE_CHECKING:
    import argparse

    from crow.core.agent import Agent
    from crow.core.session import Session
    from crow.settings import Settings
    from crow.terminal.tab import Tab

SETTINGS = Path(".crow/settings.json")
HEAD = "No model is set up yet. How do you want to begin?"
KEY = "With the API key of a provider"
SERVER = "With a model server on this machine"
REHEARSAL = "With the rehearsal: no model, but real tools and a few plain sentences"
NO_SERVER = (
    "No model server answers on this machine. Start one that has a model, such as ollama, and "
    "choose again."
)
NO_MODELS = "The provider names no model that this key may ask: is the key right?"
BEGINNINGS = {
    "sk-ant-": "anthropic",
    "sk-or-": "openrouter",
    "AIza": "google",
    "gsk_": "groq",
    "xai-": "xai",
    "sk-proj-": "openai",
}
"""How keys begin, where that tells whose they are."""
PROVIDERS = ("openai", "anthropic", "google", "openrouter", "mistral", "deepseek", "groq", "xai")
MOST = 9
"""Models that are offered: those that one key chooses."""
Asking = Callable[[Question], Awaitable[Any]]


def lacks_model(
    agent: Agent, session: Session, options: argparse.Namespace, settings: Settings
) -> bool:
    """True where nobody has said which model to ask, or that cannot be asked without a key."""
    if session.model:
        return False
    env = os.environ
    known = settings.model or claude_model(settings, {**env, **settings.env})
    said = (options.model, env.get("CROW_MODEL"), env.get("CROW_BASE_URL"), known)
    if not any(said) and not settings.base_url:
        return True
    try:
        return not agent.llm.model
    except ModelError as error:
        return error.kind == "unconfigured"


async def choose_model(agent: Agent, session: Session, tab: Tab) -> None:
    """Ask until there is a model, or the person leaves the question."""

    async def ask(question: Question) -> Any:
        return await tab.ask(session.id, question)

    ways = {KEY: by_key, SERVER: by_server, REHEARSAL: by_rehearsal}
    while not session.model and not tab.is_left:
        way = await ask(Question(HEAD, "select", tuple(ways)))
        if way is None:
            return
        model = await ways[way](tab, ask)
        if model and (refused := await agent.configure(session, model=model)):
            tab.tell(refused, is_error=True)
    if session.model:
        keep(session.model, agent, tab)


async def by_rehearsal(tab: Tab, ask: Asking) -> str:
    """The embedded model."""
    del tab, ask
    return "rehearsal"


async def by_server(tab: Tab, ask: Asking) -> str:
    """A model of a server that runs here; empty where there is none."""
    from crow.llm.model_names import preset_of
    from crow.llm.presets import PRESETS
    from crow.llm.source import Source
    from crow.llm.source import ask as list_models

    local = {name: preset for name, preset in PRESETS.items() if preset.is_local and preset.lists}
    found = await asyncio.gather(
        *(list_models(Source(name, preset_of(name, {}, os.environ).models_url)) for name in local)
    )
    names = [each.model for models in found for each in models]
    if not names:
        tab.tell(NO_SERVER)
        return ""
    return await one_of(names, ask)


async def by_key(tab: Tab, ask: Asking) -> str:
    """A model of a provider whose key is typed; empty where the key opens nothing."""
    from crow.llm.credentials import store
    from crow.llm.model_names import preset_of
    from crow.llm.source import Source
    from crow.llm.source import ask as list_models

    key = str(await tab.secret("The key, which is not shown") or "").strip()
    if not key:
        return ""
    provider = next((whose for start, whose in BEGINNINGS.items() if key.startswith(start)), None)
    provider = provider or await ask(Question("Whose key is it?", "select", PROVIDERS))
    if provider is None:
        return ""
    url = preset_of(provider, {}, os.environ).models_url
    models = [each.model for each in await list_models(Source(provider, url, key))]
    if not models:
        tab.tell(NO_MODELS, is_error=True)
        return ""
    tab.tell(f"the key for {provider} is stored in {store(provider, key)}")
    return await one_of(models, ask)


async def one_of(names: Iterable[str], ask: Asking) -> str:
    """The model that the person chooses."""
    offered = tuple(names)[:MOST]
    if len(offered) == 1:
        return offered[0]
    return str(await ask(Question("Which model?", "select", offered)) or "")


def keep(model: str, agent: Agent, tab: Tab) -> None:
    """Let the model be that of every session to come, where no file of the user's is in doubt."""
    from crow.app import live_of
    from crow.project.files import write_atomically

    if model == "rehearsal":
        return
    path = Path.home() / SETTINGS
    table = settings_in(path)
    if table is None or path.with_suffix(".toml").exists():
        tab.tell(f"set model = {model!r} in your settings to keep it")
        return
    try:
        write_atomically(path, f"{json.dumps({**table, 'model': model}, indent=2)}\n")
    except OSError as error:
        tab.tell(f"{path} cannot be written: {error.strerror}", is_error=True)
        return
    live_of(agent).kept(path)
    tab.tell(f"{model} is the model of ~/{SETTINGS} from now on; /model changes it here")


def settings_in(path: Path) -> Mapping[str, Any] | None:
    """The user's settings; None where they cannot be read."""
    try:
        table: object = json.loads(path.read_text("utf-8")) if path.exists() else {}
    except (OSError, ValueError):
        return None
    return table if isinstance(table, dict) else None  # pyright: ignore[reportUnknownVariableType]
