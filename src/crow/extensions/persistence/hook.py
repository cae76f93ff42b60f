"""The extension: it writes what happens before the client hears of it, and is the agent's store.

It hangs on the loop like any other: where it is not used, nothing is stored and nothing is slower.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from dataclasses import KW_ONLY, asdict, dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from crow import (
    FIRST,
    LAST,
    Arg,
    Context,
    Key,
    Message,
    ModelError,
    Reply,
    RequestContext,
    RunContext,
    Session,
    SessionContext,
    SessionError,
    SessionInfo,
    ToolContext,
    ToolResult,
    UpdateContext,
    hook,
)
from crow.events import (
    ConfigChanged,
    Event,
    Notice,
    PlanChanged,
    TextDelta,
    ThoughtDelta,
    TitleChanged,
    ToolProgress,
    UsageReported,
)
from crow.extensions.persistence.archive import Archive, place_of
from crow.extensions.persistence.lease import Piece, Sort
from crow.extensions.persistence.record import LONGEST, finished, started
from crow.extensions.persistence.session_log import SessionLog
from crow.messages import user

if TYPE_CHECKING:
    from crow import Agent, Attachments, ProjectSettings
    from crow.extensions.persistence.full_text import Found
    from crow.extensions.persistence.overview import Overview
    from crow.extensions.persistence.points import Point
    from crow.extensions.persistence.session_store import StoredSessions

logger = logging.getLogger("crow.persistence")

OUTERMOST = FIRST - 1
INNERMOST = LAST + 1
PATIENCE = 1.0
FILE = "~/.crow/crow.db"
VARIABLE = "CROW_STORE"


@dataclass(eq=False)
class PersistenceHook:
    """Stores sessions in one SQLite file, made when the first session opens, or in PostgreSQL.

    A power cut can take what happened since the last prompt ended, unless ``synchronous`` is
    ``full``, and never harms the file. What cannot be stored stops the run with an error that says
    why; prompts after that are answered all the same, with a warning, and everything is stored once
    that is possible again.
    """

    order = 20

    db_path: str | Path = ""
    """The database: a file, or the address of one that machines share (``postgresql://...``).

    Where it is empty: ``CROW_STORE``, or else ``~/.crow/crow.db``.
    """
    _: KW_ONLY
    synchronous: Literal["normal", "full"] = "normal"
    """``full`` waits for the disk at every write, for machines whose power fails."""
    required: bool = False
    """Whether a prompt is an error where its session cannot be stored, instead of a warning."""
    keep_days: Annotated[int | None, Arg(minimum=1)] = None
    """Days without use after which a session is deleted with all that is kept of it.

    Where it is not said: ``cleanupPeriodDays`` of the settings, else never.
    """

    @classmethod
    def options_from(cls, settings: ProjectSettings, own: Mapping[str, Any]) -> dict[str, Any]:
        """The options, with how long the settings want sessions to be kept."""
        return {"keep_days": settings.cleanup_period_days, **own}

    def __post_init__(self) -> None:
        where = self.db_path or os.environ.get(VARIABLE) or FILE
        self._place = place_of(where, synchronous=self.synchronous)
        self._archive = Archive(self._place)
        self._log: Key[SessionLog] = Key(f"persistence {self._place.name}")
        self._users = 0

    def init_agent(self, agent: Agent) -> None:
        """Become the agent's store."""
        agent.store = self

    async def lifespan(self, agent: Agent) -> AsyncIterator[None]:
        """Delete what is too old, and close the database when the last agent is closed."""
        self._users += 1
        cleaning = None
        if self.keep_days is not None:
            from crow.extensions.persistence.retention import clean_up

            cleaning = asyncio.create_task(
                clean_up(agent, self, self.keep_days, self._stored.is_open)
            )
        yield
        if cleaning is not None:
            cleaning.cancel()
            await asyncio.wait([cleaning])
        self._users -= 1
        if not self._users:
            await asyncio.to_thread(self._archive.writer.close)

    @property
    def path(self) -> Path:
        """The database file, absolute; what else is stored lies beside it."""
        return self._place.path or Path(os.path.expanduser(FILE)).absolute()

    # the store

    def seq(self, session: Session | None) -> int:
        """Up to which record a session is stored, exclusively; zero for one that is not."""
        log = None if session is None else self._known(session)
        return 0 if log is None else log.kept

    @property
    def attachments(self) -> Attachments | None:
        """What extensions keep beside sessions, where machines share the store."""
        return self._place.attachments

    def announce(self, address: str) -> bool:
        """Say where other machines reach this process, for those that want what is open here.

        False where the store is this machine's alone, and nobody else is told.
        """
        return self._place.announce(address)

    def holds(self, session: Session) -> bool:
        """False for an open session that another process has taken over."""
        log = self._log.get(session)
        return log is None or log.lease is None or not log.lease.is_lost

    @cached_property
    def _stored(self) -> StoredSessions:
        from crow.extensions.persistence.session_store import StoredSessions

        return StoredSessions(self._archive)

    def save(self, session: Session) -> None:
        """Write what is new, without waiting for it."""
        log = self._known(session)
        if log is not None:
            self._archive.save(log)

    async def load(self, session_id: str) -> Session:
        """A stored session, opened and whole: calls that nobody answered have an answer.

        Raises `SessionError` where there is none of that id, or another process has it open.
        """
        log = await self._stored.load(session_id)
        self._log.set(log.session, log)
        return log.session

    async def sessions(
        self,
        *,
        cwd: str | None = None,
        cursor: str | None = None,
        limit: int = 50,
        archived: bool | None = None,
    ) -> tuple[list[SessionInfo], str | None]:
        """Stored sessions, the last used first, and the cursor of the next page.

        ``archived`` True lists the archived ones alone, False the others. Raises ``ValueError`` for
        a cursor that no page has ended with.
        """
        if cursor and not (cursor.isascii() and cursor.isdecimal()):
            raise ValueError(f"there is no page at the cursor {cursor!r}")
        return await self._stored.page(cwd, cursor, limit, archived)

    async def knows(self, session_id: str) -> bool:
        """True where there is a stored session of that id. Raises `SessionError`."""
        return await self._stored.knows(session_id)

    async def search(self, text: str, *, cwd: str | None = None, limit: int = 20) -> list[Found]:
        """Sessions where all words of a text were said in one message, the best first.

        Prompts, answers and titles are searched; the last word may be the beginning of one.
        """
        return await self._stored.search(text, cwd, limit)

    async def delete(self, session_id: str) -> bool:
        """Remove a session for good; False where there is none. `SessionError` where it is used."""
        return await self._stored.delete(session_id)

    async def rename(self, session_id: str, title: str) -> None:
        """Give a session another title. Raises `SessionError` where there is none of that id."""
        await self._stored.rename(session_id, title)

    async def archive(self, session_id: str, *, archived: bool = True) -> None:
        """Put a session away, or take it back. Raises `SessionError`, also where it is in use."""
        await self._stored.put_away(session_id, archived=archived)

    async def fork(self, session_id: str, *, before: int | None = None) -> str:
        """Copy a session, even one in use, with its old segments; the id of the copy.

        With ``before`` it ends at that point of its `tree`, and counts its usage from there on.
        Raises `SessionError` where there is none of that id.
        """
        return await self._stored.fork(session_id, before)

    async def overview(
        self, text: str = "", *, cwd: str | None = None, limit: int = 50
    ) -> list[Overview]:
        """Sessions with what helps to choose one, the last used first; with a text as `search`."""
        return await self._stored.overview(text, cwd, limit)

    async def tree(self, session_id: str) -> list[Point]:
        """The prompts and answers of a session and of all that it has forks in common with.

        Reads only. Raises `SessionError`.
        """
        return await self._stored.tree(session_id)

    async def export(self, session_id: str) -> str:
        """A session as JSON Lines: itself first, then every record in order.

        Reads only, so another process may have it open. Raises `SessionError`.
        """
        return await self._stored.lines(session_id)

    async def add(
        self, session_id: str, head: dict[str, Any], rows: Iterable[Mapping[str, Any]]
    ) -> None:
        """Store a session that came about elsewhere, as `export` has it: itself, then its records.

        It has no more rights than a new one: of its mode, options and directories nothing is taken.
        Raises `SessionError`, also where there is one of that id, and for what is no session.
        """
        await self._stored.add(session_id, head, rows)

    async def replay(self, session_id: str, *, asked: bool = False) -> list[Event]:
        """A session as the events that a client saw: prompts, thoughts, answers, calls, plans.

        All segments, each message once; text and calls in one piece. Message ids are those of the
        first time. ``asked``: only the calls that its user was asked about. Reads only. Raises
        `SessionError`.
        """
        return await self._stored.replay(session_id, asked=asked)

    async def segments(self, session_id: str) -> list[list[Message]]:
        """The histories of a session, oldest first: all but the last were compacted or left.

        Reads only. Raises `SessionError`.
        """
        return await self._stored.segments(session_id)

    # the hooks

    @hook("on_session_start", order=OUTERMOST)
    async def on_session_start(self, ctx: SessionContext) -> None:
        """Store a session at its birth; its trouble is told with the first prompt."""
        await self._page(ctx.session)

    @hook("on_session_end", order=OUTERMOST)
    async def on_session_end(self, ctx: SessionContext) -> None:
        """Write what is left, and let others have the session."""
        log = self._log.pop(ctx)
        if log is not None:
            if log.stored:
                log.witness()
            try:
                await self._archive.end(log)
            except SessionError as error:
                lost = len(log.unkept())
                logger.warning("%d records of %s are lost: %s", lost, ctx.session.id, error)

    @hook("before_run", order=OUTERMOST)
    async def before_run(self, ctx: RunContext) -> None:
        """Say what is wrong with the storage, and try again where it failed before."""
        log = self._known(ctx.session)
        if log is None:  # a sub-agent's, which runs this gate and is not stored
            return
        log.failure = ""
        notices = [*self._place.notices, *log.notices]
        self._place.notices.clear()
        log.notices.clear()
        for notice in notices:
            await ctx.emit(Notice(notice, "warning", "persistence"))
        if log.trouble:
            await self._retry(ctx, log)
        if log.trouble and (self.required or not self.holds(ctx.session)):
            log.failure = log.trouble
            ctx.stop(log.trouble, stop_reason="error")
        elif log.trouble:
            text = f"this session is not stored for now: {log.trouble}"
            await ctx.emit(Notice(text, "warning", "persistence"))

    @hook("on_message", order=OUTERMOST)
    def on_message(self, ctx: Context, message: Message) -> Awaitable[None] | None:
        """Store a message; an answer that repeats a stored result can wait for the next one."""
        log, title = self._known(ctx.session), ctx.session.title
        if log is None:
            return self._first(ctx, partial(self.on_message, ctx, message))
        prompted = log.catch_up()
        if message.get("tool_call_id") in log.results:
            return None
        return self._heard(ctx, log, message, title, prompted)

    async def _heard(
        self, ctx: Context, log: SessionLog, message: Message, title: str, prompted: bool
    ) -> None:
        if prompted:
            stored = await self._store(ctx, log, used=True)
        elif message["role"] == "assistant":  # the calls that it wants, or the run's end, follow
            stored = await self._try(ctx, log, self._archive.keep_soon)
        else:
            stored = await self._keep(ctx, log)
        if message["role"] == "assistant":
            log.said.clear()
            if stored and not self._place.keeps_records:
                log.reaching = log.seq - 1
            elif stored:
                log.reach()
        if ctx.session.title != title:
            await ctx.emit(TitleChanged(ctx.session.title))

    @hook("on_llm_request", order=OUTERMOST)
    def on_llm_request(self, ctx: RequestContext) -> None:
        """Let a row wait with what is another in this request than in the one before.

        It stands in the trace as well: where it does not, a hook has answered in the model's place.
        """
        log = self._known(ctx.session)
        if log is not None and (told := log.sent.changes(ctx)):
            log.record("sent", told)

    @hook("on_permission", order=OUTERMOST)
    async def on_permission(self, ctx: ToolContext) -> None:
        """Store the message whose call a person is asked about, who may take long."""
        log = self._known(ctx.session)
        if log is not None and log.reaching is not None:
            await self._keep(ctx, log)

    @hook("around_tool", order=OUTERMOST)
    async def around_tool(
        self, ctx: ToolContext, call_next: Callable[[], Awaitable[ToolResult]]
    ) -> ToolResult:
        """Store the intent before the side effect; without the one there is not the other."""
        log = await self._page(ctx.session)
        log.witness()
        log.record("started", started(ctx))
        if not await self._keep(ctx, log) and log.failure:
            return ToolResult.failure(f"not run: {log.failure}")
        return await call_next()

    @hook("after_tool", order=OUTERMOST)
    def after_tool(self, ctx: ToolContext) -> Awaitable[None] | None:
        """Store a result before the client hears of it, whatever else is still running."""
        log = self._known(ctx.session)
        if log is None:
            return self._first(ctx, partial(self.after_tool, ctx))
        if ctx.result is None:
            return None
        log.results[ctx.call.id] = ctx.result.content
        log.witness()
        log.record("result", finished(ctx, ctx.result, log.printed.pop(ctx.call.id, "")))
        return self._note(ctx, log)

    @hook("after_turn", order=OUTERMOST)
    def after_turn(self, ctx: Context) -> Awaitable[None] | None:
        """Store usage and state, where they changed; nobody has to wait for that."""
        log = self._known(ctx.session)
        if log is None:
            return self._first(ctx, partial(self.after_turn, ctx))
        log.witness()
        if not log.trouble:
            self._archive.save_soon(log, self._place.soon)
        return None

    @hook("after_compact", order=OUTERMOST)
    async def after_compact(self, ctx: Context, summary: str, trigger: str) -> None:
        """Store a new segment, all of it at once."""
        log = await self._page(ctx.session)
        log.catch_up(summary, trigger)
        await self._store(ctx, log)

    @hook("after_loop", order=OUTERMOST)
    async def after_loop(self, ctx: RunContext) -> None:
        """Store what the run left; a run that could not be stored has failed."""
        log = await self._page(ctx.session)
        log.say(_aside(ctx))
        if not log.trouble and (ending := _ending(ctx.reply)) is not None:
            log.record("ended", ending)
        log.witness()
        if log.trouble:
            await self._retry(ctx, log)
        elif await self._store(ctx, log) and log.lease is not None:
            log.lease.clear()
        if log.failure and not ctx.cancelled and ctx.reply.error is None:
            ctx.reply.stop_reason, ctx.reply.detail = "error", log.failure
            ctx.reply.error = SessionError(log.failure)

    @hook("after_run", order=OUTERMOST)
    def after_run(self) -> None:
        """Let the disk catch up while nobody waits."""
        self._archive.writer.rest()

    @hook("on_update", order=INNERMOST)
    def on_update(self, ctx: UpdateContext) -> Awaitable[None] | None:
        """Keep what the client is about to see; most updates need no more than a look."""
        log = self._known(ctx.session)
        if log is None:
            return None
        match ctx.update:
            case TextDelta(text):
                log.said.append(text)
                return self._stream(ctx, log, "text", log.count, text)
            case ThoughtDelta(text):
                return self._stream(ctx, log, "thought", log.count, text)
            case ToolProgress(call_id, text):
                log.printed[call_id] = (log.printed.get(call_id, "") + text)[-LONGEST:]
                return self._stream(ctx, log, "output", call_id, text)
            case UsageReported(last, _, context, window):
                log.usage, log.anchor = last, len(ctx.session.messages)
                log.record("usage", {"last": last, "context": context, "window": window})
            case PlanChanged():
                log.record("plan", asdict(ctx.update))
                return self._note(ctx, log)
            case ConfigChanged() | TitleChanged() if not log.trouble:
                self._archive.save(log)
            case _:
                pass
        return None

    # what they have in common

    def _known(self, session: Session) -> SessionLog | None:
        return self._log.get(session)

    async def _page(self, session: Session) -> SessionLog:
        """The session's log; a session that has none yet is stored."""
        log = self._known(session)
        if log is None:
            log = self._log.set(session, SessionLog(session))
            try:
                await self._archive.begin(log)
            except SessionError as error:
                log.trouble = str(error)
        return log

    async def _first(self, ctx: Context, then: Callable[[], Awaitable[None] | None]) -> None:
        await self._page(ctx.session)
        if (more := then()) is not None:
            await more

    def _stream(
        self, ctx: Context, log: SessionLog, sort: Sort, where: int | str, text: str
    ) -> Awaitable[None] | None:
        if log.lease is None:
            return None
        try:
            log.lease.stream(Piece(log.segment, where, sort, text))
        except OSError as error:
            if not log.trouble:
                return self._fail(ctx, log, str(self._place.explain(error)))
        return None

    def _note(self, ctx: Context, log: SessionLog) -> Awaitable[None] | None:
        """`_keep`, for whom it is all the same whether that was possible; mostly it is at once."""
        try:
            more = None if log.trouble else self._archive.keep(log)
        except SessionError as error:
            return self._fail(ctx, log, str(error))
        return None if more is None else self._noted(ctx, log, more)

    async def _noted(self, ctx: Context, log: SessionLog, more: Awaitable[None]) -> None:
        await self._try(ctx, log, lambda _: more)

    async def _keep(self, ctx: Context, log: SessionLog) -> bool:
        """Let what waits outlive the process; False where that is impossible.

        The first time it is, the run ends. While there is trouble nothing is tried: `_retry` does
        that once before and after a run.
        """
        return await self._try(ctx, log, self._archive.keep)

    async def _store(self, ctx: Context, log: SessionLog, *, used: bool = False) -> bool:
        """Write what waits into the database, now; False where that is impossible."""
        return await self._try(ctx, log, partial(self._archive.flush, used=used))

    async def _try(
        self, ctx: Context, log: SessionLog, work: Callable[[SessionLog], Awaitable[None] | None]
    ) -> bool:
        if not log.trouble:
            try:
                if (more := work(log)) is not None:
                    await more
            except SessionError as error:
                if not log.trouble:
                    await self._fail(ctx, log, str(error))
        return not log.trouble

    async def _fail(self, ctx: Context, log: SessionLog, trouble: str) -> None:
        log.trouble = trouble
        log.failure = trouble if ctx.run is not None else ""
        ctx.stop(trouble, stop_reason="error")
        text = f"the session cannot be stored: {trouble}"
        await ctx.emit(Notice(text, "error", "persistence"))

    async def _retry(self, ctx: Context, log: SessionLog) -> None:
        """Try once more to write all that waits, for a moment."""
        try:
            async with asyncio.timeout(PATIENCE):
                await self._archive.retry(log)
        except (SessionError, TimeoutError):
            return
        log.trouble = ""
        await ctx.emit(Notice("the session is stored again", "info", "persistence"))


def _aside(ctx: RunContext) -> Message | None:
    """A prompt that was answered in the model's place, as hooks left it; nothing refused."""
    answered = ctx.reply.error is None and ctx.reply.stop_reason == "end_turn"
    if ctx.stored or not answered:
        return None
    return ctx.sent if ctx.sent["content"] == ctx.prompt else user(ctx.prompt)


def _ending(reply: Reply) -> dict[str, str] | None:
    """What its user was told of a run that did not end by itself.

    Where there is no model yet, another way to say so is the client's, and nothing has been said.
    """
    if isinstance(reply.error, ModelError) and reply.error.kind == "unconfigured":
        return None
    if reply.stop_reason == "error":
        return {"severity": "error", "detail": reply.detail or "the run failed"}
    by_itself = reply.stop_reason in ("end_turn", "cancelled") or not reply.detail
    return None if by_itself else {"severity": "warning", "detail": reply.detail}
