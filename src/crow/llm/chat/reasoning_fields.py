"""The reasoning fields of an endpoint, which it wants back as they came, whatever is in them.

Texts come in pieces under one of three names, ``reasoning_details`` and ``thinking_blocks``
as lists whose neighbouring pieces of text belong together, ``extra_content`` (of a message or a
call) as an object.
"""

from __future__ import annotations

from typing import Any

from crow.llm.http.text import clean_value, is_array, is_object, merged
from crow.llm.http.toolcalls import EXTRA

TEXTS = ("reasoning_content", "reasoning", "reasoning_text")
LISTS = ("reasoning_details", "thinking_blocks")
NAMES = frozenset({*TEXTS, *LISTS, EXTRA})
WRITTEN = ("text", "summary", "thinking")
SAME = ("type", "index", "id")


class ReasoningFields:
    """The fields of one reply. ``take`` every delta; ``fields`` are what is to go back."""

    __slots__ = ("_extra", "_lists", "_texts")

    def __init__(self) -> None:
        self._texts: dict[str, list[str]] = {}
        self._lists: dict[str, list[Any]] = {}
        self._extra: Any = None

    def take(self, delta: dict[str, Any]) -> str:
        """Keep what is in a delta; the thought in it as text, once where two names hold it."""
        thought = ""
        for name in TEXTS:
            if (piece := delta.get(name)) and isinstance(piece, str):
                self._texts.setdefault(name, []).append(piece)
                thought = thought or piece
        for name in LISTS:
            if is_array(details := delta.get(name)) and details:
                known = self._lists.setdefault(name, [])
                for detail in details:
                    _add(detail, known)
        self._extra = merged(self._extra, delta.get(EXTRA))
        return thought

    @property
    def fields(self) -> dict[str, Any]:
        """The fields under the names that the endpoint used; nothing where there were none."""
        found: dict[str, Any] = {name: "".join(texts) for name, texts in self._texts.items()}
        found |= self._lists
        if self._extra is not None:
            found[EXTRA] = self._extra
        return clean_value(found)


def _add(detail: Any, known: list[Any]) -> None:
    last: Any = known[-1] if known else None
    if is_object(detail) and is_object(last) and _goes_on(last, detail):
        for name, value in detail.items():
            if name in WRITTEN and isinstance(value, str):
                last[name] = (last.get(name) or "") + value
            elif value is not None:
                last[name] = value
    else:
        known.append(dict(detail) if is_object(detail) else detail)


def _goes_on(last: dict[str, Any], detail: dict[str, Any]) -> bool:
    """Whether a detail is a further piece of the text before it, or its signature."""
    if not any(isinstance(last.get(name), str) for name in WRITTEN):
        return False
    if "data" in detail or ("index" not in detail and last.get("signature")):
        return False
    named = [name for name in SAME if detail.get(name) is not None]
    return "type" in named and all(last.get(name) in (None, detail[name]) for name in named)
