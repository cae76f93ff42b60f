"""What the arguments of a call name: files, and the directory that it is to run in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from crow.extensions.permissions.globbing import outside_parts

PATHS = ("file_path", "notebook_path", "path", "filename")
SEARCHERS = frozenset({"Glob", "Grep", "LS"})
CWDS = frozenset(
    "cwd workdir workingdir workingdirectory currentdirectory directory dir dirpath".split()
)


def named_directories(args: Mapping[str, Any]) -> list[str]:
    """The directories in which a call wants to run."""
    return [
        value
        for name, value in args.items()
        if isinstance(value, str) and value and name.replace("_", "").lower() in CWDS
    ]


def named_paths(name: str, args: Mapping[str, Any]) -> list[str] | None:
    """The paths that a file tool is given; None where there is none."""
    searches = name in {"Glob", "Grep", "LS"}
    given = [args[key] for key in PATHS if args.get(key) is not None]
    given = [path or "." if searches else path for path in given]
    if not all(isinstance(path, str) and path for path in given):
        return None
    if searches:
        given = given or ["."]
        pattern = args.get("pattern") if name == "Glob" else args.get("glob")
        if isinstance(pattern, str):
            given += outside_parts(given[0], pattern)
    return given or None
