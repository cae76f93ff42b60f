"""The stamps of all that is in a folder, for looking at what a command changed."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from contextlib import suppress

from crow import CrowError
from crow.extensions.rewind.shape import Stamp

STORES = frozenset({".git", ".hg", ".svn", ".jj"})
"""What belongs to version control: never looked at, never touched."""


FOLDER = 0o040000


class TooManyFilesError(CrowError):
    """A folder has more in it than is looked at."""


def scan(root: str, skip: Collection[str], most: int) -> dict[str, Stamp]:
    """Every path below a folder with its stamp; links are not followed, nor other file systems.

    Folders with a name of ``skip``, and what is in repositories inside, are left out. Raises
    `TooManyFilesError`.
    """
    found: dict[str, Stamp] = {}
    device = os.lstat(root).st_dev
    folders, nested = [root], list[str]()
    while folders:
        folder = folders.pop()
        with suppress(OSError), os.scandir(folder) as entries:
            folders += _read(entries, found, skip, device)
            if folder != root and os.path.lexists(f"{folder}/.git"):
                nested.append(folder)
        if len(found) > most:
            raise TooManyFilesError(f"{root} has more than {most:,} files")
    for folder in nested:
        below = folder + os.sep
        found = {path: each for path, each in found.items() if not path.startswith(below)}
    return found


def _read(
    entries: Iterator[os.DirEntry[str]], found: dict[str, Stamp], skip: Collection[str], device: int
) -> list[str]:
    """Find what is in a folder; the folders in it."""
    inside: list[str] = []
    for entry in entries:
        try:
            status = entry.stat(follow_symlinks=False)
        except OSError:
            continue
        mode = status.st_mode
        if mode & 0o170000 != FOLDER:  # a call each would cost a tenth
            found[entry.path] = (
                mode,
                status.st_size,
                status.st_mtime_ns,
                status.st_ctime_ns,
                status.st_ino,
            )
        elif entry.name not in skip and status.st_dev == device:
            found[entry.path] = (mode,)
            inside.append(entry.path)
    return inside


def outermost(roots: Collection[str]) -> list[str]:
    """Folders without those that are inside of others."""
    real = sorted({os.path.realpath(root) for root in roots})
    kept: list[str] = []
    for root in real:
        if not any(is_below(root, other) for other in kept):
            kept.append(root)
    return kept


def is_below(path: str, folder: str) -> bool:
    """True for what is in a folder."""
    return path.startswith(folder.rstrip(os.sep) + os.sep)
