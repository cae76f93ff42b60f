"""What nobody should see of settings: keys, passwords and the like, wherever they stand."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, cast

HIDDEN = "(hidden)"
SECRET = re.compile(r"key$|token|secret|password|passwd|authorization|cookie", re.IGNORECASE)
WHOLLY = re.compile(r"(^|\.)headers\.|^mcpServers\.[^.]+\.env\.|\.servers\.[^.]+\.env\.")
NAMED = r"(?:key|token|secret|password|passwd)"
INLINE = re.compile(
    rf"(?i)((?:bearer|basic)\s+|(?:api[-_]?key|token|password|secret)(?:=|:\s*)"
    rf"|[?&]{NAMED}=|(?<!\S)--?[\w-]*{NAMED}\s+(?!-))"
    r"(?:[^\s\"'`;|&<>()$]|\$(?![({\w]))+"
    r"|\b(?:sk|ghp|gho|github_pat|glpat|xox[abp])[-_][\w-]{8,}"
)
"""Nothing that a shell would run is hidden: the lines are also what people judge a project by."""
IN_URL = re.compile(r"(?<=://)[^/@\s]+@")
OPTION = re.compile(rf"--?[\w-]*(?:{NAMED}|authorization|cookie)", re.IGNORECASE)


def hidden(path: str, value: Any) -> Any:
    """A value without what nobody should see; ``path`` is its dotted name."""
    name = path.rpartition(".")[2]
    is_count = name.endswith("tokens") and isinstance(value, int)
    if (SECRET.search(name) and not is_count) or WHOLLY.search(path):
        return HIDDEN
    match value:
        case str():
            return INLINE.sub(_shown, IN_URL.sub(f"{HIDDEN}@", value))
        case dict():
            table = cast("dict[str, Any]", value)
            return {name: hidden(f"{path}.{name}", each) for name, each in table.items()}
        case list():
            return list(_items(path, cast("list[Any]", value)))
        case _:
            return value


def _items(path: str, values: list[Any]) -> Iterator[Any]:
    """The entries of a list, without what follows an option such as ``--api-key``."""
    for before, value in zip([None, *values], values, strict=False):
        is_option = isinstance(before, str) and OPTION.fullmatch(before)
        word = isinstance(value, str) and re.fullmatch(r"[^-\s]\S*", value)
        yield HIDDEN if is_option and word else hidden(path, value)


def _shown(found: re.Match[str]) -> str:
    return f"{found[1] or ''}{HIDDEN}"
