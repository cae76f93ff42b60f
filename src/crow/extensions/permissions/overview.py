"""An overview of a session's permissions: its rules, its questions, and approvals to revoke."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, cast

from crow import Allow, Answer, Ask, CommandContext, Deny, Session
from crow.dataclasses import frozen
from crow.extensions.permissions.settings import RuleText

if TYPE_CHECKING:
    from crow.hooks import Record

HERE = "this session"
USER = "user"
LAST = 10
ORDER = ("deny", "ask", "allow")
ANSWERS = {
    "allow_once": "allowed once",
    "allow_always": "always allowed",
    "reject_once": "refused",
    "reject_always": "never allowed",
    "nobody": "nobody answered",
}


class Judge(Protocol):
    """Whoever has the rules: as they were written, and how one is taken out of the settings."""

    drop: Callable[[str], bool] | None

    def written(self, behaviour: str) -> Sequence[RuleText | str]:
        """The rules of the settings that allow, ask or deny."""
        ...


@frozen
class Row:
    """A rule, what it does with the calls that it means, and where it stands."""

    behaviour: str
    rule: str
    source: str

    def as_dict(self) -> dict[str, str]:
        """The same for programs."""
        return {"behaviour": self.behaviour, "rule": self.rule, "source": self.source}

    def __str__(self) -> str:
        return f"{self.behaviour:5}  {self.rule}  ({self.source})"


def rows_of(judge: Judge, state: Mapping[str, Any]) -> list[Row]:
    """The rules of the settings, the strictest first, and those of a session's user."""
    return [row for behaviour in ORDER for row in _rows(judge, behaviour, state)]


def _rows(judge: Judge, behaviour: str, state: Mapping[str, Any]) -> Iterator[Row]:
    settled: set[str] = set()
    for each in judge.written(behaviour):
        rule = RuleText(each) if isinstance(each, str) else each
        settled.add(rule.text)
        yield Row(behaviour, rule.text, rule.source)
    yield from (
        Row(behaviour, text, HERE) for text in state.get(behaviour, ()) if text not in settled
    )


async def permissions(judge: Judge, ctx: CommandContext) -> Answer:
    """The command ``/permissions``, and ``/permissions revoke RULE``."""
    word, _, rule = ctx.args.strip().partition(" ")
    if word == "revoke":
        return Answer(revoke(judge, ctx.state, rule.strip()))
    rows = rows_of(judge, ctx.state)
    lines = [f"Mode: {ctx.session.mode}", ""]
    lines += [f"- {row}" for row in rows] or ["There are no rules."]
    lines += ["", *_told(ctx.session, ctx.owner)]
    if any(row.behaviour == "allow" for row in rows):
        lines += ["", "/permissions revoke RULE takes back what was answered with always."]
    return Answer("\n".join(lines))


def revoke(judge: Judge, state: dict[str, Any], rule: str) -> str:
    """Take a rule out of a session and of the file that keeps such rules; what came of it."""
    found = [row for row in rows_of(judge, state) if row.rule == rule]
    is_ours = any(rule in state.get(behaviour, ()) for behaviour in ORDER)
    for behaviour in ORDER:
        if rule in state.get(behaviour, ()):
            state[behaviour].remove(rule)
    kept = judge.drop is not None and judge.drop(rule)
    if kept or is_ours:
        return f"{rule} is taken back" + (", in the project's settings too." if kept else ".")
    if found:
        return f"{rule} stands in {found[0].source}: change it there."
    return f"There is no rule {rule}." if rule else "Which rule? /permissions lists them."


def _told(session: Session, owner: str) -> list[str]:
    """How the calls of a session came to run, and the last questions with their answers."""
    records = [each for each in session.trace if each.event in ("before_tool", "on_permission")]
    judged = [each for each in records if each.owner == owner and each.event == "before_tool"]
    answered = {each.call_id: each for each in records if each.owner == USER}
    kinds = Counter(type(each.answer) for each in judged)
    asked_about = f"{kinds[Deny]} refused by a rule, {kinds[Ask]} asked about"
    lines = [f"So far: {kinds[Allow]} ran unasked, {asked_about}.", ""]
    asked = [each for each in judged if isinstance(each.answer, Ask)][-LAST:]
    calls = _calls(session)
    return lines + [
        f"- {_answer(each, answered)}: {calls.get(each.call_id or '')}" for each in asked
    ]


def _answer(question: Record, answered: Mapping[str | None, Record]) -> str:
    record = answered.get(question.call_id)
    return "answered by a hook" if record is None else ANSWERS.get(record.hook, record.hook)


def _calls(session: Session) -> dict[str, str]:
    """Every call of the history by its id, as rules write it."""
    return {
        call["id"]: _shown(call["function"]["name"], call["function"]["arguments"])
        for message in session.messages
        if message["role"] == "assistant"
        for call in message.get("tool_calls", ())
    }


def _shown(name: str, arguments: str) -> str:
    try:
        args: object = json.loads(arguments)
    except ValueError:
        args = {}
    values = cast("dict[str, object]", args).values() if isinstance(args, dict) else ()
    told = str(next(iter(values), ""))
    line = " ".join(told.split())
    return f"{name}({line if len(line) < 80 else line[:77] + '...'})"
