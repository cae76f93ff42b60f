"""Leaks: threads, processes, tasks, files and the like that are left behind."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias

from crow.cli.ext_check.finding import Finding
from crow.cli.ext_check.origins import OriginTracker
from crow.cli.ext_check.source_lines import NOWHERE

Around: TypeAlias = Mapping[str, Mapping[object, str]]
"""Names by what they are names of, and by sort."""

PATIENCE = 1.0
"""Seconds in which what was told to end may do so."""
A_MOMENT = 0.02
RUNNING = ("a thread", "a process", "a task")
"""What may be about to end."""
WIDTH = 120
UNDO = "undo in lifespan, behind its yield, what is done before it"
INSTEAD: Mapping[str, str] = {
    "a thread": "have it end, and join it, in lifespan behind its yield",
    "a process": "end it, and wait for it, in lifespan behind its yield",
}


def around() -> Around:
    """What an extension could leave behind."""
    fds = Path("/proc/self/fd")
    links = [each.readlink() for each in fds.iterdir() if each.exists()] if fds.is_dir() else []
    return {
        "a thread": {id(each): each.name for each in threading.enumerate() if theirs(each.name)},
        "a process": dict(processes()),
        "a task": {id(each): each.get_name() for each in asyncio.all_tasks()},
        "an open file": {
            str(each): str(each)
            for each in links
            if each.suffix != ".pyc"  # an import in a thread
        },
        "an environment variable": {each: each for each in os.environ},
        "another working directory": {os.getcwd(): os.getcwd()},  # noqa: PTH109
    }


def theirs(thread: str) -> bool:
    """False for threads of Crow's and of the loop's own."""
    return not thread.startswith(("asyncio_", "crow"))


def processes() -> Iterator[tuple[int, str]]:
    """The processes that this one has started, and those did, with their command lines."""
    running = {pid: (parent, line) for pid, parent, line in _running()}
    for pid, (_, line) in running.items():
        if os.getpid() in _above(pid, running):
            yield pid, line


def _above(pid: int, running: Mapping[int, tuple[int, str]]) -> Iterator[int]:
    """The parent of a process, that one's, and so on."""
    while pid in running:
        pid = running[pid][0]
        yield pid


def _running() -> Iterator[tuple[int, int, str]]:
    """Number, parent and command line of what runs; nothing that has ended."""
    if sys.platform != "linux":
        yield from _listed()
        return
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with suppress(OSError, ValueError, IndexError):
                state, parent = (folder / "stat").read_text().rpartition(")")[2].split()[:2]
                line = (
                    (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                )
                if state != "Z":
                    yield int(folder.name), int(parent), line.strip()


def _listed() -> Iterator[tuple[int, int, str]]:
    """The same by ``ps``, without itself."""
    argv = ["ps", "-axo", "pid=,ppid=,stat=,args="]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    for row in done.stdout.splitlines():
        pid, parent, state, line = row.split(None, 3)
        if not state.startswith("Z") and not line.startswith("ps -axo"):
            yield int(pid), int(parent), line


async def settled(before: Around) -> Around:
    """What is there once threads, processes and tasks had a second to end."""
    loop = asyncio.get_running_loop()
    until = loop.time() + PATIENCE
    while True:
        now = around()
        running = any(now[what].keys() - before[what].keys() for what in RUNNING)
        if not running or loop.time() > until:
            return now
        await asyncio.sleep(A_MOMENT)


def left(before: Around, now: Around, witness: OriginTracker | None = None) -> Iterator[Finding]:
    """What is there that was not before, with the line that it came from."""
    for what, names in now.items():
        for key, name in sorted(names.items(), key=lambda each: each[1]):
            if key in before[what] or (what == "an open file" and not is_file(name)):
                continue
            path, line = witness.place(what, key, name) if witness else NOWHERE
            pid = f" (process {key})" if what == "a process" else ""
            do = INSTEAD.get(what, UNDO)
            yield Finding(f"it leaves {what} behind: {name[:WIDTH]}{pid}", do, path, line)


def is_file(name: str) -> bool:
    """False for what is no file on a disk."""
    return name.startswith("/") and not name.startswith(("/proc", "/dev"))


def end(before: Around) -> None:
    """End the processes that were not there before."""
    for pid, _ in processes():
        if pid not in before["a process"]:
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
