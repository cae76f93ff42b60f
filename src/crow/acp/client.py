"""An editor, as one session sees it: shows events, asks the user, lends files and terminals."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from crow.acp.client_tools import ClientFiles, ClientRequests, ClientTerminals
from crow.acp.connection import Connection
from crow.acp.jsonrpc import Message
from crow.acp.projection import Projection
from crow.acp.projections import Projections
from crow.acp.questions import (
    COMPLETE,
    Cancelled,
    answer_in,
    cannot_ask,
    choose,
    denial,
    fill_in,
    form_of,
    options_of,
    value_of,
)
from crow.acp.session_view import SessionView
from crow.acp.versions import Version
from crow.core.agent import Agent
from crow.core.events import Event, Notice, ToolEnded, ToolPending, ToolProgress, ToolStarted
from crow.core.ports.client import Files, PermissionRequest, Question, Terminals
from crow.core.session import Session

if TYPE_CHECKING:
    from crow.acp.words import Update
    from crow.core.ports.client import Filled, Form

OF_CALLS = (ToolPending, ToolStarted, ToolProgress, ToolEnded)
OF_SUBAGENTS = (*OF_CALLS, Notice)
AT_ONCE = 32
"""Events of a conversation that are told again in one turn of the loop."""


class Arrival(Protocol):
    """The way to a session that others may have, too; it ends when the client knows of it."""

    def covers(self, event: Event) -> bool: ...

    def complete(self) -> None: ...


class AcpClient:
    """The client of one session on one connection; a `crow.core.ports.client.Client`.

    What is told and asked is put into words by the ``version``'s projections.

    Holds events back until the client knows of the session (`release`), and between the end of
    a run and the moment its answer is queued. ``mcp_servers`` are the ones that the client named,
    ``system_prompt`` is how and what it adds to the system message. ``wants_pen`` and ``goes_on``:
    it takes the pen of the session that it opens, and has a turn go on there that was cut short.
    """

    def __init__(
        self, agent: Agent, connection: Connection, version: Version, mcp_servers: list[Message]
    ) -> None:
        self.files: Files | None = None
        self.terminals: Terminals | None = None
        self.mcp_servers = mcp_servers
        self.system_prompt: tuple[str, str] | None = None
        self.arrival: Arrival | None = None
        self.name = ""
        self.wants_pen = False
        self.goes_on = False
        self._agent = agent
        self._connection = connection
        self._version = version
        self._projections: Projections | None = None
        self._held: list[tuple[str, Event]] | None = []
        self._late: list[Notice] = []
        self._turns = 0
        self.follow: Callable[[], object] | None = None
        self._is_known = False
        self._is_mute = False
        self._is_silent = False
        self._excuses: set[str] = set()
        self._questions = 0
        self._pages: set[str] = set()
        self._lets_through = asyncio.Event()

    @property
    def projections(self) -> Projections:
        """The session and its sub-agents in the words of the client's protocol."""
        assert self._projections is not None, "no session is attached yet"
        return self._projections

    @property
    def projection(self) -> Projection:
        """The session in the words of the client's protocol."""
        return self.projections.own

    def attach(self, session: Session, told: int | None = None) -> None:
        """Speak for this session, from the first time on.

        ``told`` is how many messages of its history will not be told of any more, if not all.
        """
        if self._projections is not None:
            return
        self._projections = Projections(self._agent, session, self._connection, self._version, told)
        requests = ClientRequests(self._connection, session.id, self._warn)
        if self._connection.capabilities.files:
            self.files = ClientFiles(requests)
        if self._connection.capabilities.terminals:
            self.terminals = ClientTerminals(requests)

    # what the user sees

    def begin_turn(self) -> None:
        """A prompt of the client's has arrived."""
        self._turns += 1
        self._is_silent = False
        self.introduce()
        late, self._late = self._late, []
        for event in late:
            self.show(event)

    def end_turn(self) -> None:
        """A prompt is about to be answered; call `release` when it is."""
        self._turns -= 1
        if self._held is None:
            self._held = []
            self._lets_through.clear()

    def introduce(self) -> None:
        """The client knows of the session: let through what was held back, then call ``follow``."""
        if not self._is_known:
            self.release()
        follow, self.follow = self.follow, None
        if follow is not None:
            follow()

    def release(self) -> None:
        """Let events through, first those that were held back."""
        self._is_known = True
        held, self._held = self._held or [], None
        self._lets_through.set()
        for session_id, event in held:
            self._tell_of(session_id, event)
        arrival, self.arrival = self.arrival, None
        if arrival is not None:
            arrival.complete()

    def show(self, event: Event) -> None:
        """Queue an event without waiting, held back or not."""
        self.tell(self._updates(self._session.id, event))

    def keep(self, event: Event) -> None:
        """Show an event as soon as the client knows of the session."""
        if self._held is not None:
            self._held.append((self._session.id, event))

    def post(self, update: Update) -> None:
        """Queue an update without waiting."""
        self._connection.post(self._session.id, update)

    def tell(self, updates: list[Update]) -> None:
        """Queue updates without waiting, whatever is held back."""
        for update in updates:
            self.post(update)

    async def send(self, update: Update) -> None:
        """Queue an update, and wait while the client cannot take more."""
        await self._connection.send(self._session.id, update)

    async def tell_again(self) -> None:
        """Show the whole conversation so far, even if the rest is held back."""
        from crow.acp.replay import Replay, replay

        able = self._connection.capabilities
        view = SessionView(self._agent, self._session, able, live=False)
        again, told = Replay(view, self._version), 0
        async for event in replay(self._agent, self._session):
            told += 1
            if told % AT_ONCE == 0:
                await asyncio.sleep(0)  # others wait for the loop
            if self.arrival is not None and self.arrival.covers(event):
                continue
            for told_of, update in await again.updates(event):
                await self._connection.send(told_of, update)
        for told_of, update in again.rest():
            await self._connection.send(told_of, update)
        if self.arrival is None:
            for event in again.going_on():
                self.learn(self._session.id, event)

    async def update(self, session_id: str, event: Event) -> None:
        """Show an event, and wait while the client cannot take more."""
        self.pass_on(session_id, event)
        await self.room()

    def pass_on(self, session_id: str, event: Event) -> None:
        """Queue an event, or hold it back until its time has come."""
        if self._held is not None:
            self._held.append((session_id, event))
        else:
            self._tell_of(session_id, event)

    def _tell_of(self, session_id: str, event: Event) -> None:
        """Queue an event, under the id of the session that the client knows it to be of."""
        subagent = self.projections.subagent(session_id)
        if subagent is None:
            self.tell(self._updates(session_id, event))
            return
        for told_of, update in subagent.updates_for(event):
            self._connection.post(told_of, update)

    def has_client_of(self, other: AcpClient) -> bool:
        """True where both speak for the same connection."""
        return self._connection is other._connection

    def warn(self, text: str) -> None:
        """Tell the user something, even beside a turn."""
        self.tell(self.projection.updates(Notice(text, "warning")))

    def tell_of_pen(self, text: str, holder: str, *, is_own: bool) -> None:
        """Tell who has the pen from now on: a person in words, even beside a turn."""
        self.warn(text)
        pen = {"crow": {"pen": {"holder": holder, "isYours": is_own}}}
        self.post({"sessionUpdate": "session_info_update", "_meta": pen})

    def learn(self, session_id: str, event: Event) -> None:
        """Know of an event that the client was told of before; only calls have to be known."""
        if isinstance(event, OF_CALLS):
            self._updates(session_id, event)

    @property
    def is_prompting(self) -> bool:
        """True while a prompt of the client's is being answered."""
        return self._turns > 0

    @property
    def has_room(self) -> bool:
        """True where `room` would not wait."""
        return self._connection.has_room

    @property
    def is_attended(self) -> bool:
        """False where the client reads nothing, as far as that is known."""
        return self._connection.is_attended

    async def room(self) -> None:
        """Wait while the client cannot take more."""
        await self._connection.room()

    def _updates(self, session_id: str, event: Event) -> list[Update]:
        """An event as updates; of a sub-agent's only what it does, not what it says."""
        if session_id != self._session.id and not isinstance(event, OF_SUBAGENTS):
            return []
        if isinstance(event, Notice) and self._is_untimely:
            self._late.append(event)
            return []
        return self.projections.of(session_id).updates(event)

    @property
    def _is_untimely(self) -> bool:
        """True where a notice would have to be text, and no prompt is being answered."""
        return self._turns == 0 and not self._connection.capabilities.notices

    @property
    def _cannot_answer(self) -> bool:
        """True for a client that does not know how, and for one that has fallen silent.

        Silence lasts until the next prompt: somebody is there then.
        """
        return self._is_mute or self._is_silent

    @property
    def _session(self) -> Session:
        return self.projections.session

    @property
    def shows_subagents(self) -> bool:
        """True where all that sub-agents say and do can be shown, each in a place of its own."""
        return self._connection.capabilities.subagents

    # what the user is asked

    @property
    def answers(self) -> bool:
        """Whether somebody is there to answer."""
        return not self._cannot_answer and self._projections is not None

    async def permission(self, session_id: str, request: PermissionRequest) -> str | None:
        """Ask whether a call may run; None where nobody can answer, remembered where that lasts."""
        if self._cannot_answer or self._projections is None:
            return None
        params = self.projections.of(session_id).permission(request)
        try:
            with self._blocked(session_id):
                return await choose(
                    self._connection, params, self._connection.capabilities.question_patience
                )
        except Cancelled:
            await self._cancel()
        except OSError as error:
            await self._decide_alone(error)
        return None

    async def _decide_alone(self, error: OSError) -> None:
        """Nobody has answered: the call is denied, and the user told why, once a session."""
        if isinstance(error, TimeoutError):
            self._is_silent = True
        elif cannot_ask(error):
            self._is_mute = True
        await self._warn(denial(error))

    async def _warn(self, why: str) -> None:
        """Tell the user why something does not go as usual, once a session."""
        if why and why not in self._excuses:
            self._excuses.add(why)
            await self.update(self._session.id, Notice(why, "warning"))

    async def ready(self) -> None:
        """Wait until the client knows of the session, and nothing is held back."""
        await self._lets_through.wait()

    async def ask(self, session_id: str, question: Question) -> Any:
        """Ask something else: with a form, else by options; the default where neither is there."""
        said = await self.fill_in(session_id, form_of(question))
        if said is not None:
            return answer_in(question, said)
        if question.word:  # some clients name options by their kinds alone
            return question.default
        asking = partial(self._ask_by_options, question)
        return await self._asked(session_id, asking, question.default)

    async def fill_in(self, session_id: str, form: Form) -> Filled | None:
        """Show a form, or a page; None where the client shows none like it."""
        from crow.acp.forms import elicitation
        from crow.core.ports.client import LEFT

        if self._projections is None:
            return None
        able, scope = self._connection.capabilities, self._projections.of(session_id).scope
        asked = elicitation(form, able, scope(form.call_id))
        if asked is None:
            return None
        if form.url:
            self._pages.add(form.page_id)
        asking = partial(fill_in, self._connection, asked, able.question_patience)
        return await self._asked(session_id, asking, LEFT)

    async def complete(self, session_id: str, page_id: str) -> None:
        """The user is done with a page: tell the client, once, if it has shown that."""
        del session_id
        if page_id in self._pages:
            self._pages.remove(page_id)
            self._connection.notify(COMPLETE, {"elicitationId": page_id})

    async def _asked(
        self, session_id: str, asking: Callable[[], Awaitable[Any]], otherwise: Any
    ) -> Any:
        """What is answered, while the work waits for it; ``otherwise`` where nobody does."""
        if self._projections is None or self._held is not None:
            return otherwise
        try:
            with self._blocked(session_id):
                return await asking()
        except Cancelled:
            await self._cancel()
        except TimeoutError:  # beside a turn it may be that nobody looks
            self._is_silent = self._is_silent or self._session.busy
        except OSError as error:
            self._is_mute = self._is_mute or cannot_ask(error)
        return otherwise

    async def _ask_by_options(self, question: Question) -> Any:
        offered = options_of(question)
        if not offered or self._cannot_answer:
            return question.default
        self._questions += 1
        poll = self.projection.poll(question, offered, self._questions)
        for update in poll.opening:
            await self.send(update)
        closing = poll.unanswered
        try:
            chosen = await choose(
                self._connection, poll.params, self._connection.capabilities.question_patience
            )
            closing = poll.answered
            return value_of(question, chosen)
        finally:
            for update in closing:
                self.post(update)

    @contextmanager
    def _blocked(self, session_id: str) -> Generator[None]:
        """Tell that the work waits for the user.

        A sub-agent that waits does not stop the rest, and where nothing is done nothing waits.
        """
        if session_id != self._session.id or not self._session.busy:
            yield
            return
        self.tell(self.projection.blocked())
        try:
            yield
        except OSError:
            self.tell(self.projection.running())
            raise
        else:
            self.tell(self.projection.running())

    async def _cancel(self) -> None:
        """End the run, from within it: the cancellation arrives here, not where it is settled."""
        self._agent.cancel(self._session)
        await asyncio.sleep(0)
