"""Sessions that outlive their process: one SQLite file, an append-only log.

It hangs on the loop like any other: where it is not used, nothing is stored and nothing is slower.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import KW_ONLY, asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from crow import (
    Arg,
    Context,
    MessageContext,
    RequestContext,
    RunContext,
    Session,
    SessionContext,
    ToolContext,
    ToolResult,
    UpdateContext,
    hook,
)
from crow.dataclasses import entity
from crow.errors import SessionError
from crow.events import (
    ConfigChanged,
    Notice,
    PlanChanged,
    TextDelta,
    ThoughtDelta,
    TitleChanged,
    ToolProgress,
    UsageReported,
)
from crow.extensions.persistence.archive import Archive, Keeper, place_of
from crow.extensions.persistence.lease import Piece, Sort
from crow.extensions.persistence.record import LONGEST, aside, ending, finished, started
from crow.extensions.persistence.session_log import SessionLog
from crow.extensions.persistence.store import FILE, SessionStore
from crow.hooks import FIRST, LAST
from crow.keys import Key

if TYPE_CHECKING:
    from crow import Agent
    from crow.project import ProjectSettings

logger = logging.getLogger("crow.persistence")

OUTERMOST = FIRST - 1
INNERMOST = LAST + 1
VARIABLE = "CROW_STORE"


@entity
class PersistenceHook:
    """Stores sessions in one SQLite file, made when the first session opens, or in PostgreSQL.

    ``store`` answers what is asked of stored sessions, and becomes the agent's store; what is asked
    of the hook is asked of that.

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
        self._keeper = Keeper(self._archive)
        self._log: Key[SessionLog] = Key(f"persistence {self._place.name}")
        self.store = SessionStore(self._archive, self._log)
        self._users = 0

    def init_agent(self, agent: Agent) -> None:
        """Give the agent its store."""
        agent.store = self.store

    async def lifespan(self, agent: Agent) -> AsyncIterator[None]:
        """Delete what is too old, and close the database when the last agent is closed."""
        self._users += 1
        cleaning = None
        if self.keep_days is not None:
            from crow.extensions.persistence.retention import clean_up

            cleaning = asyncio.create_task(clean_up(agent, self.store, self.keep_days))
        yield
        if cleaning is not None:
            cleaning.cancel()
            await asyncio.wait([cleaning])
        self._users -= 1
        if not self._users:
            await asyncio.to_thread(self._archive.writer.close)

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
        log = self._log.get(ctx.session)
        if log is None:  # a sub-agent's, which runs this gate and is not stored
            return
        log.failure = ""
        notices = [*self._place.notices, *log.notices]
        self._place.notices.clear()
        log.notices.clear()
        for notice in notices:
            await ctx.emit(Notice(notice, "warning", "persistence"))
        if log.trouble:
            await self._keeper.retry(ctx, log)
        if log.trouble and (self.required or not self.store.holds(ctx.session)):
            log.failure = log.trouble
            ctx.stop(log.trouble, stop_reason="error")
        elif log.trouble:
            text = f"this session is not stored for now: {log.trouble}"
            await ctx.emit(Notice(text, "warning", "persistence"))

    @hook("on_message", order=OUTERMOST)
    def on_message(self, ctx: MessageContext) -> Awaitable[None] | None:
        """Store a message; an answer that repeats a stored result can wait for the next one."""
        message = ctx.message
        log, title = self._log.get(ctx.session), ctx.session.title
        if log is None:
            return self._first(ctx, partial(self.on_message, ctx))
        prompted = log.catch_up()
        if message.get("tool_call_id") in log.results:
            return None
        is_reply = message["role"] == "assistant"
        if prompted or ctx.session.title != title:
            return self._heard(ctx, log, title, prompted, is_reply)
        try:
            more = None if log.trouble else self._way(is_reply)(log)
        except SessionError as error:
            more = self._keeper.fail(ctx, log, str(error))
        if more is not None:
            return self._heard_late(ctx, log, more, is_reply)
        if is_reply:
            self._replied(log)
        return None

    def _way(self, is_reply: bool) -> Callable[[SessionLog], Awaitable[None] | None]:
        """What keeps a message: behind a reply come the calls that it wants, or the run's end."""
        return self._archive.keep_soon if is_reply else self._archive.keep

    async def _heard_late(
        self, ctx: Context, log: SessionLog, more: Awaitable[None], is_reply: bool
    ) -> None:
        await self._keeper.noted(ctx, log, more)
        if is_reply:
            self._replied(log)

    async def _heard(
        self, ctx: Context, log: SessionLog, title: str, prompted: bool, is_reply: bool
    ) -> None:
        if prompted:
            await self._keeper.store(ctx, log, used=True)
        else:
            await self._keeper.attempt(ctx, log, self._way(is_reply))
        if is_reply:
            self._replied(log)
        if ctx.session.title != title:
            await ctx.emit(TitleChanged(ctx.session.title))

    def _replied(self, log: SessionLog) -> None:
        """Forget what streamed of a reply: it is a message now."""
        log.said.clear()
        if not log.trouble and not self._place.keeps_records:
            log.reaching = log.seq - 1
        elif not log.trouble:
            log.reach()

    @hook("on_llm_request", order=OUTERMOST)
    def on_llm_request(self, ctx: RequestContext) -> None:
        """Let a row wait with what is another in this request than in the one before.

        It stands in the trace as well: where it does not, a hook has answered in the model's place.
        """
        log = self._log.get(ctx.session)
        if log is not None and (told := log.sent.changes(ctx)):
            log.record("sent", told)

    @hook("on_permission", order=OUTERMOST)
    async def on_permission(self, ctx: ToolContext) -> None:
        """Store the message whose call a person is asked about, who may take long."""
        log = self._log.get(ctx.session)
        if log is not None and log.reaching is not None:
            await self._keeper.keep(ctx, log)

    @hook("around_tool", order=OUTERMOST)
    def around_tool(
        self, ctx: ToolContext, call_next: Callable[[], Awaitable[ToolResult]]
    ) -> Awaitable[ToolResult]:
        """Store the intent before the side effect; without the one there is not the other."""
        log = self._log.get(ctx.session)
        if log is None:
            return self._around_first(ctx, call_next)
        _witness(ctx, log)
        log.record("started", started(ctx))
        more = self._keeper.note(ctx, log)
        is_kept = more is None and not log.failure
        return call_next() if is_kept else self._once_kept(log, more, call_next)

    async def _around_first(
        self, ctx: ToolContext, call_next: Callable[[], Awaitable[ToolResult]]
    ) -> ToolResult:
        await self._page(ctx.session)
        return await self.around_tool(ctx, call_next)

    async def _once_kept(
        self,
        log: SessionLog,
        more: Awaitable[None] | None,
        call_next: Callable[[], Awaitable[ToolResult]],
    ) -> ToolResult:
        if more is not None:
            await more
        if log.trouble and log.failure:
            return ToolResult.failure(f"not run: {log.failure}")
        return await call_next()

    @hook("after_tool", order=OUTERMOST)
    def after_tool(self, ctx: ToolContext) -> Awaitable[None] | None:
        """Store a result before the client hears of it, whatever else is still running."""
        log = self._log.get(ctx.session)
        if log is None:
            return self._first(ctx, partial(self.after_tool, ctx))
        if ctx.result is None:
            return None
        call_id = ctx.call.id
        log.results[call_id] = ctx.result.content
        _witness(ctx, log)
        log.record("result", finished(ctx, ctx.result, log.printed.pop(call_id, "")))
        return self._keeper.note(ctx, log)

    @hook("after_turn", order=OUTERMOST)
    def after_turn(self, ctx: Context) -> Awaitable[None] | None:
        """Store usage and state, where they changed; nobody has to wait for that."""
        log = self._log.get(ctx.session)
        if log is None:
            return self._first(ctx, partial(self.after_turn, ctx))
        log.witness_soon()
        if not log.trouble:
            self._archive.save_soon(log, self._place.soon)
        return None

    @hook("after_compact", order=OUTERMOST)
    async def after_compact(self, ctx: Context, summary: str, trigger: str) -> None:
        """Store a new segment, all of it at once."""
        log = await self._page(ctx.session)
        log.catch_up(summary, trigger)
        await self._keeper.store(ctx, log)

    @hook("after_loop", order=OUTERMOST)
    async def after_loop(self, ctx: RunContext) -> None:
        """Store what the run left; a run that could not be stored has failed."""
        log = await self._page(ctx.session)
        log.say(aside(ctx))
        if not log.trouble and (told := ending(ctx.reply)) is not None:
            log.record("ended", told)
        log.witness()
        if log.trouble:
            await self._keeper.retry(ctx, log)
        elif await self._keeper.left(ctx, log) and log.lease is not None and not log.waiting:
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
        log = self._log.get(ctx.session)
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
                return self._keeper.note(ctx, log)
            case ConfigChanged() | TitleChanged() if not log.trouble:
                self._archive.save(log)
            case _:
                pass
        return None

    # what they have in common

    async def _page(self, session: Session) -> SessionLog:
        """The session's log; a session that has none yet is stored."""
        log = self._log.get(session)
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
                return self._keeper.fail(ctx, log, str(self._place.explain(error)))
        return None


def _witness(ctx: ToolContext, log: SessionLog) -> None:
    """Have what hooks did written down: what a person answered stands before what came of it."""
    if ctx.question is None:
        log.witness_soon()
    else:
        log.witness()
