"""The models that settings, environment and stored keys name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from crow.core.agent import ChatClient
from crow.core.ports import LLM
from crow.settings import Settings

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
)
OTHER_NAMES = {"api_key_helper": "apiKeyHelper"}


def keys_of(settings: Settings) -> frozenset[str]:
    """The variables that hold keys for models, without those that programs are to have."""
    from crow.llm.presets import KEY_NAMES

    named = {table.get("api_key_env", "") for table in settings.providers.values()}
    return (KEY_NAMES | named) - {entry.text for entry in settings.pass_env}


def models_of(settings: Settings, env: Mapping[str, str]) -> LLM:
    """The command line's or the administrator's model, else the environment's, else a file's.

    Made when something is first asked of it; other models by their names.
    """
    from crow.llm import Routed, resolve
    from crow.llm.naming import listed_name

    table = table_of(settings)
    said = said_model(settings)

    def stored(provider: str) -> str | None:
        from crow.llm.credentials import load

        return load(provider)

    async def look() -> list[str]:
        from crow.llm.listing import list_models

        return await list_models(table, env, stored)

    names = [entry.text for entry in settings.models]
    return Routed(
        lambda name: resolve(name or said, table, env, stored),
        names,
        look,
        lambda name: listed_name(name or said, table, env),
        settings.purposes,
    )


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


def said_model(settings: Settings) -> str | None:
    """The name that the command line or the administrator gives, which beats the environment's."""
    origin = settings.origins.get("model")
    is_said = origin is not None and origin.layer in ("command line", "managed")
    return settings.model if is_said else None
