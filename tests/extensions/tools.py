"""Tools that do nothing much."""

from __future__ import annotations

from crow import tool


@tool
def step() -> str:
    """Take a step."""
    return "done"


@tool
async def shout(word: str) -> str:
    """Say a word loudly."""
    return word.upper()
