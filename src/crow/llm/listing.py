"""The list of models: the ones that the settings name, else what the providers say."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping

from crow.core.errors import ModelError
from crow.llm.model_names import Keys, Stored, Table, known_providers, nothing, preset_of
from crow.llm.presets import PRESETS
from crow.llm.source import Listed, Source, ask

ASKED_UNNAMED = "ollama"
"""The local server that is asked although nobody has named it."""


def sources(settings: Table, env: Mapping[str, str], stored: Stored | None = None) -> list[Source]:
    """The endpoints to ask: the given one, else all with a key and the local ones in use."""
    keys = Keys(settings, env, stored or nothing)
    base_url = env.get("CROW_BASE_URL") or settings.get("base_url")
    if base_url:
        return [Source("", base_url.rstrip("/"), keys.shared().value)]
    return list(_usable(settings, env, keys))


def _usable(settings: Table, env: Mapping[str, str], keys: Keys) -> Iterator[Source]:
    meant = str(env.get("CROW_MODEL") or settings.get("model") or "").partition("/")[0]
    chosen = {ASKED_UNNAMED, meant, *settings.get("providers", {})}
    own = {**settings, "api_key": None, "apiKeyHelper": None}
    alone = Keys(own, {**env, "CROW_API_KEY": ""}, keys.stored)
    for provider in sorted(known_providers(settings)):
        table: Table = settings.get("providers", {}).get(provider, {})
        try:
            preset = preset_of(provider, table, env)
        except ModelError:
            continue
        named = {name: own.get("context_window") for name, own in table.get("models", {}).items()}
        if not (preset.lists or named):
            continue
        key = alone.of(provider, preset).value
        needs_key = provider in PRESETS and not PRESETS[provider].is_local
        if key or (provider in chosen and not needs_key):
            url = preset.models_url.rstrip("/")
            yield Source(provider, url, key, named=named, lists=preset.lists)


async def look(where: Iterable[Source]) -> list[Listed]:
    """The models that can be asked at some endpoints; whoever does not answer has those named.

    Each has the window that its server says it has.
    """
    found = await asyncio.gather(*map(ask, where))
    return [each for models in found for each in models]
