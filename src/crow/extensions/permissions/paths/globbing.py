"""Names that an unquoted glob of the shell stands for, asked of the disk."""

from __future__ import annotations

import re

from crow.extensions.permissions.paths.disk import Disk
from crow.extensions.permissions.rules.pattern import translate

MOST = 2000


def expand(disk: Disk, cwd: str, text: str) -> list[str]:
    """Paths below ``cwd`` (or absolute ones) that a glob matches; a few at most per level."""
    if text.startswith("~/"):
        text = disk.home + text[1:]
    absolute = text.startswith("/")
    found = ["/" if absolute else ""]
    for segment in text.strip("/").split("/"):
        found = [path for head in found for path in _step(disk, cwd, head, segment)][:MOST]
    return found


def _step(disk: Disk, cwd: str, head: str, segment: str) -> list[str]:
    if not re.search(r"[*?\[]", segment):
        return [f"{head}{segment}/"] if head.endswith("/") or not head else [f"{head}/{segment}"]
    directory = head if head.startswith("/") else f"{cwd}/{head}"
    names = disk.names(directory, MOST) or []
    try:
        expression = re.compile(translate("/" + segment), re.DOTALL)
    except re.error:
        return []
    joined = head.rstrip("/") + "/" if head else ""
    return [
        joined + name
        for name in names
        if expression.fullmatch(name.rstrip("/")) and (name[0] != "." or segment[0] in ".[")
    ]


def outside_parts(root: str, pattern: str) -> list[str]:
    """Where a search pattern leads by itself: its fixed beginning, if that leaves the root."""
    fixed = re.split(r"[*?\[{]", pattern, maxsplit=1)[0].rpartition("/")[0]
    if "{" in pattern and re.search(r"[{,](?:[/~]|[^,}]*\.\.)", pattern):
        return ["/"]
    if pattern.startswith(("/", "~")):
        return [fixed or "/"]
    if ".." in pattern.split("/"):
        climbs = re.split(r"[*?\[{]", pattern, maxsplit=1)[0].rpartition("/")[0]
        rest = pattern[len(climbs) :]
        return [f"{root}/{climbs}"] if ".." not in rest else ["/"]
    return [f"{root}/{fixed}"] if fixed else []
