"""Tool search: the model reads the definitions of tools when it needs them, not before."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from crow import ToolEnvironment, ToolResult
from crow.tools import ToolKind

if TYPE_CHECKING:
    from crow.messages import ToolSpec

TOOL_SEARCH = "ToolSearch"
VARIABLE = "ENABLE_TOOL_SEARCH"
"""Claude Code's variable: ``true``, ``auto``, ``auto:N`` (per cent of the window) or ``false``."""
SHARE = 10.0
"""Per cent of the context window, as Claude Code has it."""
WINDOW = 200_000
"""Tokens, where nobody knows how many a request may have."""
CHARACTERS = 4
MOST, USUAL = 50, 5
CALL_THEM = "Call these with CallTool, by name and arguments:"

Specs = Mapping[str, "ToolSpec"]


class ToolSearch:
    """Finds deferred tools by name or by words, and answers with their definitions.

    ``find`` gives the definitions by name, ``note`` takes the names that the model has read.
    """

    name = TOOL_SEARCH
    kind: ToolKind = "search"
    serves_session = True
    """It is of one session: a sub-agent has its own."""
    description = (
        "Read the definitions of tools of which only the names were announced, to call them with "
        'CallTool then. query: "select:NAME,NAME" for tools by name, else words to look for; '
        "+word must be in the name."
    )

    def __init__(self, find: Callable[[], Specs], note: Callable[[Iterable[str]], None]) -> None:
        self._find = find
        self._note = note
        self.parameters: dict[str, Any] = {
            "type": "object",
            "properties": {
                "query": {"type": "string"},
                "max_results": {"type": "integer", "description": f"{USUAL} without it"},
            },
            "required": ["query"],
            "additionalProperties": False,
        }

    def title(self, args: dict[str, Any]) -> str:
        """What a person reads."""
        return f"Find tools: {args.get('query')}"

    async def run(self, args: dict[str, Any], ctx: ToolEnvironment) -> ToolResult:
        """The definitions that fit, one a line."""
        deferred = self._find()
        names = found(args["query"], deferred, args.get("max_results") or USUAL)
        if not names:
            return ToolResult(f"none of the {len(deferred)} deferred tools fits: {args['query']}")
        self._note(names)
        lines = [json.dumps(deferred[name]["function"], ensure_ascii=False) for name in names]
        return ToolResult("\n".join([CALL_THEM, *lines]), data={"matches": names})


def found(query: str, specs: Specs, most: int) -> list[str]:
    """The names that a query finds: those that it selects, else the best ``most`` for its words."""
    chosen = query.strip().removeprefix("select:")
    if chosen != query.strip():
        wanted = [name.strip() for name in chosen.split(",")]
        return [name for name in dict.fromkeys(wanted) if name in specs]
    words = query.casefold().split()
    if query.strip() in specs:
        return [query.strip()]
    scores = {name: _score(words, name.casefold(), spec) for name, spec in specs.items()}
    best = sorted((-score, name) for name, score in scores.items() if score > 0)
    return [name for _, name in best[: max(1, min(most, MOST))]]


def _score(words: list[str], name: str, spec: ToolSpec) -> int:
    """How well words fit: whole parts of a name count most, the description least."""
    parts = set(re.split(r"[^a-z0-9]+|_", name))
    about = spec["function"].get("description", "").casefold()
    score = 0
    for word in words:
        plain = word.removeprefix("+")
        in_name = plain in name
        if word != plain and not in_name:
            return 0
        score += 10 if plain in parts else 5 if in_name else 2 if plain in about else 0
    return score


def limit_of(tokens: float | None, window: int | None) -> float:
    """Tokens of definitions above which they are deferred: as set, else a share of the window."""
    said = os.environ.get(VARIABLE, "").strip().lower()
    if said in ("false", "0", "no", "off"):
        return float("inf")
    if said in ("true", "1", "yes", "on"):
        return 0
    if tokens is not None and not said:
        return tokens
    share = re.fullmatch(r"auto:(\d+)", said)
    return (window or WINDOW) * (min(float(share[1]), 100) if share else SHARE) / 100


def tokens_of(specs: Iterable[ToolSpec]) -> float:
    """About how many tokens definitions have."""
    return sum(len(json.dumps(spec["function"], ensure_ascii=False)) for spec in specs) / CHARACTERS
