"""Says which sessions are open on this machine, and which of them wait for their user.

Each has a small file, which its process has locked: the kernel frees the lock when the process
dies, however it dies, and whoever looks next removes the file then.
"""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import json
import os
import sys
import time
from pathlib import Path
from typing import Any, Literal, TypeAlias

from crow import RunContext, Session, SessionContext
from crow.dataclasses import entity, frozen
from crow.keys import Key

State: TypeAlias = Literal["waits", "works", "idle"]
NAME = "presence"
LOOK = 0.25
"""Seconds between two looks at whether a run waits for its user."""
STATES: tuple[State, ...] = ("waits", "works", "idle")
ENDING = ".json"


@frozen
class Present:
    """An open session. ``asks`` is what its user is asked, ``since`` are seconds of the epoch."""

    id: str
    state: State
    since: float
    asks: str
    title: str
    cwd: str
    program: str
    pid: int


FIELDS = ("id", "state", "since", "asks", "title", "cwd", "program", "pid")


class Mark:
    """The file of one session, locked as long as it is open; ``news`` says that a run begins.

    Raises ``OSError``.
    """

    def __init__(self, folder: Path, session: Session) -> None:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._path = folder / f"{hashlib.sha256(session.id.encode()).hexdigest()[:32]}{ENDING}"
        self._session = session
        self._told: tuple[str, ...] = ()
        self._since = 0.0
        self.news = asyncio.Event()
        new = folder / f".{os.getpid()}-{self._path.name}"
        self._fd = os.open(new, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self.tell("idle")
            new.rename(self._path)  # whoever sees it sees it locked
        except OSError:
            os.close(self._fd)
            raise

    def tell(self, state: State) -> None:
        """Write down what goes on, where that is new."""
        session = self._session
        asks = session.asking[-1] if session.asking else ""
        told = ("waits" if session.asking else state, asks, session.title, session.cwd)
        if told == self._told:
            return
        if told[:2] != self._told[:2]:
            self._since = time.time()
        self._told = told
        state, asks, title, cwd = told
        now = Present(session.id, state, self._since, asks, title, cwd, program(), os.getpid())
        line = json.dumps({name: getattr(now, name) for name in FIELDS}).encode() + b"\n"
        os.pwrite(self._fd, line, 0)
        os.ftruncate(self._fd, len(line))

    async def keep(self) -> None:
        """Look at what a run does as long as one is on, until the session is closed."""
        try:
            while await self.news.wait():
                self.news.clear()
                while self._session.busy:
                    self.tell("works")
                    await asyncio.sleep(LOOK)
                self.tell("idle")
        finally:
            self._path.unlink(missing_ok=True)
            os.close(self._fd)


MARK: Key[Mark] = Key(NAME)


@entity
class PresenceHook:
    """Says which sessions are open and which wait for their user: ``crow sessions --live``."""

    name = NAME
    order = 190
    is_its_options = True

    directory: str | Path = "~/.crow/live"
    """Where the files are that say so."""

    @property
    def folder(self) -> Path:
        """The directory, whole."""
        return Path(os.path.expanduser(self.directory))

    async def on_session_start(self, ctx: SessionContext) -> None:
        """The session is open from now on; a sub-agent's is part of its caller's."""
        if ctx.session.parent is not None:
            return
        try:
            mark = Mark(self.folder, ctx.session)
        except OSError as error:
            text = f"crow sessions --live will not show this session: {error}"
            await ctx.ui.notify(text, severity="warning")
            return
        MARK.set(ctx, mark)
        ctx.session.spawn(mark.keep())

    def before_run(self, ctx: RunContext) -> None:
        """Something is being worked on."""
        if (mark := MARK.get(ctx)) is not None:
            mark.tell("works")
            mark.news.set()

    def present(self) -> list[Present]:
        """The sessions that are open: first those that wait, then those at work."""
        try:
            paths = [*self.folder.glob(f"*{ENDING}")]
        except OSError:
            return []
        found = [each for path in paths if (each := read(path)) is not None]
        return sorted(found, key=lambda each: (STATES.index(each.state), each.since))


def read(path: Path) -> Present | None:
    """What a file says; None, and the file is removed, where its process is gone."""
    try:
        with path.open("rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                table: Any = json.loads(file.readline())
                return Present(**{name: table[name] for name in FIELDS})
            path.unlink(missing_ok=True)
    except (OSError, ValueError, TypeError, KeyError):  # it goes just now, or is another version's
        pass
    return None


def program() -> str:
    """What this process was started as: ``crow``, ``crow acp``, a script's name."""
    path, words = Path(sys.argv[0] if sys.argv else ""), sys.argv[1:2]
    name = path.parent.name if path.name == "__main__.py" else path.name
    return " ".join([name, *(word for word in words if word.isalpha())])
