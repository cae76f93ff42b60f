"""The origins of threads, processes, files and variables: which line of an extension made them."""

from __future__ import annotations

import asyncio
import inspect
import os
import sys
from collections.abc import Coroutine
from threading import Thread
from typing import Any, cast

from crow.cli.ext_check.source_lines import NOWHERE, Place
from crow.core.errors import NOT_THEIRS

SUBREAPER = 36
"""What ``prctl`` of Linux is told, so that processes whose parent is gone become ours."""


class OriginTracker:
    """Notes what this process is told to do, for as long as it lives, and the line that told it.

    Names are kept by what they are names of, as `around` has it; a process by its arguments.
    Lines of files that begin with one of ``others`` are nobody's.
    """

    def __init__(self, *others: str) -> None:
        self._others = ("<", *NOT_THEIRS, *others)
        self.seen: dict[tuple[str, object], Place] = {}
        sys.addaudithook(self._hear)
        self._follow_threads()
        if sys.platform == "linux":
            import ctypes

            ctypes.CDLL(None).prctl(SUBREAPER, 1, 0, 0, 0)

    def follow_tasks(self) -> None:
        """Note the tasks of the loop that runs."""
        asyncio.get_running_loop().set_task_factory(cast("Any", self._task))

    def _follow_threads(self) -> None:
        """Note threads as they start, which Python tells nobody before 3.12."""
        start = Thread.start

        def noted(thread: Thread) -> None:
            if (place := self._told_by()) != NOWHERE:
                self.seen["a thread", id(thread)] = place
            start(thread)

        Thread.start = noted  # pyright: ignore[reportAttributeAccessIssue]

    def _told_by(self) -> Place:
        """The nearest line outside of Crow and of Python's library."""
        frame = inspect.currentframe()
        while frame is not None:
            path = frame.f_code.co_filename
            if not path.startswith(self._others):
                return path, frame.f_lineno
            frame = frame.f_back
        return NOWHERE

    def place(self, what: str, key: object, name: str) -> Place:
        """Where something came from; of a process, too, that says more or less than was asked."""
        if what != "a process":
            return self.seen.get((what, key), NOWHERE)
        words = name.split()
        started = [(str(asked), at) for (sort, asked), at in self.seen.items() if sort == what]
        return next((at for asked, at in reversed(started) if alike(words, asked.split())), NOWHERE)

    def _task(
        self, loop: asyncio.AbstractEventLoop, coro: Coroutine[Any, Any, Any], **options: Any
    ) -> asyncio.Task[Any]:
        task = asyncio.Task(coro, loop=loop, **options)
        if (place := self._told_by()) != NOWHERE:
            self.seen["a task", id(task)] = place
            task.add_done_callback(lambda done: self.seen.pop(("a task", id(done)), None))
        return task

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        try:
            if (known := heard(event, arguments)) is not None and (
                place := self._told_by()
            ) != NOWHERE:
                self.seen[known] = place
        except (OSError, ValueError, TypeError, AttributeError):
            return  # what is no path, or not there any more


def heard(event: str, arguments: tuple[Any, ...]) -> tuple[str, object] | None:
    """What an event of Python's is about."""
    match event, arguments:
        case "open", (str() | bytes() as path, *_):
            return "an open file", os.path.realpath(os.fsdecode(path))
        case "os.putenv", (bytes() | str() as name, *_):
            return "an environment variable", os.fsdecode(name)
        case "os.chdir", (path, *_):
            return "another working directory", os.path.realpath(os.fsdecode(path))
        case "os.system", (command, *_):
            return "a process", os.fsdecode(command)
        case (("subprocess.Popen" | "os.posix_spawn"), (_, argv, *_)):
            words = argv if isinstance(argv, str | bytes) else b" ".join(map(os.fsencode, argv))
            return "a process", os.fsdecode(words)
        case _:
            return None


def alike(words: list[str], asked: list[str]) -> bool:
    """True for the command line of what was asked for: a shell's may be that of what it ran."""
    program = [os.path.basename(each) for each in words[:1]]  # noqa: PTH119
    of_asked = [os.path.basename(each) for each in asked]  # noqa: PTH119
    return bool(words) and " ".join([*program, *words[1:]]) in " ".join(of_asked[:1] + asked[1:])
