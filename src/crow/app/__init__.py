"""The composition root: settings, a model, tools and extensions become an agent.

The one place that knows the core and what hangs on it. Extensions are hung in a fixed sequence:
built-ins, entry points by name, the user's and the project's files by name, the settings' hooks,
``hooks=[...]``, and what ``--extension`` names. A broken one is named in ``agent.found`` and stops
nobody, except the permissions and what was asked for by name.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from crow.app.composer import FOLDER, UNTRUSTED, Composer
from crow.app.live_settings import LiveSettings, live_of
from crow.app.models import keys_of, model_of, models_of, secrets_of
from crow.app.rules import place_of, rules_of
from crow.app.settings_updater import SettingsUpdater, export
from crow.app.startup_warnings import startup_warnings
from crow.core.agent import Agent
from crow.core.catalog import Mode
from crow.core.defaults import ChatClient
from crow.core.errors import ExtensionError
from crow.core.hooks.contexts import ToolContext
from crow.core.hooks.registry import HookRegistry
from crow.core.ports.llm import LLM
from crow.core.support.validation import implementing, refuse_no_lists
from crow.core.verdicts import Deny
from crow.entry_points import events
from crow.ports.extensions import ModeProvider
from crow.project.home import settle_home
from crow.settings import Settings, load

__all__ = [
    "UNTRUSTED",
    "build",
    "build_to_read",
    "export",
    "live_of",
    "place_of",
    "rules_of",
    "startup_warnings",
]


def build(
    settings: Settings | Mapping[str, Any] | None = None,
    *,
    cwd: str | os.PathLike[str] = ".",
    model: LLM | ChatClient | str | None = None,
    allow: Sequence[str] = (),
    deny: Sequence[str] = (),
    extensions: Iterable[str] = (),
    hooks: Iterable[Any] = (),
    env: Mapping[str, str] | None = None,
) -> Agent:
    """The whole agent, as the command uses it: settings, permissions, persistence, extensions.

    Without ``settings`` those of ``cwd`` hold; a mapping, in the shape of a settings file, counts
    before their files, as ``--settings`` does. ``allow``, ``deny`` and a ``model`` that is a name
    stand in the place of the command line's. Any other ``model`` is what `Agent` takes, a model or
    a client, and no setting takes its place; a client is asked for the model that settings or
    ``CROW_MODEL`` name. ``extensions`` are files, modules or ``module:Name``, ``hooks`` are
    extensions of any sort, in the place of what an installed package brings of the same class; a
    class is made with the options that the settings have for its name. Raises `ExtensionError` for
    a broken one of these or the permissions, `ModelError` for an object that is no model, and
    ``TypeError`` for a text where a list is wanted; every other broken extension is named in
    ``agent.found``.
    """
    return _build(settings, cwd, model, allow, deny, extensions, hooks, env)


def build_to_read(
    settings: Settings, *, cwd: str | os.PathLike[str] = ".", extensions: Iterable[str] = ()
) -> Agent:
    """The agent of `build`, for who runs nothing with it: lists sessions, extensions or hooks.

    It is there where nobody can judge calls, too; then all of them are denied.
    """
    return _build(settings, cwd, None, (), (), extensions, (), None, reads=True)


def _build(
    settings: Settings | Mapping[str, Any] | None,
    cwd: str | os.PathLike[str],
    model: LLM | ChatClient | str | None,
    allow: Sequence[str],
    deny: Sequence[str],
    extensions: Iterable[str],
    hooks: Iterable[Any],
    env: Mapping[str, str] | None,
    *,
    reads: bool = False,
) -> Agent:
    refuse_no_lists(allow=allow, deny=deny, extensions=extensions, hooks=hooks)
    settle_home()
    name, brought = (model, None) if isinstance(model, str | None) else (None, model)
    if not isinstance(settings, Settings):
        more = None if settings is None else json.dumps(dict(settings))
        settings = load(cwd, file=more, flags=_flags(name, allow, deny))
    surroundings: Mapping[str, str] = os.environ if env is None else env
    environment = {**surroundings, **settings.env}
    models = models_of(settings, environment)
    llm = models if brought is None else model_of(brought, settings, environment)
    HookRegistry.announced = staticmethod(events)
    agent = Agent(llm, tools=_tools())
    agent.withheld = keys_of(settings)
    agent.known_secrets = secrets_of(settings)
    agent.use(
        LiveSettings(settings, SettingsUpdater(agent, models, lambda: surroundings)), source="crow"
    )
    composer = Composer(agent, settings)
    brought_along = [*hooks]
    composer.use_installed(brought_along)
    try:
        composer.refuse_unjudged()
    except ExtensionError as error:
        if not reads:
            raise
        agent.hooks.register("before_tool", partial(_deny, str(error)))
    composer.use_folder(Path.home() / FOLDER)
    if settings.project and Path(settings.project) != Path.home():
        composer.use_project()
    composer.use_installed(brought_along, late=True)
    for thing in brought_along:
        composer.use_given(thing)
    for spec in extensions:
        composer.use_named(spec)
    offer_modes(agent)
    return agent


def _deny(why: str, ctx: ToolContext) -> Deny:
    return Deny(why)


def offer_modes(agent: Agent) -> None:
    """Let the user choose from the modes that extensions know, beside those that these add."""
    known: list[Mode] = []
    for each in implementing(agent.extensions.values(), ModeProvider):
        known += each.modes
    for mode in known:
        if mode.name and mode.id not in agent.modes:
            agent.add_mode(mode)


def _flags(model: str | None, allow: Sequence[str], deny: Sequence[str]) -> dict[str, Any]:
    flags: dict[str, Any] = {"permissions": {"allow": list(allow), "deny": list(deny)}}
    return {**flags, "model": model} if model else flags


def _tools() -> Iterable[Any]:
    from crow.tools import builtin

    return builtin()
