"""What the judgement has to know of the file system: an interface, and the real one."""

from __future__ import annotations

import os
import posixpath
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


class Disk(Protocol):
    """Answers about files. Nothing here raises; paths are absolute."""

    @property
    def home(self) -> str:
        """The user's home directory."""
        ...

    def real(self, path: str) -> str | None:
        """The path with every link followed; None where that cannot be told."""
        ...

    def is_link(self, path: str) -> bool: ...
    def is_dir(self, path: str) -> bool: ...
    def exists(self, path: str) -> bool: ...
    def links(self, path: str) -> int:
        """How many names a regular file has; 0 where there is none."""
        ...

    def names(self, path: str, limit: int) -> list[str] | None:
        """Names in a directory, directories with a ``/``; None for more than ``limit``."""
        ...

    def data(self, path: str) -> bytes | None:
        """A file's content; None where it cannot be read."""
        ...


@dataclass(frozen=True, slots=True)
class LocalDisk:
    """The file system of this machine."""

    home: str = ""

    def __post_init__(self) -> None:
        if not self.home:
            object.__setattr__(self, "home", str(Path("~").expanduser()))

    def real(self, path: str) -> str | None:
        """Follow links; of a path that does not exist, those of its existing part."""
        try:
            return os.path.realpath(path, strict=True)
        except (FileNotFoundError, NotADirectoryError):
            return self._real_of_new(path)
        except (OSError, ValueError):
            return None

    def _real_of_new(self, path: str) -> str | None:
        head, rest = path, ""
        while head != os.sep:
            if os.path.lexists(head):
                break
            head, name = posixpath.split(head.rstrip("/"))
            if name == "..":
                return None
            rest = posixpath.join(name, rest) if rest else name
        try:
            return posixpath.join(os.path.realpath(head, strict=True), rest)
        except (OSError, ValueError):
            return None

    def is_link(self, path: str) -> bool:
        """Whether the path itself is a symbolic link."""
        return Path(path).is_symlink()

    def is_dir(self, path: str) -> bool:
        """Whether it is a directory."""
        try:
            return Path(path).is_dir()
        except (OSError, ValueError):
            return False

    def exists(self, path: str) -> bool:
        """Whether anything has this name."""
        return os.path.lexists(path)

    def links(self, path: str) -> int:
        """How many names the file has."""
        try:
            found = Path(path).lstat()
        except (OSError, ValueError):
            return 0
        return found.st_nlink if stat.S_ISREG(found.st_mode) else 0

    def names(self, path: str, limit: int) -> list[str] | None:
        """Names in a directory; an unreadable one has none."""
        found: list[str] = []
        try:
            with os.scandir(path) as entries:
                for entry in entries:
                    found.append(entry.name + ("/" if entry.is_dir(follow_symlinks=False) else ""))
                    if len(found) > limit:
                        return None
        except (OSError, ValueError):
            return []
        return found

    def data(self, path: str) -> bytes | None:
        """A file's content."""
        try:
            return Path(path).read_bytes()
        except (OSError, ValueError):
            return None


@dataclass(frozen=True, slots=True)
class Place:
    """Where a path leads: as written (normalised) and with every link followed."""

    path: str
    real: str | None

    @property
    def names(self) -> tuple[str, ...]:
        """Both, without repetition."""
        return (self.path,) if self.real in {None, self.path} else (self.path, self.real or "")


def place(disk: Disk, cwd: str, path: str) -> Place:
    """Where a path leads from ``cwd``; ``~`` is the home directory."""
    if path == "~" or path.startswith("~/"):
        path = disk.home + path[1:]
    if "\x00" in path or not cwd.startswith("/"):
        return Place(posixpath.normpath(path), None)
    full = path if path.startswith("/") else f"{cwd}/{path}"
    normal = "/" + posixpath.normpath(full).lstrip("/")
    if is_ghost(normal):
        return Place(normal, None)
    return Place(normal, disk.real(full))


def is_ghost(path: str) -> bool:
    """Whether a path means something else to each process that opens it."""
    if path.startswith("/dev/fd/"):
        return True
    parts = path.split("/")
    if len(parts) < 4 or parts[1] != "proc":
        return False
    return parts[2] in {"self", "thread-self"} or parts[2].isdigit()


def inside(path: str, root: str) -> bool:
    """Whether a normalised path is a directory or below it."""
    return path == root or path.startswith(root.rstrip("/") + "/")
