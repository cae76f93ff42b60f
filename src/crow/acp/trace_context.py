"""The W3C trace context that a client may give with a prompt, for whoever makes spans of it."""

from __future__ import annotations

import re

from crow.acp.jsonrpc import Message, as_object
from crow.core.session import Session
from crow.keys import TRACE_CONTEXT

PARENT = "[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}"
BESIDE = ("tracestate", "baggage")
LONGEST = 8192


def note_trace(params: Message, session: Session) -> None:
    """Let hooks and tools of a session find the trace context of a prompt, where it has one."""
    if context := trace_context(params):
        TRACE_CONTEXT.set(session, context)


def trace_context(params: Message) -> dict[str, str]:
    """``traceparent`` and what belongs to it, of a request's ``_meta``; empty where it is none."""
    meta = as_object(params.get("_meta"))
    parent = meta.get("traceparent")
    if not isinstance(parent, str) or not re.fullmatch(PARENT, parent):
        return {}
    beside = {name: meta[name] for name in BESIDE if isinstance(meta.get(name), str)}
    return {"traceparent": parent, **{k: v for k, v in beside.items() if len(v) <= LONGEST}}
