"""Tool calls as an editor shows them: a title, the files concerned, diffs, output, a terminal."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from crow.acp.bounds import (
    bounded_block,
    bounded_changes,
    bounded_raw,
    bounded_text,
    note_of_left_out,
)
from crow.acp.content import to_blocks
from crow.acp.jsonrpc import Message
from crow.core.events import ToolEnded, ToolPending, ToolProgress, ToolStarted
from crow.core.frozen import frozen
from crow.core.ports import PermissionRequest
from crow.core.tools import Diff, Location, Outcome, ToolKind, ToolResult

SHOWN = 16 * 1024
FENCED: tuple[ToolKind, ...] = ("read", "search", "execute", "fetch")
OF_FILES: tuple[ToolKind, ...] = ("read", "edit", "delete", "move", "search")


@frozen
class ToolCallView:
    """What the client knows of a call, by an id that is unique in its session."""

    call_id: str
    name: str
    title: str
    kind: ToolKind
    args: dict[str, Any]
    locations: tuple[Location, ...] = ()
    output: str = ""
    terminal: str | None = None
    streamed: bool = False


class CallIds:
    """Ids for a client, each of them new: models repeat theirs.

    ``used`` are those of earlier calls. A client would take the new call for the old one.
    """

    def __init__(self, used: Iterable[str] = (), prefix: str = "") -> None:
        self.prefix = prefix
        self._used = Counter(used)

    def new(self, call_id: str) -> str:
        """The id under which the client gets to know a call."""
        self._used[call_id] += 1
        count = self._used[call_id]
        return self.prefix + (call_id if count == 1 else f"{call_id}.{count}")


class ToolCallViews:
    """The calls of one session that are open.

    ``own_terminals``: the client shows commands that it does not run itself as terminals.
    ``live``: they happen now.
    """

    def __init__(
        self,
        *,
        own_terminals: bool = False,
        live: bool = True,
        used: Iterable[str] = (),
        prefix: str = "",
    ) -> None:
        self._own_terminals = own_terminals
        self._live = live
        self._ids = CallIds(used, prefix)
        self._open: dict[str, ToolCallView] = {}

    def shown_id(self, call_id: str) -> str:
        """The id under which the client knows an open call."""
        card = self._open.get(call_id)
        return card.call_id if card else self._ids.prefix + call_id

    def pending(self, event: ToolPending, cwd: str) -> Message:
        """A new card."""
        call = event.call
        shown = self._ids.new(call.id)
        title = titled(event.title, event.kind, cwd)
        card = ToolCallView(shown, call.name, title, event.kind, call.args, event.locations)
        self._open[call.id] = card
        update = {"sessionUpdate": "tool_call", "status": "pending", **describe(card)}
        if self._shows_terminal(card):
            update["content"] = [terminal(shown)]
            update["_meta"] = {"terminal_info": {"terminal_id": shown, "cwd": cwd}}
        elif self._live and (known := planned(card.kind, card.args, cwd)):
            update["content"] = changed(known)
        return update

    def started(self, event: ToolStarted, cwd: str) -> Message:
        """It runs; title and arguments where hooks have changed them."""
        call_id = event.call.id
        update: Message = {**_update(self.shown_id(call_id)), "status": "in_progress"}
        card = self._open.get(call_id)
        if card is None:
            return update
        title = titled(event.title, card.kind, cwd)
        if title != card.title:
            update["title"] = title
        if event.args != card.args:
            update["rawInput"] = bounded_raw(event.args)
        self._open[call_id] = replace(card, title=title, args=event.args)
        return update

    def progress(self, event: ToolProgress) -> Message | None:
        """More output; the whole of what is shown, since content replaces content."""
        card = self._open.get(event.call_id)
        if card is None:
            return None
        update = _update(card.call_id)
        if event.terminal is not None:
            self._open[event.call_id] = replace(card, streamed=True, terminal=event.terminal)
            return {**update, "content": [terminal(event.terminal)]}
        if not event.text:
            return None
        if self._shows_terminal(card):
            self._open[event.call_id] = replace(card, streamed=True)
            return {**update, "_meta": {"terminal_output": output(card.call_id, event.text)}}
        shown = (card.output + event.text)[-SHOWN:]
        self._open[event.call_id] = replace(card, output=shown)
        return {**update, "content": [text(fence(shown))]}

    def ended(self, event: ToolEnded) -> list[Message]:
        """Its result. A call that the client never heard of is told of first."""
        call = event.call
        card = self._open.pop(call.id, None)
        before: list[Message] = []
        if card is None:
            card = ToolCallView(self._ids.new(call.id), call.name, call.name, "other", call.args)
            before = [{"sessionUpdate": "tool_call", "status": "pending", **describe(card)}]
        return [*before, self._settled(card, event.outcome, event.result)]

    def _settled(self, card: ToolCallView, outcome: Outcome, result: ToolResult) -> Message:
        update: Message = {
            **_update(card.call_id),
            "status": "completed" if outcome in ("ok", "answered") else "failed",
            "rawOutput": bounded_raw(result.text if result.data is None else result.data),
        }
        if result.locations:
            update["locations"] = list(map(location, result.locations))
        if self._shows_terminal(card) and outcome != "denied":
            return {**update, "_meta": self._exit(card, outcome, result)}
        kept = until_cancelled(card) if outcome == "cancelled" else []
        update["content"] = [*kept, *contents(card.kind, outcome, result)]
        return update

    def _exit(self, card: ToolCallView, outcome: Outcome, result: ToolResult) -> Message:
        """The end of a command that is shown as a terminal, with what was not shown of it yet."""
        ended = {"exit_code": exit_code(result), "signal": None}
        if outcome == "cancelled":
            ended = {"exit_code": None, "signal": "SIGTERM"}
        meta: Message = {"terminal_exit": {"terminal_id": card.call_id, **ended}}
        if not card.streamed or outcome == "cancelled":
            meta["terminal_output"] = output(card.call_id, result.text)
        return meta

    def _shows_terminal(self, card: ToolCallView) -> bool:
        return self._own_terminals and card.kind == "execute"


def _update(call_id: str) -> Message:
    return {"sessionUpdate": "tool_call_update", "toolCallId": call_id}


def describe(card: ToolCallView) -> Message:
    """What a person is told of a call before it has a result."""
    fields: Message = {
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
    return title.replace(f"{folder}/", "") if folder and kind in OF_FILES else title


def location(place: Location) -> Message:
    """A place in a file."""
    return {"path": place.path} if place.line is None else {"path": place.path, "line": place.line}


def output(terminal_id: str, data: str) -> Message:
    """More output of a command that is shown as a terminal."""
    return {"terminal_id": terminal_id, "data": data}


def text(said: str) -> Message:
    """Text on a card."""
    return {"type": "content", "content": {"type": "text", "text": said}}


def terminal(terminal_id: str) -> Message:
    """A terminal on a card."""
    return {"type": "terminal", "terminalId": terminal_id}


def diff(change: Diff) -> Message:
    """A change on a card; of a part of a file it is said where that begins."""
    told = {"type": "diff", "path": change.path, "oldText": change.old, "newText": change.new}
    return told if change.line is None else {**told, "_meta": {"crow": {"line": change.line}}}


def changed(diffs: tuple[Diff, ...]) -> list[Message]:
    """Changes on a card, small enough for every client."""
    shown = bounded_changes(diffs)
    said = note_of_left_out(shown)
    return [*map(diff, shown), *([text(said)] if said else [])]


def exit_code(result: ToolResult) -> int | None:
    """How a command ended; None where it did not end by itself."""
    found = re.match(r"Exit code (\d+)", result.text)
    return int(found[1]) if found else None if result.error else 0


def fence(said: str) -> str:
    """Text that is shown as it is, whatever marks it holds."""
    longest = max(map(len, re.findall("`{3,}", said)), default=2)
    marks = "`" * (longest + 1)
    return f"{marks}\n{said.rstrip(chr(10))}\n{marks}"


def contents(kind: ToolKind, outcome: Outcome, result: ToolResult) -> list[Message]:
    """What a card shows of a result: the diffs, else the terminal, else the output."""
    if outcome in ("denied", "cancelled"):
        return [text(bounded_text(result.text))]
    if result.diffs and not result.error:
        return changed(result.diffs)
    if result.terminal is not None:
        return [terminal(result.terminal)]
    said = bounded_text(result.shown)
    shown = [text(fence(said) if kind in FENCED else said)] if said else []
    return [*shown, *pictures(to_blocks(result.content))]


def until_cancelled(card: ToolCallView) -> list[Message]:
    """What a card showed of a call that did not come to its end: people want to see how far."""
    if card.terminal is not None:
        return [terminal(card.terminal)]
    return [text(fence(card.output))] if card.output else []


def pictures(blocks: Iterable[Message]) -> list[Message]:
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


def proposed(request: PermissionRequest, cwd: str) -> tuple[Diff, ...]:
    """What the user is asked about: what the tool knows, else what the arguments say."""
    return request.diffs or planned(request.kind, dict(request.args), cwd)


def details(request: PermissionRequest) -> list[Message]:
    """The arguments, where nothing else tells of them."""
    return [text(fence(bounded_text(request.details)))] if request.details else []
