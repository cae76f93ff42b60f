"""The client's end of one session: editors take it and leave it, and the session goes on.

What happens is written down for whoever comes back, and a question waits for somebody to answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from crow.acp.listen.journal import Cursor, Journal
from crow.acp.subagents import Hired, hired
from crow.acp.turn import over
from crow.core.events import (
    Event,
    Notice,
    RunEnded,
    TitleChanged,
    ToolEnded,
    ToolPending,
    ToolProgress,
    UsageReported,
    UserMessage,
)
from crow.core.ports.client import LEFT

if TYPE_CHECKING:
    from crow.acp.client import AcpClient
    from crow.core.hooks.run_context import RunContext
    from crow.core.ports.client import Files, Filled, Form, PermissionRequest, Question, Terminals
    from crow.core.session import Session

LOST = "Some of what happened is not shown here; it is when the session is loaded again later."
NOT_HERE = "this session goes on in another client; load or resume it to have it here"
WATCHED = "{} has the pen of this session, and you watch it: say /pen to take it"
TAKEN = "{} has taken the pen of this session: you watch it, and can say /pen to take it back."
GIVEN = "You have the pen of this session now."
BEHIND = "This client has not kept up, and is told no more: load the session again to watch it."
STILL_TRUE = (TitleChanged, UsageReported)
"""What a conversation that is told again ends with, whatever of it is told later."""
CallKey = tuple[str, str]


class Arrival:
    """An editor on its way to a session's seat; it is there when its client knows of the session.

    It will be told what happened from the position ``since`` of the journal on. ``run`` is the one
    that was on when it came.
    """

    def __init__(
        self, shared: SharedSession, editor: AcpClient, cursor: Cursor, run: RunContext | None
    ) -> None:
        self.shared = shared
        self.editor = editor
        self.cursor = cursor
        self.run = run
        self._is_reached = False

    @property
    def replayed_count(self) -> int | None:
        """How many messages of the history no more will be told of; None for all."""
        session, cursor = self.shared.session, self.cursor
        return cursor.count if cursor.segment == session.segment else None

    def covers(self, event: Event) -> bool:
        """True for all that the store tells from the run on that the journal will tell of."""
        if isinstance(event, UserMessage):
            began = self.shared.prompts.get(event.message_id, -1)
            self._is_reached = self._is_reached or began >= self.cursor.since
        return self._is_reached and not isinstance(event, STILL_TRUE)

    def complete(self) -> None:
        """The client knows of the session now."""
        self.shared.take(self)


class SharedSession:
    """A session's client, whoever that is at the moment; a `crow.core.ports.client.Client`.

    One ``editor`` at a time has the pen: it says what is to be done, and is asked. The ``watchers``
    see what happens. While nobody is there, a question waits ``patience`` seconds for somebody;
    after that, questions are answered as if nobody could ask.
    ``prompts`` are the positions of the journal at which the last runs began, by message id.
    ``unused_since`` is when the last editor left, or the last run ended, by the loop's clock.
    """

    def __init__(self, session: Session, patience: float) -> None:
        self.session = session
        self.editor: AcpClient | None = None
        self.watchers: list[AcpClient] = []
        self.files: Files | None = None
        self.terminals: Terminals | None = None
        self.arrivals: list[Arrival] = []
        self.prompts: dict[str, int] = {}
        self.unused_since = asyncio.get_running_loop().time()
        self._patience = patience
        self._journal = Journal()
        self._run: RunContext | None = None
        self._joined: RunContext | None = None
        self._begun = self._left = self._here()
        self._said = ("", 0)
        self._open: set[CallKey] = set()
        self._foreign: set[CallKey] = set()
        self._change = asyncio.Event()
        self._has_given_up = False
        self._hired: dict[str, Hired] = {}

    # who sits here

    def expect(self, editor: AcpClient, *, again: bool) -> Arrival:
        """An editor is about to come, and will be told the run ``again``, or what was missed."""
        if again:
            cursor = self._here() if self._run is None else self._begun
        else:
            cursor = self._left if self.editor is None else self._now()
        arrival = Arrival(self, editor, cursor, self._run)
        self.arrivals.append(arrival)
        return arrival

    def take(self, arrival: Arrival) -> None:
        """An editor is there: it has the pen where nobody else uses that, and watches otherwise."""
        if arrival not in self.arrivals:
            return
        self.arrivals.remove(arrival)
        editor = arrival.editor
        self._let_go_of(editor)
        if self.yields_to(editor):
            self._hand_over(editor)
        else:
            self.watchers.append(editor)
        self._catch_up(editor, arrival.cursor)
        if arrival.run is not None and arrival.run is not self._run:
            editor.post(over())
        if self.editor is not None and self.editor is not editor:
            name = self.editor.name
            editor.tell_of_pen(WATCHED.format(name), name, is_own=False)
        self._forget()

    def _let_go_of(self, editor: AcpClient) -> None:
        """Forget what the same connection had here before: it has opened the session again."""
        self.watchers = [each for each in self.watchers if not each.has_client_of(editor)]

    def yields_to(self, editor: AcpClient) -> bool:
        """True where an editor that comes gets the pen: it wants it, or nobody else uses it."""
        holder = self.editor
        if holder is None or editor.wants_pen or holder.has_client_of(editor):
            return True
        return not holder.is_attended

    def give(self, editor: AcpClient) -> bool:
        """Let somebody who watches have the pen; False for one who is not there."""
        if self.editor is editor:
            return True
        if editor not in self.watchers:
            return False
        self.watchers.remove(editor)
        self._hand_over(editor)
        editor.tell_of_pen(GIVEN, editor.name, is_own=True)
        return True

    def _hand_over(self, editor: AcpClient) -> None:
        """The pen is an editor's from now on; whoever had it is told, and watches."""
        before, self.editor = self.editor, editor
        if before is not None and not before.has_client_of(editor):
            self.watchers.append(before)
        self.files, self.terminals = editor.files, editor.terminals
        self._foreign |= self._open
        self._joined = None if editor.is_prompting else self._run
        self._has_given_up = False
        for each in self.watchers:
            each.tell_of_pen(TAKEN.format(editor.name), editor.name, is_own=False)
        self._tell_of_change()

    def refusal(self, editor: AcpClient | None) -> str:
        """What somebody is told who has not got the pen."""
        if self.editor is not None and editor in self.watchers:
            return WATCHED.format(self.editor.name)
        return NOT_HERE

    def leave(self, editor: AcpClient) -> None:
        """An editor is gone; whoever has watched longest has the pen then."""
        self.arrivals = [arrival for arrival in self.arrivals if arrival.editor is not editor]
        if editor in self.watchers:
            self.watchers.remove(editor)
        elif self.editor is editor:
            self.editor = self.files = self.terminals = None
            if self.watchers:
                self.give(self.watchers[0])
            else:
                self._left = self._now()
                self.unused_since = asyncio.get_running_loop().time()
                self._tell_of_change()
        self._forget()

    def _here(self) -> Cursor:
        """The present moment, all runs being over."""
        position = self._journal.position()
        return Cursor(position, position, self.session.segment, len(self.session.messages))

    def _now(self) -> Cursor:
        """The present moment, maybe in the middle of a run."""
        here = self._here()
        return here if self._run is None else replace(self._begun, since=here.since)

    def _catch_up(self, editor: AcpClient, cursor: Cursor) -> None:
        """Tell what was missed; calls that were told before are only made known."""
        editor.projections.meet(self._hired)
        for session_id, event in self._journal.between(cursor.began, cursor.since):
            if (known := without_terminal(event)) is not None:
                editor.learn(session_id, known)
        if cursor.began < self._journal.first:
            editor.show(Notice(LOST, "warning"))
        for session_id, event in self._journal.between(cursor.since):
            if (shown := without_terminal(event)) is not None:
                editor.pass_on(session_id, shown)

    def _tell_of_change(self) -> None:
        self._change.set()
        self._change = asyncio.Event()

    @property
    def has_news(self) -> bool:
        """True where something happened since the last editor left."""
        return self.editor is None and self._left.since < self._journal.position()

    # what happens

    def prompted(self, run: RunContext, message: UserMessage) -> None:
        """A person's message has become part of the history, at its end."""
        message_id, (said, position) = message.message_id, self._said
        if said != message_id:
            position = self._journal.position()
            self._journal.add(self.session.id, message)
        if run is self._run:
            return
        self._run = run
        session = self.session
        self._begun = Cursor(position, position, session.segment, len(session.messages) - 1)
        self.prompts[message_id] = position
        if said == message_id:
            return
        for each in self._everybody():
            if not each.is_prompting:
                each.pass_on(self.session.id, message)

    async def update(self, session_id: str, event: Event) -> None:
        """Show an event, and wait while the editor that is there cannot take more."""
        self._note(session_id, event)
        editor = self.editor
        self._show_watchers(session_id, event)
        shown = self._own(session_id, event)
        if editor is None or shown is None:
            return
        editor.pass_on(session_id, shown)
        while self.editor is editor and not editor.has_room:
            await self._unless_it_changes(editor.room())

    def warn(self, text: str) -> None:
        """Tell everybody who is here something, even beside a turn."""
        for each in self._everybody():
            each.warn(text)

    @property
    def shows_subagents(self) -> bool:
        """True where all that sub-agents say and do can be shown to somebody who is here."""
        return any(each.shows_subagents for each in self._everybody())

    def _everybody(self) -> list[AcpClient]:
        """Those who see what happens."""
        return [*self.watchers, self.editor] if self.editor is not None else []

    def _show_watchers(self, session_id: str, event: Event) -> None:
        """Show an event to those who watch; nobody waits for one that does not keep up."""
        shown = without_terminal(event) if self.watchers else None
        if shown is None:
            return
        for each in [*self.watchers]:
            if each.has_room:
                each.pass_on(session_id, shown)
            else:
                self.watchers.remove(each)
                holder = self.editor.name if self.editor is not None else ""
                each.tell_of_pen(BEHIND, holder, is_own=False)

    def _note(self, session_id: str, event: Event) -> None:
        """Write an event down, and what follows from it."""
        match event:
            case UserMessage():
                self._said = (event.message_id, self._journal.position())
            case ToolPending():
                self._open.add((session_id, event.call.id))
            case ToolEnded():
                self._open.discard((session_id, event.call.id))
            case RunEnded() if session_id == self.session.id:
                self._end_run()
            case _:
                pass
        if session_id != self.session.id and (known := hired(self.session, session_id)):
            self._hired[session_id] = known
        self._journal.add(session_id, event)

    def _end_run(self) -> None:
        run, self._run = self._run, None
        if self.editor is not None and run is not None and run is self._joined:
            self.editor.post(over())
        for each in self.watchers:
            if not each.is_prompting:
                each.post(over())
        self._joined = None
        self.unused_since = asyncio.get_running_loop().time()
        self._forget()

    def _forget(self) -> None:
        """Let go of what nobody will be told again."""
        needed = [arrival.cursor.began for arrival in self.arrivals]
        needed += [self._begun.began] if self._run is not None else []
        needed += [self._left.began] if self.editor is None else []
        before = min(needed, default=self._journal.position())
        self._journal.forget(before)
        self._hired = self._hired if self._journal.between(before) else {}
        self.prompts = {key: began for key, began in self.prompts.items() if began >= before}

    def _own(self, session_id: str, event: Event) -> Event | None:
        """An event without a terminal of an editor that is gone; None where nothing is left."""
        match event:
            case ToolProgress() if (session_id, event.call_id) in self._foreign:
                return without_terminal(event)
            case ToolEnded() if (session_id, event.call.id) in self._foreign:
                self._foreign.discard((session_id, event.call.id))
                return without_terminal(event)
            case _:
                return event

    # what the user is asked

    async def permission(self, session_id: str, request: PermissionRequest) -> str | None:
        """Ask whether a call may run, whoever is there or comes; None where nobody does."""
        return await self._asked(lambda editor: editor.permission(session_id, request), None)

    async def ask(self, session_id: str, question: Question) -> Any:
        """Ask something else; the default where nobody comes."""
        return await self._asked(lambda editor: editor.ask(session_id, question), question.default)

    async def fill_in(self, session_id: str, form: Form) -> Filled | None:
        """Show a form, or a page; None where the client that is there shows none like it."""
        return await self._asked(lambda editor: editor.fill_in(session_id, form), LEFT)

    async def complete(self, session_id: str, page_id: str) -> None:
        """The user is done with a page: tell whoever has shown it."""
        for each in self._everybody():
            await each.complete(session_id, page_id)

    async def _asked(self, put: Callable[[AcpClient], Awaitable[Any]], otherwise: Any) -> Any:
        """Put a question to one editor after another, until one of them stays to answer it."""
        while (editor := await self._somebody()) is not None:
            asking = asyncio.ensure_future(put(editor))
            try:
                await self._unless_it_changes(asyncio.wait({asking}))
                if asking.done() and self.editor is editor:
                    return asking.result()
            finally:
                asking.cancel()
                await asyncio.wait({asking})
        return otherwise

    async def _somebody(self) -> AcpClient | None:
        """The editor that is there, or comes in time."""
        if self.editor is None and not self._has_given_up:
            try:
                async with asyncio.timeout(self._patience):
                    while self.editor is None:
                        await self._change.wait()
            except TimeoutError:
                self._has_given_up = True
        return self.editor

    async def _unless_it_changes(self, work: Awaitable[Any]) -> None:
        """Wait for something, but not beyond the moment when an editor comes or leaves."""
        waiting = [asyncio.ensure_future(work), asyncio.ensure_future(self._change.wait())]
        try:
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in waiting:
                task.cancel()
            await asyncio.wait(waiting)


def without_terminal(event: Event) -> Event | None:
    """An event for an editor that does not know its terminal; None where nothing is left."""
    match event:
        case ToolProgress() if event.terminal is not None:
            return None
        case ToolEnded() if event.result.terminal is not None:
            return replace(event, result=replace(event.result, terminal=None))
        case _:
            return event
