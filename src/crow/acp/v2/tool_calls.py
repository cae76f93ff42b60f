"""Tool calls in version 2: upserts of a call, and a terminal of the agent's for each command."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from crow.acp.bounds import bounded_changes, bounded_raw, bounded_text, note_of_left_out
from crow.acp.content import to_blocks
from crow.acp.jsonrpc import Message
from crow.acp.tool_calls import (
    FENCED,
    CallIds,
    ToolCallView,
    describe,
    details,
    exit_code,
    fence,
    location,
    pictures,
    planned,
    proposed,
    terminal,
    text,
    titled,
)
from crow.acp.v2.changes import diff
from crow.core.events import ToolEnded, ToolPending, ToolProgress, ToolStarted
from crow.core.ports import PermissionRequest
from crow.core.tools import Diff, Outcome, ToolResult

Key = tuple[str, str]
"""A session, and a call in it."""
CANCEL: Message = {"cancel": {}}
SETTLED = {"ok": "completed", "answered": "completed", "cancelled": "cancelled"}


@dataclass(slots=True)
class Calls:
    """The calls that run now, by session and the id that the client knows.

    The values are what `crow.acp.v2.cancelling.Cancelling` knows them by. ``ended`` are those
    that the client has asked to end.
    """

    running: dict[Key, Key] = field(default_factory=dict["Key", "Key"])
    ended: set[Key] = field(default_factory=set["Key"])


class ToolCallViews:
    """The calls of one session, or of a sub-agent in it, that are open.

    ``live``: they happen now. ``used`` are the ids of earlier calls.
    """

    def __init__(
        self,
        session_id: str,
        cwd: str,
        calls: Calls,
        *,
        live: bool = True,
        used: Iterable[str] = (),
        prefix: str = "",
    ) -> None:
        self._session_id = session_id
        self._cwd = cwd
        self._calls = calls
        self._live = live
        self._ids = CallIds(used, prefix)
        self._open: dict[str, ToolCallView] = {}
        self._begun: set[str] = set()

    def shown_id(self, call_id: str) -> str:
        """The id under which the client knows an open call."""
        card = self._open.get(call_id)
        return card.call_id if card else self._ids.prefix + call_id

    def pending(self, event: ToolPending) -> list[Message]:
        """A new card."""
        call = event.call
        shown = self._ids.new(call.id)
        title = titled(event.title, event.kind, self._cwd)
        card = ToolCallView(shown, call.name, title, event.kind, call.args, event.locations)
        self._open[call.id] = card
        update = {**_update(shown), **describe(card), "status": "pending"}
        if self._live and (known := planned(card.kind, card.args, self._cwd)):
            update["content"] = changed(known)
        return [update]

    def started(self, event: ToolStarted) -> list[Message]:
        """It runs; a command in a terminal of its own, which can be ended by itself."""
        call_id = event.call.id
        card = self._open.get(call_id)
        if card is None:
            return []
        update: Message = {**_update(card.call_id), "status": "in_progress"}
        title = titled(event.title, card.kind, self._cwd)
        if title != card.title:
            update["title"] = title
        if event.args != card.args:
            update["rawInput"] = bounded_raw(event.args)
        card = self._open[call_id] = replace(card, title=title, args=event.args)
        self._begun.add(call_id)
        return self._begin(card, call_id, update) if self._live else [update]

    def _begin(self, card: ToolCallView, call_id: str, update: Message) -> list[Message]:
        """What runs now can be ended."""
        self._calls.running[self._key(card)] = (self._owner, call_id)
        update["capabilities"] = CANCEL
        if not is_command(card):
            return [update]
        opened = {**self._terminal(card), "capabilities": CANCEL}
        return [opened, {**update, "content": [terminal(card.call_id)]}]

    def progress(self, event: ToolProgress) -> list[Message]:
        """More output."""
        card = self._open.get(event.call_id)
        if card is None or not event.text:
            return []
        self._open[event.call_id] = replace(card, streamed=True)
        if is_command(card):
            return [_output(card.call_id, event.text)]
        chunk = {"sessionUpdate": "tool_call_content_chunk", "toolCallId": card.call_id}
        return [{**chunk, "content": text(event.text)}]

    def ended(self, event: ToolEnded) -> list[Message]:
        """Its result. A call that the client never heard of is told of first."""
        call, before = event.call, list[Message]()
        card = self._open.pop(call.id, None)
        if card is None:
            card = ToolCallView(self._ids.new(call.id), call.name, call.name, "other", call.args)
            before = [{**_update(card.call_id), **describe(card), "status": "pending"}]
        key = self._key(card)
        self._calls.running.pop(key, None)
        was_ended = key in self._calls.ended and event.outcome == "error"
        outcome: Outcome = "cancelled" if was_ended else event.outcome
        self._calls.ended.discard(key)
        has_run = call.id in self._begun
        self._begun.discard(call.id)
        return [*before, *self._settled(card, outcome, event.result, has_run=has_run)]

    def _settled(
        self, card: ToolCallView, outcome: Outcome, result: ToolResult, *, has_run: bool
    ) -> list[Message]:
        update: Message = {
            **_update(card.call_id),
            "status": SETTLED.get(outcome, "failed"),
            "rawOutput": bounded_raw(result.text if result.data is None else result.data),
        }
        if has_run and self._live:
            update["capabilities"] = None
        if result.locations:
            update["locations"] = list(map(location, result.locations))
        if not (is_command(card) and has_run):
            return [{**update, "content": contents(card, outcome, result)}]
        shown = [terminal(card.call_id)]
        if self._live and not card.streamed:
            shown.append(text(fence(result.text)))
        return [self._exited(card, result, outcome), {**update, "content": shown}]

    def _exited(self, card: ToolCallView, result: ToolResult, outcome: Outcome) -> Message:
        """The end of a command; of an earlier day's with all that is known of it."""
        ended = exit_status(result, outcome)
        if self._live:
            told = {"sessionUpdate": "terminal_update", "terminalId": card.call_id}
            return {**told, "exitStatus": ended, "capabilities": None}
        whole = {"output": {"data": _encoded(result.text)}, "exitStatus": ended}
        return {**self._terminal(card), **whole}

    def _terminal(self, card: ToolCallView) -> Message:
        return {
            "sessionUpdate": "terminal_update",
            "terminalId": card.call_id,
            "command": str(card.args.get("command") or card.title),
            "cwd": self._cwd,
        }

    def _key(self, card: ToolCallView) -> Key:
        return self._session_id, card.call_id

    @property
    def _owner(self) -> str:
        """The session whose loop runs the calls: this one, or the sub-agent's."""
        return self._ids.prefix.removesuffix(".") or self._session_id

    def permission(self, request: PermissionRequest) -> Message:
        """What permission is asked for: the command, or the call."""
        args = dict(request.args)
        shown, call = self.shown_id(request.call.id), request.call
        if request.kind == "execute" and isinstance(args.get("command"), str):
            asked = {"type": "command", "command": args["command"], "cwd": self._cwd}
            return {**asked, "toolCallId": shown}
        title = titled(request.title, request.kind, self._cwd)
        card = ToolCallView(shown, call.name, title, request.kind, args, request.locations)
        told = {**describe(card), "status": "pending"}
        diffs = proposed(request, self._cwd)
        if content := changed(diffs) if diffs else details(request):
            told["content"] = content
        return {"type": "tool_call", "toolCall": told}


def is_command(card: ToolCallView) -> bool:
    """True for a call that shows its output in a terminal until it ends."""
    return card.kind == "execute" and card.args.get("run_in_background") is not True


def contents(card: ToolCallView, outcome: Outcome, result: ToolResult) -> list[Message]:
    """What a card shows of a result that no terminal shows."""
    if outcome in ("denied", "cancelled"):
        return [text(bounded_text(result.text))]
    if result.diffs and not result.error:
        return changed(result.diffs)
    said = bounded_text(result.shown)
    shown = [text(fence(said) if card.kind in FENCED else said)] if said else []
    return [*shown, *pictures(to_blocks(result.content))]


def changed(diffs: tuple[Diff, ...]) -> list[Message]:
    """Changes on a card, small enough for every client."""
    shown = bounded_changes(diffs)
    said = note_of_left_out(shown)
    return [diff(shown), *([text(said)] if said else [])]


def _update(call_id: str) -> Message:
    return {"sessionUpdate": "tool_call_update", "toolCallId": call_id}


def _output(terminal_id: str, said: str) -> Message:
    chunk = {"sessionUpdate": "terminal_output_chunk", "terminalId": terminal_id}
    return {**chunk, "data": _encoded(said)}


def _encoded(said: str) -> str:
    return base64.b64encode(said.encode("utf-8", "replace")).decode()


def exit_status(result: ToolResult, outcome: Outcome) -> dict[str, Any]:
    """How a command ended, as far as it is known."""
    if outcome == "cancelled":
        return {"signal": "SIGTERM"}
    if found := re.search(r"^Killed by (SIG\w+)\.$", result.text, re.MULTILINE):
        return {"signal": found[1]}
    code = exit_code(result)
    return {} if code is None else {"exitCode": code}
