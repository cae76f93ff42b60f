"""Hooks and what they did to a stored session's calls: ``crow hooks explain [SESSION] [CALL]``."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, cast

from crow.cli.hook_sources import handlers_of, where
from crow.cli.interrupt import run_async
from crow.cli.options import directory
from crow.cli.output import Output
from crow.cli.parser import UsageError
from crow.cli.session_lookup import store_of, store_with, whole_id
from crow.core.agent import Agent
from crow.core.errors import SessionError
from crow.core.store import Store
from crow.core.trace import USER
from crow.ports.stores import ExportStore
from crow.text import one_line

SHORT = 8
PLENTY = 2000


@dataclass(slots=True)
class Called:
    """A call as it was stored: what the model asked for, what hooks did, what came of it."""

    number: int
    id: str
    name: str
    asked: Any
    records: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    started: dict[str, Any] | None = None
    result: dict[str, Any] | None = None

    @property
    def outcome(self) -> str:
        """How it ended, in a word."""
        if self.result is None:
            return "unknown" if self.started else "not run"
        return str(self.result.get("outcome", "unknown"))

    @property
    def title(self) -> str:
        """The name and what it was about."""
        title = str((self.result or self.started or {}).get("title") or json.dumps(self.asked))
        return title if title.startswith(self.name) else f"{self.name}  {title}"

    @property
    def decided(self) -> str:
        """Who had the last word, and why."""
        judged = [each for each in self.records if verdict_of(each)]
        last = max(judged, key=strictness, default=None)
        return f"{last['owner']}: {record_text(last)}" if last else ""

    @property
    def did(self) -> Iterator[str]:
        """What hooks did to it, a line each: what they changed, and who had the last word."""
        changed = [each for each in self.records if each.get("changed") or stood_in(each)]
        told = [f"{each['owner']}: {record_text(each)}" for each in changed]
        yield from dict.fromkeys(filter(None, [*told, self.decided]))

    def described(self) -> dict[str, Any]:
        """All of it as a JSON object."""
        ran = self.started or {}
        return {
            "number": self.number,
            "call_id": self.id,
            "tool": self.name,
            "asked": self.asked,
            "ran": ran.get("args"),
            "outcome": self.outcome,
            "hooks": self.records,
        }


BEFORE = ("before_tool", "on_permission", "PreToolUse", "PermissionRequest", "PermissionDenied")
ORDER = ("allow", "ask", "answer", "deny", "stop")


def verdict_of(record: dict[str, Any]) -> str:
    """The name of the verdict that a hook gave on a call; empty where it gave none."""
    word = str(table(record.get("answer")).get("type", ""))
    return word if word in ORDER and record["event"] in ("before_tool", "on_permission") else ""


def strictness(record: dict[str, Any]) -> tuple[bool, int]:
    """What of several verdicts stood: the user's answer to a question, else the strictest."""
    return record["event"] == "on_permission", ORDER.index(verdict_of(record))


def record_text(record: dict[str, Any]) -> str:
    """What a hook did, in words."""
    words = [f"failed: {record['error']}"] if record.get("error") else []
    whose = stood_in(record)
    text = f"answered in the {whose}'s place" if whose else answer_text(record.get("answer"))
    words += [text] if text and not (words and text == "non_blocking_error") else []
    for name, value in record.get("changed", {}).items():
        now = "" if value is None else f" to {json.dumps(value, ensure_ascii=False)}"
        words.append(f"changed {name}{now}")
    return "; ".join(words)


PLACES = {"around_tool": "tool", "around_llm_request": "model"}


def stood_in(record: dict[str, Any]) -> str:
    """In whose place a hook answered that did not go on to what it goes around; else empty."""
    answers = table(record.get("answer")).get("type") == "answer"
    return PLACES.get(record["event"], "") if answers else ""


def answer_text(answer: Any) -> str:
    """A hook's answer in words; empty where it gave none."""
    more = table(answer).copy()
    if not more:
        return str(answer or "")
    word = more.pop("type", "") or more.pop("outcome", "")
    reason, rule = more.pop("reason", ""), more.pop("rule", "")
    rest = json.dumps(more, ensure_ascii=False) if more else ""
    told = [word, reason, f"(rule {rule})" if rule and rule not in reason else "", rest]
    return " ".join(filter(None, told)).replace(f"{word} {reason}", f"{word}: {reason}", 1)


def table(value: object) -> dict[str, Any]:
    """A JSON object; an empty one for anything else."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def calls_of(lines: Iterable[str]) -> tuple[list[Called], list[dict[str, Any]]]:
    """The calls of an exported session in order, and what hooks did beside calls."""
    calls: list[Called] = []
    latest: dict[str, Called] = {}
    beside: list[dict[str, Any]] = []
    for row in map(json.loads, lines):
        data = table(row.get("data"))
        match row["kind"]:
            case "message":
                for part in data.get("tool_calls", ()):
                    made = called(len(calls) + 1, part)
                    calls.append(made)
                    latest[made.id] = made
            case "hooks":
                for record in data["records"]:
                    known = latest.get(record.get("call_id", ""))
                    (beside if known is None else known.records).append(record)
            case "started" | "result" as kind if data.get("call_id") in latest:
                setattr(latest[data["call_id"]], kind, data)
            case _:
                pass
    return calls, beside


def called(number: int, part: dict[str, Any]) -> Called:
    """A call as the model made it; arguments that are no JSON stay text."""
    written = part["function"]["arguments"]
    try:
        args = json.loads(written or "{}")
    except ValueError:
        args = written
    return Called(number, part["id"], part["function"]["name"], args)


def explain(agent: Agent, options: argparse.Namespace, out: Output) -> int:
    """Run ``crow hooks explain``."""
    if len(options.words) > 2:
        raise UsageError("crow hooks explain [SESSION] [CALL] is how to say it")
    return run_async(_explain(agent, options, out))


async def _explain(agent: Agent, options: argparse.Namespace, out: Output) -> int:
    async with agent:
        store = store_of(agent)
        session_id = await _session(store, options)
        lines = (await store_with(store, ExportStore).export(session_id)).splitlines()
    calls, beside = calls_of(lines[1:])
    title = json.loads(lines[0]).get("title") or "(no title)"
    if len(options.words) == 2:
        calls = [call_named(options.words[1], calls)]
    if options.json:
        rows = [each.described() for each in calls]
        if len(options.words) < 2:
            rows += [table(each["answer"]) for each in filter(is_prefix, beside)]
        for row in rows:
            out.verbatim(json.dumps(row, ensure_ascii=False))
    elif len(options.words) == 2:
        show_call(calls[0], agent, out)
    else:
        out.raw(f"{out.styled(f'session {session_id[:SHORT]}', 'bold')}  {one_line(title)}")
        show_calls(calls, session_id, out)
        show_beside([each for each in beside if not is_prefix(each)], out)
        show_prefix(filter(is_prefix, beside), out)
    return 0


async def _session(store: Store, options: argparse.Namespace) -> str:
    """The session that was named, else the last one of this directory."""
    if options.words:
        return await whole_id(store, options.words[0])
    page, _ = await store.sessions(cwd=str(directory(options)), limit=1)
    if not page:
        raise SessionError("there is no session of this directory: crow sessions --all lists all")
    return page[0].id


def call_named(name: str, calls: list[Called]) -> Called:
    """The call of a number, or of an id. Raises `UsageError`."""
    if name.isdecimal() and 0 < int(name) <= len(calls):
        return calls[int(name) - 1]
    found = [each for each in calls if each.id == name]
    if not found:
        raise UsageError(f"there is no call {name!r}: this session has {len(calls)}, from 1 on")
    return found[-1]


def show_calls(calls: list[Called], session_id: str, out: Output) -> None:
    """A line for every call, and what hooks did to it."""
    for each in calls:
        head = out.styled(f"{each.number:>3}  {each.outcome:<9}", "dim")
        out.raw(f"{head}  {out.fit(one_line(each.title), 16)}")
        for did in each.did:
            out.raw(out.styled(f"{'':16}{out.fit(one_line(did), 16)}", "dim"))
    if calls:
        out.line(f"crow hooks explain {session_id[:SHORT]} NUMBER shows all of a call", "dim")
    else:
        out.line("no tool was called in this session")


def show_beside(records: list[dict[str, Any]], out: Output) -> None:
    """What hooks decided where no call was at stake."""
    if records:
        out.raw(out.styled("beside the calls", "bold"))
    for record in records:
        text = f"{record['event']}  {record['owner']}: {record_text(record)}"
        out.raw(f"  {out.fit(one_line(text), 2)}")


def is_prefix(record: dict[str, Any]) -> bool:
    """True for a record of a request that began otherwise than the one before."""
    return table(record.get("answer")).get("type") == "prefix"


def show_prefix(records: Iterable[dict[str, Any]], out: Output) -> None:
    """The requests that lost what the provider had in its cache, and to whom."""
    told = [table(record["answer"]) for record in records]
    if told:
        out.raw(out.styled("requests that began otherwise than the one before", "bold"))
    for each in told:
        text = f"request {each.get('request')}  {each.get('reason')}"
        out.raw(f"  {out.fit(one_line(text), 2)}")


def show_call(each: Called, agent: Agent, out: Output) -> None:
    """The chain of a call: what was asked, who said what in which order, what came of it."""
    head = f"{each.number}  {each.name}  {each.outcome}"
    out.raw(f"{out.styled(head, 'bold')}  {out.styled(each.id, 'dim')}")
    out.raw(f"   asked: {brief(each.asked)}")
    ran = each.started and each.started.get("args")
    for event, records in by_event(each.records):
        if ran and event not in BEFORE:
            out.raw(f"   ran:   {brief(ran)}")
            ran = None
        out.raw(f"   {out.styled(event, 'bold')}")
        show_records(records, agent, out)
    if each.result is not None:
        out.raw(f"   result: {brief(each.result.get('content'))}")


def by_event(records: list[dict[str, Any]]) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Records in their order, those of one event that stand together as one."""
    group: list[dict[str, Any]] = []
    for record in records:
        if group and group[-1]["event"] != record["event"]:
            yield group[0]["event"], group
            group = []
        group.append(record)
    if group:
        yield group[0]["event"], group


def show_records(records: list[dict[str, Any]], agent: Agent, out: Output) -> None:
    """The hooks of one event in order, those that said nothing in one line."""
    quiet: list[str] = []
    for record in records:
        if record_text(record):
            show_quiet(quiet, out)
            quiet = []
            show_record(record, agent, out)
        else:
            quiet.append(one_line(str(record["owner"])))
    show_quiet(quiet, out)


def show_quiet(owners: list[str], out: Output) -> None:
    """Who ran and had nothing to say."""
    if owners:
        out.raw(out.styled(f"     nothing from {', '.join(owners)}", "dim"))


def show_record(record: dict[str, Any], agent: Agent, out: Output) -> None:
    """Who it was, what it did, how long that took, and where it is written."""
    failed = bool(record.get("error")) or verdict_of(record) in ("deny", "stop")
    who = one_line(f"{record['owner']}: {record['hook']}")
    out.raw(
        f"     {who}  {out.styled(one_line(record_text(record)), *(('red',) if failed else ()))}"
    )
    if record["owner"] != USER:
        place = written(record, agent)
        out.raw(out.styled(f"       {record['ms']:g} ms{f'  {place}' if place else ''}", "dim"))


def written(record: dict[str, Any], agent: Agent) -> str:
    """The file of a hook, where the agent of today has it still."""
    for handler in handlers_of(agent):
        if (handler.event.name, str(handler)) == (record["event"], record["hook"]):
            return one_line(handler.source)
    for hook_point in agent.hooks.points.values():
        for hook in hook_point.entries:
            if (hook.owner.name, hook.name) == (record["owner"], record["hook"]):
                return one_line(where(hook))
    return ""


def brief(value: object) -> str:
    """A value in one line that is not endless."""
    text = one_line(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
    return text if len(text) <= PLENTY else f"{text[:PLENTY]}…"
