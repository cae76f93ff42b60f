"""Tool calls as a client shows them: a title, the files concerned, diffs, output, a terminal."""

from __future__ import annotations

import base64
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from crow.acp.content import to_blocks
from crow.acp.jsonrpc import as_object
from crow.acp.limits import (
    bounded_block,
    bounded_changes,
    bounded_raw,
    bounded_text,
    note_of_left_out,
)
from crow.acp.session_view import SessionView
from crow.core.events import ToolEnded, ToolPending, ToolProgress, ToolStarted
from crow.core.ports.client import PermissionRequest
from crow.core.support.frozen import frozen, mutable
from crow.core.tools import Diff, Location, Outcome, ToolKind, ToolResult

if TYPE_CHECKING:
    import crow.acp.v2.outgoing as v2
    from crow.acp.words import CardUpdate, Update

FENCED: tuple[ToolKind, ...] = ("read", "search", "execute", "fetch")
OF_FILES: tuple[ToolKind, ...] = ("read", "edit", "delete", "move", "search")
PLAIN: tuple[ToolKind, ...] = ("execute", "edit")
"""Whose titles are a text everywhere."""
MARKS = re.compile(r"[*<\[~]|(?<!\w)_")
CANCEL: v2.ToolCallCapabilities = {"cancel": {}}
STATUS: Mapping[Outcome, Literal["completed", "cancelled"]] = {
    "ok": "completed",
    "answered": "completed",
    "cancelled": "cancelled",
}
CallKey = tuple[str, str]
"""A session, and a call in it."""


@frozen
class ToolCallView:
    """A call as the client knows it, by an id that is unique in its session."""

    call_id: str
    name: str
    title: str
    kind: ToolKind
    args: dict[str, Any]
    locations: tuple[Location, ...] = ()
    output: str = ""
    terminal: str | None = None
    begun: bool = False
    streamed: bool = False


@mutable
class RunningCalls:
    """The calls that run now, by session and the id that the client knows.

    The values are the session that a person talks to, and what
    `crow.acp.v2.cancelling.Cancelling` knows them by. ``ended`` are those
    that the client has asked to end.
    """

    keys: dict[CallKey, tuple[str, CallKey]] = field(
        default_factory=dict["CallKey", "tuple[str, CallKey]"]
    )
    ended: set[CallKey] = field(default_factory=set["CallKey"])


class CallIds:
    """Ids for a client, each of them new: models repeat theirs.

    ``used`` are those of earlier calls. A client would take the new call for the old one.
    """

    def __init__(self, used: Iterable[str], prefix: str) -> None:
        self.prefix = prefix
        self._used = Counter(used)

    def new(self, call_id: str) -> str:
        """The id under which the client gets to know a call."""
        self._used[call_id] += 1
        count = self._used[call_id]
        return self.prefix + (call_id if count == 1 else f"{call_id}.{count}")


class ToolCalls:
    """The open calls of a session, or of a sub-agent in it, in the words of version 2.

    Each command has a terminal of the agent's; what runs can be ended by itself.
    """

    def __init__(self, view: SessionView, running: RunningCalls) -> None:
        self.session, self.cwd, self.live = view.session, view.session.cwd, view.live
        self._owner = view.subagent or view.session.id
        self._running = running
        self._ids = CallIds(view.used_ids(), f"{view.subagent}." if view.subagent else "")
        self._open: dict[str, ToolCallView] = {}

    def shown_id(self, call_id: str) -> str:
        """The id under which the client knows an open call."""
        card = self._open.get(call_id)
        return card.call_id if card else self._ids.prefix + call_id

    def is_open(self, call_id: str) -> bool:
        """True for a call that the client has been told of, and not of its end."""
        return call_id in self._open

    # from its beginning to its end

    def pending(self, event: ToolPending) -> list[Update]:
        """A new call."""
        call = event.call
        shown = self._ids.new(call.id)
        title = titled(event.title, event.kind, self.cwd)
        card = ToolCallView(shown, call.name, title, event.kind, call.args, event.locations)
        self._open[call.id] = card
        return [self._first(self._planned(card, described(card)))]

    def started(self, event: ToolStarted) -> list[Update]:
        """It runs; title and arguments where hooks have changed them."""
        call_id = event.call.id
        card = self._open.get(call_id)
        if card is None:
            return []
        update: CardUpdate = {**tool_call_update(card.call_id), "status": "in_progress"}
        title = titled(event.title, card.kind, self.cwd)
        if title != card.title:
            update["title"] = title
        if event.args != card.args:
            update["rawInput"] = bounded_raw(event.args)
        card = self._open[call_id] = replace(card, title=title, args=event.args, begun=True)
        return self._begin(card, call_id, update) if self.live else [update]

    def progress(self, event: ToolProgress) -> list[Update]:
        """More output."""
        card = self._open.get(event.call_id)
        if card is None:
            return []
        self._open[event.call_id], updates = self._progressed(card, event)
        return updates

    def ended(self, event: ToolEnded) -> list[Update]:
        """Its result. A call that the client never heard of is told of first."""
        call = event.call
        before: list[Update] = []
        card = self._open.pop(call.id, None)
        if card is None:
            card = ToolCallView(self._ids.new(call.id), call.name, call.name, "other", call.args)
            before = [self._first(described(card))]
        key = self.session.id, card.call_id
        self._running.keys.pop(key, None)
        was_ended = key in self._running.ended and event.outcome == "error"
        self._running.ended.discard(key)
        outcome: Outcome = "cancelled" if was_ended else event.outcome
        result = event.result
        update: CardUpdate = {
            **tool_call_update(card.call_id),
            "status": STATUS.get(outcome, "failed"),
            "rawOutput": bounded_raw(result.text if result.data is None else result.data),
        }
        if result.locations:
            update["locations"] = list(map(location, result.locations))
        return [*before, *self._settled(card, outcome, result, update)]

    def asked(self, request: PermissionRequest) -> v2.ToolCallUpdate:
        """The call that permission is asked for, as it would run."""
        args, shown = dict(request.args), self.shown_id(request.call.id)
        title = titled(request.title, request.kind, self.cwd)
        card = ToolCallView(shown, request.call.name, title, request.kind, args, request.locations)
        told: v2.ToolCallUpdate = {**described(card), "status": "pending"}
        diffs = request.diffs or planned(request.kind, args, self.cwd)
        content = self.changed(diffs) if diffs else details(request)
        return {**told, "content": content} if content else told

    # what is shown of it

    def changed(self, diffs: tuple[Diff, ...]) -> list[v2.ToolCallContent]:
        """Changes, small enough for every client."""
        shown = bounded_changes(diffs)
        said = note_of_left_out(shown)
        return [*self._diffs(shown), *([text(said)] if said else [])]

    def contents(
        self, card: ToolCallView, outcome: Outcome, result: ToolResult
    ) -> list[v2.ToolCallContent]:
        """A result: the diffs, else the terminal, else the output."""
        if outcome in ("denied", "cancelled"):
            return [text(bounded_text(result.text))]
        if result.diffs and not result.error:
            return self.changed(result.diffs)
        if result.terminal is not None:
            return [terminal(result.terminal)]
        said = bounded_text(result.shown)
        shown = [text(fence(said) if card.kind in FENCED else said)] if said else []
        return [*shown, *pictures(to_blocks(result.content))]

    def _first(self, told: v2.ToolCallUpdate) -> Update:
        """The update that a client gets to know a call by."""
        return {"sessionUpdate": "tool_call_update", "status": "pending", **told}

    def _planned(self, card: ToolCallView, told: v2.ToolCallUpdate) -> v2.ToolCallUpdate:
        """A call, with what is known of its content before it runs."""
        known = planned(card.kind, card.args, self.cwd) if self.live else ()
        return {**told, "content": self.changed(known)} if known else told

    def _diffs(self, diffs: tuple[Diff, ...]) -> list[v2.ToolCallContent]:
        from crow.acp.diffs import diff

        return [diff(diffs)]

    def _begin(self, card: ToolCallView, call_id: str, update: CardUpdate) -> list[Update]:
        """What runs now can be ended."""
        known = self.session.root.id, (self._owner, call_id)
        self._running.keys[self.session.id, card.call_id] = known
        update["capabilities"] = CANCEL
        if not is_command(card):
            return [update]
        update["content"] = [terminal(card.call_id)]
        return [{**self._terminal(card), "capabilities": CANCEL}, update]

    def _progressed(
        self, card: ToolCallView, event: ToolProgress
    ) -> tuple[ToolCallView, list[Update]]:
        """What is known of a call that has said more, and what is told of it."""
        if not event.text:
            return card, []
        if is_command(card) and not self.live:
            return replace(card, output=card.output + event.text), []
        if is_command(card):
            printed: Update = {
                "sessionUpdate": "terminal_output_chunk",
                "terminalId": card.call_id,
                "data": encoded(event.text),
            }
            return replace(card, streamed=True), [printed]
        said: Update = {
            "sessionUpdate": "tool_call_content_chunk",
            "toolCallId": card.call_id,
            "content": text(event.text),
        }
        return replace(card, streamed=True), [said]

    def _settled(
        self, card: ToolCallView, outcome: Outcome, result: ToolResult, update: CardUpdate
    ) -> list[Update]:
        """The end of a call, with its result."""
        if card.begun and self.live:
            update["capabilities"] = None
        if not (is_command(card) and card.begun):
            return [{**update, "content": self.contents(card, outcome, result)}]
        shown = [terminal(card.call_id)]
        if self.live and not card.streamed:
            shown.append(text(fence(result.text)))
        return [self._exited(card, outcome, result), {**update, "content": shown}]

    def _exited(self, card: ToolCallView, outcome: Outcome, result: ToolResult) -> Update:
        """The end of a command; of an earlier day's with all that is known of it."""
        ended = exit_status(outcome, result)
        if self.live:
            return {**terminal_update(card.call_id), "exitStatus": ended, "capabilities": None}
        output: v2.TerminalOutput = {"data": encoded(card.output or printed(result))}
        return {**self._terminal(card), "output": output, "exitStatus": ended}

    def _terminal(self, card: ToolCallView) -> v2.SessionUpdateTerminalUpdate:
        command = str(card.args.get("command") or card.title)
        return {**terminal_update(card.call_id), "command": command, "cwd": self.cwd}


def is_command(card: ToolCallView) -> bool:
    """True for a call that shows its output in a terminal until it ends."""
    return card.kind == "execute" and card.args.get("run_in_background") is not True


def tool_call_update(call_id: str) -> CardUpdate:
    """The beginning of an update of a call."""
    return {"sessionUpdate": "tool_call_update", "toolCallId": call_id}


def terminal_update(terminal_id: str) -> v2.SessionUpdateTerminalUpdate:
    """The beginning of an update of a terminal of the agent's."""
    return {"sessionUpdate": "terminal_update", "terminalId": terminal_id}


def described(card: ToolCallView) -> v2.ToolCallUpdate:
    """What a person is told of a call before it has a result."""
    fields: v2.ToolCallUpdate = {
        "toolCallId": card.call_id,
        "title": card.title,
        "name": card.name,
        "kind": card.kind,
        "rawInput": bounded_raw(card.args),
    }
    if card.locations:
        fields["locations"] = list(map(location, card.locations))
    return fields


def titled(title: str, kind: ToolKind, cwd: str) -> str:
    """A title with the files below ``cwd`` named as they are there; a command is left alone."""
    folder = cwd.rstrip("/")
    if folder and kind in OF_FILES:
        title = re.sub(rf"(?<=\s){re.escape(folder)}$", ".", title.replace(f"{folder}/", ""))
    return title if kind in PLAIN else spelled(title)


def spelled(title: str) -> str:
    """A title that says the same as Markdown, which some clients take it for."""
    verb, _, rest = title.partition(" ")
    return f"{verb} `{rest}`" if MARKS.search(rest) and "`" not in rest else title


def location(place: Location) -> v2.ToolCallLocation:
    """A place in a file."""
    return {"path": place.path} if place.line is None else {"path": place.path, "line": place.line}


def text(said: str) -> v2.ToolCallContent:
    """Text on a card."""
    return {"type": "content", "content": {"type": "text", "text": said}}


def terminal(terminal_id: str) -> v2.ToolCallContent:
    """A terminal on a card."""
    return {"type": "terminal", "terminalId": terminal_id}


def exit_code(result: ToolResult) -> int | None:
    """How a command ended; None where it did not end by itself."""
    found = re.match(r"Exit code (\d+)", result.text)
    return int(found[1]) if found else None if result.error else 0


def fence(said: str) -> str:
    """Text that is shown as it is, whatever marks it holds."""
    longest = max(map(len, re.findall("`{3,}", said)), default=2)
    marks = "`" * (longest + 1)
    return f"{marks}\n{said.rstrip(chr(10))}\n{marks}"


def printed(result: ToolResult) -> str:
    """What a command printed, to the last newline; where that is not known, its result."""
    data = as_object(result.data)
    streams = [each for name in ("stdout", "stderr") if isinstance(each := data.get(name), str)]
    return "".join(streams) if streams else result.text


def exit_status(outcome: Outcome, result: ToolResult) -> v2.TerminalExitStatus:
    """How a command ended, as far as it is known."""
    if outcome == "cancelled":
        return {"signal": "SIGTERM"}
    if found := re.search(r"^Killed by (SIG\w+)\.$", result.text, re.MULTILINE):
        return {"signal": found[1]}
    code = exit_code(result)
    return {} if code is None else {"exitCode": code}


def encoded(said: str) -> str:
    """Output as it travels."""
    return base64.b64encode(said.encode("utf-8", "replace")).decode()


def pictures(blocks: Iterable[v2.ContentBlock]) -> list[v2.ToolCallContent]:
    """The blocks of a result that are no text, as far as a client takes them."""
    shown = (bounded_block(block) for block in blocks if block["type"] != "text")
    return [{"type": "content", "content": block} for block in shown]


def planned(kind: ToolKind, args: dict[str, Any], cwd: str) -> tuple[Diff, ...]:
    """The change that a call makes in ``cwd``, by its arguments alone: no file is opened."""
    named = args.get("file_path")
    if kind != "edit" or not isinstance(named, str):
        return ()
    match args:
        case {"old_string": str(old), "new_string": str(new)}:
            return (Diff(str(Path(cwd, named)), bounded_text(old), bounded_text(new)),)
        case {"content": str(new)}:
            return (Diff(str(Path(cwd, named)), "", new),)
        case _:
            return ()


def details(request: PermissionRequest) -> list[v2.ToolCallContent]:
    """The arguments, where nothing else tells of them."""
    return [text(fence(bounded_text(request.details)))] if request.details else []
