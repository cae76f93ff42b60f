"""Markdown as HTML that can do nothing: without HTML of its own and pictures."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from markdown_it import MarkdownIt


@lru_cache(1)
def _reader() -> MarkdownIt:
    from markdown_it import MarkdownIt

    reader = MarkdownIt("commonmark", {"html": False, "linkify": False})
    return reader.enable(["table", "strikethrough"]).disable(["image"])


def html(text: str) -> str:
    """Markdown as HTML: links keep their addresses, and nothing is fetched or run."""
    return _reader().render(text)


def dressed(document: dict[str, Any]) -> dict[str, Any]:
    """The document, with what was written in it as HTML beside it."""
    for entry in document["entries"]:
        if entry["kind"] in ("prompt", "answer", "aside", "compacted"):
            entry["html"] = html(str(entry.get("text") or entry.get("summary") or ""))
    return document
