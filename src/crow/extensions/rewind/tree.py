"""The stamps of all that is in a folder, for looking at what a command changed."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress

from crow import CrowError
from crow.extensions.rewind.inotify import REPOSITORY, Follower
from crow.extensions.rewind.path_state import Stamp

STORES = frozenset({REPOSITORY, ".hg", ".svn", ".jj"})
"""What belongs to version control: never looked at, never touched."""
FOLDER = 0o040000
PART = 1000
"""Entries of a folder that are looked at in one step."""


class TooManyFilesError(CrowError):
    """A folder has more in it than is looked at."""


def scan(
    start: str,
    skip: Collection[str],
    most: int,
    check: Callable[[], None],
    follower: Follower | None = None,
) -> dict[str, Stamp]:
    """Every path below a folder with its stamp; links are not followed, nor other file systems.

    Folders with a name of ``skip``, and what is in repositories inside, are left out. The follower
    is told of all that he is to follow. Raises `TooManyFilesError`, and what ``check`` raises,
    which is called before each step.
    """
    found: dict[str, Stamp] = {}
    device = os.lstat(start).st_dev
    top = start if follower is None else follower.root
    folders = [start]
    while folders:
        folder = folders.pop()
        check()
        if follower is not None:
            follower.enter(folder)
        with suppress(OSError), os.scandir(folder) as entries:
            inside = [*entries]
            if folder == top or all(entry.name != REPOSITORY for entry in inside):
                for at in range(0, len(inside), PART):
                    check()
                    folders += _read(inside[at : at + PART], found, skip, device, follower)
            elif follower is not None:
                follower.nested.add(folder)
        if len(found) > most:
            raise TooManyFilesError(f"{start} has more than {most:,} files")
    return found


def _read(
    entries: Iterable[os.DirEntry[str]],
    found: dict[str, Stamp],
    skip: Collection[str],
    device: int,
    follower: Follower | None,
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
            if status.st_nlink > 1 and follower is not None:
                follower.linked.add(entry.path)
                follower.inodes.add(status.st_ino)
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
