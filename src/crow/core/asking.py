"""Asking the user whether a tool call may run."""

from __future__ import annotations

import copy
from inspect import isawaitable
from typing import TypeAlias

from crow.core.context import ToolContext, waiting
from crow.core.ports import PermissionRequest
from crow.core.trace import USER, Record
from crow.core.verdicts import NO_RULING, Allow, Ask, Deny, Ruling, Stop, strictness

NOBODY = "this needs the user's permission, and nobody can be asked"
REJECTED = "the user rejected this call"
Said: TypeAlias = Allow | Deny | Stop


async def ask_user(call: ToolContext, ruling: Ruling, ask: Ask) -> Ruling:
    """The ruling once ``on_permission`` hooks or the user have decided; never an `Ask`.

    Arguments that these hooks have changed are judged again, before anybody's answer counts.
    """
    before = copy.deepcopy(call.args)
    call.question, call.options, call.reason = ask, ask.options, ask.reason
    decided = await call.agent.hooks.on_permission.fire(call)
    if decided.refused:
        return decided
    if call.args != before:
        again = await call.agent.hooks.before_tool.judge(call, ToolContext.check)
        if strictness(again.verdict) >= strictness(ask):
            ruling = Ruling(again.verdict, ruling.answer)
        if call.result is not None or not isinstance(ruling.verdict, Ask):
            return ruling
        ask = ruling.verdict
    if isinstance(decided.verdict, Allow) and ask.rule is None:
        return Ruling(decided.verdict, ruling.answer)
    if not ask.options:
        return Ruling(Deny(ask.reason), ruling.answer)
    if getattr(call.client, "answers", True) and not await _shall_answer(call):
        return NO_RULING
    return Ruling(await _answer(call, ask), ruling.answer)


async def _shall_answer(call: ToolContext) -> bool:
    """Call the user, unless the call cannot but fail: then it has."""
    if not await call.foresee():
        return False
    await call.agent.notify(call.session, "permission_prompt", _needed(call), call.run)
    return True


def _needed(call: ToolContext) -> str:
    """What somebody who is not looking is told of a question."""
    name = call.call.name
    about = " ".join(call.title.removeprefix(name).split())
    return f"Crow needs your permission to use {name}" + (f": {about}" if about else "")


async def _answer(call: ToolContext, ask: Ask) -> Said:
    request = PermissionRequest(
        call.call,
        call.args,
        call.title,
        call.kind,
        ask.reason,
        ask.options,
        call.locations,
        call.diffs,
    )
    with waiting(call):
        chosen = await call.client.permission(call.session.id, request)
    option = next((option for option in ask.options if option.id == chosen), None)
    if option is None:
        denied = Deny(f"{NOBODY}: {ask.reason}" if ask.reason else NOBODY)
        return _said(call, "nobody", ask.unanswered or denied)
    if ask.answered is not None:
        heard = ask.answered(option.id)
        if isawaitable(heard):
            await heard
    return _said(call, option.id, Allow() if option.kind.startswith("allow") else Deny(REJECTED))


def _said(call: ToolContext, chosen: str, verdict: Said) -> Said:
    """Put the user's answer into the trace, behind the hooks that could have given it."""
    call.session.trace.add(Record("on_permission", USER, chosen, verdict, call_id=call.call.id))
    return verdict
