"""Keys of ``session.cache`` by which tools, extensions and clients tell each other something."""

from __future__ import annotations

from crow.core.ports import (
    CLIENT_SERVERS,
    ENV_FILE,
    FIRST_PROMPT,
    JOBS,
    MAY_READ,
    UNASKED,
    WATCHED,
    Job,
)
from crow.core.session import SUBAGENT_CALLS, SUBAGENTS, TRACE_CONTEXT

__all__ = [
    "CLIENT_SERVERS",
    "ENV_FILE",
    "FIRST_PROMPT",
    "JOBS",
    "MAY_READ",
    "SUBAGENTS",
    "SUBAGENT_CALLS",
    "TRACE_CONTEXT",
    "UNASKED",
    "WATCHED",
    "Job",
]
