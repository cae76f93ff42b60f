"""Searching without ripgrep: the same answers from pathspec and re, only slower."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from crow.tools.disk import read_whole
from crow.tools.encoding import decode
from crow.tools.errors import ToolError

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

_LARGEST = 4 * 1024 * 1024
_IGNORE_FILES = (".gitignore", ".ignore", ".rgignore")


def walk_files(top: str, glob: str = "") -> Iterator[str]:
    """Paths below a folder that no ignore file names and that match the glob."""
    if Path(top).is_file():
        yield top
        return
    wanted = matcher(glob)
    specs = {folder: _ignored_in(folder) for folder in _above(top)}
    for folder, names, found in os.walk(top):
        specs[folder] = _ignored_in(folder)
        names[:] = sorted(n for n in names if not _is_ignored(folder, f"{n}/", specs))
        for name in sorted(found):
            path = os.path.join(folder, name)  # noqa: PTH118
            is_meant = wanted(os.path.relpath(path, top)) and _is_regular(path)
            if is_meant and not _is_ignored(folder, name, specs):
                yield path


def _is_regular(path: str) -> bool:
    try:
        return stat.S_ISREG(os.lstat(path).st_mode)
    except OSError:
        return False


def matcher(glob: str) -> Callable[[str], bool]:
    """Tells whether a relative path matches a glob; an empty one matches all."""
    from pathspec import GitIgnoreSpec

    first = ["*"] if glob.startswith("!") or not glob else []
    return GitIgnoreSpec.from_lines([*first, *braces(glob)]).match_file


def _above(top: str) -> list[str]:
    """The folders from a repository's root down to the one above ``top``; none outside of one."""
    parents = list(Path(top).parents)
    roots = [n for n, folder in enumerate(parents) if (folder / ".git").exists()]
    if (Path(top) / ".git").exists() or not roots:
        return []
    return [str(folder) for folder in reversed(parents[: roots[0] + 1])]


def _ignored_in(folder: str) -> GitIgnoreSpec:
    from pathspec import GitIgnoreSpec

    lines: list[str] = []
    for name in _IGNORE_FILES:
        text = text_of(os.path.join(folder, name))  # noqa: PTH118
        lines += text.splitlines() if text else []
    return GitIgnoreSpec.from_lines(lines)


def _is_ignored(folder: str, name: str, specs: dict[str, GitIgnoreSpec]) -> bool:
    """Ask the ignore files from the nearest up; the first that says something decides."""
    if name == ".git/":
        return True
    path = os.path.join(folder, name)  # noqa: PTH118
    for above in reversed([each for each in specs if (folder + "/").startswith(each + "/")]):
        relative = os.path.relpath(path, above) + ("/" if name.endswith("/") else "")
        said = specs[above].check_file(relative).include
        if said is not None:
            return said
    return False


def braces(glob: str) -> list[str]:
    """A glob with ``{a,b}`` as the globs that it stands for."""
    match = re.search(r"\{([^{}]*)\}", glob)
    if not match:
        return [glob] if glob else []
    before, after = glob[: match.start()], glob[match.end() :]
    return [whole for each in match[1].split(",") for whole in braces(before + each + after)]


def text_of(path: str) -> str | None:
    """The text of a file worth searching; None for what is binary, huge, no file or unreadable."""
    try:
        found = read_whole(os.path.realpath(path), _LARGEST)
    except (OSError, ToolError):
        return None
    decoded = decode(found[0]) if found else None
    return decoded[0] if decoded else None
