"""Files that must not be read here, or not unasked: tools neither open nor name them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import PurePath

from crow.core.ports.tool import ToolEnvironment
from crow.keys import MAY_READ, UNASKED
from crow.tools.errors import ToolError
from crow.tools.paths import demand_in_place, place_to_read

Readable = Callable[[str], bool]
LONGEST_GLOBS = 250_000
"""Bytes of globs that a system surely takes in a command line."""


def readable(ctx: ToolEnvironment) -> Readable | None:
    """Tells whether an absolute path may be read; None where nobody keeps anything from it."""
    asked = list((MAY_READ.get(ctx) or {}).values())
    if not asked:
        return None

    def may_read(path: str) -> bool:
        return all(may(path) for may in asked)

    return cache(may_read)


def may_tell(ctx: ToolEnvironment, path: str, place: Callable[..., str] = place_to_read) -> bool:
    """True where the model may be told of a file, wherever its name leads, without a question.

    Raises `ToolError` for one that lies nowhere where a tool could follow: what a link in the
    workspace says is the workspace's own.
    """
    demand_in_place(path, ctx.roots, place)
    asked = [may for key in (MAY_READ, UNASKED) for may in (key.get(ctx) or {}).values()]
    names = {path, os.path.realpath(path)} if asked else ()
    return all(may(name) for may in asked for name in names)


def split_readable(
    names: Iterable[str], top: str, may_read: Readable
) -> tuple[list[str], list[str]]:
    """Names below ``top`` that may be read, and those that may not."""
    shown: list[str] = []
    kept: list[str] = []
    for name in names:
        (shown if may_read(os.path.join(top, name)) else kept).append(name)  # noqa: PTH118
    return shown, kept


def excluding(shown: Iterable[str], kept: Iterable[str]) -> list[str]:
    """Ripgrep's globs that leave names out, whole folders as one. Raises `ToolError`."""
    open_folders = {str(folder) for name in shown for folder in PurePath(name).parents}
    found: set[str] = set()
    for name in kept:
        parts = PurePath(name).parts
        folders = ("/".join(parts[:depth]) for depth in range(1, len(parts)))
        whole = next((folder for folder in folders if folder not in open_folders), None)
        found.add(f"!/{_escaped(whole)}/" if whole else f"!/{_escaped(name)}")
    if sum(map(len, map(os.fsencode, found))) > LONGEST_GLOBS:
        raise ToolError(
            "There are too many files here that must not be read; name a folder further down."
        )
    return sorted(found)


def _escaped(name: str) -> str:
    return "".join(f"\\{one}" if one in "*?[]{}!\\" else one for one in name)


def left_out(count: int) -> str:
    """What a result says about them."""
    files = "1 file is" if count == 1 else f"{count} files are"
    return f"({files} left out: a permission rule keeps them from being read.)"
