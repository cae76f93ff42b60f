"""``crow sessions rewind``: what going back would change, and going back."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any

from crow.cli.ask import Asker
from crow.cli.output import Output
from crow.cli.parser import UsageError
from crow.cli.rewind_files import BACK, NOBODY, count_of, keeper_of, outcome_line, plan_lines
from crow.cli.session_lookup import store_with, whole_id
from crow.cli.stdin import somebody_is_there
from crow.core.errors import SessionError
from crow.core.messages import CONTEXT_OPEN
from crow.core.ports.client import Question
from crow.ports.stores import ExportStore, ForkStore, TreeStore
from crow.text import one_line, shorten

if TYPE_CHECKING:
    from crow.core.agent import Agent
    from crow.core.session import Session
    from crow.core.store import Store

LONGEST = 70


async def rewind(agent: Agent, store: Store, options: argparse.Namespace, out: Output) -> int:
    """List the prompts, or go back to before one of them, or undo the last rewind."""
    keeper = keeper_of(agent)
    if keeper is None:
        raise SessionError(NOBODY)
    session_id = await whole_id(store, options.words[0])
    points = await store_with(store, TreeStore).tree(session_id)
    prompts = [each for each in points if each.is_here and each.kind == "prompt"]
    session = await _looked_at(store, session_id)
    if len(options.words) == 1:
        await _list(keeper, session, prompts, options, out)
        return 0
    point, since = await _chosen(keeper, session, prompts, options)
    plan = await keeper.plan_rewind(session, since)
    _show(plan, session, options, out)
    if not plan.steps and point is None:
        return 0
    if not await _agreed(options, out):
        return 1
    if plan.steps:
        outcome = await keeper.carry_out_rewind(session, plan, overwrite=options.overwrite)
        out.line(outcome_line(outcome))
        out.line(f"crow sessions rewind {session_id[:8]} {BACK} undoes that", "dim")
    if point is not None:
        copied = await store_with(store, ForkStore).fork(session_id, before=point.before)
        out.line(f"session {copied[:8]} ends before that prompt: crow --resume {copied[:8]}")
    return 0


async def _looked_at(store: Store, session_id: str) -> Session:
    """A session as it is stored, without being opened: another process may have it."""
    from crow.core.session import Session

    text = await store_with(store, ExportStore).export(session_id)
    head = json.loads(text.partition("\n")[0])
    return Session(id=session_id, cwd=head["cwd"], state=head["state"])


async def _chosen(
    keeper: Any, session: Session, prompts: Any, options: argparse.Namespace
) -> tuple[Any, float]:
    """The point that the conversation goes back to, None for files alone; and the files' time."""
    wanted = options.words[1]
    if wanted == BACK:
        return None, await _last(keeper, session)
    if wanted.isdecimal() and 1 <= int(wanted) <= len(prompts):
        point = prompts[int(wanted) - 1]
        return (None if options.files else point), point.at
    raise UsageError(f"there is no prompt {wanted!r}: a number of the list, or {BACK}")


async def _last(keeper: Any, session: Session) -> float:
    before: list[float] = await keeper.rewinds(session)
    if not before:
        raise SessionError("no files were brought back in this session")
    return before[-1]


async def _list(
    keeper: Any, session: Session, prompts: Any, options: argparse.Namespace, out: Output
) -> None:
    """The prompts, each with how many files would change."""
    for number, point in enumerate(prompts, 1):
        plan = await keeper.plan_rewind(session, point.at)
        text = one_line(point.text.partition(CONTEXT_OPEN)[0])
        if options.json:
            files = [_as_json(step) for step in plan.steps]
            out.verbatim(json.dumps({"number": number, "prompt": text, "files": files}))
            continue
        count = count_of(plan.steps)
        out.raw(f"{number:3}  {shorten(text, LONGEST)}  " + out.styled(f"{count} to change", "dim"))
    if not prompts and not options.json:
        out.line("nothing was said in this session")
    elif not options.json:
        out.line(f"crow sessions rewind {session.id[:8]} NUMBER goes back to before it", "dim")


def _show(plan: Any, session: Session, options: argparse.Namespace, out: Output) -> None:
    if options.json:
        for step in plan.steps:
            out.verbatim(json.dumps(_as_json(step)))
        return
    for line in plan_lines(plan, session.cwd):
        out.line(f"  {line}")
    if not plan.steps:
        out.line("no files to bring back")
    if plan.foreign and not options.overwrite:
        out.line("--overwrite brings back what somebody else changed as well", "dim")


def _as_json(step: Any) -> dict[str, Any]:
    return {"path": step.path, "action": step.action, "reason": step.reason}


async def _agreed(options: argparse.Namespace, out: Output) -> bool:
    if options.yes:
        return True
    if not somebody_is_there() or options.json:
        out.note("nothing was changed: --yes does it")
        return False
    return bool(await Asker(out).question(Question("Do it?", "confirm", default=False)))
