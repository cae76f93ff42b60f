"""Files that are watched: an event when one of them is changed, made or removed by anybody."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Literal

from crow import CompactContext, Context, RunContext, Session, SessionContext, hook
from crow.dataclasses import entity
from crow.hooks import LAST, Point
from crow.keys import WATCHED, Key

if TYPE_CHECKING:
    from watchfiles import Change

    from crow import Agent

NAME = "file_watcher"
Happened = Literal["change", "add", "unlink"]
Stamp = tuple[int, int, int]
POINT = Point("on_file_changed", "watch", ("file_path", "event"), aliases=("FileChanged",))
SECOND_LOOK = 500
"""After how many milliseconds files are looked at although nobody said that one has changed."""


class FileContext(Context):
    """A watched file is not what it was: ``event`` is ``change``, ``add`` or ``unlink``."""

    __slots__ = ("event", "file_path")

    def __init__(self, agent: Agent, session: Session, file_path: str, event: Happened) -> None:
        super().__init__(agent, session)
        self.file_path = file_path
        self.event = event


@entity
class FileWatcherHook:
    """Watches single files for as long as a session is open; they need not be there yet.

    Other extensions put
    absolute paths into the set `WATCHED` of a session; it is read when the session begins, with
    every prompt, after every change of a file and after ``/clear``. Fires ``on_file_changed``
    (``FileChanged``).
    """

    name = NAME
    order = 170
    is_its_options = True

    paths: Sequence[str] = ()
    """Files that are watched in every session; relative ones from its directory."""

    def init_agent(self, agent: Agent) -> None:
        """Add the event."""
        if POINT.name not in agent.hooks.names:
            agent.hooks.define(POINT)

    @hook("on_session_start", order=LAST)
    def begin(self, ctx: SessionContext) -> None:
        """Watch what is to be watched."""
        self._watch(ctx)

    @hook("before_run", order=LAST)
    def look_again(self, ctx: RunContext) -> None:
        """What is to be watched may be something else now."""
        self._watch(ctx)

    @hook("after_compact", order=LAST)
    def begin_anew(self, ctx: CompactContext) -> None:
        """After ``/clear`` hooks have said anew what they want watched."""
        self._watch(ctx)

    def wanted(self, session: Session) -> frozenset[str]:
        """What is to be watched in a session, absolute."""
        own = (os.path.normpath(os.path.join(session.cwd, path)) for path in self.paths)  # noqa: PTH118
        return frozenset([*own, *(WATCHED.get(session) or ())])

    def _watch(self, ctx: Context) -> None:
        session = ctx.session
        if session.parent is not None:
            return
        watched = FILES.get(session)
        wanted = self.wanted(session)
        if watched is None and wanted:
            watched = FILES.set(session, Watched(self, ctx.agent, session))
        if watched is not None:
            watched.begin(wanted)


class Watched:
    """The files of one session that are watched."""

    def __init__(self, extension: FileWatcherHook, agent: Agent, session: Session) -> None:
        self.extension = extension
        self.agent = agent
        self.session = session
        self.files: dict[str, Stamp | None] = {}
        self._task: asyncio.Task[object] | None = None

    def begin(self, paths: frozenset[str]) -> None:
        """Watch these files instead of those before."""
        if paths == self.files.keys():
            return
        if self._task is not None:
            self._task.cancel()
        self.files = {path: self.files.get(path, stamp(path)) for path in paths}
        self._task = self.session.spawn(self._follow()) if paths else None

    async def _follow(self) -> None:
        """Tell of every change, until something else is to be watched."""
        try:
            await self._listen()
        except (OSError, RuntimeError):  # the system can watch no more
            while not await self._tell():  # noqa: ASYNC110 - nobody says when
                await asyncio.sleep(SECOND_LOOK / 1000)

    async def _listen(self) -> None:
        from watchfiles import awatch  # pyright: ignore[reportUnknownVariableType] - of anyio's

        places = {os.path.realpath(os.path.dirname(path)) for path in self.files}  # noqa: PTH120
        names = {os.path.basename(path) for path in self.files}  # noqa: PTH119

        def is_meant(change: Change, path: str) -> bool:
            return os.path.basename(path) in names  # noqa: PTH119

        moments = awatch(
            *filter(os.path.isdir, places),
            watch_filter=is_meant,
            recursive=False,
            rust_timeout=SECOND_LOOK,
            yield_on_timeout=True,
            ignore_permission_denied=True,
        )
        async with aclosing(moments):
            async for _ in moments:
                if await self._tell():
                    return

    async def _tell(self) -> bool:
        """Fire for what has changed; True where nothing is left to do here."""
        if POINT.name not in self.agent.hooks.names:  # the extension was removed
            return True
        point = self.agent.hooks[POINT.name]
        for path, event in list(self._news()):
            await point.fire(FileContext(self.agent, self.session, path, event))
        paths = self.extension.wanted(self.session)
        if paths == self.files.keys():
            return False
        self._task = None
        self.begin(paths)
        return True

    def _news(self) -> Iterator[tuple[str, Happened]]:
        for path, before in self.files.items():
            now = self.files[path] = stamp(path)
            if now != before:
                yield path, "unlink" if now is None else "add" if before is None else "change"


FILES: Key[Watched] = Key(NAME)


def stamp(path: str) -> Stamp | None:
    """What is different after every change of a file; None where there is none."""
    try:
        status = os.stat(path)  # noqa: PTH116
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino
