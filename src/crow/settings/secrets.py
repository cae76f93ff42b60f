"""Secrets in settings: keys, passwords and the like, wherever they stand, are hidden."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, cast

HIDDEN = "(hidden)"
SECRET = re.compile(r"key$|token|secret|password|passwd|authorization|cookie", re.IGNORECASE)
NUMBER = re.compile(r"(?:key|token|secret|password|passwd)$", re.IGNORECASE)
"""Names under which even a number is one."""
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


def hidden(path: str, value: Any, *, counts: bool = False) -> Any:
    """A value without what nobody should see; ``path`` is its dotted name.

    ``counts`` says that a number or a truth is wanted there, such as a limit of tokens.
    """
    name = path.rpartition(".")[2]
    is_count = isinstance(value, int | float) and not NUMBER.search(name)
    if (SECRET.search(name) and not (is_count or counts)) or WHOLLY.search(path):
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
