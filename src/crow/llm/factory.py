"""The factory of LLMs: from a model's name and endpoint to the wire, with the settings' say."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import field, replace
from importlib import import_module
from typing import Any

from crow.core.ports.llm import LLM
from crow.core.support.frozen import frozen
from crow.llm.models import ModelInfo, Prices, model_info, words_of
from crow.llm.presets import PRESETS, Preset

Table = Mapping[str, Any]

FACTORIES: Mapping[str, tuple[str, str]] = {
    "chat": ("crow.llm.chat", "ChatCompletions"),
    "gemini": ("crow.llm.gemini", "Gemini"),
    "messages": ("crow.llm.messages", "AnthropicMessages"),
    "responses": ("crow.llm.responses", "Responses"),
}
"""By wire: the module and the name of what makes a model."""


@frozen
class Key:
    """An API key, empty where there is none; ``origin`` says where it came from.

    ``command`` prints the key where it is not known yet.
    """

    value: str = field(default="", repr=False)
    origin: str = ""
    command: str = ""

    def __bool__(self) -> bool:
        return bool(self.value or self.command)


@frozen
class ModelEndpoint:
    """The endpoint of a model. ``table`` is the settings' part about its provider.

    ``wire`` is the one that somebody chose, ``moved`` says that the provider is not where it is
    usually: what speaks there is most likely Chat Completions.
    """

    provider: str
    preset: Preset
    key: Key
    table: Table
    wire: str = ""
    moved: bool = False


def make_model(name: str, place: ModelEndpoint, settings: Table, env: Mapping[str, str]) -> LLM:
    """The LLM. Raises `ModelError` (unconfigured) where key, headers or URL cannot work."""
    preset, table = place.preset, place.table
    info = info_at(name, place, settings)
    module, factory = FACTORIES[info.wire]
    make: Callable[..., LLM] = getattr(import_module(module), factory)
    own = table.get("models", {}).get(name, {})
    url = preset.url_of(info.wire)
    return make(
        name,
        url,
        place.key.value or None,
        key_header=preset.key_header,
        query=table.get("query"),
        headers=_headers(table, settings),
        params={
            **_effort(info, settings),
            **table.get("params", {}), **own.get("params", {}), **settings.get("params", {}),
        },
        timeouts=_timeouts(table, settings),
        find_window=_finding(name, url, place, settings),
        info=info,
        **_vouching(place, url, info.wire, env),
        **(_chat_options(preset, table, info) if info.wire == "chat" else {}),
    )  # fmt: skip


def info_at(name: str, place: ModelEndpoint, settings: Table) -> ModelInfo:
    """What is known of a model, with what the settings say of it, its provider and any model."""
    info = model_info(place.provider, name)
    own: Table = place.table.get("models", {}).get(name, {})
    said = {**place.table, **own}
    wire = own.get("wire") or place.wire or ("chat" if place.moved else info.wire)
    info = info.on(wire)
    if place.moved:  # a gateway may ask the model by another wire
        info = replace(info, refuses=info.refuses - {"tools_on_chat"})
    if "thinking" in said:
        info = replace(info, thinking=said["thinking"])
    if "thought_levels" in said:
        info = _thinking(info, said["thought_levels"])
    if "refuses" in said:
        info = replace(info, refuses=frozenset(said["refuses"]))
    if "features" in said:
        info = replace(info, features=frozenset(said["features"]))
    if "inputs" in said:
        info = replace(info, inputs=frozenset(said["inputs"]))
    if "prices" in own:
        info = replace(info, prices=Prices(**own["prices"]))
    return _bounded(info, said, settings.get("context_window"))


def _bounded(info: ModelInfo, said: Table, window: int | None) -> ModelInfo:
    window = window or said.get("context_window") or info.context_window
    most = said.get("max_output") or info.max_output
    if (window, most) == (info.context_window, info.max_output):
        return info
    return replace(info, context_window=window, max_output=most)


def _effort(info: ModelInfo, settings: Table) -> Table:
    """How hard a model is to think that is known to; one that is not is told nothing."""
    level = settings.get("effortLevel")
    return {"reasoning_effort": level} if level and info.levels else {}


def _thinking(info: ModelInfo, levels: Iterable[str]) -> ModelInfo:
    style = info.thinking or "effort"
    known = {**words_of(style), **info.levels}
    return replace(info, thinking=style, levels={each: known.get(each, each) for each in levels})


def _finding(name: str, url: str, place: ModelEndpoint, settings: Table) -> Any:
    """What asks a server for its window; None where that is known or said."""
    own: Table = place.table.get("models", {}).get(name, {})
    said = any(table.get("context_window") for table in (settings, place.table, own))
    known = place.provider in PRESETS and not (place.preset.is_own_server or place.moved)
    if said or known:
        return None

    async def find() -> int | None:
        from crow.llm.source import Source, find_window

        headers = _headers(place.table, settings)
        return await find_window(
            Source(place.provider, url.rstrip("/"), place.key.value, headers), name
        )

    return find


def _headers(table: Table, settings: Table) -> dict[str, str]:
    return {**table.get("headers", {}), **settings.get("headers", {})}


def _timeouts(table: Table, settings: Table) -> Any:
    """The settings' time-outs, the provider's own before those for all."""
    from crow.llm.http import Timeouts

    said = {**settings.get("timeouts", {}), **table.get("timeouts", {})}
    if not said:
        return None
    names = said.keys() & {*Timeouts.__match_args__}
    return Timeouts(**{name: float(said[name]) for name in names})


def _vouching(place: ModelEndpoint, url: str, wire: str, env: Mapping[str, str]) -> dict[str, Any]:
    """Where the key comes from, or what vouches for requests where there is none."""
    key, cloud = place.key, place.preset.cloud
    options: dict[str, Any] = {"key_origin": key.origin} if key else {}
    if key.command and not key.value:
        from crow.llm.key_helper import helper_of

        options["fetch_key"] = helper_of(key.command, env).key
    if cloud and not key:
        from crow.llm.clouds import cloud_of

        options |= cloud_of(place.preset).credentials(url, env)
    if cloud and (wire == "messages" or (wire == "gemini" and not key)):
        options["bearer"] = True
    return options


def _chat_options(preset: Preset, table: Table, info: ModelInfo) -> dict[str, Any]:
    echoes = preset.echo_reasoning or "echo_reasoning" in info.features
    in_results = preset.images_in_results or "tool_images" in info.features
    return {
        "echo_reasoning": bool(table.get("echo_reasoning", echoes)),
        "images_in_results": bool(table.get("images_in_results", in_results)),
        "cache_key": preset.cache_key,
    }
