"""What is known of well-known models: what they take, how hard they can think, how much they hold.

Names count by the longest beginning that is in the table (``traits.json``, ``windows.json``),
behind the last slash.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any


def inputs_of(model: str) -> frozenset[str]:
    """``image`` and ``audio`` where the model takes them; an unknown one is taken to see images."""
    return frozenset(_known(_table("traits")["inputs"], model))


def thought_levels_of(model: str) -> tuple[str, ...]:
    """What ``reasoning_effort`` can be for the model; nothing where it cannot be chosen."""
    return tuple(_known(_table("traits")["thought_levels"], model))


def context_window(model: str) -> int | None:
    """How many tokens a request may have; None for an unknown model."""
    return _known(_table("windows"), model)


@cache
def _table(name: str) -> dict[str, Any]:
    return json.loads(Path(__file__).with_name(f"{name}.json").read_text("utf-8"))


def _known(table: dict[str, Any], model: str) -> Any:
    name = model.rpartition("/")[2].lower()
    return table.get(max(filter(name.startswith, table), key=len, default=""))
