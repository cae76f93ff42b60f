"""What the arguments of a call name: files, and the directory that it is to run in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast
from urllib.parse import unquote

from crow.extensions.permissions.builtin import is_safe
from crow.extensions.permissions.globbing import outside_parts
from crow.extensions.permissions.script import Assignment, Text, Word

PATHS = ("file_path", "notebook_path", "path", "filename")
SEARCHERS = frozenset({"Glob", "Grep", "LS"})
CWDS = frozenset(
    "cwd workdir workingdir workingdirectory currentdirectory directory dir dirpath cd chdir root "
    "rootdir rootpath".split()
)
STEERING = frozenset(
    "env environ environment envs envvars variables shell executable interpreter user uid stdin "
    "input preexec".split()
)
"""What would make a command another one than its text says."""


def named_directories(args: Mapping[str, Any]) -> list[str]:
    """The directories in which a call wants to run."""
    found: list[str] = []
    for name, value in args.items():
        if _plain(name) in CWDS:
            given = value if isinstance(value, list) else [value]  # pyright: ignore[reportUnknownVariableType]
            found += [_path(one) for one in given if isinstance(one, str) and one]  # pyright: ignore[reportUnknownVariableType]
    return found


def steering(args: Mapping[str, Any]) -> str | None:
    """The field of a command's call by which it would do what its text does not say.

    That is a directory that is no text, and variables beyond those that are harmless.
    """
    for name, value in args.items():
        plain = _plain(name)
        moves = plain in CWDS and not isinstance(value, str)
        if value and (moves or (plain in STEERING and not _is_harmless(value))):
            return name
    return None


def _plain(name: str) -> str:
    return name.replace("_", "").replace("-", "").lower()


def _path(text: str) -> str:
    return unquote(text[7:]) if text.startswith("file:///") else text


def _is_harmless(value: Any) -> bool:
    """Whether a value is variables that a command may have before it, too."""
    if not isinstance(value, Mapping):
        return False
    variables = cast("Mapping[str, Any]", value)
    return all(
        isinstance(one, str) and is_safe(Assignment(name, Word((Text(one, quoted=True),))))
        for name, one in variables.items()
    )


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
