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
    chosen = str(env.get("CROW_MODEL") or settings.get("model") or "").partition("/")[0]
    named = {ASKED_UNNAMED, chosen, *settings.get("providers", {})}
    own = {**settings, "api_key": None, "apiKeyHelper": None}
    alone = Keys(own, {**env, "CROW_API_KEY": ""}, keys.stored)
    for provider in sorted(known_providers(settings)):
        table: Table = settings.get("providers", {}).get(provider, {})
        try:
            preset = preset_of(provider, table, env)
        except ModelError:
            continue
        if not preset.lists:
            continue
        key = alone.of(provider, preset).value
        needs_key = provider in PRESETS and not PRESETS[provider].is_local
        if key or (provider in named and not needs_key):
            yield Source(provider, preset.models_url.rstrip("/"), key)


async def look(where: Iterable[Source]) -> list[Listed]:
    """The models that can be asked at some endpoints; whoever does not answer has none.

    Each has the window that its server says it has.
    """
    found = await asyncio.gather(*map(ask, where))
    return [each for models in found for each in models]
