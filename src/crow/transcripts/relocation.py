"""The relocation of an export of a session to another machine, or for somebody else."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, cast

from crow.transcripts.transcript import Object, objects

KEPT_STATES = ("plan",)
"""States that say what was done; others can say what is allowed."""
NO_RIGHTS: Object = {
    "directories": [],
    "mode": "default",
    "options": {},
    "parent": None,
    "agent_type": "",
    "forked_from": None,
    "archived": 0,
}
"""What of a session counts no more where it did not come about: what it was allowed, and kin."""


def moved(lines: str, paths: Sequence[tuple[str, str]]) -> tuple[Object, list[Object]]:
    """The session of an export, without its rights, and its rows, with some paths being others.

    ``paths`` are folders as they were and as they are here; they are replaced wherever they stand,
    the longest first.
    """
    head, *rows = objects(lines)
    longest = sorted(paths, key=lambda pair: len(pair[0]), reverse=True)
    if longest:
        known = dict(longest)
        wanted = re.compile(f"(?<![\\w.-])({'|'.join(map(re.escape, known))})(?![\\w.-])")
        head = _replaced(head, wanted, known)
        rows = [_replaced(row, wanted, known) for row in rows]
    state = cast(Object, head.get("state") or {})
    kept = {name: state[name] for name in KEPT_STATES if name in state}
    return {**head, **NO_RIGHTS, "state": kept}, rows


def _replaced(value: Any, wanted: re.Pattern[str], known: dict[str, str]) -> Any:
    if isinstance(value, str):
        return wanted.sub(lambda found: known[found[1]], value)
    if isinstance(value, list):
        return [_replaced(each, wanted, known) for each in cast("list[Any]", value)]
    if isinstance(value, dict):
        return {name: _replaced(each, wanted, known) for name, each in cast(Object, value).items()}
    return value


def whole(head: Object, rows: Sequence[Object]) -> str:
    """A session and its rows as lines again."""
    return "".join(f"{json.dumps(each)}\n" for each in (head, *rows))
