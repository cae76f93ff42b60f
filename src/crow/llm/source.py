"""An endpoint as a source of models: which it lists, and how much each of them reads."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import field
from typing import Any
from urllib.parse import urlsplit

from crow.core.errors import ModelError
from crow.core.support.frozen import frozen
from crow.llm.http.connection import new_client
from crow.llm.http.retry import Timeouts
from crow.llm.http.text import is_array, is_object
from crow.llm.models import model_info
from crow.llm.presets import PRESETS

TIMEOUT = 3.0
WHOLE = 6.0
KNOCK = 0.5
PATIENCE = 10.0
"""So many times as long it may take where nobody waits."""
MOST = 40
NOT_FOR_TALK = re.compile(
    r"embed|tts|whisper|dall-e|image|audio|realtime|transcribe|moderation|search|rerank|guard|ocr"
)
WINDOWS = (
    "max_input_tokens",
    "max_model_len",
    "context_window",
    "context_length",
    "max_context_length",
)
"""Where lists of models say windows, beside llama.cpp's ``meta.n_ctx``."""
LOADED: Mapping[str, tuple[str, str, str, str]] = {
    "ollama": ("/api/ps", "models", "name", "context_length"),
    "lmstudio": ("/api/v0/models", "data", "id", "loaded_context_length"),
}
"""Where servers say it of a model that is loaded: path, list, name and window."""


@frozen
class Source:
    """An endpoint that can be asked for its models; ``provider`` is empty for the given URL.

    ``named`` are those that its user has named in the settings, with their windows: they are there
    whatever it lists, and where it ``lists`` none.
    """

    provider: str
    url: str
    key: str = field(default="", repr=False)
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    named: Mapping[str, int | None] = field(default_factory=dict[str, "int | None"])
    lists: bool = True

    @property
    def is_local(self) -> bool:
        """True for this machine."""
        return urlsplit(self.url).hostname in ("localhost", "127.0.0.1", "::1")

    def offers(self, model: str) -> bool:
        """True for a model of its list that can be talked with, by its name.

        Providers list all that they have: theirs must be known. Who stands at another address in
        a provider's place (a gateway, `OPENAI_BASE_URL`) names models as he likes.
        """
        preset = PRESETS.get(self.provider)
        if preset is None or preset.is_local:
            return True
        is_moved = self.url != preset.models_url.rstrip("/")
        is_known = is_moved or model_info(self.provider, model).context_window is not None
        return is_known and not NOT_FOR_TALK.search(model.lower())


@frozen
class Listed:
    """A model as its endpoint lists it, with the window that is said there."""

    model: str
    window: int | None = None


async def ask(source: Source) -> list[Listed]:
    """The models of one endpoint that can be talked with, as they are named here."""
    every = await listed(source) if source.lists else []
    shown = [each for each in every if source.offers(each.model)]
    windows = {each.model: each.window for each in shown[:MOST]}
    windows |= await _loaded(source) if shown else {}
    named = {model: said or windows.get(model) for model, said in source.named.items()}
    models = dict.fromkeys([*named, *(each.model for each in shown[:MOST])])
    windows |= named
    before = f"{source.provider}/" if source.provider else ""
    return [Listed(before + model, windows[model]) for model in models]


async def listed(source: Source, patience: float = 1.0) -> list[Listed]:
    """All that an endpoint lists, by name; nothing where it does not answer."""
    body = await _got(source, f"{source.url}/models", patience)
    rows = body.get("data") if is_object(body) else None
    found = [_listed(row) for row in rows if is_object(row)] if is_array(rows) else []
    return sorted((each for each in found if each.model), key=lambda each: each.model)


async def find_window(source: Source, model: str) -> int | None:
    """The window that a server says it has for a model, in tokens.

    Servers that have models in several sizes say it elsewhere, of those that are loaded. Nobody
    waits for it: it is asked behind an answer.
    """
    found = {each.model: each.window for each in await listed(source, PATIENCE)}
    if (window := found.get(model)) is not None:
        return window
    loaded = await _loaded(source, PATIENCE)
    return loaded.get(model) or loaded.get(f"{model}:latest")


async def _loaded(source: Source, patience: float = 1.0) -> dict[str, int | None]:
    """The windows of models that are loaded, where a server says these elsewhere."""
    if source.provider not in LOADED:
        return {}
    path, rows_in, name_in, window_in = LOADED[source.provider]
    body = await _got(source, source.url.removesuffix("/v1") + path, patience)
    rows = body.get(rows_in) if is_object(body) else None
    listed_rows = filter(is_object, rows if is_array(rows) else [])
    return {str(row.get(name_in)): _count(row.get(window_in)) for row in listed_rows}


def _listed(row: Mapping[str, Any]) -> Listed:
    name = row.get("id")
    meta = row.get("meta")
    said = [row.get(key) for key in WINDOWS] + [meta.get("n_ctx") if is_object(meta) else None]
    window = next(filter(None, map(_count, said)), None)
    return Listed(name.removeprefix("models/") if isinstance(name, str) else "", window)


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and value > 0 else None


async def _got(source: Source, url: str, patience: float) -> object:
    """The JSON that an endpoint answers; None without an answer."""
    headers = {"authorization": f"Bearer {source.key}"} if source.key else {}
    if source.provider == "anthropic":
        headers |= {"anthropic-version": "2023-06-01"}
        headers |= {"x-api-key": source.key} if source.key else {}
    headers |= {name.lower(): value for name, value in source.headers.items()}
    knock = KNOCK if source.is_local else TIMEOUT
    times = Timeouts(connect=knock * patience, first_byte=TIMEOUT * patience)
    client = await new_client(url, times, by_proxy=not source.is_local)
    try:
        async with asyncio.timeout(WHOLE * patience):
            response = await client.request("GET", url, headers)
            async with aclosing(response):
                body = b"".join([chunk async for chunk in response.chunks()])
        return json.loads(body) if 200 <= response.status < 300 else None
    except (ModelError, TimeoutError, ValueError):
        return None
    finally:
        await client.aclose()
