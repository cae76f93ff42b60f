"""Outputs that are too long for a conversation, in files beside it."""

from __future__ import annotations

import os
import re
import shutil
from functools import cached_property
from pathlib import Path


class OutputFolder:
    """The long outputs of one session, each in a file that only its owner can read.

    It is in the user's cache, unless there is a ``directory`` for such folders.
    """

    def __init__(self, session_id: str, directory: str | Path | None = None) -> None:
        self._name = _plain(session_id)
        self._directory = directory

    @cached_property
    def path(self) -> Path:
        """Where it is, whether or not it is there."""
        directory = self._directory
        if directory is None:
            import platformdirs

            directory = Path(platformdirs.user_cache_dir("crow", appauthor=False), "outputs")
        return Path(os.path.expanduser(directory), self._name)

    def keep(self, text: str, name: str) -> str:
        """Write a text down; says where all of it is, or that it could not be kept."""
        file = self.path / f"{_plain(name)}.txt"
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_NOFOLLOW", 0)
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            with os.fdopen(os.open(file, flags, 0o600), "wb") as opened:
                opened.write(text.encode("utf-8", "surrogatepass"))
        except OSError as error:
            return f"and could not be kept: {error.strerror}"
        return f"all of it is in {file}"

    def holds(self, path: str) -> bool:
        """True for what is really in it, and says so."""
        if self._name not in path or not path.startswith(str(self.path)):
            return False
        try:
            return Path(path).resolve().is_relative_to(self.path.resolve())
        except (OSError, ValueError, RuntimeError):
            return False

    def remove(self) -> None:
        """Take it away with all that is in it."""
        shutil.rmtree(self.path, ignore_errors=True)


def _plain(name: str) -> str:
    """A name as a file may have it."""
    return re.sub(r"[^\w-]", "_", name)[:100] or "output"
