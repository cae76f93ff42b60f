"""Commands inside of a container, and the end of those that do not end by themselves.

A program that enters a container (``docker exec``) can be killed, and what it has started there
goes on. So each command has a variable in its environment that no other has, and what carries it is
ended.
"""

from __future__ import annotations

import os
import subprocess
import threading
import uuid
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from signal import SIGKILL
from typing import TYPE_CHECKING

from crow.extensions.container.container import ending

if TYPE_CHECKING:
    from crow.extensions.container.container import Container

PATIENCE = 30.0


@dataclass
class Launch:
    """The start of a command inside; the `crow.keys.Launcher` says what each of these is."""

    argv: Sequence[str]
    env: Mapping[str, str]
    ask: Callable[[int], bool]
    ended: Callable[[int | None], object]
    pass_fds: Sequence[int] = ()
    restrict: Callable[[], object] | None = None
    started: Callable[[int], object] | None = None


class ContainerLauncher:
    """Starts commands in a container, with those of their variables that are wanted there."""

    def __init__(self, container: Container, shell: str, passed: Sequence[str]) -> None:
        self._container = container
        self._shell = shell
        self._passed = passed

    @contextmanager
    def launch(self, argv: Sequence[str], cwd: str, env: Mapping[str, str]) -> Generator[Launch]:
        """How a command line of the shell is started. Raises `ContainerError`."""
        mark = self._container.marked(uuid.uuid4().hex)
        variables = {name: env[name] for name in self._passed if name in env}
        command = ["env", mark, self._shell, *argv[1:]]
        words = self._container.inside(command, cwd, variables)

        def ask(number: int) -> bool:
            self._end(mark, number)
            return True

        def ended(code: int | None) -> None:
            self._container.is_sure = self._container.is_sure and code == 0
            if code is None or code < 0:
                self._end(mark, SIGKILL)

        yield Launch(words, dict(os.environ), ask, ended)

    def _end(self, mark: str, number: int) -> None:
        """End what carries a mark, beside everything else."""
        argv = self._container.inside(ending(mark, number))
        threading.Thread(target=_quietly, args=[argv], name="crow container", daemon=True).start()


def _quietly(argv: Sequence[str]) -> None:
    try:
        subprocess.run(argv, capture_output=True, timeout=PATIENCE, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return  # the container is gone, or will be: with it what ran there
