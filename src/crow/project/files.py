"""Files that are written whole or not at all."""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path


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
