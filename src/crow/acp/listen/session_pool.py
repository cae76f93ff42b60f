"""The seats of all open sessions, which outlive the connections of those who sit on them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from crow.acp.listen.shared_session import SharedSession
from crow.core.events import UserMessage
from crow.core.messages import is_prompt

if TYPE_CHECKING:
    from crow.acp.client import AcpClient
    from crow.core.agent import Agent
    from crow.core.context import Context
    from crow.core.messages import Message
    from crow.core.session import Session

LEFT = "idle"
LOOK = 0.02


class SessionPool:
    """Where the editors of many connections meet the sessions of one agent; an extension of it.

    ``patience`` is how many seconds a question waits for an editor to come back, ``idle`` how
    many seconds a session that nobody uses stays open.
    """

    def __init__(self, agent: Agent, *, patience: float, idle: float) -> None:
        self._agent = agent
        self._patience = patience
        self._idle = idle
        self._seats: dict[str, SharedSession] = {}
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._closing: set[asyncio.Task[None]] = set()
        agent.use(self, name="seats")

    def on_message(self, ctx: Context, message: Message) -> None:
        """Tell a seat of the prompt that begins a run, or steers it."""
        seat, run = self._seats.get(ctx.session.id), ctx.run
        if seat is not None and run is not None and is_prompt(message):
            session = seat.session
            message_id = f"{session.id}.{session.segment}.{len(session.messages) - 1}"
            content, sent = message.get("content") or "", message.get("written", ())
            seat.prompted(run, UserMessage(content, message_id, sent))

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
        """The seat of an open session."""
        seat = self._seats.get(session.id)
        if seat is None or seat.session is not session:
            seat = self._seats[session.id] = SharedSession(session, self._patience)
            session.client = seat
        return seat

    def holds(self, session_id: str, editor: AcpClient) -> bool:
        """True where an editor sits in a session, or is about to."""
        seat = self._seats.get(session_id)
        is_there = seat is not None and seat.editor is editor
        return is_there or editor.arrival is not None

    def leave(self, session_id: str, editor: AcpClient) -> None:
        """An editor's connection has ended."""
        editor.arrival = None
        seat = self._seats.get(session_id)
        if seat is not None:
            seat.leave(editor)

    def tidy(self) -> None:
        """Close the sessions that nobody has used for too long; they are stored."""
        now = asyncio.get_running_loop().time()
        idle = 0.0 if self._agent.store is None else self._idle  # nobody could come back
        for session_id, seat in list(self._seats.items()):
            if self._agent.sessions.get(session_id) is not seat.session:
                del self._seats[session_id]
            elif self._is_left(seat) and now - seat.unused_since >= idle:
                del self._seats[session_id]
                task = asyncio.create_task(self._agent.close_session(seat.session, LEFT))
                self._closing.add(task)
                task.add_done_callback(self._closing.discard)

    def _is_left(self, seat: SharedSession) -> bool:
        return seat.editor is None and not seat.arrivals and not seat.session.busy
