"""What well-known models take beside text, and how hard they can think; ``traits.json`` has it."""

from __future__ import annotations

import json
from pathlib import Path

TABLE = Path(__file__).with_name("traits.json")


def inputs_of(model: str) -> frozenset[str]:
    """``image`` and ``audio`` where the model takes them; an unknown model is taken to see images.

    Names count by the longest beginning that is in the table, behind the last slash.
    """
    return frozenset(_trait("inputs", model))


def thought_levels_of(model: str) -> tuple[str, ...]:
    """What ``reasoning_effort`` can be for the model; nothing where it cannot be chosen."""
    return tuple(_trait("thought_levels", model))


def _trait(trait: str, model: str) -> list[str]:
    name = model.rpartition("/")[2].lower()
    table: dict[str, list[str]] = json.loads(TABLE.read_text("utf-8"))[trait]
    return table[max(filter(name.startswith, table), key=len)]
