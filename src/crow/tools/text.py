"""Cutting text where a person would: between two graphemes, never inside one."""

from __future__ import annotations

import unicodedata
from itertools import islice
from typing import Any, cast

JOINER = "\u200d"
CLUSTER = 64


def boundary(text: str, index: int, *, forward: bool = False) -> int:
    """The nearest place at which a text can be cut between two graphemes.

    Clusters longer than any script makes them are cut after all.
    """
    step = 1 if forward else -1
    for place in range(index, index + step * CLUSTER, step):
        if not 0 < place < len(text) or not _joined(text, place):
            return max(0, min(place, len(text)))
    return index


def shortened(value: Any, longest: int, depth: int = 32) -> Any:
    """JSON whose texts have about ``longest`` characters at most, its lists and objects as many.

    Beginning and end of a text are kept, and between them it is said how much is missing. What is
    short enough is the same object.
    """
    match value:
        case str():
            return _short(value, longest)
        case dict():
            return _few(cast("dict[str, Any]", value), longest, depth)
        case list() | tuple():
            items = cast("list[Any]", value)
            kept = [shortened(one, longest, depth - 1) for one in items[:longest]] if depth else []
            missing = len(items) - len(kept)
            return [*kept, f"[... {missing} more ...]"] if missing else kept
        case _:
            return value


def _few(items: dict[str, Any], longest: int, depth: int) -> dict[str, Any]:
    some = islice(items.items(), longest if depth else 0)
    return {_short(str(key), longest): shortened(one, longest, depth - 1) for key, one in some}


def _short(text: str, longest: int) -> str:
    if len(text) <= longest:
        return text
    head = boundary(text, longest - longest // 3)
    tail = boundary(text, len(text) - longest // 3, forward=True)
    return f"{text[:head]}\n[... {tail - head} characters are left out here ...]\n{text[tail:]}"


def _joined(text: str, index: int) -> bool:
    """True where the characters on both sides of ``index`` belong to one grapheme."""
    before, after = text[index - 1], text[index]
    pair = before + after
    if pair < "\u0300" and after < "\u0300":
        return pair == "\r\n"
    if JOINER in pair:
        return True
    if "\ud800" <= before <= "\udbff" and "\udc00" <= after <= "\udfff":
        return True
    if _is_flag(before) and _is_flag(after):
        flags = len(text[max(0, index - CLUSTER) : index])
        run = 0
        while run < flags and _is_flag(text[index - 1 - run]):
            run += 1
        return run % 2 == 1
    return unicodedata.category(after)[0] == "M" or "\U0001f3fb" <= after <= "\U0001f3ff"


def _is_flag(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"
