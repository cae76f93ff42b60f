"""The open sessions of a server, which outlive the connections of their clients."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from crow.acp.listen.shared_session import GIVEN, SharedSession
from crow.acp.session_access import PEN, is_taken_over
from crow.core.catalog import Command
from crow.core.events import UserMessage
from crow.core.messages import is_prompt
from crow.core.verdicts import Answer

if TYPE_CHECKING:
    from crow.acp.client import AcpClient
    from crow.core.agent import Agent
    from crow.core.hooks.context import Context
    from crow.core.hooks.contexts import CommandContext
    from crow.core.messages import Message
    from crow.core.session import Session


LEFT, TAKEN = "idle", "taken over"
MOVED = "This session was taken over by another process, as this one was not heard of for too long."
LOOK = 0.02


class SessionPool:
    """A pool of one agent's sessions for the editors of many connections; an extension of it.

    ``patience`` is how many seconds a question waits for an editor to come back, ``idle`` how
    many seconds a session that nobody uses stays open.
    """

    def __init__(self, agent: Agent, *, patience: float, idle: float) -> None:
        self._agent = agent
        self._patience = patience
        self._idle = idle
        self._shared: dict[str, SharedSession] = {}
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._closing: set[asyncio.Task[None]] = set()
        agent.use(self, name="session_pool")
        agent.add_command(
            Command(PEN, "Take the pen of this session, or see who watches", self._pen)
        )

    async def _pen(self, ctx: CommandContext) -> Answer:
        """Who has the pen by now: whoever has said so, and those who watch."""
        shared = self._shared.get(ctx.session.root.id)
        watching = [each.name for each in shared.watchers] if shared is not None else []
        told = f" Watching: {', '.join(watching)}." if watching else ""
        return Answer(f"{GIVEN}{told}")

    def on_message(self, ctx: Context, message: Message) -> None:
        """Tell a shared of the prompt that begins a run, or steers it."""
        shared, run = self._shared.get(ctx.session.id), ctx.run
        if shared is not None and run is not None and is_prompt(message):
            session = shared.session
            message_id = f"{session.id}.{session.segment}.{len(session.messages) - 1}"
            content, sent = message.get("content") or "", message.get("written", ())
            shared.prompted(run, UserMessage(content, message_id, sent))

    @asynccontextmanager
    async def opening(self, session_id: str) -> AsyncGenerator[Session | None]:
        """Be the only one that opens a session; the session where it is open, and stays so."""
        lock = self._locks.get(session_id) or asyncio.Lock()
        self._locks[session_id] = lock
        async with lock:
            sessions = self._agent.sessions
            session = sessions.get(session_id)
            while session is not None and session.closed:
                await asyncio.sleep(LOOK)
                session = sessions.get(session_id)
            yield session

    def of(self, session: Session) -> SharedSession:
        """The shared of an open session."""
        shared = self._shared.get(session.id)
        if shared is None or shared.session is not session:
            shared = self._shared[session.id] = SharedSession(session, self._patience)
            session.client = shared
        return shared

    def seats(self, session_id: str, editor: AcpClient) -> bool:
        """True where an editor sits in a session, with the pen or without, or is about to."""
        shared = self._shared.get(session_id)
        is_there = shared is not None and (shared.editor is editor or editor in shared.watchers)
        return is_there or editor.arrival is not None

    def leave(self, session_id: str, editor: AcpClient) -> None:
        """An editor's connection has ended."""
        editor.arrival = None
        shared = self._shared.get(session_id)
        if shared is not None:
            shared.leave(editor)

    async def let_go(self, session_id: str, *, again: bool) -> bool:
        """Close a session that another node wants, where nobody uses it here.

        ``again``: whoever wants it will be told all of it, so that nothing of what is known here
        alone is missed. False where it stays.
        """
        async with self.opening(session_id) as session:
            shared = None if session is None else self._shared.get(session_id)
            if session is None:
                return True
            if session.busy or shared is None or not self._is_left(shared):
                return False
            if shared.has_news and not again:
                return False
            await self._agent.close_session(session, LEFT)
            return True

    def tidy(self) -> set[str]:
        """Close the sessions that nobody has used for too long; they are stored.

        Those that another process has taken over are closed, too; their ids.
        """
        taken = {each.session.id for each in self._shared.values() if is_taken_over(each.session)}
        for session_id in taken:
            self._shared[session_id].warn(MOVED)
            self._close(session_id, TAKEN)
        now = asyncio.get_running_loop().time()
        idle = 0.0 if self._agent.store is None else self._idle  # nobody could come back
        for session_id, shared in list(self._shared.items()):
            if self._agent.sessions.get(session_id) is not shared.session:
                del self._shared[session_id]
            elif self._is_left(shared) and now - shared.unused_since >= idle:
                self._close(session_id, LEFT)
        return taken

    def _close(self, session_id: str, why: str) -> None:
        task = asyncio.create_task(
            self._agent.close_session(self._shared.pop(session_id).session, why)
        )
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    def _is_left(self, shared: SharedSession) -> bool:
        return shared.editor is None and not shared.arrivals and not shared.session.busy


class SharedAccess:
    """The sessions of one of many clients; a `crow.acp.session_access.SessionAccess`."""

    def __init__(self, pool: SessionPool) -> None:
        self._pool = pool
        self._taken: list[tuple[str, AcpClient]] = []
        self._is_gone = False

    def opening(self, session_id: str) -> AbstractAsyncContextManager[Session | None]:
        """A session that is open goes on as it is."""
        return self._pool.opening(session_id)

    def attach(self, session: Session, editor: AcpClient, *, again: bool = False) -> None:
        """Expect an editor on the session's shared, unless its client is gone meanwhile."""
        shared = self._pool.of(session)
        if self._is_gone:
            editor.attach(session)
        elif editor.arrival is None:
            arrival = editor.arrival = shared.expect(editor, again=again)
            self._taken = [held for held in self._taken if self._pool.seats(*held)]
            self._taken.append((session.id, editor))
            editor.attach(session, arrival.replayed_count)

    def has(self, session: Session, editor: AcpClient | None) -> bool:
        """True where it has the pen."""
        return editor is not None and self._pool.of(session).editor is editor

    def is_taken(self, session: Session, editor: AcpClient | None) -> bool:
        """True where somebody else has it, who is not about to lose it."""
        shared = self._pool.of(session)
        loses = editor is not None and any(
            arrival.editor is editor and shared.yields_to(editor) for arrival in shared.arrivals
        )
        return shared.editor not in (None, editor) and not loses

    def refusal(self, session: Session, editor: AcpClient | None) -> str:
        """Who has the pen, and how to take it."""
        return self._pool.of(session).refusal(editor)

    def take(self, session: Session, editor: AcpClient) -> bool:
        """Take the pen."""
        return self._pool.of(session).give(editor)

    def leave(self) -> None:
        """The client is gone; its sessions go on without it."""
        self._is_gone = True
        for session_id, editor in self._taken:
            self._pool.leave(session_id, editor)
