"""Paths, followed to where they really lead, and whether a file tool may go there."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from crow.core.tools import Location
from crow.tools.errors import ToolError

_NAMES = 2000
LONGEST_PATH, LONGEST_NAME = 4095, 255
"""In bytes; what is longer is on no disk of Linux, macOS or Windows."""


def absolute(path: str, cwd: str) -> str:
    """The path made absolute and tidy: ``~`` expanded, ``..`` resolved without asking the disk."""
    return os.path.normpath(Path(cwd, os.path.expanduser(path)))


def with_absolute_path(args: dict[str, Any], cwd: str) -> dict[str, Any]:
    """The arguments with an absolute ``file_path``, as hooks and rules shall see it."""
    path = args.get("file_path")
    return {**args, "file_path": absolute(path, cwd)} if path and isinstance(path, str) else args


def wrong_path(args: dict[str, Any]) -> str | None:
    """Why no file can have the path that is meant; None where one could."""
    field = "file_path" if "file_path" in args else "path"
    path = args.get(field)
    if not isinstance(path, str):
        return None
    if "\0" in path:
        return f"{field}: no path has a NUL character"
    longest = max(map(_bytes, Path(path).parts), default=0)
    if (length := _bytes(path)) > LONGEST_PATH:
        return f"{field}: it has {length} bytes, and a path has {LONGEST_PATH} at most"
    if longest > LONGEST_NAME:
        return f"{field}: a name in it has {longest} bytes, and {LONGEST_NAME} is the most"
    return None


def _bytes(text: str) -> int:
    return len(text.encode(errors="surrogatepass"))


def file_location(args: dict[str, Any], cwd: str) -> tuple[Location, ...]:
    """The file that a call is about, and the line where it starts."""
    line = args.get("offset")
    return (Location(absolute(args["file_path"], cwd), line if isinstance(line, int) else None),)


def is_inside(path: str, folder: str) -> bool:
    """True for a folder itself and whatever is below it; both absolute."""
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)


def place_to_read(path: str, roots: Sequence[str]) -> str:
    """The real path. Raises `ToolError` where a link inside the workspace leads out of it."""
    real = os.path.realpath(path)
    owners = _owners(path, roots)
    if owners and not any(is_inside(real, os.path.realpath(root)) for root in roots):
        raise ToolError(
            f"{path} leads through a symbolic link to {real}, outside of the workspace. "
            "If that file is meant, name its real path."
        )
    if owners and (why := _lost(path, real)):
        raise ToolError(f"{path} {why}.")
    return real


def _lost(path: str, real: str) -> str:
    """Why nobody comes to what a path names, link or file; empty where one could."""
    for step in (Path(path), *Path(path).parents):
        try:
            step.lstat()
            step.stat()
        except PermissionError:
            return "cannot be reached: Permission denied"
        except OSError as error:
            if step.is_symlink() and error.errno == errno.ELOOP:
                return "leads through symbolic links in a circle"
            if step.is_symlink():
                return f"leads through a symbolic link to {real}, where nothing is"
        else:
            break
    return ""


def demand_in_place(path: str, roots: Sequence[str], place: Callable[..., str]) -> None:
    """Raise `ToolError` for a link in the workspace that may not be followed, whoever is asked."""
    if _owners(path, roots):
        place(path, roots)


def place_to_write(path: str, roots: Sequence[str]) -> str:
    """The real path, which for a path in the workspace must be the path itself.

    Permission was given for a path; a link on the way to it could lead anywhere, and could be
    changed meanwhile. Raises `ToolError`.
    """
    real = os.path.realpath(path)
    expected = [
        os.path.normpath(f"{os.path.realpath(root)}/{path[len(root.rstrip(os.sep)) + 1 :]}")
        for root in _owners(path, roots)
    ]
    if Path(path).is_symlink() or (expected and real not in expected):
        raise ToolError(
            f"{path} leads through a symbolic link to {real}. "
            "To change that file, name its real path."
        )
    if expected and (why := _lost(path, real)):
        raise ToolError(f"{path} {why}.")
    return real


def _owners(path: str, roots: Sequence[str]) -> list[str]:
    """The roots that a path is in, by its name alone."""
    known = [*roots, *(os.path.realpath(root) for root in roots)]
    return [root for root in known if is_inside(path, root)]


def short_path(path: str, cwd: str) -> str:
    """A path as it is short to read: relative where it is below ``cwd``."""
    return os.path.relpath(path, cwd) if is_inside(path, cwd) else path


def missing(path: str, cwd: str) -> str:
    """The error for a file that does not exist, with names that are near."""
    folder = Path(path).parent
    if not folder.is_dir():
        return f"{path} does not exist, nor does its folder. The session's directory is {cwd}."
    try:
        names = [entry.name for entry, _ in zip(os.scandir(folder), range(_NAMES), strict=False)]
    except OSError:
        names = []
    near = _near(Path(path).name, names)
    hint = f" There is: {', '.join(str(folder / name) for name in near)}." if near else ""
    return f"{path} does not exist.{hint}"


def _near(name: str, names: list[str]) -> list[str]:
    import difflib

    lowered = {each.lower(): each for each in names}
    close = difflib.get_close_matches(name.lower(), lowered, n=3, cutoff=0.6)
    same_stem = [each for each in names if Path(each).stem == Path(name).stem]
    return list(dict.fromkeys([lowered[each] for each in close] + same_stem))[:3]
