"""The models that settings, environment and stored keys name."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from crow.core.defaults import ChatClient
from crow.core.ports.llm import LLM
from crow.entry_points import EarlyImports
from crow.settings import Settings

if TYPE_CHECKING:
    from crow.app.known_models import KnownModels
    from crow.llm import Routed
    from crow.llm.routes import ProviderRoutes

MODEL = (
    "model",
    "base_url",
    "wire",
    "api_key",
    "api_key_helper",
    "headers",
    "params",
    "timeouts",
    "context_window",
    "providers",
    "effort_level",
)
OTHER_NAMES = {"api_key_helper": "apiKeyHelper", "effort_level": "effortLevel"}
DOORS = frozenset({"CROW_ACP_TOKEN", "CROW_STORE"})
"""Open a ``crow acp --listen``, which may be another process than this one, and the sessions."""


def keys_of(settings: Settings) -> frozenset[str]:
    """The variables that hold keys that Crow uses, without those that programs are to have."""
    from crow.llm.presets import KEY_NAMES

    named = {table.get("api_key_env", "") for table in settings.providers.values()}
    return (KEY_NAMES | named | DOORS) - {entry.text for entry in settings.pass_env}


def secrets_of(settings: Settings) -> frozenset[str]:
    """What no output may show: stored keys, and keys, headers and servers' secrets of settings."""
    from crow.llm.credentials import stored_providers

    tables = [settings.headers, *(each.get("headers") for each in settings.providers.values())]
    for server in settings.mcp_servers.values():
        tables += [server.get("headers"), server.get("env")]
    keys = [
        settings.api_key,
        *stored_providers(),
        *(each.get("api_key") for each in settings.providers.values()),
    ]
    for table in filter(None, tables):
        from crow.process.environment import is_secret
        from crow.settings.secrets import SECRET

        keys += [text for name, text in table.items() if SECRET.search(name) or is_secret(name)]
    words = (word for key in keys if isinstance(key, str) for word in key.split())
    return frozenset(word for word in words if "$" not in word)


def models_of(
    settings: Settings, env: Mapping[str, str], routed: dict[str, Any] | None = None
) -> Routed:
    """The command line's or the administrator's model, else the environment's, else a file's.

    Made when something is first asked of it; other models by their names. ``routed`` is what a
    client said of providers before.
    """
    from crow.llm import Routed, resolve
    from crow.llm.model_names import listed_name

    table = table_of(settings)
    if model := claude_model(settings, env):
        table["model"] = model
    said = said_model(settings)
    by_client: dict[str, Any] = {} if routed is None else routed

    def known() -> KnownModels:
        from crow.app.known_models import KnownModels

        placed = {name: route and route.url for name, route in by_client.items()}
        return KnownModels(table, env, placed)

    def routes() -> ProviderRoutes:
        from crow.llm.routes import ProviderRoutes

        return ProviderRoutes(table, env, stored, by_client, fixed_providers(settings))

    def find(name: str | None) -> LLM:
        if by_client:
            return routes().find(name or said)
        return resolve(name or said, table, env, stored)

    def stored(provider: str) -> str | None:
        from crow.llm.credentials import load

        return load(provider)

    async def look() -> list[str]:
        from crow.llm.listing import look

        found = [each.model for each in await look(routes().sources())]
        await asyncio.to_thread(known().keep, found)
        return found

    names = [entry.text for entry in settings.models]
    return Routed(
        find,
        names,
        look,
        lambda name: listed_name(name or said, table, env),
        settings.purposes,
        lambda: known().names(),
        routes,
        EarlyImports({entry.text for entry in settings.disabled}),
    )


def fixed_providers(settings: Settings) -> frozenset[str]:
    """Providers whose place the administrator chose; ``main`` is the endpoint of ``base_url``."""
    fixed = [path for path, by in settings.origins.items() if by.layer == "managed"]
    named = {path.split(".")[1] for path in fixed if path.startswith("providers.")}
    return frozenset(named | ({"main"} if "base_url" in fixed else set()))


def table_of(settings: Settings) -> dict[str, Any]:
    """The part of the settings that says which models there are, and how they are asked."""
    found = {OTHER_NAMES.get(name, name): getattr(settings, name) for name in MODEL}
    return {name: value for name, value in found.items() if value}


def model_of(given: LLM | ChatClient, settings: Settings, env: Mapping[str, str]) -> LLM:
    """A model that a program brings, or the one behind a client that it brings.

    Raises `ModelError` for what is neither, and for a client where no model is named.
    """
    if hasattr(given, "stream"):
        return cast(LLM, given)
    from crow.defaults import of_client

    name = said_model(settings) or env.get("CROW_MODEL") or settings.model
    return of_client(cast(ChatClient, given), name)


def claude_model(settings: Settings, env: Mapping[str, str]) -> str:
    """The model of Claude Code's settings, where nobody has named one and it can be asked.

    ``opus`` and its like are the newest of their family; what stands in brackets says nothing here.
    """
    wanted = settings.claude_model
    others = (settings.model, settings.base_url, env.get("CROW_MODEL"), env.get("CROW_BASE_URL"))
    return "" if not wanted or any(others) else _of_claude(wanted, settings, env)


def fallback_models(settings: Settings, env: Mapping[str, str]) -> list[str]:
    """The models of ``fallbackModel`` that can be asked, each by its name here.

    Claude Code's names mean its own models, others are Crow's. At an endpoint that is given by its
    URL every name is the model's own.
    """
    if settings.base_url or env.get("CROW_BASE_URL"):
        return [*dict.fromkeys(settings.fallback_model)]
    found = (
        _of_claude(name, settings, env) or (name if _can_be_asked(name, settings, env) else "")
        for name in settings.fallback_model
    )
    return [*dict.fromkeys(filter(None, found))]


def _of_claude(wanted: str, settings: Settings, env: Mapping[str, str]) -> str:
    """The model that Claude Code calls so; empty where it cannot be asked, or is none."""
    from crow.llm.models import newest

    plain = wanted.partition("[")[0].strip()
    name = f"anthropic/{newest('anthropic', f'claude-{plain}-') or plain}"
    is_one = name.startswith("anthropic/claude-") and _can_be_asked(name, settings, env)
    return name if is_one else ""


def _can_be_asked(name: str, settings: Settings, env: Mapping[str, str]) -> bool:
    """True where a model's provider is known, and there is a key for it."""
    from crow.core.errors import ModelError
    from crow.llm import resolve
    from crow.llm.credentials import load

    try:
        resolve(name, table_of(settings), env, load)
    except ModelError:
        return False
    return True


def said_model(settings: Settings) -> str | None:
    """The name that the command line or the administrator gives, which beats the environment's."""
    origin = settings.origins.get("model")
    is_said = origin is not None and origin.layer in ("command line", "managed")
    return settings.model if is_said else None
