"""The table of models: ``data/PROVIDER.json``, written by ``tests/llm/write_models.py``.

A provider that has no file, such as a server on this machine, has the models of their makers, as
far as these are the model's own and not the provider's.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from crow.llm.models.info import UNKNOWN, ModelInfo, Prices
from crow.llm.presets import OTHER_NAMES, PRESETS, Preset, provider_meant

DATA = Path(__file__).with_name("data")
Row = Mapping[str, Any]
ELSEWHERE = Preset("")
EMPTY: Row = MappingProxyType({"usual": {}, "models": {}, "families": {}})
DATED = r"[-@](?:\d{4}-\d\d-\d\d|\d{8}|\d{4}|\d{3}|latest|preview.*)$"
"""What stands behind a model's name and says which of its versions is meant."""
SOLD = r"^(?:[a-z-]{2,6}\.)?[a-z0-9]+\.(?=[a-z])"
"""What a cloud puts before a model's name: where it may run, and who made it."""
VERSION = r"-v\d+(?::\d+)?$"
OPEN = "open"
"""The file of open weights, which anybody may serve."""
SERVED: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "": {},
        "effort": {"off": "none", "low": "low", "medium": "medium", "high": "high"},
        "template": {"off": "", "high": ""},
    }
)
"""The levels of a model that thinks, by how its server has it said."""


def model_info(provider: str, model: str) -> ModelInfo:
    """What is known of a provider's model; where it is not known itself, what its family has.

    ``provider`` is a preset's name or any other. Who is not in the table has the model's window,
    output and inputs from its maker; a server on this machine has its own window.
    """
    provider = OTHER_NAMES.get(provider, provider)
    if (own := _found(provider, model)) is not None:
        return own
    preset = PRESETS.get(provider, ELSEWHERE)
    named: dict[str, Any] = {"provider": provider, "model": model, "wire": preset.wire}
    name = model.rpartition("/")[2]
    if preset.cloud:
        name = re.sub(VERSION, "", re.sub(SOLD, "", name))
    made = _found(OPEN, name) or _found(provider_meant(name) or "", name)
    if made is not None and preset.cloud and made.wire in (preset.urls or {}):
        return replace(made, provider=provider, model=model, prices=None)
    if made is None:
        return replace(UNKNOWN, **named)
    said = made.thinking if made.thinking == "effort" else preset.thinking
    return ModelInfo(
        **named,
        name=made.name,
        context_window=None if preset.is_own_server else made.context_window,
        max_output=None if preset.is_own_server else made.max_output,
        inputs=made.inputs,
        levels=made.levels if said == made.thinking else SERVED[said if made.levels else ""],
        thinking=said if made.levels else "",
    )


def known_models(provider: str) -> list[ModelInfo]:
    """All of a provider's models that are in the table."""
    return [_info(provider, name) for name in _table(provider)["models"]]


def newest(provider: str, family: str) -> str | None:
    """The model that stands for a family, such as ``claude-opus-``; None where there is none."""
    return _table(provider)["families"].get(family)


def _found(provider: str, model: str) -> ModelInfo | None:
    """A provider's model by its name, by its name without a date, or by its family's."""
    table = _table(provider)
    rows, families = table["models"], table["families"]
    name = model.removeprefix("models/")
    plain = re.sub(DATED, "", name.lower().partition(":")[0])
    for each in (name, name.lower(), plain):
        if each in rows:
            return replace(_info(provider, each), model=model)
    meant = max(filter(plain.startswith, (*rows, *families)), key=len, default=None)
    if meant is None:
        return None
    return replace(_info(provider, families.get(meant, meant)), model=model)


def _info(provider: str, name: str) -> ModelInfo:
    table = _table(provider)
    row: Row = {**table["usual"], **table["models"][name]}
    prices = row["prices"]
    return ModelInfo(
        provider=provider,
        model=name,
        name=row["name"],
        wire=row["wire"],
        context_window=row["window"],
        max_output=row["output"],
        prices=Prices(*prices) if prices else None,
        inputs=frozenset(row["inputs"]),
        levels=MappingProxyType(row["levels"]),
        thinking=row["thinking"],
        refuses=frozenset(row["refuses"]),
        features=frozenset(row["features"]),
        cache_minimum=row["cache_minimum"],
    )


@cache
def _table(provider: str) -> Mapping[str, Any]:
    """A provider's rows; what ``usual`` says is left out of them."""
    path = DATA / f"{provider}.json"
    if not provider.isidentifier() or not path.exists():
        return EMPTY
    return json.loads(path.read_text("utf-8"))
