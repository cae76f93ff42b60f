"""Files that are written whole or not at all, and those that nobody but their owner may read."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

logger = logging.getLogger("crow.files")

Table = dict[str, dict[str, Any]]


Stamp = tuple[int, int, int, int]


def stamp(path: str) -> Stamp | None:
    """What is different after every change of a file; None where there is none."""
    try:
        status = os.stat(path)  # noqa: PTH116 - called for every prompt and call
    except OSError:
        return None
    return status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino


def write_atomically(path: Path, text: str, *, private: bool = False) -> None:
    """Put a text in a file's place: written beside it, down to the disk, then renamed.

    Whatever goes wrong, the old file is there, and nothing beside it. ``private`` lets nobody but
    the owner read the file, at any moment; else who may read or run it stays as it was. Its folder
    is made where it is missing.

    Raises ``OSError``, whose ``filename`` is the file's.
    """
    fresh = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(mode=0o700 if private else 0o777, parents=True, exist_ok=True)
        fresh.unlink(missing_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        with os.fdopen(os.open(fresh, flags, 0o600 if private else 0o666), "wb") as file:
            if not private and (known := _mode_of(path)) is not None:
                os.chmod(fresh, known)  # noqa: PTH101
            file.write(text.encode())
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            fresh.unlink(missing_ok=True)
        raise OSError(error.errno, error.strerror, str(path)) from error


def _mode_of(path: Path) -> int | None:
    """Who may read, write and run a file; None where there is none."""
    try:
        return stat.S_IMODE(path.stat().st_mode) & 0o777
    except FileNotFoundError:
        return None


def read_secrets(path: Path) -> Table:
    """The entries of a JSON file of secrets, by name: what is no object in it is left out.

    One that others can read is closed to them, and that is said: they may know what is in it. A
    file that is not there, or damaged, has none.
    """
    found = _table(path)
    _close_to_others(path)
    named = {} if found is None else found
    return {name: cast("dict[str, Any]", v) for name, v in named.items() if isinstance(v, dict)}


def write_secrets(path: Path, entries: Mapping[str, Mapping[str, Any]]) -> None:
    """Replace such a file; a damaged one is kept beside it. Raises ``OSError``."""
    if path.exists() and _table(path) is None:
        aside = path.with_name(f"{path.name}.damaged")
        path.replace(aside)
        logger.warning("%s was damaged: it is kept as %s", path, aside)
    write_atomically(path, json.dumps(entries, indent=2), private=True)


def _table(path: Path) -> dict[str, Any] | None:
    """The object in a JSON file; None where there is none."""
    try:
        found: object = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return cast("dict[str, Any]", found) if isinstance(found, dict) else None


def _close_to_others(path: Path) -> None:
    """Let nobody but its owner read a file."""
    try:
        mode = path.stat().st_mode
        if os.name != "posix" or not stat.S_ISREG(mode) or not mode & 0o077:
            return
        path.chmod(0o600)
    except FileNotFoundError:
        return
    except OSError as error:
        logger.warning("%s can be read by others, and not closed to them: %s", path, error.strerror)
        return
    logger.warning("%s could be read by others: it is closed to them now", path)


def reason(error: Exception) -> str:
    """Why a file could not be read, in a line."""
    return " ".join(str(getattr(error, "strerror", None) or error).split())
