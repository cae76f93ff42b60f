"""Events of the loop as updates of version 2: one ``match``."""

from __future__ import annotations

from crow.acp.actions import actions, trace_of
from crow.acp.attachments import blocks_of, sent_as
from crow.acp.bounds import LONGEST_TEXT
from crow.acp.content import to_blocks
from crow.acp.jsonrpc import Message
from crow.acp.message_ids import end_run, is_on, message_id
from crow.acp.parents import owned
from crow.acp.projection import PermissionQuestion
from crow.acp.questions import option
from crow.acp.tool_calls import titled
from crow.acp.updates import called, notice, plan, text, thought_id, usage
from crow.acp.v2.options import commands, config_options
from crow.acp.v2.prompts import Prompts
from crow.acp.v2.state import State
from crow.acp.v2.tool_calls import Calls, ToolCallViews
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
from crow.core.messages import is_prompt
from crow.core.ports import Option, PermissionRequest, Question
from crow.core.session import Reply, Session

PLAN = "plan"
"""The id of a session's plan; it has one."""


class Translation:
    """One session's events; ``live``, or those of an earlier day, message by message.

    A `crow.acp.projection.Projection`.
    """

    def __init__(
        self,
        prompts: Prompts,
        calls: Calls,
        agent: Agent,
        session: Session,
        *,
        live: bool = True,
        prefix: str = "",
        parent: str = "",
        told: int | None = None,
    ) -> None:
        self.agent = agent
        self.session = session
        used = called(session, told) if live and not prefix else ()
        self.cards = ToolCallViews(
            session.id, session.cwd, calls, live=live, used=used, prefix=prefix
        )
        self.state = State(busy=session.busy)
        self._prompts = prompts
        self._live = live
        self._subagent = prefix.removesuffix(".")
        self._parent = parent
        self._compactions = 0
        self._seen = session.segment, len(session.messages)

    def updates(self, event: Event) -> list[Message]:
        """What the client is told of an event; often one update, sometimes none."""
        return [*self._steered(), *owned(self._updates(event), self._parent)]

    def shown_id(self, call_id: str) -> str:
        """The id under which the client knows an open call."""
        return self.cards.shown_id(call_id)

    def _updates(self, event: Event) -> list[Message]:  # noqa: C901 - one case an event
        match event:
            case TextDelta():
                return self._message("agent_message", event.text, self._id(event.message_id))
            case ThoughtDelta():
                thought = thought_id(self._id(event.message_id))
                return self._message("agent_thought", event.text, thought)
            case UserMessage():
                return self._prompted(event)
            case ToolPending():
                return self.cards.pending(event)
            case ToolStarted():
                return self.cards.started(event)
            case ToolProgress():
                return self.cards.progress(event)
            case ToolEnded():
                return self._ended(event)
            case UsageReported():
                return usage(event)
            case Notice():
                return [notice(event)]
            case Retrying():
                again = f"trying again in {max(event.delay, 1):.0f} s (attempt {event.attempt})"
                return [notice(Notice(f"{event.reason}; {again}", "warning"))]
            case PlanChanged():
                return [_plan(event)]
            case ConfigChanged():
                return [{"sessionUpdate": "config_option_update", "configOptions": self.options()}]
            case CommandsChanged():
                return [self.commands()]
            case TitleChanged():
                return [{"sessionUpdate": "session_info_update", "title": event.title}]
            case Compacted():
                return self._compacted(event)
            case RunEnded():
                return self._run_ended(event)
            case CallDelta():
                return []

    # what was said

    def _id(self, given: str) -> str:
        """The id of a message that is shown now; that of an earlier day's is its own."""
        return message_id(self.session, given) if self._live else given

    def _message(self, kind: str, said: str, said_id: str) -> list[Message]:
        """A piece of a message; the whole of it where it is told again."""
        if self._live:
            return [*self._inserted(), text(f"{kind}_chunk", said, said_id)]
        pieces = [said[n : n + LONGEST_TEXT] for n in range(0, len(said), LONGEST_TEXT)] or [""]
        content = [{"type": "text", "text": pieces[0]}]
        told = {"sessionUpdate": kind, "messageId": said_id, "content": content}
        return [told, *(text(f"{kind}_chunk", piece, said_id) for piece in pieces[1:])]

    def _prompted(self, event: UserMessage) -> list[Message]:
        """A prompt that stands in the conversation now, as the client wrote it."""
        message = user_message(event.message_id, blocks_of(event.content, event.written))
        if not self._live:
            return [message]
        self._seen = self.session.segment, len(self.session.messages) + 1
        prompt = self._prompts.current(self.session)
        if prompt is None:
            return [*self.running(), message]
        shown = prompt.insert(event.message_id)
        return [shown] if shown else []

    def _steered(self) -> list[Message]:
        """What the client said to a run that is on, as soon as it stands in the conversation."""
        session, (segment, seen) = self.session, self._seen
        count = len(session.messages)
        if not self._live or self._subagent:
            return []
        if segment != session.segment:
            self._seen = session.segment, count
            return []
        self._seen = segment, max(seen, count)
        new = enumerate(session.messages[seen:], seen)
        said = [(index, message) for index, message in new if is_prompt(message)]
        return [
            user_message(f"{session.id}.{segment}.{index}", sent_as(message))
            for index, message in said
        ]

    def _inserted(self) -> list[Message]:
        """Show the prompt that is worked on, where it never enters the history.

        It was refused, or a command has answered it without a model.
        """
        prompt = self._prompts.current(self.session)
        if prompt is None or prompt.inserted.done():
            return []
        shown = prompt.insert(self._id(""))
        return [shown] if shown else []

    def _run_ended(self, event: RunEnded) -> list[Message]:
        """The end of a run; of one that the client did not prompt, also that of the work."""
        told = [] if event.stop_reason == "cancelled" else self._inserted()
        end_run(self.session)
        is_last = len(self.session.runs) <= 1 and not is_on(self.session)
        if is_last and self._prompts.current(self.session) is None:
            told += self.idle(Reply("", event.stop_reason, {}, self.session, event.detail))
        return told

    # what was done

    def _ended(self, event: ToolEnded) -> list[Message]:
        """The result, with what hooks did to the call."""
        updates = self.cards.ended(event)
        trace = trace_of(self.session, self._subagent)
        if self._live and (done := list(actions(trace, event.call.id))):
            updates[-1]["_meta"] = {"crow": {"hooks": done}}
        return updates

    def _compacted(self, event: Compacted) -> list[Message]:
        self._compactions += 1
        compaction_id = f"{self.session.id}.{self.session.segment}.{self._compactions}"
        told = {"sessionUpdate": "compaction_update", "compactionId": compaction_id}
        return [{**told, "status": "completed", "summary": to_blocks(event.summary)}]

    # what can be chosen

    def commands(self) -> Message:
        """The slash commands on offer."""
        listed = commands(self.agent, self.session)
        return {"sessionUpdate": "available_commands_update", "availableCommands": listed}

    def choices(self) -> Message:
        """The options and commands of a session that is opened."""
        listed = commands(self.agent, self.session)
        return {
            "configOptions": self.options(),
            **({"availableCommands": listed} if listed else {}),
        }

    def options(self) -> list[Message]:
        """The complete list of options, as it is now."""
        return config_options(self.agent, self.session)

    # what is asked

    def permission(self, request: PermissionRequest) -> Message:
        """The parameters of ``session/request_permission``."""
        params: Message = {
            "sessionId": self.session.id,
            "title": titled(request.title, request.kind, self.session.cwd),
            "subject": self.cards.permission(request),
            "options": [option(each) for each in request.options],
        }
        return {**params, "description": request.reason} if request.reason else params

    def poll(self, question: Question, offered: list[Option], number: int) -> PermissionQuestion:
        """A question with these answers, as a request for permission that has no subject."""
        del number
        options = [option(each) for each in offered]
        params = {"sessionId": self.session.id, "title": question.text, "options": options}
        return PermissionQuestion(
            {**params, "description": question.detail} if question.detail else params
        )

    # how far it is

    def running(self) -> list[Message]:
        """Something is being worked on."""
        return self.state.running()

    def blocked(self) -> list[Message]:
        """The work waits for the user."""
        return self.state.blocked()

    def idle(self, reply: Reply | None) -> list[Message]:
        """Nothing is being worked on any more."""
        return self.state.idle(reply)


def user_message(said_id: str, content: list[Message]) -> Message:
    """What a person said, as a whole."""
    return {"sessionUpdate": "user_message", "messageId": said_id, "content": content}


def _plan(event: PlanChanged) -> Message:
    """The whole plan."""
    items = {"type": "items", "planId": PLAN, "entries": plan(event)["entries"]}
    return {"sessionUpdate": "plan_update", "plan": items}
