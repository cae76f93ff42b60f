"""The resolution of a model's name, by settings and environment, to an LLM."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from crow.core.errors import ModelError, nearest
from crow.core.ports.llm import LLM
from crow.core.support.frozen import frozen
from crow.llm.factory import Key, ModelEndpoint, make_model
from crow.llm.models import WIRES, ModelInfo, model_info
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
    ``providers`` (tables as the schema of the settings describes them), else a preset. Where
    ``CROW_BASE_URL`` or ``base_url`` is set, the whole name belongs to the model there, which is
    asked by Chat Completions unless ``CROW_WIRE`` or ``wire`` says another wire. The environment
    goes before the settings; ``CROW_API_KEY`` and ``api_key`` hold the key for what ``base_url``
    names, or for any provider that has no key of its own; what ``apiKeyHelper`` prints comes after
    them, and ``stored`` is asked last.

    Raises `ModelError` (unconfigured) where a provider is unknown or a key is missing.
    """
    name = name_meant(model, settings, env)
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
    plain = name if base_url else without_provider(name, settings)
    return make_model(plain, place, settings, env)


def name_meant(model: str | None, settings: Table, env: Mapping[str, str]) -> str:
    """The name of a model: the given one, else the environment's or the settings'; else none."""
    return model or env.get("CROW_MODEL") or settings.get("model") or ""


def listed_name(model: str | None, settings: Table, env: Mapping[str, str]) -> str:
    """The one name that a model has in lists, however it was written; `resolve` knows it by that.

    It is ``PROVIDER/MODEL``; for an endpoint that is given by its URL it is the model's own.
    """
    name = name_meant(model, settings, env) or REHEARSAL
    if name == REHEARSAL or env.get("CROW_BASE_URL") or settings.get("base_url"):
        return name
    try:
        return f"{provider_of(name, settings, env)}/{without_provider(name, settings)}"
    except ModelError:
        return name


def info_named(name: str) -> ModelInfo:
    """What is known of a model by its whole name, whatever the settings say of it."""
    if name == REHEARSAL:
        return ModelInfo(model=name, inputs=frozenset())
    before, slash, rest = name.partition("/")
    provider = _named(before, set(PRESETS)) if slash else None
    return model_info(provider, rest) if provider else model_info(provider_meant(name) or "", name)


def nothing(provider: str) -> str | None:
    """No key is stored."""
    return None


NO_KEY = Key()


@frozen
class Keys:
    """The sources of keys."""

    settings: Table
    env: Mapping[str, str]
    stored: Stored

    def shared(self) -> Key:
        """The key for what has none of its own."""
        if key := self.env.get("CROW_API_KEY"):
            return Key(key, "CROW_API_KEY")
        return Key(
            self.settings.get("api_key") or "",
            "api_key in the settings",
        ) or helper(self.settings, "apiKeyHelper in the settings")

    def named(self, names: Iterable[str]) -> Key:
        """The key in the first of these variables that has one."""
        found = next((name for name in names if self.env.get(name)), None)
        return Key(self.env[found], found) if found else NO_KEY

    def of(self, provider: str, preset: Preset) -> Key:
        """The key of a provider."""
        table: Table = self.settings.get("providers", {}).get(provider, {})
        where = f"providers.{provider} in the settings"
        own = Key(table.get("api_key") or "", where) or helper(table, f"apiKeyHelper of {where}")
        found = (own, self.named(preset.key_names), self.shared())
        return next(filter(None, found), None) or Key(self.stored(provider) or "", LOGIN)


def helper(table: Table, origin: str) -> Key:
    """The key that a command prints, if the settings name one."""
    return Key(command=table.get("apiKeyHelper") or "", origin=origin)


def _at(base_url: str, settings: Table, keys: Keys) -> ModelEndpoint:
    """An endpoint that is given by its URL; it need not want a key."""
    url = base_url.rstrip("/")
    known = next(
        (
            name
            for name, each in PRESETS.items()
            if url in (each.base_url, *(each.urls or {}).values())
        ),
        "",
    )
    preset = replace(PRESETS[known], base_url=base_url) if known else Preset(base_url)
    key = keys.shared()
    if not key and known:
        key = keys.of(known, preset)
    wire = _wire(keys.env.get("CROW_WIRE") or settings.get("wire"), "for the base URL")
    moved = bool(known) and url != PRESETS[known].base_url
    return ModelEndpoint(known, preset, key, {}, wire, moved)


def _of(name: str, settings: Table, keys: Keys) -> ModelEndpoint:
    """The provider that a model's name names or means. Raises `ModelError` (unconfigured)."""
    env = keys.env
    provider = provider_of(name, settings, env)
    table: Table = settings.get("providers", {}).get(provider, {})
    preset = preset_of(provider, table, env)
    if preset.cloud:
        preset = _located(preset, env)
    key = keys.of(provider, preset)
    needs_key = not (preset.is_local or preset.cloud or _may_need_none(provider, table, env))
    if not key and needs_key:
        what = f"{provider} needs a key for {name}: set {' or '.join(preset.key_names)}"
        raise ModelError(f"{what}, or CROW_API_KEY, or run {LOGIN}", kind="unconfigured")
    wire = _wire(table.get("wire"), f"of the provider {provider}")
    return ModelEndpoint(provider, preset, key, table, wire, _is_elsewhere(provider, preset, table))


def _located(preset: Preset, env: Mapping[str, str]) -> Preset:
    from crow.llm.clouds import located

    return located(preset, env)


def _may_need_none(provider: str, table: Table, env: Mapping[str, str]) -> bool:
    """True where somebody says where a provider is that would be elsewhere, and names no key."""
    usual = PRESETS.get(provider) or Preset("")
    by_variable = bool(usual.base_url and _moved(usual, env))
    return by_variable or ("base_url" in table and "api_key_env" not in table)


def _is_elsewhere(provider: str, preset: Preset, table: Table) -> bool:
    """True for a preset that is not where it usually is, and may have other wires there."""
    usual = PRESETS[provider].base_url if provider in PRESETS else ""
    if preset.cloud:
        return False
    same = preset.wire == "messages" and "base_url" not in table
    return usual not in ("", preset.base_url) and not same


def _wire(said: str | None, where: str) -> str:
    """The wire that somebody chose. Raises `ModelError` (unconfigured) where there is none such."""
    if said and said not in WIRES:
        what = f"there is no wire {said!r} {where}: choose one of {', '.join(WIRES)}"
        raise ModelError(what, kind="unconfigured")
    return said or ""


def preset_of(provider: str, table: Table, env: Mapping[str, str]) -> Preset:
    """A provider, with what its settings and the environment change.

    Raises `ModelError` (unconfigured) where nobody says where it is.
    """
    preset = PRESETS.get(provider) or Preset("")
    url = table.get("base_url") or _moved(preset, env) or preset.base_url
    if not url:
        what = f"the provider {provider} has no base_url in the settings; give it one"
        other = f", or set {preset.url_name}" if preset.url_name else ""
        raise ModelError(what + other, kind="unconfigured")
    if key_name := table.get("api_key_env"):
        preset = replace(preset, key_names=(key_name,))
    return preset if url == preset.base_url else replace(preset, base_url=url, urls=None)


def _moved(preset: Preset, env: Mapping[str, str]) -> str | None:
    """Where a variable says that a provider is; ``OLLAMA_HOST`` is host and port alone."""
    url = (env.get(preset.url_name or "") or "").rstrip("/")
    if not url:
        return None
    if "://" in url:
        is_bare = url.count("/") == 2 or preset.wire == "messages"
        return url + preset.url_path if is_bare and not url.endswith(preset.url_path) else url
    host = url.replace("0.0.0.0", "localhost")  # noqa: S104 - where it listens, not where it is
    return f"http://{host if ':' in host else f'{host}:11434'}/v1"


def provider_of(name: str, settings: Table, env: Mapping[str, str]) -> str:
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


def without_provider(name: str, settings: Table) -> str:
    """A model's name at its provider."""
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
