"""From the name of a model, settings and environment to an LLM."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field, replace
from typing import Any

from crow.core.errors import ModelError, nearest
from crow.core.frozen import frozen
from crow.core.ports import LLM
from crow.llm.presets import OTHER_NAMES, PRESETS, Preset, provider_meant

REHEARSAL = "rehearsal"
LOGIN = "crow login"
Table = Mapping[str, Any]
Stored = Callable[[str], str | None]
"""The key that the user stored for a provider, None where there is none."""


def from_environment(model: str | None = None) -> LLM:
    """The LLM that the environment names: `resolve` without settings."""
    return resolve(model, {}, os.environ)


def resolve(
    model: str | None, settings: Table, env: Mapping[str, str], stored: Stored | None = None
) -> LLM:
    """The LLM for a name such as ``rehearsal``, ``gpt-5``, ``ollama/qwen3``.

    Without a name it is the one of ``CROW_MODEL``, else that of the settings, else the
    rehearsal. The part before the first slash names a provider: one of the settings'
    ``providers`` (tables with ``base_url``, ``api_key``, ``api_key_env``, ``headers``, ``params``,
    ``context_window``, ``echo_reasoning``, ``inputs``, ``thought_levels``), else a preset. Where
    ``CROW_BASE_URL`` or ``base_url`` is set, the whole name belongs to the model there. The
    environment goes before
    the settings; ``CROW_API_KEY`` and ``api_key`` hold the key for what ``base_url`` names, or
    for any provider that has no key of its own. ``stored`` is asked last.

    Raises `ModelError` (unconfigured) where a provider is unknown or a key is missing.
    """
    name = model or env.get("CROW_MODEL") or settings.get("model")
    base_url = env.get("CROW_BASE_URL") or settings.get("base_url")
    if name == REHEARSAL or (not name and not base_url):
        from crow.llm.rehearsal import Rehearsal

        return Rehearsal()
    if not name:
        what = (
            f"there is an endpoint, {base_url}, but no model: name one with --model or CROW_MODEL"
        )
        raise ModelError(what, kind="unconfigured")
    keys = Keys(settings, env, stored or nothing)
    place = _at(base_url, settings, keys) if base_url else _of(name, settings, keys)
    return _made(name if base_url else _without_provider(name, settings), place, settings)


def listed_name(model: str | None, settings: Table, env: Mapping[str, str]) -> str:
    """The one name that a model has in lists, however it was written; `resolve` knows it by that.

    It is ``PROVIDER/MODEL``; for an endpoint that is given by its URL it is the model's own.
    """
    name = model or env.get("CROW_MODEL") or settings.get("model") or REHEARSAL
    if name == REHEARSAL or env.get("CROW_BASE_URL") or settings.get("base_url"):
        return name
    try:
        return f"{_provider(name, settings, env)}/{_without_provider(name, settings)}"
    except ModelError:
        return name


def nothing(provider: str) -> str | None:
    """No key is stored."""
    return None


@frozen
class Key:
    """An API key, empty where there is none; ``origin`` says where it came from."""

    value: str = field(default="", repr=False)
    origin: str = ""


NO_KEY = Key()


@frozen
class Keys:
    """Where keys come from."""

    settings: Table
    env: Mapping[str, str]
    stored: Stored

    def shared(self) -> Key:
        """The key for what has none of its own."""
        if key := self.env.get("CROW_API_KEY"):
            return Key(key, "CROW_API_KEY")
        return Key(self.settings.get("api_key") or "", "api_key in the settings")

    def named(self, names: Iterable[str]) -> Key:
        """The key in the first of these variables that has one."""
        found = next((name for name in names if self.env.get(name)), None)
        return Key(self.env[found], found) if found else NO_KEY

    def of(self, provider: str, preset: Preset) -> Key:
        """The key of a provider."""
        table: Table = self.settings.get("providers", {}).get(provider, {})
        own = Key(table.get("api_key") or "", f"providers.{provider} in the settings")
        found = (own, self.named(preset.key_names), self.shared())
        known = next((key for key in found if key.value), NO_KEY)
        return known if known.value else Key(self.stored(provider) or "", LOGIN)


@frozen
class Place:
    """A preset with what settings and environment make of it. ``table`` is the settings' part."""

    preset: Preset
    key: Key
    table: Table


def _made(name: str, place: Place, settings: Table) -> LLM:
    from crow.llm.chat import ChatCompletions
    from crow.llm.traits import context_window, inputs_of, thought_levels_of

    preset, table = place.preset, place.table
    window = settings.get("context_window") or table.get("context_window")
    return ChatCompletions(
        name,
        preset.base_url,
        place.key.value or None,
        key_origin=place.key.origin if place.key.value else "",
        headers={**preset.headers, **table.get("headers", {}), **settings.get("headers", {})},
        params={**table.get("params", {}), **settings.get("params", {})},
        context_window=window or context_window(name),
        echo_reasoning=bool(table.get("echo_reasoning", preset.echo_reasoning)),
        images_in_results=bool(table.get("images_in_results", preset.images_in_results)),
        cache_key=preset.cache_key,
        inputs=table.get("inputs", inputs_of(name)),
        thought_levels=table.get("thought_levels", thought_levels_of(name)),
    )


def _at(base_url: str, settings: Table, keys: Keys) -> Place:
    """An endpoint that is given by its URL; it need not want a key."""
    url = base_url.rstrip("/")
    known = next((name for name, each in PRESETS.items() if each.base_url == url), None)
    preset = PRESETS[known] if known else Preset(base_url)
    key = keys.shared()
    if not key.value and known:
        key = keys.of(known, preset)
    return Place(preset, key, {})


def _of(name: str, settings: Table, keys: Keys) -> Place:
    """The provider that a model's name names or means. Raises `ModelError` (unconfigured)."""
    env = keys.env
    provider = _provider(name, settings, env)
    table: Table = settings.get("providers", {}).get(provider, {})
    preset = preset_of(provider, table, env)
    key = keys.of(provider, preset)
    moved = _moved(preset, env) or ("base_url" in table and "api_key_env" not in table)
    if not key.value and not preset.is_local and not moved:
        what = f"{provider} needs a key for {name}: set {' or '.join(preset.key_names)}"
        raise ModelError(f"{what}, or CROW_API_KEY, or run {LOGIN}", kind="unconfigured")
    return Place(preset, key, table)


def preset_of(provider: str, table: Table, env: Mapping[str, str]) -> Preset:
    """A provider, with what its settings and the environment change.

    Raises `ModelError` (unconfigured) where nobody says where it is.
    """
    preset = PRESETS.get(provider) or Preset("")
    url = table.get("base_url") or _moved(preset, env) or preset.base_url
    if not url:
        what = f"the provider {provider} has no base_url in the settings; give it one"
        raise ModelError(what, kind="unconfigured")
    if key_name := table.get("api_key_env"):
        preset = replace(preset, key_names=(key_name,))
    return replace(preset, base_url=url)


def _moved(preset: Preset, env: Mapping[str, str]) -> str | None:
    """Where a variable says that a provider is; ``OLLAMA_HOST`` is host and port alone."""
    url = env.get(preset.url_name or "")
    if not url or "://" in url:
        return url and (url if url.rstrip("/").endswith("/v1") else _with_path(url))
    host = url.replace("0.0.0.0", "localhost")  # noqa: S104 - where it listens, not where it is
    return f"http://{host if ':' in host else f'{host}:11434'}/v1"


def _with_path(url: str) -> str:
    """The URL; with ``/v1`` where it has no path at all."""
    return f"{url.rstrip('/')}/v1" if url.rstrip("/").count("/") == 2 else url


def _provider(name: str, settings: Table, env: Mapping[str, str]) -> str:
    """The provider's name. Raises `ModelError` (unconfigured) where there is none."""
    before, slash, _ = name.partition("/")
    known = known_providers(settings)
    if slash and (named := _named(before, known)):
        return named
    if not slash and (meant := provider_meant(name)):
        return meant
    if env.get("OPENAI_BASE_URL") or (not slash and env.get("OPENAI_API_KEY")):
        return "openai"
    if slash:
        raise ModelError(_no_provider(before, name, known), kind="unconfigured")
    what = f"no provider is known for the model {name}: write it as PROVIDER/{name}"
    raise ModelError(
        f"{what}, for instance ollama/{name}, or set CROW_BASE_URL", kind="unconfigured"
    )


def _no_provider(provider: str, name: str, known: Iterable[str]) -> str:
    near = nearest(provider, [*known, *OTHER_NAMES], 0.5)
    if near:
        return f"there is no provider {provider} for {name}: do you mean {near}?"
    choice = ", ".join(sorted(known))
    return (
        f"there is no provider {provider} for {name}: choose one of {choice}, or set CROW_BASE_URL"
    )


def _without_provider(name: str, settings: Table) -> str:
    before, slash, rest = name.partition("/")
    return rest if slash and _named(before, known_providers(settings)) else name


def known_providers(settings: Table) -> set[str]:
    """The names of all providers."""
    return {*PRESETS, *settings.get("providers", {})}


def _named(text: str, known: set[str]) -> str | None:
    """The provider of this name or other name."""
    if text in known:
        return text
    lower = text.lower()
    return lower if lower in known else OTHER_NAMES.get(lower)
