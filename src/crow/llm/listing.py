"""Which models there are: the ones that the settings name, else what the providers say."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any
from urllib.parse import urlsplit

from crow.core.errors import ModelError
from crow.core.frozen import frozen
from crow.llm.http.text import is_array, is_object
from crow.llm.naming import Keys, Stored, Table, known_providers, nothing, preset_of
from crow.llm.presets import PRESETS
from crow.llm.traits import context_window

TIMEOUT = 3.0
KNOCK = 0.5
MOST = 40
NOT_FOR_TALK = re.compile(
    r"embed|tts|whisper|dall-e|image|audio|realtime|transcribe|moderation|search|rerank|guard|ocr"
)
ASKED_UNNAMED = "ollama"
"""The local server that is asked although nobody has named it."""


@frozen
class Source:
    """An endpoint that can be asked for its models; ``provider`` is empty for the given URL."""

    provider: str
    url: str
    key: str

    @property
    def is_local(self) -> bool:
        """True for this machine."""
        return urlsplit(self.url).hostname in ("localhost", "127.0.0.1", "::1")

    @property
    def is_public(self) -> bool:
        """True for a provider that lists far more than can be talked with."""
        return self.provider in PRESETS and not PRESETS[self.provider].is_local


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
    alone = Keys({**settings, "api_key": None}, {**env, "CROW_API_KEY": ""}, keys.stored)
    for provider in sorted(known_providers(settings)):
        table: Table = settings.get("providers", {}).get(provider, {})
        try:
            preset = preset_of(provider, table, env)
        except ModelError:
            continue
        key = alone.of(provider, preset).value
        needs_key = provider in PRESETS and not PRESETS[provider].is_local
        if key or (provider in named and not needs_key):
            yield Source(provider, preset.base_url.rstrip("/"), key)


async def list_models(
    settings: Table, env: Mapping[str, str], stored: Stored | None = None
) -> list[str]:
    """The names of models that can be asked, by provider; whoever does not answer has none."""
    found = await asyncio.gather(*map(ask, sources(settings, env, stored)))
    return [name for names in found for name in names]


async def ask(source: Source) -> list[str]:
    """The models of one endpoint, as they are named here."""
    if source.is_local and not await _is_there(source.url):
        return []
    await asyncio.to_thread(import_module, "httpx2")  # the loop goes on meanwhile
    import httpx2

    headers = {"authorization": f"Bearer {source.key}"} if source.key else {}
    if source.provider == "anthropic":
        headers |= {"x-api-key": source.key, "anthropic-version": "2023-06-01"}
    verify = not source.url.startswith("http:")  # loading certificates takes a while
    options: Any = {"timeout": TIMEOUT, "trust_env": not source.is_local, "verify": verify}
    try:
        async with httpx2.AsyncClient(**options) as client:
            response = await client.get(f"{source.url}/models", headers=headers)
            names = _names(response.json()) if response.is_success else []
    except (httpx2.HTTPError, httpx2.InvalidURL, ValueError):
        return []
    shown = [name for name in names if not source.is_public or _is_for_talk(name)]
    return [f"{source.provider}/{name}" if source.provider else name for name in shown[:MOST]]


def _names(body: object) -> list[str]:
    listed = body.get("data") if is_object(body) else None
    ids = [each.get("id") for each in listed if is_object(each)] if is_array(listed) else []
    return sorted(name.removeprefix("models/") for name in ids if isinstance(name, str) and name)


def _is_for_talk(name: str) -> bool:
    """True for a well-known model that answers in text; providers list all that they have."""
    return context_window(name) is not None and not NOT_FOR_TALK.search(name.lower())


async def _is_there(url: str) -> bool:
    """True where something listens."""
    parts = urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    try:
        async with asyncio.timeout(KNOCK):
            _, writer = await asyncio.open_connection(parts.hostname, port)
    except OSError:
        return False
    writer.close()
    return True
