"""Version 1 of the protocol: how it says what `crow.acp.projection` says in the newer words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from crow.acp.capabilities import ClientCapabilities
from crow.acp.config_options import modes
from crow.acp.jsonrpc import Message
from crow.acp.projection import PermissionQuestion, Projection, Voice, again, option
from crow.acp.projection import text as chunk
from crow.acp.prompts import Prompts
from crow.acp.session_view import SessionView
from crow.acp.tool_calls import (
    RunningCalls,
    ToolCalls,
    ToolCallView,
    exit_status,
    fence,
    printed,
    terminal,
    text,
    tool_call_update,
)
from crow.core.catalog import Mode
from crow.core.events import Compacted, ConfigChanged, Notice, Retrying, ToolProgress
from crow.core.hooks.run_context import Reply
from crow.core.ports.client import Option, PermissionRequest, Question
from crow.core.tools import Diff, Outcome, ToolResult

if TYPE_CHECKING:
    import crow.acp.outgoing as v1
    import crow.acp.v2.outgoing as v2
    from crow.acp.words import CardUpdate, Update

SHOWN = 16 * 1024
"""Characters of a running command's output, which are sent again with each piece of it."""
RENAMED = {"configId": "id", "groupId": "group"}


class Version1:
    """Version 1; a `crow.acp.versions.Version`."""

    number = 1

    def capabilities(self, hello: Message) -> ClientCapabilities:
        """What the client announced."""
        return ClientCapabilities.of(hello)

    def projection(self, view: SessionView) -> ProjectionV1:
        """A session in the words of version 1."""
        return ProjectionV1(view, Prompts(), ToolCallsV1(view, RunningCalls()))


class ProjectionV1(Projection):
    """A session in the words of version 1.

    A client shows its prompts itself, and knows by their answers when the work ends. Notices and
    summaries become text where it does not know them.
    """

    def _message(self, voice: Voice, said: str, said_id: str) -> list[Update]:
        return [chunk(voice, said, said_id)]

    def _user_message(self, said_id: str, blocks: list[v2.ContentBlock]) -> list[Update]:
        return [
            {"sessionUpdate": "user_message_chunk", "content": block, "messageId": said_id}
            for block in blocks
        ]

    def _steered(self) -> list[Update]:
        return []

    def _plan(self, listed: list[v2.PlanEntry]) -> Update:
        if self._view.capabilities.plans:
            return super()._plan(listed)
        return {"sessionUpdate": "plan", "entries": older(listed)}

    def _notice(self, event: Notice) -> list[Update]:
        """A notice; as text where the client shows none, unless it is mere information."""
        if self._view.capabilities.notices:
            return super()._notice(event)
        if event.severity == "info":
            return []
        said = f"\n\n*{event.severity.capitalize()}: {event.text}*\n\n"
        return [chunk("agent_message", said, f"{self._id()}.notice")]

    def _retrying(self, event: Retrying) -> list[Update]:
        if self._view.capabilities.notices:
            return super()._retrying(event)
        return [chunk("agent_thought", f"\n{again(event)}\n", f"{self._id()}.retry")]

    def _compacted(self, event: Compacted) -> list[Update]:
        if self._view.capabilities.compaction:
            return super()._compacted(event)
        return self._notice(Notice("The conversation was summarised to make room."))

    # what can be chosen

    def choices(self) -> v1.LoadSessionResponse:
        """The fields ``modes`` and ``configOptions`` of an answer, as far as there is a choice."""
        fields: v1.LoadSessionResponse = {}
        if offered := modes(self._view.agent, self.session):
            listed = list(map(mode_fields, offered))
            fields["modes"] = {"currentModeId": self.session.mode, "availableModes": listed}
        fields = {**fields, **self.confinement()}
        if options := self.options():
            fields["configOptions"] = older(options)
        return fields

    def options(self) -> list[v2.SessionConfigOption]:
        """The complete list of options, as it is now."""
        return older([renamed(each) for each in super().options()])

    def _config(self, event: ConfigChanged) -> list[Update]:
        told = super()._config(event) if self.options() else []
        if "mode" in event.changes:
            mode = self.session.mode
            told.append({"sessionUpdate": "current_mode_update", "currentModeId": mode})
        return told

    def _commands(self) -> list[v2.AvailableCommand]:
        return older(list(map(untyped, super()._commands())))

    # what is asked

    def permission(self, request: PermissionRequest) -> v1.RequestPermissionRequest:
        """The parameters of ``session/request_permission``; the reason stands on the card.

        Changes stand before it: some clients look for them in the first place alone.
        """
        asked = self.calls.asked(request)
        if request.description:
            shown = [text(request.description), *(asked.get("content") or [])]
            asked["content"] = sorted(shown, key=lambda part: part["type"] != "diff")
        options = list(map(option, request.options))
        return {"sessionId": self.session.id, "toolCall": older(asked), "options": options}

    def poll(self, question: Question, offered: list[Option], number: int) -> PermissionQuestion:
        """A question as a request for permission to go on with a call that is none."""
        card = tool_call_update(f"{self.session.id}.question.{number}")
        shown: v1.ToolCall = {
            "toolCallId": card["toolCallId"],
            "title": question.text,
            "kind": "other",
            "status": "pending",
        }
        if question.detail:
            shown["content"] = older([text(question.detail)])
        options = list(map(option, offered))
        return PermissionQuestion(
            {"sessionId": self.session.id, "toolCall": older(shown), "options": options},
            [{"sessionUpdate": "tool_call", **shown}],
            [{**card, "status": "completed"}],
            [{**card, "status": "failed"}],
        )

    # how far it is

    def running(self) -> list[Update]:
        """Nothing: the client knows by the request that is not answered yet."""
        return []

    blocked = running

    def idle(self, reply: Reply | None) -> list[Update]:
        """Nothing: the request's answer says so."""
        del reply
        return []


class ToolCallsV1(ToolCalls):
    """The open calls of a session in the words of version 1.

    A command shows its output as text, or in a terminal of the client's. A client that shows
    commands that it does not run as terminals reads of them in the ``_meta`` of the updates; so
    does one that has run them, on another day: its own terminals are gone.
    """

    def __init__(self, view: SessionView, running: RunningCalls) -> None:
        super().__init__(view, running)
        able = view.capabilities
        self._has_terminals = able.terminal_output and not (view.live and able.terminals)

    def _first(self, told: v2.ToolCallUpdate) -> Update:
        shown: v1.ToolCall = older(told)
        return {"sessionUpdate": "tool_call", "status": "pending", **shown}

    def _planned(self, card: ToolCallView, told: v2.ToolCallUpdate) -> v2.ToolCallUpdate:
        if not self._shows_terminal(card):
            return super()._planned(card, told)
        meta = {"terminal_info": {"terminal_id": card.call_id, "cwd": self.cwd}}
        return {**told, "content": [terminal(card.call_id)], "_meta": meta}

    def _begin(self, card: ToolCallView, call_id: str, update: CardUpdate) -> list[Update]:
        del card, call_id
        return [update]

    def _progressed(
        self, card: ToolCallView, event: ToolProgress
    ) -> tuple[ToolCallView, list[Update]]:
        """The whole of what is shown, since content replaces content."""
        update = tool_call_update(card.call_id)
        if event.terminal is not None:
            card = replace(card, streamed=True, terminal=event.terminal)
            return card, [{**update, "content": [terminal(event.terminal)]}]
        if not event.text:
            return card, []
        if self._shows_terminal(card):
            said = event.text if self.live else card.output + event.text
            card = replace(card, streamed=True, output="" if self.live else said)
            meta = {"terminal_output": output(card.call_id, said)}
            return card, [{**update, "_meta": meta}]
        shown = (card.output + event.text)[-SHOWN:]
        return replace(card, output=shown), [{**update, "content": [text(fence(shown))]}]

    def _settled(
        self, card: ToolCallView, outcome: Outcome, result: ToolResult, update: CardUpdate
    ) -> list[Update]:
        is_cancelled = outcome == "cancelled"
        if is_cancelled:
            update["status"] = "failed"
        if self._shows_terminal(card) and outcome != "denied":
            return [{**update, "_meta": self._exit(card, outcome, result)}]
        kept = until_cancelled(card) if is_cancelled else []
        update["content"] = [*kept, *self.contents(card, outcome, result)]
        return [update]

    def _exit(self, card: ToolCallView, outcome: Outcome, result: ToolResult) -> Message:
        """The end of a command that is shown as a terminal, with what was not shown of it yet."""
        status = exit_status(outcome, result)
        ended = {"exit_code": status.get("exitCode"), "signal": status.get("signal")}
        meta: Message = {"terminal_exit": {"terminal_id": card.call_id, **ended}}
        if said := self._unshown(card, outcome, result):
            meta["terminal_output"] = output(card.call_id, said)
        return meta

    def _unshown(self, card: ToolCallView, outcome: Outcome, result: ToolResult) -> str:
        """What was not shown yet: what came of it, or, on a later day, all that was printed."""
        if self.live:
            return "" if card.streamed and outcome != "cancelled" else result.text
        if outcome == "cancelled":
            return card.output + result.text
        return card.output or printed(result) or result.text

    def _diffs(self, diffs: tuple[Diff, ...]) -> list[v2.ToolCallContent]:
        return older(list(map(diff, diffs)))

    def _shows_terminal(self, card: ToolCallView) -> bool:
        return self._has_terminals and card.kind == "execute"


def older(told: object) -> Any:
    """What version 1 has in the place of its newer form, or the newer form where both are one."""
    return told


def until_cancelled(card: ToolCallView) -> list[v2.ToolCallContent]:
    """What a card showed of a call that did not come to its end: people want to see how far."""
    if card.terminal is not None:
        return [terminal(card.terminal)]
    return [text(fence(card.output))] if card.output else []


def diff(change: Diff) -> v1.ToolCallContent:
    """A change on a card; of a part of a file it is said where that begins."""
    told: v1.ToolCallContentDiff = {
        "type": "diff",
        "path": change.path,
        "oldText": change.old,
        "newText": change.new,
    }
    return told if change.line is None else {**told, "_meta": {"crow": {"line": change.line}}}


def output(terminal_id: str, data: str) -> Message:
    """More output of a command that is shown as a terminal."""
    return {"terminal_id": terminal_id, "data": data}


def mode_fields(mode: Mode) -> v1.SessionMode:
    """A mode on offer."""
    fields: v1.SessionMode = {"id": mode.id, "name": mode.name}
    return {**fields, "description": mode.description} if mode.description else fields


def untyped(told: Mapping[str, Any]) -> Message:
    """A command, and its input, which are of one type each here."""
    fields = dict(told)
    fields.pop("type", None)
    return {**fields, "input": untyped(fields["input"])} if "input" in fields else fields


def renamed(told: Mapping[str, Any]) -> Message:
    """An option, or a group of its values, with the names that the ids have here."""
    fields = {RENAMED.get(name, name): value for name, value in told.items()}
    return (
        {**fields, "options": list(map(renamed, told["options"]))} if "options" in told else fields
    )
