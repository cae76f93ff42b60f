"""From the name of a model, settings and environment to an LLM."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any

from crow.core.errors import ModelError
from crow.core.ports import LLM
from crow.llm.presets import OTHER_NAMES, PRESETS, Preset

REHEARSAL = "rehearsal"
Table = Mapping[str, Any]


def from_environment(model: str | None = None) -> LLM:
    """The LLM that the environment names: `resolve` without settings."""
    return resolve(model, {}, os.environ)


def resolve(model: str | None, settings: Table, env: Mapping[str, str]) -> LLM:
    """The LLM for a name such as ``rehearsal``, ``gpt-5``, ``ollama/qwen3``.

    Without a name it is the one of ``CROW_MODEL``, else that of the settings, else the
    rehearsal. The part before the first slash names a provider: one of the settings'
    ``providers`` (tables with ``base_url``, ``api_key``, ``api_key_env``, ``headers``, ``params``,
    ``context_window``, ``echo_reasoning``), else a preset. Where ``CROW_BASE_URL`` or
    ``base_url`` is set, the whole name belongs to the model there. The environment goes before
    the settings; ``CROW_API_KEY`` and ``api_key`` hold the key for what ``base_url`` names, or
    for any provider that has no key of its own.

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
    place = _at(base_url, settings, env) if base_url else _of(name, settings, env)
    return _made(name if base_url else _without_provider(name, settings), place, settings)


@dataclass(frozen=True, slots=True)
class Place:
    """A preset with what settings and environment make of it. ``table`` is the settings' part."""

    preset: Preset
    key: str | None
    table: Table


def _made(name: str, place: Place, settings: Table) -> LLM:
    from crow.llm.chat import ChatCompletions
    from crow.llm.windows import context_window

    preset, table = place.preset, place.table
    window = settings.get("context_window") or table.get("context_window")
    return ChatCompletions(
        name,
        preset.base_url,
        place.key,
        headers={**preset.headers, **table.get("headers", {}), **settings.get("headers", {})},
        params={**table.get("params", {}), **settings.get("params", {})},
        context_window=window or context_window(name),
        echo_reasoning=bool(table.get("echo_reasoning", preset.echo_reasoning)),
        cache_key=preset.cache_key,
    )


def _at(base_url: str, settings: Table, env: Mapping[str, str]) -> Place:
    """An endpoint that is given by its URL; it need not want a key."""
    known = next((each for each in PRESETS.values() if each.base_url == base_url.rstrip("/")), None)
    preset = known or Preset(base_url)
    return Place(preset, _shared_key(settings, env) or _first(env, preset.key_names), {})


def _of(name: str, settings: Table, env: Mapping[str, str]) -> Place:
    """The provider that a model's name names or means. Raises `ModelError` (unconfigured)."""
    provider = _provider(name, settings, env)
    table: Table = settings.get("providers", {}).get(provider, {})
    preset = _preset(provider, table, env)
    key = table.get("api_key") or _first(env, preset.key_names) or _shared_key(settings, env)
    moved = _moved(preset, env) or ("base_url" in table and "api_key_env" not in table)
    if not key and not preset.is_local and not moved:
        what = f"{provider} needs a key for {name}: set {' or '.join(preset.key_names)}"
        raise ModelError(f"{what}, or CROW_API_KEY", kind="unconfigured")
    return Place(preset, key, table)


def _preset(provider: str, table: Table, env: Mapping[str, str]) -> Preset:
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
    known = _known(settings)
    if slash and (named := _named(before, known)):
        return named
    if not slash and (meant := _meant(name)):
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
    near = get_close_matches(provider, [*known, *OTHER_NAMES], 1, 0.5)
    if near:
        return f"there is no provider {provider} for {name}: do you mean {near[0]}?"
    choice = ", ".join(sorted(known))
    return (
        f"there is no provider {provider} for {name}: choose one of {choice}, or set CROW_BASE_URL"
    )


def _without_provider(name: str, settings: Table) -> str:
    before, slash, rest = name.partition("/")
    return rest if slash and _named(before, _known(settings)) else name


def _known(settings: Table) -> set[str]:
    return {*PRESETS, *settings.get("providers", {})}


def _named(text: str, known: set[str]) -> str | None:
    """The provider of this name or other name."""
    if text in known:
        return text
    lower = text.lower()
    return lower if lower in known else OTHER_NAMES.get(lower)


def _meant(name: str) -> str | None:
    """The provider whose models have names that begin like this one."""
    lower = name.lower()
    return next((key for key, each in PRESETS.items() if lower.startswith(each.families)), None)


def _shared_key(settings: Table, env: Mapping[str, str]) -> str | None:
    return env.get("CROW_API_KEY") or settings.get("api_key")


def _first(env: Mapping[str, str], names: Iterable[str]) -> str | None:
    return next((env[name] for name in names if env.get(name)), None)
