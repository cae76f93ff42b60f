"""The actions of hooks on a tool call, in the words of an editor's log."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from crow.acp.jsonrpc import Message, as_object
from crow.core.cache import SUBAGENTS
from crow.core.session import Session
from crow.core.trace import USER, Record, Trace
from crow.core.verdicts import Allow, Answer, Ask, Continue, Deny, Stop

VERDICTS = (Allow, Ask, Deny, Stop, Answer, Continue)
NAMES = frozenset(verdict.__name__.lower() for verdict in VERDICTS)


def trace_of(session: Session, subagent: str) -> Trace:
    """The record of a session, or of a sub-agent at work in it; an empty one where it is gone."""
    if not subagent:
        return session.trace
    found = (SUBAGENTS.get(session) or {}).get(subagent)
    return found.trace if found is not None else Trace()


def actions(trace: Trace, call_id: str) -> Iterator[Message]:
    """One entry for every hook that answered, changed something or failed, in order."""
    for record in trace.of_call(call_id):
        did = record.answer is not None or record.changed or record.error
        if did and record.owner != USER:
            yield action_of(record)


def stored_actions(records: Iterable[Message]) -> Iterator[Message]:
    """The same of a call that is told again, by what was stored of each hook."""
    for record in records:
        answer = record.get("answer")
        if answer is None and not record.get("changed") and "error" not in record:
            continue
        told = {name: record[name] for name in ("event", "owner", "hook")}
        verdict = as_object(answer)
        if answer is not None:
            told["verdict"] = verdict.get("type") if verdict.get("type") in NAMES else "value"
        kept = {"reason": verdict.get("reason"), "changed": [*record.get("changed", ())]}
        kept["error"] = record.get("error")
        yield {**told, **{name: value for name, value in kept.items() if value}}


def action_of(record: Record) -> Message:
    """The event, who it was, and the verdict; a value that is none stays here."""
    told: Message = {"event": record.event, "owner": record.owner, "hook": record.hook}
    if record.answer is not None:
        is_verdict = isinstance(record.answer, VERDICTS)
        told["verdict"] = type(record.answer).__name__.lower() if is_verdict else "value"
        if reason := getattr(record.answer, "reason", ""):
            told["reason"] = str(reason)
    if record.changed:
        told["changed"] = list(record.changed)
    if record.error:
        told["error"] = record.error
    return told
