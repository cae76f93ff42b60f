"""Events of the loop as updates of the protocol: one ``match``."""

from __future__ import annotations

from collections.abc import Iterator

from crow.acp.actions import actions, trace_of
from crow.acp.attachments import blocks_of
from crow.acp.capabilities import ClientCapabilities
from crow.acp.content import to_blocks
from crow.acp.jsonrpc import Message
from crow.acp.message_ids import end_run, message_id
from crow.acp.options import config_options, session_choices
from crow.acp.parents import owned
from crow.acp.projection import PermissionQuestion
from crow.acp.questions import permission_params, poll_params
from crow.acp.tool_calls import ToolCallViews
from crow.core.agent import Agent
from crow.core.events import (
    CallDelta,
    CommandsChanged,
    Compacted,
    ConfigChanged,
    Event,
    Notice,
    PlanChanged,
    Retrying,
    RunEnded,
    TextDelta,
    ThoughtDelta,
    TitleChanged,
    ToolEnded,
    ToolPending,
    ToolProgress,
    ToolStarted,
    UsageReported,
    UserMessage,
)
from crow.core.ports import Option, PermissionRequest, Question
from crow.core.session import Reply, Session


class V1:
    """Version 1 of the protocol; a `crow.acp.projection.Dialect`."""

    version = 1

    def capabilities(self, hello: Message) -> ClientCapabilities:
        """What the client announced."""
        return ClientCapabilities.of(hello)

    def projection(
        self,
        agent: Agent,
        session: Session,
        capabilities: ClientCapabilities,
        *,
        live: bool = True,
        prefix: str = "",
        parent: str = "",
        told: int | None = None,
    ) -> Translation:
        """A session in the words of version 1."""
        return Translation(
            agent, session, capabilities, live=live, prefix=prefix, parent=parent, told=told
        )


class Translation:
    """One session's events in the words of one client; ``live``, or those of an earlier day.

    A `crow.acp.projection.Projection`.
    """

    def __init__(
        self,
        agent: Agent,
        session: Session,
        capabilities: ClientCapabilities,
        *,
        live: bool = True,
        prefix: str = "",
        parent: str = "",
        told: int | None = None,
    ) -> None:
        self.agent = agent
        self.session = session
        self.capabilities = capabilities
        own_terminals = live and capabilities.terminal_output and not capabilities.terminals
        used = called(session, told) if live and not prefix else ()
        self.cards = ToolCallViews(own_terminals=own_terminals, live=live, used=used, prefix=prefix)
        self._live = live
        self._subagent = prefix.removesuffix(".")
        self._parent = parent
        self._compactions = 0

    def updates(self, event: Event) -> list[Message]:
        """What the client is told of an event; often one update, sometimes none."""
        return owned(self._updates(event), self._parent)

    def shown_id(self, call_id: str) -> str:
        """The id under which the client knows an open call."""
        return self.cards.shown_id(call_id)

    def _updates(self, event: Event) -> list[Message]:  # noqa: C901 - one case an event
        match event:
            case TextDelta():
                return [text("agent_message_chunk", event.text, self._id(event.message_id))]
            case ThoughtDelta():
                thought = thought_id(self._id(event.message_id))
                return [text("agent_thought_chunk", event.text, thought)]
            case UserMessage():
                blocks = blocks_of(event.content, event.written)
                return chunks("user_message_chunk", blocks, event.message_id)
            case ToolPending():
                return [self.cards.pending(event, self.session.cwd)]
            case ToolStarted():
                return [self.cards.started(event, self.session.cwd)]
            case ToolProgress():
                update = self.cards.progress(event)
                return [update] if update else []
            case ToolEnded():
                return self._ended(event)
            case UsageReported():
                return usage(event)
            case Notice():
                return self._notice(event)
            case Retrying():
                return self._retrying(event)
            case PlanChanged():
                return [plan(event)]
            case ConfigChanged():
                return self._config(event)
            case CommandsChanged():
                return [self.commands()]
            case TitleChanged():
                return [{"sessionUpdate": "session_info_update", "title": event.title}]
            case Compacted():
                return self._compacted(event)
            case RunEnded():
                end_run(self.session)
                return []
            case CallDelta():
                return []

    def commands(self) -> Message:
        """The slash commands on offer."""
        return commands(self.agent, self.session)

    def choices(self) -> Message:
        """The modes and options of a session that is opened."""
        switches = self.capabilities.boolean_options
        return session_choices(self.agent, self.session, switches=switches)

    def options(self) -> list[Message]:
        """The complete list of options, as it is now."""
        switches = self.capabilities.boolean_options
        return config_options(self.agent, self.session, switches=switches)

    def permission(self, request: PermissionRequest) -> Message:
        """The parameters of ``session/request_permission``."""
        shown = self.cards.shown_id(request.call.id)
        return permission_params(self.session.id, shown, request, self.session.cwd)

    def poll(self, question: Question, offered: list[Option], number: int) -> PermissionQuestion:
        """A question with these answers, as a request for permission."""
        return poll_params(self.session.id, question, offered, number)

    def running(self) -> list[Message]:
        """Nothing: the client knows by the request that is not answered yet."""
        return []

    blocked = running

    def idle(self, reply: Reply | None) -> list[Message]:
        """Nothing: the request's answer says so."""
        return []

    def _id(self, given: str = "") -> str:
        """The id of a message that is shown now; that of an earlier day's is its own."""
        return message_id(self.session, given) if self._live else given

    def _ended(self, event: ToolEnded) -> list[Message]:
        """The result, with what hooks did to the call."""
        updates = self.cards.ended(event)
        trace = trace_of(self.session, self._subagent)
        if self._live and (done := list(actions(trace, event.call.id))):
            settled = updates[-1]
            settled["_meta"] = {**settled.get("_meta", {}), "crow": {"hooks": done}}
        return updates

    def _notice(self, event: Notice) -> list[Message]:
        """A notice; as text where the client shows none, unless it is mere information."""
        if self.capabilities.notices:
            return [notice(event)]
        if event.severity == "info":
            return []
        said = f"\n\n*{event.severity.capitalize()}: {event.text}*\n\n"
        return [text("agent_message_chunk", said, f"{self._id()}.notice")]

    def _retrying(self, event: Retrying) -> list[Message]:
        said = (
            f"{event.reason}; trying again in {max(event.delay, 1):.0f} s (attempt {event.attempt})"
        )
        if self.capabilities.notices:
            return [notice(Notice(said, "warning"))]
        return [text("agent_thought_chunk", f"\n{said}\n", f"{self._id()}.retry")]

    def _config(self, event: ConfigChanged) -> list[Message]:
        listed = self.options()
        told: list[Message] = []
        if listed:
            told.append({"sessionUpdate": "config_option_update", "configOptions": listed})
        if "mode" in event.changes:
            mode = self.session.mode
            told.append({"sessionUpdate": "current_mode_update", "currentModeId": mode})
        return told

    def _compacted(self, event: Compacted) -> list[Message]:
        if not self.capabilities.compaction:
            return self._notice(Notice("The conversation was summarised to make room."))
        self._compactions += 1
        return [
            {
                "sessionUpdate": "compaction_update",
                "compactionId": f"{self.session.id}.{self.session.segment}.{self._compactions}",
                "status": "completed",
                "summary": to_blocks(event.summary),
            }
        ]


def called(session: Session, told: int | None = None) -> Iterator[str]:
    """The ids of the calls in a session's history, or in so many messages of it.

    Those that run now are not among them: the client gets to know them by the ids that they have.
    """
    messages = session.messages
    on = {call.call.id for run in session.runs for call in run.open if not call.ended}
    last = next((m for m in reversed(messages) if m.get("tool_calls")), None) if on else None
    for message in messages[:told]:
        for call in message.get("tool_calls", ()):
            if message is not last or call["id"] not in on:
                yield call["id"]


def text(kind: str, said: str, message_id: str) -> Message:
    """A piece of text."""
    content = {"type": "text", "text": said}
    return {"sessionUpdate": kind, "content": content, "messageId": message_id}


def chunks(kind: str, blocks: list[Message], message_id: str) -> list[Message]:
    """The blocks of a message."""
    return [{"sessionUpdate": kind, "content": block, "messageId": message_id} for block in blocks]


def thought_id(message_id: str) -> str:
    """The id of what the model thought before it wrote a message."""
    return f"{message_id}.thought"


def notice(event: Notice) -> Message:
    """A notice; its first line is the title."""
    title, _, rest = event.text.strip().partition("\n")
    update = {"sessionUpdate": "notice", "severity": event.severity, "title": title}
    return {**update, "description": rest.strip()} if rest.strip() else update


def plan(event: PlanChanged) -> Message:
    """The whole plan."""
    entries = [
        {"content": entry.content, "priority": entry.priority, "status": entry.status}
        for entry in event.entries
    ]
    return {"sessionUpdate": "plan", "entries": entries}


def usage(event: UsageReported) -> list[Message]:
    """How full the window is; nothing where its size is not known."""
    if event.context_window is None:
        return []
    update: Message = {
        "sessionUpdate": "usage_update",
        "used": event.context_tokens,
        "size": event.context_window,
    }
    if "cost" in event.total:
        update["cost"] = {"amount": event.total["cost"], "currency": "USD"}
    return [update]


def commands(agent: Agent, session: Session) -> Message:
    """The slash commands on offer."""
    listed: list[Message] = []
    for command in agent.commands_of(session).values():
        fields: Message = {"name": command.name, "description": command.description}
        listed.append({**fields, "input": {"hint": command.hint}} if command.hint else fields)
    return {"sessionUpdate": "available_commands_update", "availableCommands": listed}
