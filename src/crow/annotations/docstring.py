"""A function's docstring, parsed: its purpose, and its parameters."""

from __future__ import annotations

import inspect
import re

_SECTIONS = ("Args:", "Arguments:", "Parameters:")
_GOOGLE = r"^\s+\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*:\s*(.*)$"
_SPHINX = r"^:param\s+(?:[\w\[\], |.]+\s)?(\w+):\s*(.*)$"


def purpose(doc: str | None) -> str:
    """The first paragraph, on one line."""
    paragraph = inspect.cleandoc(doc or "").split("\n\n", 1)[0]
    lines = paragraph.split("\n")
    kept = [line for line in lines if not (line[:1] == ":" and re.match(_SPHINX, line))]
    return " ".join(" ".join(kept).split())


def parameter_notes(doc: str | None) -> dict[str, str]:
    """Descriptions by parameter, from an ``Args:`` section or from ``:param name:`` lines."""
    lines = inspect.cleandoc(doc or "").split("\n")
    found = _fields(lines, _SPHINX) if ":param" in (doc or "") else {}
    for number, line in enumerate(lines):
        if line.rstrip() in _SECTIONS:
            found |= _fields(_indented(lines[number + 1 :]), _GOOGLE)
    return found


def _indented(lines: list[str]) -> list[str]:
    """The lines up to the first that stands at the margin."""
    end = next((n for n, line in enumerate(lines) if line and not line[0].isspace()), len(lines))
    return lines[:end]


def _fields(lines: list[str], pattern: str) -> dict[str, str]:
    found: dict[str, str] = {}
    name, margin = "", 0
    for line in lines:
        depth = len(line) - len(line.lstrip())
        match = re.match(pattern, line)
        if match and (not name or depth <= margin):
            name, margin = match[1], depth
            found[name] = match[2].strip()
        elif name and line.strip() and depth > margin:
            found[name] = f"{found[name]} {line.strip()}".strip()
        else:
            name = ""
    return found
