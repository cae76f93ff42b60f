"""Keeps what files were before a session changed them, and brings them back."""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from crow import Arg, Command, Context, Session, SessionContext, ToolContext, hook
from crow.dataclasses import entity
from crow.hooks import LAST, NextCall
from crow.keys import Key
from crow.ports import AttachmentStore, implements
from crow.project import state_directory

if TYPE_CHECKING:
    from crow import Agent, Answer, CommandContext, ToolResult
    from crow.extensions.rewind.file_tracker import FileTracker, RunningCall
    from crow.extensions.rewind.inotify import Inotify
    from crow.extensions.rewind.path_state import Keeping
    from crow.extensions.rewind.plan import Plan
    from crow.extensions.rewind.restoring import Outcome
    from crow.extensions.rewind.shared_store import Kept, StoreQuota
    from crow.extensions.rewind.store import Store
    from crow.storage import Attachments

NAME = "rewind"
HARMLESS = frozenset({"read", "search", "fetch", "think", "switch_mode"})
"""Kinds of tools that change no files."""
EXACT = frozenset({"edit", "delete", "move", "other"})
"""Kinds of tools that change the files which they name, and no others."""
SKIPPED = (
    "node_modules", ".venv", "venv", "__pycache__", ".mypy_cache", ".pytest_cache", ".ruff_cache",
    ".tox", ".nox", ".gradle", ".cache", ".hypothesis",
)  # fmt: skip
LINE = "line"
ON = "on"
MOVES = "moves"
"""What the session's state says: where it is at work, and when it was taken up elsewhere."""
WATCHED: Key[FileTracker] = Key("rewind.watched")
FIRST: Key[asyncio.Task[Any]] = Key("rewind.first")
LATE: Key[asyncio.Future[Any]] = Key("rewind.late")
"""A look that a call did not wait for; while it goes on, no other is begun."""
ENDING: Key[set[asyncio.Future[Any]]] = Key("rewind.ending")
"""Looks at what calls did that are under way, whether or not these wait for them."""
LEAST = 2.0
"""Seconds for which a call waits for a look, at least."""
UNWATCHED = "what this call changed cannot be taken back"
SLOW = "to look at what is there takes more than"


@entity
class RewindHook:
    """Keeps files as they were before a session changes them, and brings them back: ``/rewind``.

    Programs that offer this to a person use `rewinds`, `plan_rewind` and `carry_out_rewind`. Git is
    neither asked nor touched.
    """

    name = NAME
    order = 25
    is_its_options = True

    largest: Annotated[int, Arg(minimum=0)] = 2_000_000
    """Bytes of the largest file that is kept."""
    folder: Annotated[int, Arg(minimum=0)] = 256_000_000
    """Bytes that are kept at once of what a command could change."""
    files: Annotated[int, Arg(minimum=0)] = 100_000
    """Files in the session's directory beyond which commands are not watched."""
    skip: Sequence[str] = SKIPPED
    """Names of folders in which commands are not watched."""
    days: Annotated[float, Arg(minimum=0)] = 30
    """For how long contents are kept."""
    most: Annotated[int, Arg(minimum=0)] = 2_000_000_000
    """Bytes of all that is kept; nothing more is, beyond."""
    patience: Annotated[float, Arg(minimum=0)] = 2.0
    """Seconds for which the first command waits until all that is there is kept, and calls for
    looks; for these 2 at least."""
    inotify: bool = True
    """Hear of changes from the kernel where it tells of them (Linux), else look at all."""
    directory: str | Path | None = None
    """Where it is kept; else in the user's directory of states, `~/.local/state/crow/rewind`."""

    def __post_init__(self) -> None:
        self._store: Store | None = None
        self._room: StoreQuota | None = None
        self._notices: Inotify | None = None
        self._agent: Agent | None = None

    @property
    def store(self) -> Store:
        """Where it is kept."""
        if self._store is None:
            from crow.extensions.rewind.store import Store

            told = self.directory
            folder = Path(os.path.expanduser(told)) if told else state_directory() / NAME
            self._store = Store(folder / "files.db", days=self.days, most=self.most)
        return self._store

    def kept(self, session: Session) -> Kept:
        """Where it is kept of a session: also in the store of sessions, where machines share it."""
        shared = self._shared(session)
        if shared is None:
            return self.store
        from crow.extensions.rewind.shared_store import SharedStore, StoreQuota

        if self._room is None or self._room.shared is not shared:
            self._room = StoreQuota(shared, days=self.days, most=self.most)
        return SharedStore(self.store, self._room, session.cwd)

    def _shared(self, session: Session) -> Attachments | None:
        store = session.store or (self._agent and self._agent.store)
        return store.attachments if implements(store, AttachmentStore) else None

    def init_agent(self, agent: Agent) -> None:
        """Offer ``/rewind``."""
        if agent.parent is None:
            self._agent = agent
        what = "Go back to before an earlier prompt: files, conversation, or both"
        agent.add_command(Command(NAME, what, self.go_back, "[NUMBER|back]"))

    async def go_back(self, ctx: CommandContext) -> Answer:
        """Ask where to and what, and do it."""
        from crow.extensions.rewind.command import Rewinding

        return await Rewinding(self).run(ctx)

    async def lifespan(self, agent: Agent) -> AsyncIterator[None]:
        """Close the store at the end of the agent that is nobody's sub-agent."""
        yield
        if agent.parent is not None:
            return
        held = [each for each in (self._store, self._notices) if each is not None]
        await asyncio.gather(*(asyncio.to_thread(each.close) for each in held))

    @hook("around_tool", order=LAST, timeout=None)
    def watch(self, ctx: ToolContext, call_next: NextCall) -> Awaitable[ToolResult]:
        """Keep what the call may change, and write down what it did change."""
        watched = self._watched(ctx)
        wanted = reach(ctx)
        return call_next() if wanted is None else self._watch(ctx, call_next, watched, wanted)

    async def _watch(
        self, ctx: ToolContext, call_next: NextCall, watched: FileTracker, wanted: list[str]
    ) -> ToolResult:
        moment = await self._begin(ctx, watched, wanted or None)
        patience = self._limit
        try:
            return await call_next()
        except asyncio.CancelledError:
            patience = 0.0  # whoever cancels waits for no look
            raise
        finally:
            if moment is not None:
                await self._end(ctx, moment, patience)

    def _watched(self, ctx: ToolContext) -> FileTracker:
        """What is known of the session's files; looked at first beside the session's first call."""
        root = ctx.session.root
        if (watched := WATCHED.get(root)) is None:
            from crow.extensions.rewind.file_tracker import FileTracker, Limits
            from crow.extensions.rewind.inotify import Inotify
            from crow.extensions.rewind.path_state import Keeping
            from crow.extensions.rewind.tree import STORES

            keeping = Keeping(self.largest, encoded(ctx.secrets))
            limits = Limits(keeping, self.folder, self.files, frozenset(self.skip) | STORES)
            if self.inotify and self._notices is None:
                self._notices = Inotify()
            kept = self.kept(root)
            watched = WATCHED.set(root, FileTracker(root.id, kept, limits, self._notices))
            FIRST.set(root, root.spawn(self._first(ctx, watched)))
        return watched

    async def _first(self, ctx: ToolContext, watched: FileTracker) -> None:
        try:
            await asyncio.to_thread(watched.first, ctx.roots)
        except (OSError, ValueError) as error:
            await self._say(ctx, watched, f"nothing can be taken back: {error}")

    async def _begin(
        self, ctx: ToolContext, watched: FileTracker, paths: Sequence[str] | None
    ) -> RunningCall | None:
        root, roots = ctx.session.root, [*ctx.roots]
        if (late := LATE.get(root)) is not None and not late.done():
            return None
        if paths is None and (first := FIRST.get(root)) is not None:
            await asyncio.wait({first}, timeout=self.patience)
        loop = asyncio.get_running_loop()
        work = loop.run_in_executor(None, watched.begin, paths, roots)
        try:
            await asyncio.wait({work}, timeout=self._limit)  # it goes on where it takes too long
        except asyncio.CancelledError:
            work.add_done_callback(lambda done: _withdraw(watched, done, roots))
            raise
        if not work.done():
            LATE.set(root, work).add_done_callback(lambda done: _withdraw(watched, done, roots))
            await self._say(ctx, watched, f"{UNWATCHED}: {SLOW} {self._limit:g} s")
            return None
        if (error := work.exception()) is not None:
            await self._say(ctx, watched, f"nothing can be taken back: {error}")
            return None
        line: list[str] = root.state.setdefault(NAME, {}).setdefault(LINE, [])
        if root.id not in line:
            line.append(root.id)
        await self._say(ctx, watched)
        return work.result()

    async def _end(self, ctx: ToolContext, moment: RunningCall, patience: float) -> None:
        watched = WATCHED.get(ctx.session.root)
        if watched is None:
            return
        loop = asyncio.get_running_loop()
        work = loop.run_in_executor(None, watched.end, moment, [*ctx.roots])
        ending = ENDING.setdefault(ctx.session.root, set())
        ending.add(work)
        work.add_done_callback(lambda done: _complain(watched, done))
        work.add_done_callback(ending.discard)
        await asyncio.wait({work}, timeout=patience)
        await self._say(ctx, watched)

    @property
    def _limit(self) -> float:
        """Seconds for which a call waits for a look."""
        return max(self.patience, LEAST)

    async def _say(self, ctx: Context, watched: FileTracker, text: str = "") -> None:
        """Tell the user what is not kept, once each."""
        if text:
            watched.told.setdefault(text, False)
        for each, is_told in [*watched.told.items()]:
            if not is_told:
                watched.told[each] = True
                await ctx.ui.notify(f"rewind: {each}", severity="warning")

    async def on_session_start(self, ctx: SessionContext) -> None:
        """Write down where it is, and that it came from another machine that let it drop."""
        session = ctx.session
        if session.parent is None and self._shared(session) is not None:
            state = session.state.setdefault(NAME, {})
            where = f"{socket.gethostname()}:{self.store.path}"
            if state.get(ON, where) != where:
                state.setdefault(MOVES, []).append(time.time())
            state[ON] = where

    async def on_session_end(self, ctx: SessionContext) -> None:
        """Forget how the files looked, behind the looks at what calls did."""
        ctx.session.state.get(NAME, {}).pop(ON, None)
        if ctx.session.parent is None and (watched := WATCHED.pop(ctx)) is not None:
            if ending := ENDING.get(ctx):
                await asyncio.wait(ending)
            await asyncio.to_thread(watched.close)

    # what a terminal or another face asks for

    async def plan_rewind(self, session: Session, since: float) -> Plan:
        """What it takes to have the files as they were at a time (seconds of the epoch).

        Looks, and touches nothing. Raises ``OSError``.
        """
        from crow.extensions.rewind.plan import planned

        line = line_of(session)
        if ending := ENDING.get(session):
            await asyncio.wait(ending)
        plan = await asyncio.to_thread(planned, self.kept(session), line, since, self._keeping())
        return replace(plan, notes=(*plan.notes, *moved(session, since)))

    async def carry_out_rewind(
        self, session: Session, plan: Plan, *, overwrite: bool = False
    ) -> Outcome:
        """Do what a plan says; with ``overwrite`` also where somebody else changed a file since.

        What is there is kept: going back to the outcome's ``since`` takes it back. Raises
        ``OSError``.
        """
        from crow.extensions.rewind.restoring import carry_out

        line: list[str] = session.state.setdefault(NAME, {}).setdefault(LINE, [])
        if session.id not in line:
            line.append(session.id)
        outcome = await asyncio.to_thread(
            carry_out, self.kept(session), session.id, plan, self._keeping(), overwrite=overwrite
        )
        if (watched := WATCHED.get(session)) is not None:
            await asyncio.to_thread(watched.refresh, [step.path for step in outcome.done])
        return outcome

    async def rewinds(self, session: Session) -> list[float]:
        """When files were brought back in this session, oldest first: a plan can go back there."""
        changes = await asyncio.to_thread(self.kept(session).changes, line_of(session), 0.0)
        return sorted({change.at for change in changes if change.rewind})

    def _keeping(self) -> Keeping:
        from crow.extensions.rewind.path_state import Keeping

        return Keeping(self.largest, encoded(self._agent.secrets if self._agent else ()))

    async def forget_session(self, session_id: str) -> None:
        """Remove what is kept of a session."""
        await asyncio.to_thread(self.store.forget, session_id)


def encoded(secrets: Iterable[str]) -> tuple[bytes, ...]:
    """Keys as they stand in files."""
    return tuple(each.encode("utf-8", "surrogateescape") for each in secrets)


def line_of(session: Session) -> list[str]:
    """The sessions that this one was forked from, and itself."""
    line: Any = session.state.get(NAME, {}).get(LINE, [])
    return [*dict.fromkeys([*map(str, line), session.id])]


def moved(session: Session, since: float) -> list[str]:
    """What cannot be known of calls that a machine was at when it went away."""
    times: Any = session.state.get(NAME, {}).get(MOVES, [])
    clock = (time.strftime("%H:%M", time.localtime(at)) for at in times if at >= since)
    return [f"the machine was lost before {at}: what it was at then is not known" for at in clock]


def reach(ctx: ToolContext) -> list[str] | None:
    """The paths that a call may change: empty for any, None for none."""
    if ctx.kind in HARMLESS or ctx.ring == "reading":
        return None
    named = [place.path for place in ctx.locations]
    if ctx.kind in EXACT and named:
        return named
    is_open = ctx.kind == "execute" or ctx.name.startswith("mcp__")
    return [] if is_open or ctx.kind in ("edit", "delete", "move") else None


def _withdraw(
    watched: FileTracker, begun: asyncio.Future[RunningCall], roots: Sequence[str]
) -> None:
    """A call that was not waited for when it began is over: what it does is nobody's."""
    if _heard(begun):
        loop = asyncio.get_running_loop()
        loop.run_in_executor(None, watched.end, begun.result(), roots).add_done_callback(_heard)


def _complain(watched: FileTracker, done: asyncio.Future[None]) -> None:
    """Let the user be told, with what is said next, of a look that failed."""
    if not done.cancelled() and (error := done.exception()) is not None:
        watched.told.setdefault(f"{UNWATCHED}: {error}", False)


def _heard(done: asyncio.Future[Any]) -> bool:
    """Let a failure be known; True where there is none."""
    return not done.cancelled() and done.exception() is None
