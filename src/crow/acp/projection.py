"""Events of the loop as updates of the protocol, in the words of version 2: one ``match``.

How version 1 says the same is in `crow.acp.v1`.
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Literal

from crow.acp.config_options import config_options
from crow.acp.content import blocks_of, sent_as, to_blocks
from crow.acp.jsonrpc import as_object
from crow.acp.limits import LONGEST_TEXT
from crow.acp.message_ids import end_run, is_on, message_id, next_id
from crow.acp.prompts import Prompts
from crow.acp.session_view import SessionView
from crow.acp.tool_calls import ToolCalls, titled
from crow.acp.turn import RunState
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
from crow.core.hooks.run_context import Reply
from crow.core.messages import is_prompt
from crow.core.ports.client import Option, PermissionRequest, Question
from crow.core.support.frozen import frozen
from crow.keys import PROMPT_CACHE, SANDBOX

if TYPE_CHECKING:
    import crow.acp.v2.outgoing as v2
    import crow.acp.words as words
    from crow.acp.words import Update

Voice = Literal["agent_message", "agent_thought"]

PLAN = "plan"
"""The id of a session's plan; it has one."""


@frozen
class PermissionQuestion:
    """A question that is asked as a request for permission, and the updates around it."""

    params: words.PermissionRequest
    opening: list[Update] = field(default_factory=list["Update"])
    answered: list[Update] = field(default_factory=list["Update"])
    unanswered: list[Update] = field(default_factory=list["Update"])


class Projection:
    """The updates and questions of one session for a client, or of a sub-agent's work in it.

    ``prompts`` are the ones that the client waits for, ``calls`` are open.
    """

    def __init__(self, view: SessionView, prompts: Prompts, calls: ToolCalls) -> None:
        self.session = view.session
        self.calls = calls
        self.state = RunState(busy=view.session.busy)
        self._view = view
        self._prompts = prompts
        self._compactions = 0
        self._next_id = ""
        self._seen = view.session.segment, len(view.session.messages)

    def updates(self, event: Event) -> list[Update]:
        """What the client is told of an event; often one update, sometimes none."""
        updates = self._updates(event)
        if parent := self._view.parent:
            updates = [of_subagent(each, parent) for each in updates]
        return [*self._steered(), *updates]

    def shown_id(self, call_id: str) -> str:
        """The id under which the client knows an open call."""
        return self.calls.shown_id(call_id)

    def _updates(self, event: Event) -> list[Update]:  # noqa: C901 - one case an event
        match event:
            case TextDelta():
                return self._message("agent_message", event.text, self._id(event.message_id))
            case ThoughtDelta():
                thought = thought_id(self._id(event.message_id))
                return self._message("agent_thought", event.text, thought)
            case UserMessage():
                return self._prompted(event)
            case ToolPending():
                return self.calls.pending(event)
            case ToolStarted():
                return self.calls.started(event)
            case ToolProgress():
                return self.calls.progress(event)
            case ToolEnded():
                return self._ended(event)
            case UsageReported():
                return self._usage(event)
            case Notice():
                return self._notice(event)
            case Retrying():
                return self._retrying(event)
            case PlanChanged():
                return [self._plan(entries(event))]
            case ConfigChanged():
                return self._config(event)
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

    def _id(self, given: str = "") -> str:
        """The id of a message that is shown now; that of an earlier day's is its own.

        What had none was shown as a part of the message that was to come next.
        """
        if self._view.live:
            return message_id(self.session, given)
        self._next_id = next_id(given) if given else self._next_id
        return given or self._next_id

    def _message(self, voice: Voice, said: str, said_id: str) -> list[Update]:
        """A piece of a message; the whole of it where it is told again."""
        if self._view.live:
            return [*self._inserted(), text(voice, said, said_id)]
        pieces = [said[n : n + LONGEST_TEXT] for n in range(0, len(said), LONGEST_TEXT)] or [""]
        later = [text(voice, piece, said_id) for piece in pieces[1:]]
        return [whole(voice, pieces[0], said_id), *later]

    def _user_message(self, said_id: str, blocks: list[v2.ContentBlock]) -> list[Update]:
        """What a person said, as a whole."""
        return [{"sessionUpdate": "user_message", "messageId": said_id, "content": blocks}]

    def _prompted(self, event: UserMessage) -> list[Update]:
        """A prompt that stands in the conversation now, as the client wrote it."""
        blocks = blocks_of(event.content, event.written)
        message = self._user_message(event.message_id, blocks)
        if self._view.caller:
            message = [self._order(event.message_id, blocks)]
        if not self._view.live:
            self._next_id = next_id(event.message_id)
            return message
        self._seen = self.session.segment, len(self.session.messages) + 1
        if self._view.caller:
            return [*self.running(), *message]
        prompt = self._prompts.current(self.session)
        if prompt is None:
            return [*self.running(), *message]
        shown = prompt.insert(event.message_id)
        return [shown] if shown else []

    def _order(self, said_id: str, blocks: list[v2.ContentBlock]) -> Update:
        """What a sub-agent was told to do, by the session that it works for."""
        return {
            "sessionUpdate": "session_message",
            "messageId": said_id,
            "senderSessionId": self._view.caller,
            "recipientSessionId": self.session.id,
            "content": blocks,
        }

    def _steered(self) -> list[Update]:
        """What the client said to a run that is on, as soon as it stands in the conversation."""
        session, (segment, seen) = self.session, self._seen
        count = len(session.messages)
        if not self._view.live or self._view.subagent:
            return []
        if segment != session.segment:
            self._seen = session.segment, count
            return []
        self._seen = segment, max(seen, count)
        return [
            update
            for index, message in enumerate(session.messages[seen:], seen)
            if is_prompt(message)
            for update in self._user_message(f"{session.id}.{segment}.{index}", sent_as(message))
        ]

    def _inserted(self) -> list[Update]:
        """Show the prompt that is worked on, where it never enters the history.

        It was refused, or a command has answered it without a model.
        """
        prompt = self._prompts.current(self.session)
        if prompt is None or prompt.inserted.done():
            return []
        shown = prompt.insert(self._id(""))
        return [shown] if shown else []

    def _run_ended(self, event: RunEnded) -> list[Update]:
        """The end of a run; of one that the client did not prompt, also that of the work."""
        told = [] if event.stop_reason == "cancelled" else self._inserted()
        end_run(self.session)
        is_last = len(self.session.runs) <= 1 and not is_on(self.session)
        if is_last and self._prompts.current(self.session) is None:
            told += self.idle(Reply("", event.stop_reason, {}, self.session, event.detail))
        return told

    # what was done

    def _ended(self, event: ToolEnded) -> list[Update]:
        """The result, with what hooks did to the call."""
        from crow.acp.hook_actions import actions, stored_actions, trace_of

        updates = self.calls.ended(event)
        self._next_id = next_id(self._next_id)
        did = stored_actions(event.hooks)
        if self._view.live:
            did = actions(trace_of(self.session, self._view.subagent), event.call.id)
        if done := list(did):
            settled = updates[-1]
            settled["_meta"] = {**settled.get("_meta", {}), "crow": {"hooks": done}}
        return updates

    def _plan(self, listed: list[v2.PlanEntry]) -> Update:
        """The whole plan."""
        items: v2.PlanUpdateContent = {"type": "items", "planId": PLAN, "entries": listed}
        return {"sessionUpdate": "plan_update", "plan": items}

    def _notice(self, event: Notice) -> list[Update]:
        """A notice; its first line is the title."""
        title, _, rest = event.text.strip().partition("\n")
        update: v2.SessionUpdateNotice = {
            "sessionUpdate": "notice",
            "severity": event.severity,
            "title": title,
        }
        if rest.strip():
            update["description"] = rest.strip()
        return [update]

    def _usage(self, event: UsageReported) -> list[Update]:
        """How full the window is, and what a broken prefix has cost."""
        known = PROMPT_CACHE.get(self.session)
        told = None if known is None or self._view.subagent else dict(known.described)
        updates = usage(event)
        for update in updates if told else ():
            update["_meta"] = {"crow": {"promptCache": told}}
        return [*updates]

    def _retrying(self, event: Retrying) -> list[Update]:
        return self._notice(Notice(again(event), "warning"))

    def _compacted(self, event: Compacted) -> list[Update]:
        self._compactions += 1
        compaction_id = f"{self.session.id}.{self.session.segment}.{self._compactions}"
        told: v2.SessionUpdateCompactionUpdate = {
            "sessionUpdate": "compaction_update",
            "compactionId": compaction_id,
            "status": "completed",
            "summary": to_blocks(event.summary),
        }
        return [told]

    # what can be chosen

    def commands(self) -> Update:
        """The update that tells which slash commands there are."""
        return {
            "sessionUpdate": "available_commands_update",
            "availableCommands": self._commands(),
        }

    def choices(self) -> words.Choices:
        """The fields of an answer that opens a session: choices, and what commands run in."""
        fields: v2.ResumeSessionResponse = {"configOptions": self.options(), **self.confinement()}
        if listed := self._commands():
            fields["availableCommands"] = listed
        return fields

    def confinement(self) -> v2.Extensible:
        """What commands run in, as a field of an answer; nothing where nobody looks after that."""
        sandbox = SANDBOX.get(self.session)
        return {"_meta": {"crow": {"sandbox": sandbox.line}}} if sandbox else {}

    def options(self) -> list[v2.SessionConfigOption]:
        """The complete list of options, as it is now."""
        switches = self._view.capabilities.boolean_options
        return config_options(self._view.agent, self.session, switches=switches)

    def _config(self, event: ConfigChanged) -> list[Update]:
        del event
        return [{"sessionUpdate": "config_option_update", "configOptions": self.options()}]

    def _commands(self) -> list[v2.AvailableCommand]:
        listed: list[v2.AvailableCommand] = []
        for command in self._view.agent.commands_of(self.session).values():
            told: v2.AvailableCommand = {
                "type": "command",
                "name": command.name,
                "description": command.description,
            }
            if command.hint:
                told["input"] = {"type": "text", "hint": command.hint}
            listed.append(told)
        return listed

    # what is asked

    def permission(self, request: PermissionRequest) -> words.PermissionRequest:
        """The parameters of ``session/request_permission``: for the command, or for the call."""
        params: v2.RequestPermissionRequest = {
            "sessionId": self.session.id,
            "title": titled(request.title, request.kind, self.session.cwd),
            "subject": self._subject(request),
            "options": list(map(option, request.options)),
        }
        if request.description:
            params["description"] = request.description
        return params

    def _subject(self, request: PermissionRequest) -> v2.RequestPermissionSubject:
        command = request.args.get("command")
        if request.kind == "execute" and isinstance(command, str):
            return {
                "type": "command",
                "command": command,
                "cwd": self.session.cwd,
                "toolCallId": self.shown_id(request.call.id),
            }
        return {"type": "tool_call", "toolCall": self.calls.asked(request)}

    def poll(self, question: Question, offered: list[Option], number: int) -> PermissionQuestion:
        """A question with these answers, as a request for permission that has no subject."""
        del number
        params: v2.RequestPermissionRequest = {
            "sessionId": self.session.id,
            "title": question.text,
            "options": list(map(option, offered)),
        }
        if question.detail:
            params["description"] = question.detail
        return PermissionQuestion(params)

    def scope(self, call_id: str) -> v2.ElicitationSessionScope:
        """What a form belongs to: the session, and the call where the client knows of that.

        A sub-agent's call that is not shown is its caller's call that is.
        """
        shown = self.shown_id(call_id) if self.calls.is_open(call_id) else self._view.parent
        scope: v2.ElicitationSessionScope = {"sessionId": self.session.id}
        return {**scope, "toolCallId": shown} if shown else scope

    # how far it is

    def running(self) -> list[Update]:
        """Something is being worked on."""
        return self.state.running()

    def blocked(self) -> list[Update]:
        """The work waits for the user."""
        return self.state.blocked()

    def idle(self, reply: Reply | None) -> list[Update]:
        """Nothing is being worked on any more; the last reply, None where it was taken back."""
        return self.state.idle(reply)


def text(voice: Voice, said: str, message_id: str) -> Update:
    """A piece of text."""
    piece: v2.ContentChunk = {"content": {"type": "text", "text": said}, "messageId": message_id}
    if voice == "agent_thought":
        return {"sessionUpdate": "agent_thought_chunk", **piece}
    return {"sessionUpdate": "agent_message_chunk", **piece}


def whole(voice: Voice, said: str, message_id: str) -> Update:
    """A text as a whole."""
    content: list[v2.ContentBlock] = [{"type": "text", "text": said}]
    if voice == "agent_thought":
        return {"sessionUpdate": "agent_thought", "messageId": message_id, "content": content}
    return {"sessionUpdate": "agent_message", "messageId": message_id, "content": content}


def thought_id(message_id: str) -> str:
    """The id of what the model thought before it wrote a message."""
    return f"{message_id}.thought"


def again(event: Retrying) -> str:
    """What is said of a request that is sent again."""
    after = f"trying again in {max(event.delay, 1):.0f} s (attempt {event.attempt})"
    return f"{event.reason}; {after}"


def entries(event: PlanChanged) -> list[v2.PlanEntry]:
    """The entries of a plan."""
    return [
        {"content": entry.content, "priority": entry.priority, "status": entry.status}
        for entry in event.entries
    ]


def usage(event: UsageReported) -> list[v2.SessionUpdateUsageUpdate]:
    """How full the window is; nothing where its size is not known."""
    if event.context_window is None:
        return []
    update: v2.SessionUpdateUsageUpdate = {
        "sessionUpdate": "usage_update",
        "used": event.context_tokens,
        "size": event.context_window,
    }
    if "cost" in event.total:
        update["cost"] = {"amount": event.total["cost"], "currency": "USD"}
    return [update]


def option(offered: Option) -> v2.PermissionOption:
    """One possible answer."""
    return {"optionId": offered.id, "name": offered.name, "kind": offered.kind}


def of_subagent(update: Update, parent: str) -> Update:
    """An update of a call that a sub-agent makes for the call ``parent``.

    There is no word for it in the protocol. The one that clients read is that of the adapter for
    Claude Code: ``claudeCode.parentToolUseId`` in the ``_meta`` of the call.
    """
    if "toolCallId" not in update:
        return update
    link = {"claudeCode": {"parentToolUseId": parent}}
    linked = update.copy()
    linked["_meta"] = {**as_object(update.get("_meta")), **link}
    return linked
