"""The file system as the judgement sees it: an interface, and the real one."""

from __future__ import annotations

import os
import posixpath
import stat
import sys
from dataclasses import field
from pathlib import Path
from typing import Protocol

from crow.dataclasses import frozen

LARGEST = 256 * 1024 * 1024
"""No file that a judgement depends on is larger."""
DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"  # where PATH is unset
SHARED = ("/tmp", "/var/tmp", "/dev/shm")  # noqa: S108  (they are looked at, nothing is put there)


class Disk(Protocol):
    """Answers about files. Nothing here raises; paths are absolute."""

    @property
    def home(self) -> str:
        """The user's home directory."""
        ...

    @property
    def search(self) -> str:
        """``PATH``: where commands look for programs, as it is written."""
        ...

    @property
    def temporary(self) -> tuple[str, ...]:
        """Directories that everybody may write."""
        ...

    @property
    def own(self) -> str:
        """The directory of the programs that came with this one."""
        ...

    def variable(self, name: str) -> str | None:
        """A variable of the environment that commands get."""
        ...

    def home_of(self, user: str) -> str | None:
        """The home directory of a user; None where there is no such user."""
        ...

    def real(self, path: str) -> str | None:
        """The path with every link followed; None where that cannot be told."""
        ...

    def settled(self, path: str) -> str | None:
        """The real path of a program or directory that no session may change; None for none.

        It is asked for once, and remembered.
        """
        ...

    def is_program(self, path: str) -> bool:
        """Whether it is a file that can be run."""
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


def _without_waiting(path: str, flags: int) -> int:
    """Open a file that may be a pipe to which nobody writes."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


@frozen
class LocalDisk:
    """The file system of this machine. ``path`` stands in for ``PATH`` where it is given."""

    home: str = ""
    path: str | None = None
    _settled: dict[str, str | None] = field(
        default_factory=dict[str, "str | None"], repr=False, compare=False
    )

    def __post_init__(self) -> None:
        if not self.home:
            object.__setattr__(self, "home", os.path.expanduser("~"))

    @property
    def search(self) -> str:
        """``PATH`` as it is now."""
        return os.environ.get("PATH", DEFAULT_PATH) if self.path is None else self.path

    @property
    def temporary(self) -> tuple[str, ...]:
        """The directories for temporary files."""
        given = os.environ.get("TMPDIR", "")
        return (*SHARED, posixpath.normpath(given)) if given.startswith("/") else SHARED

    @property
    def own(self) -> str:
        """The directory of this interpreter."""
        return posixpath.dirname(sys.executable)

    def variable(self, name: str) -> str | None:
        """A variable of this process, and of the commands that it starts."""
        return self.home if name == "HOME" else os.environ.get(name)

    def home_of(self, user: str) -> str | None:
        """What the system says of a user."""
        import pwd

        try:
            return pwd.getpwnam(user).pw_dir
        except (KeyError, ValueError):
            return None

    def settled(self, path: str) -> str | None:
        """Where it really is, as it was when this was first asked."""
        if path not in self._settled:
            there = os.access(path, os.X_OK)
            self._settled[path] = os.path.realpath(path) if there else None
        return self._settled[path]

    def is_program(self, path: str) -> bool:
        """Whether it is a file that this process may run."""
        return os.path.isfile(path) and os.access(path, os.X_OK)  # noqa: PTH113

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
        """A regular file's content; of nothing else is anything read, nor waited for."""
        try:
            with open(path, "rb", opener=_without_waiting) as file:
                status = os.fstat(file.fileno())
                if not stat.S_ISREG(status.st_mode) or status.st_size > LARGEST:
                    return None
                return file.read(LARGEST)
        except (OSError, ValueError):
            return None


@frozen
class ResolvedPath:
    """A path, resolved: as written (normalised) and with every link followed."""

    path: str
    real: str | None

    @property
    def names(self) -> tuple[str, ...]:
        """Both, without repetition."""
        return (self.path,) if self.real in {None, self.path} else (self.path, self.real or "")


def place(disk: Disk, cwd: str, path: str) -> ResolvedPath:
    """Where a path leads from ``cwd``; ``~`` is the home directory."""
    if path == "~" or path.startswith("~/"):
        path = disk.home + path[1:]
    if "\x00" in path or not cwd.startswith("/"):
        return ResolvedPath(posixpath.normpath(path), None)
    full = path if path.startswith("/") else f"{cwd}/{path}"
    normal = "/" + posixpath.normpath(full).lstrip("/")
    if is_ghost(normal):
        return ResolvedPath(normal, None)
    real = disk.real(full)
    return ResolvedPath(normal, None if real is not None and is_ghost(real) else real)


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
