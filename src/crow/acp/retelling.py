"""A conversation told again to a client: of every call one update, with all that came of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from crow.acp.capabilities import ClientCapabilities
from crow.acp.jsonrpc import Message
from crow.acp.projection import Dialect
from crow.acp.replay import of_subagent
from crow.core.agent import Agent
from crow.core.events import Event, ToolEnded, ToolPending, ToolStarted
from crow.core.session import Session

SETTLED = ("completed", "failed", "cancelled")
CARDS = ("tool_call", "tool_call_update")


class Whole:
    """Makes of all updates of a call the one that says how it is in the end.

    Calls are told in the order in which they began; a call that goes on is told with the `rest`.
    """

    def __init__(self) -> None:
        self._open: dict[str, Message] = {}

    def take(self, updates: Iterable[Message]) -> Iterator[Message]:
        """What is to be told now."""
        for update in updates:
            if update["sessionUpdate"] in CARDS:
                self._join(update)
                yield from self._done()
            else:
                yield update

    def _join(self, update: Message) -> None:
        call_id = update["toolCallId"]
        known = self._open.get(call_id, update)
        kind, meta = known["sessionUpdate"], {**known.get("_meta", {}), **update.get("_meta", {})}
        joined = {**known, **update, "sessionUpdate": kind}
        self._open[call_id] = {**joined, "_meta": meta} if meta else joined

    def _done(self) -> Iterator[Message]:
        for call_id, update in list(self._open.items()):
            if update.get("status") not in SETTLED:
                break
            yield self._open.pop(call_id)

    def rest(self) -> Iterator[Message]:
        """The calls that go on, and what waits behind them."""
        yield from self._open.values()
        self._open.clear()


class Retelling:
    """One session on its way to a client that wants to see all of it."""

    def __init__(
        self, agent: Agent, session: Session, dialect: Dialect, capabilities: ClientCapabilities
    ) -> None:
        self._agent = agent
        self._session = session
        self._dialect = dialect
        self._abilities = capabilities
        self._told = dialect.projection(agent, session, capabilities, live=False)
        self._whole = Whole()
        self._begun: dict[str, list[Event]] = {}

    async def updates(self, event: Event) -> list[Message]:
        """What the client is told of an event of the session."""
        self._note(event)
        updates = self._told.updates(event)
        told = list(self._whole.take(updates))
        if isinstance(event, ToolEnded):
            told += self._whole.take(await self._below(event, updates[-1]["toolCallId"]))
        return told

    def rest(self) -> list[Message]:
        """What goes on while it is told."""
        return list(self._whole.rest())

    def going_on(self) -> list[Event]:
        """The beginnings of the calls that have not come to their ends."""
        return [event for events in self._begun.values() for event in events]

    def _note(self, event: Event) -> None:
        match event:
            case ToolPending():
                self._begun[event.call.id] = [event]
            case ToolStarted():
                self._begun.get(event.call.id, []).append(event)
            case ToolEnded():
                self._begun.pop(event.call.id, None)
            case _:
                pass

    async def _below(self, event: ToolEnded, parent: str) -> list[Message]:
        """What was shown of the work of a sub-agent, if the call began one."""
        events = await of_subagent(self._agent, self._session, event)
        if not events:
            return []
        told = self._dialect.projection(
            self._agent,
            self._session,
            self._abilities,
            live=False,
            prefix=f"{event.result.data['agentId']}.",
            parent=parent,
        )
        return [update for each in events for update in told.updates(each)]
