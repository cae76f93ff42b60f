"""Descriptions of what happened in a test, for its failures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from crow.core.hooks.context import Context
from crow.core.trace import Record

if TYPE_CHECKING:
    from crow.core.agent import Agent

WIDTH = 160


def is_of_test(agent: Agent, record: Record, ctx: Context) -> bool:
    """False for what writes sessions down, and for what hangs on sub-agents to guide these."""
    theirs = () if ctx.agent is agent else ctx.agent.hooks.owners
    guides = {each.name for each in theirs} - {each.name for each in agent.hooks.owners}
    return record.owner not in guides | {"persistence"}


def about(words: str) -> str:
    """Words that were looked for, as a sentence has them."""
    return f" about {words!r}" if words else ""


def text(content: Any) -> str:
    """What a message says."""
    return content if isinstance(content, str) else str(content or "")


def short(line: str) -> str:
    """A line that is not endless."""
    line = line.replace("\n", "⏎")
    return line if len(line) <= WIDTH else f"{line[:WIDTH]}…"


def record_line(record: Record) -> str:
    """What a hook did, in a line."""
    who = record.owner if record.owner == record.hook else f"{record.owner}.{record.hook}"
    said = [f"failed: {record.error}"] if record.error else []
    match record.answer:
        case None | {} | list():
            pass
        case str(text):
            said.append(repr(text))
        case verdict:
            reason = getattr(verdict, "reason", "") or getattr(verdict, "message", "")
            said.append(f"{type(verdict).__name__}({reason!r})" if reason else repr(verdict))
    said += [f"changed {', '.join(record.changed)}"] if record.changed else []
    return f"{record.event}: {who}: {'; '.join(said) or 'nothing to say'}"
