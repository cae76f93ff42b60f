"""A run as a program reads it: one JSON object a line. The keys are described in docs/json.md."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Any

from crow.cli.ask import Asker
from crow.cli.output import Output
from crow.core import events
from crow.core.events import Event
from crow.core.hooks.run_context import Reply
from crow.core.ports.client import Files, PermissionRequest, Question, Terminals
from crow.core.session import Session
from crow.core.tools import Diff, Location

VERSION = 1
Record = dict[str, Any]


class Lines:
    """A client that writes every event as a line of JSON."""

    answers = False
    files: Files | None = None
    terminals: Terminals | None = None
    waits_for_servers = False

    def __init__(self, out: Output, asker: Asker | None = None) -> None:
        self.out = out
        self.asker = asker
        self.unasked: list[PermissionRequest] = []
        self._early: list[Record] | None = []  # what is told before the session's own line

    async def update(self, session_id: str, event: Event) -> None:
        """Write an event, behind the session's own line."""
        if self._early is None:
            self.put(record(event))
        else:
            self._early.append(record(event))

    async def permission(self, session_id: str, request: PermissionRequest) -> str | None:
        """Say that a permission is missing; nobody answers here."""
        self.unasked.append(request)
        options = [option.id for option in request.options]
        self.put(
            {
                "type": "permission_wanted",
                "call_id": request.call.id,
                "title": request.title,
                "reason": request.reason,
                "explanation": request.explanation,
                "options": options,
            }
        )
        return None

    async def ask(self, session_id: str, question: Question) -> Any:
        """The default: nobody answers here."""
        return question.default

    def begin(self, session: Session, model: str, *, resumed: bool) -> None:
        """The first line, and what was told while the session was opened."""
        self.put(
            {
                "type": "session",
                "version": VERSION,
                "session_id": session.id,
                "cwd": session.cwd,
                "model": model,
                "resumed": resumed,
            }
        )
        early, self._early = self._early or [], None
        for told in early:
            self.put(told)

    def conclude(self, reply: Reply) -> None:
        """The last line."""
        self.put(
            {
                "type": "result",
                "session_id": reply.session.id,
                "stop_reason": reply.stop_reason,
                "detail": reply.detail,
                "text": reply.text,
                "usage": dict(reply.usage),
            }
        )

    def put(self, value: Record) -> None:
        """Write one object; whatever is no JSON in it as text."""
        self.out.verbatim(json.dumps(value, ensure_ascii=True, default=str))


def record(event: Event) -> Record:
    """An event as a JSON object."""
    match event:
        case events.ToolPending() | events.ToolStarted() | events.ToolEnded():
            return of_call(event)
        case events.TextDelta(text, message_id):
            return {"type": "text", "text": text, "message_id": message_id}
        case events.ThoughtDelta(text, message_id):
            return {"type": "thought", "text": text, "message_id": message_id}
        case events.CallDelta(call_id, name, text):
            return {"type": "call_delta", "call_id": call_id, "name": name, "text": text}
        case events.ToolProgress(call_id, text):
            return {"type": "tool_progress", "call_id": call_id, "text": text}
        case events.RunEnded(stop_reason, detail):
            return {"type": "run_ended", "stop_reason": stop_reason, "detail": detail}
        case _:
            return of_session(event)


def of_call(event: events.ToolPending | events.ToolStarted | events.ToolEnded) -> Record:
    """What happens to a tool call."""
    about: Record = {"call_id": event.call.id, "name": event.call.name}
    match event:
        case events.ToolPending(call, title, kind, locations):
            about |= {"type": "tool_pending", "args": call.args, "title": title, "kind": kind}
            about["locations"] = [place(location) for location in locations]
        case events.ToolStarted(_, args, title):
            about |= {"type": "tool_started", "args": args, "title": title}
        case events.ToolEnded(_, outcome, result, duration):
            about |= {"type": "tool_ended", "outcome": outcome, "text": result.text}
            about |= {"error": result.error, "seconds": round(duration, 6), "data": result.data}
            about["diffs"] = [change(diff) for diff in result.diffs]
            about["locations"] = [place(location) for location in result.locations]
    return {"type": about.pop("type"), **about}


def of_session(event: Event) -> Record:
    """What is about the session as a whole."""
    match event:
        case events.UsageReported(last, total, tokens, window):
            usage = {"last": dict(last), "total": dict(total)}
            return {"type": "usage", **usage, "context_tokens": tokens, "context_window": window}
        case events.Notice(text, severity, source):
            return {"type": "notice", "text": text, "severity": severity, "source": source}
        case events.PlanChanged(entries):
            steps = [{"content": e.content, "status": e.status} for e in entries]
            return {"type": "plan", "entries": steps}
        case _:
            return {"type": NAMES[type(event)], **_fields(event)}


NAMES: dict[type, str] = {
    events.Retrying: "retrying",
    events.UserMessage: "user_message",
    events.ConfigChanged: "config_changed",
    events.TitleChanged: "title",
    events.Compacted: "compacted",
    events.CommandsChanged: "commands_changed",
}


def _fields(event: Event) -> Record:
    return {field.name: getattr(event, field.name) for field in fields(event)}


def place(location: Location) -> Record:
    """A location as a JSON object."""
    return {"path": location.path, "line": location.line}


def change(diff: Diff) -> Record:
    """A diff as a JSON object; of a part of a file with the line where that begins."""
    told = {"path": diff.path, "old": diff.old, "new": diff.new}
    return told if diff.line is None else {**told, "line": diff.line}
