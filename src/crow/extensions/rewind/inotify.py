"""Inotify: the kernel's news of changes below folders, so that nobody has to look at all.

What is not told, and is looked at each time: files with more than one name. Where nothing is told
(another system, a file system that others write to as well, too many folders) all is looked at.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

LOCAL = frozenset(
    {"ext2", "ext3", "ext4", "xfs", "btrfs", "tmpfs", "zfs", "f2fs", "bcachefs", "overlay"}
)
"""File systems in which nothing changes that this machine's kernel does not know of."""
MOST = "/proc/sys/fs/inotify/max_user_watches"
MOUNTS = "/proc/self/mountinfo"
PART = 4
"""One of so many watches that the user may have is taken at most: editors want them, too."""
REPOSITORY = ".git"


class Follower:
    """One who wants to know what changes below a folder.

    ``made`` are the folders that are new, ``nested`` the repositories inside, which are none of his
    business. ``linked`` are the files with more than one name, and ``inodes`` what they are.
    """

    def __init__(self, notices: Inotify, root: str) -> None:
        self.root = root
        self.below = root.rstrip(os.sep) + os.sep
        self.made: set[str] = set()
        self.linked: set[str] = set()
        self.inodes = {0}
        self.nested: set[str] = set()
        self.changed: set[str] | None = None
        self._notices: Inotify | None = notices

    def begin(self) -> None:
        """Be told from now on, of folders that are then entered."""
        self.changed = set()
        self.made.clear()
        self.linked.clear()
        self.inodes = {0}
        self.nested.clear()

    def enter(self, folder: str) -> None:
        """Be told of what is in a folder, too; to be called before that is read."""
        if self._notices is not None and not self._notices.watch(folder):
            self.leave()

    def take(self) -> set[str] | None:
        """What may have changed since the last time; None where all is to be looked at."""
        if self._notices is None:
            return None
        with self._notices.lock:  # or another's reading could say meanwhile that all may have
            self._notices.read()
            if self.changed is None:
                return None
            changed, self.changed = self.changed, set()
        return changed | self.linked

    def leave(self) -> None:
        """Be told no more."""
        self.changed = None
        if self._notices is not None:
            self._notices.leave(self)
            self._notices = None

    def hear(self, folder: str, path: str, *, in_whole: bool, is_made: bool) -> None:
        """Something has happened to a path in a folder; ``in_whole`` to all that may be below."""
        if self.changed is None or not (folder == self.root or folder.startswith(self.below)):
            return
        if in_whole:
            self.changed = None
        elif not any(folder == each or folder.startswith(each + os.sep) for each in self.nested):
            self.changed.add(path)
            if is_made:
                self.made.add(path)


class Inotify:
    """The kernel's news for one agent, of the folders of all its sessions. Used in threads."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self._kernel: Any = None
        self._folders: dict[int, str] = {}
        self._followers: list[Follower] = []
        self._room = -1

    def follow(self, root: str) -> Follower | None:
        """A follower, who is to begin; None where nothing can be told."""
        if sys.platform != "linux" or not is_local(root):
            return None
        with self.lock:
            try:
                self._open()
            except (OSError, ImportError):
                return None
            follower = Follower(self, root)
            self._followers.append(follower)
            return follower

    def _open(self) -> None:
        if self._kernel is None:
            from inotify_simple import INotify  # pyright: ignore[reportMissingTypeStubs]

            self._room = _number(MOST) // PART
            self._kernel = INotify()

    def watch(self, folder: str) -> bool:
        """Be told of what is in a folder; False where that cannot be."""
        from inotify_simple import flags  # pyright: ignore[reportMissingTypeStubs]

        told = (
            flags.MODIFY | flags.CLOSE_WRITE | flags.ATTRIB | flags.CREATE | flags.DELETE
            | flags.MOVED_FROM | flags.MOVED_TO | flags.DELETE_SELF | flags.MOVE_SELF
            | flags.ONLYDIR | flags.DONT_FOLLOW
        )  # fmt: skip
        with self.lock:
            if self._kernel is None or len(self._folders) >= self._room:
                return False
            try:
                self._folders[self._kernel.add_watch(folder, told)] = folder
            except FileNotFoundError:
                return True  # its end is told where it was
            except OSError:
                return False
            return True

    def read(self) -> None:
        """Hear what has happened until now."""
        with self.lock:
            if self._kernel is not None:
                for number, mask, _, name in self._kernel.read(timeout=0):
                    self._hear(number, mask, name)

    def _hear(self, number: int, mask: int, name: str) -> None:
        from inotify_simple import flags  # pyright: ignore[reportMissingTypeStubs]

        folder = self._folders.get(number)
        if mask & flags.Q_OVERFLOW:
            for each in self._followers:
                each.changed = None
        elif mask & flags.IGNORED:
            self._folders.pop(number, None)
        elif folder is not None:
            is_folder = bool(mask & flags.ISDIR)
            is_made = is_folder and bool(mask & flags.CREATE)
            moved = flags.MOVED_FROM | flags.MOVED_TO
            ended = flags.DELETE_SELF | flags.MOVE_SELF | flags.UNMOUNT
            whole = name == REPOSITORY or (is_folder and mask & moved)
            path = os.path.join(folder, name) if name else folder  # noqa: PTH118
            for each in self._followers:
                at_root = folder == each.root and not name and mask & ended
                each.hear(folder, path, in_whole=bool(whole or at_root), is_made=is_made)

    def leave(self, follower: Follower) -> None:
        """Tell somebody no more."""
        with self.lock, suppress(ValueError):
            self._followers.remove(follower)
            if not self._followers:
                self._unwatch()

    def _unwatch(self) -> None:
        """Watch no folder any more.

        The kernel is done with that beside us in milliseconds, which a closing would wait for.
        """
        for number in self._folders:
            with suppress(OSError):
                self._kernel.rm_watch(number)
        self._folders.clear()

    def close(self) -> None:
        """Hear nothing more: who follows has to look himself."""
        with self.lock:
            for each in self._followers:
                each.changed = None
            if self._kernel is not None:
                self._kernel.close()
            self._kernel = None
            self._folders.clear()


def is_local(root: str) -> bool:
    """True where this machine's kernel knows of every change in a folder."""
    try:
        device = os.stat(root).st_dev  # noqa: PTH116
        with open(MOUNTS, encoding="utf-8", errors="replace") as mounts:  # noqa: PTH123
            return _kind_of(f"{os.major(device)}:{os.minor(device)}", mounts) in LOCAL
    except OSError:
        return False


def _kind_of(device: str, mounts: Iterable[str]) -> str:
    """The kind of the file system on a device, by the kernel's list (proc_pid_mountinfo(5))."""
    for line in mounts:
        mount, _, kind = line.partition(" - ")
        if mount.split(" ")[2] == device:
            return kind.split(" ")[0]
    return ""


def _number(path: str) -> int:
    try:
        with open(path, encoding="ascii") as file:  # noqa: PTH123
            return int(file.read())
    except (OSError, ValueError):
        return 0
