"""Recorded sessions as tests of pytest's: a file is one, and the command plays it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

OPTIONS = "crow_eval"
"""The setting of pytest with the options of ``crow eval run``."""


class Differs(Exception):  # noqa: N818 - no error of anybody's
    """A difference: the command's words on a recording that came to something else."""


class RecordingFile(pytest.File):
    """A file with a recording."""

    def collect(self) -> Iterator[pytest.Item]:
        """The one test in it."""
        make: Any = Recording
        yield make.from_parent(self, name="recording")


class Recording(pytest.Item):
    """A recording that is played in a process of its own."""

    def runtest(self) -> None:
        """Play it. Raises `Differs`."""
        options = self.config.getini(OPTIONS)
        command = [sys.executable, "-m", "crow", "eval", "run", *options, str(self.path)]
        done = subprocess.run(
            command,
            cwd=self.config.rootpath,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise Differs(done.stdout + done.stderr)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """What the command says, without our own lines."""
        if isinstance(excinfo.value, Differs):
            return str(excinfo.value).rstrip()
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Any, int | None, str]:
        """Where it is."""
        return self.path, None, f"recording {self.path.name}"
