"""The paths in a call's arguments: files, and the directory that it is to run in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

from crow.extensions.permissions.paths.globbing import outside_parts

PATHS = ("file_path", "notebook_path", "path", "filename")
SEARCHERS = frozenset({"Glob", "Grep", "LS"})
CWDS = frozenset(
    "cwd workdir workingdir workingdirectory currentdirectory directory dir dirpath cd chdir root "
    "rootdir rootpath".split()
)


def named_directories(args: Mapping[str, Any]) -> list[str]:
    """The directories in which a call wants to run."""
    found: list[str] = []
    for name, value in args.items():
        if plain_name(name) in CWDS:
            given = value if isinstance(value, list) else [value]  # pyright: ignore[reportUnknownVariableType]
            found += [_path(one) for one in given if isinstance(one, str) and one]  # pyright: ignore[reportUnknownVariableType]
    return found


def plain_name(name: str) -> str:
    """A field's name, however it is written."""
    return name.replace("_", "").replace("-", "").lower()


def _path(text: str) -> str:
    return unquote(text[7:]) if text.startswith("file:///") else text


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
