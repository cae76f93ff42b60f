"""A partial content block: it comes in pieces."""

from __future__ import annotations

import json
from typing import Any

from crow.llm.http.text import is_array, is_object
from crow.llm.messages.blocks import Block

TEXTS = ("text", "thinking")
"""Types of blocks that are a text, which they have under this name."""

_read = json.JSONDecoder(strict=False).decode


class PartialBlock:
    """A block, and the pieces of its text or of its input that came so far.

    ``number`` counts the blocks of a reply.
    """

    __slots__ = ("block", "number", "parts")

    def __init__(self, block: Block, number: int) -> None:
        self.block = block
        self.number = number
        self.parts: list[str] = []

    @property
    def whole_input(self) -> str:
        """The input as JSON, where it came with the block and not in pieces; else nothing."""
        given = self.block.get("input")
        return json.dumps(given, ensure_ascii=False) if given and not self.parts else ""

    def sign(self, signature: Any) -> None:
        """Keep the signature of a thought."""
        if isinstance(signature, str):
            self.block["signature"] = signature

    def cite(self, citation: Any) -> None:
        """Add a source of a text."""
        known = self.block.get("citations")
        self.block["citations"] = [*(known if is_array(known) else ()), citation]

    def close(self) -> None:
        """Put the pieces together. An input that is no object becomes an empty one."""
        if not self.parts:
            return
        said, self.parts = "".join(self.parts), []
        kind = self.block["type"]
        if kind in TEXTS:
            self.block[kind] = (self.block.get(kind) or "") + said
        elif "input" in self.block:
            self.block["input"] = _object(said)


def _object(text: str) -> dict[str, Any]:
    try:
        value = _read(text)
    except (ValueError, RecursionError):
        return {}
    return value if is_object(value) else {}
