"""The input of a hook: the fields that every event has, and those that Crow adds for its own."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from crow.extensions.shell_hooks.event import Event
from crow.extensions.shell_hooks.memory import Memory, effort_of
from crow.keys import JOBS

if TYPE_CHECKING:
    from crow import Context, Session

Payload = dict[str, Any]
NULLS = frozenset({"custom_instructions", "requested_model"})
"""Fields that are there where nothing is known, too."""
MODES = frozenset({"default", "plan", "acceptEdits", "auto", "dontAsk", "bypassPermissions"})


def payload(
    event: Event, ctx: Context, fields: Mapping[str, Any], memory: Memory, main: Memory
) -> Payload:
    """The whole input of an event. ``main`` is the memory of the session a person talks to."""
    session = ctx.session
    whole: Payload = {
        "session_id": session.root.id,
        "transcript_path": str(main.transcript.path),
        "cwd": session.cwd,
        "hook_event_name": event.name,
    }
    if prompt_id := main.prompt(ctx) if session.parent is None else main.prompt_id:
        whole["prompt_id"] = prompt_id
    if event.mode:
        whole["permission_mode"] = session.mode if session.mode in MODES else "default"
    if event.has_effort and (level := effort_of(session.root)):
        whole["effort"] = {"level": level}
    if session.parent is not None:
        whole["agent_id"] = session.id
    if session.agent_type:
        whole["agent_type"] = session.agent_type
    said = {name: value for name, value in fields.items() if value is not None or name in NULLS}
    return whole | said


def own_payload(ctx: Context, whole: Payload) -> Payload:
    """The input with what Crow's own hooks get beside: model, tokens, cost, size of the context."""
    session = ctx.session
    return {
        "model": model_of(ctx),
        "usage": dict(session.usage),
        "context_tokens": session.tokens()["total_tokens"],
    } | whole


def encoded(whole: Mapping[str, Any]) -> bytes:
    """The input as one line of JSON."""
    text = json.dumps(whole, ensure_ascii=False, separators=(",", ":"), default=str)
    return f"{text}\n".encode("utf-8", "replace")


def model_of(ctx: Context) -> str | None:
    """The model that answers in a session; None where none is configured yet."""
    if ctx.session.model:
        return ctx.session.model
    try:
        return ctx.agent.llm.model
    except Exception:  # noqa: BLE001 - whatever a model of somebody else's raises
        return None


def background_tasks(session: Session) -> list[dict[str, Any]]:
    """What tools left running."""
    jobs = JOBS.get(session) or {}
    return [
        {
            "id": name,
            "type": "shell",
            "status": "running",
            "description": job.title,
            "command": job.title,
        }
        for name, job in jobs.items()
        if not job.reported
    ]
