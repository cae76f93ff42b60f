"""A tool call's whole life: opened, judged, asked about, executed, settled, answered for."""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from inspect import isawaitable
from time import perf_counter
from typing import Any, TypeAlias

from crow.core.errors import CrowError, HookError, message_of, nearest, raised_at
from crow.core.events import ToolEnded, ToolPending, ToolStarted
from crow.core.hooks.call_stack import attended
from crow.core.hooks.contexts import ToolContext, open_call
from crow.core.hooks.outcome import tell
from crow.core.hooks.run_context import RunContext
from crow.core.hooks.wraps import CUT_OFF
from crow.core.messages import Message, tool_answer
from crow.core.ports.client import PermissionRequest, is_attended
from crow.core.ports.tool import PreviewTool
from crow.core.support.frozen import kept, thawed
from crow.core.support.validation import implements
from crow.core.tools import Call, Outcome, ToolResult
from crow.core.trace import USER, Record
from crow.core.ui import waiting
from crow.core.verdicts import NO_RULING, Allow, Ask, Deny, Ruling, Stop, strictness

logger = logging.getLogger("crow.hooks")

NOT_RUN = "not run: the run was stopped before"
CANCELLED = "cancelled by the user"
NOBODY = "this needs the user's permission, and nobody can be asked"
REJECTED = "the user rejected this call"
Said: TypeAlias = Allow | Deny | Stop


async def run_tools(ctx: RunContext, calls: Sequence[ToolContext]) -> None:
    """Run the calls of a reply: gates one by one, then all together, results in order."""
    try:
        for call in calls:
            await permit(call)
        await together([call for call in calls if call.result is None])
    finally:
        for call in calls:
            await settle(call)
        await answer_calls(ctx)


async def call_tools(ctx: RunContext, wanted: Iterable[Call]) -> list[ToolContext]:
    """Run calls that no model waits for in the same way; raises where one may not run.

    Ids that are used already are replaced.
    """
    calls = [open_call(ctx, call) for call in ctx.session.history.call_ids.own(wanted)]
    try:
        for call in calls:
            await permit(call)
        for call in calls:
            if call.result is not None and call.outcome != "answered":
                raise CrowError(f"{call.title}: {call.output}")
        await together([call for call in calls if call.result is None])
    finally:
        for call in calls:
            await settle(call)
        ctx.open.put(call for call in ctx.open if call not in calls)
    return calls


# whether it may run


async def permit(call: ToolContext) -> None:
    """Settle a call that must not run; leave the others open."""
    await call.emit(ToolPending(call.call, call.title, call.kind, call.locations))
    if not call.run.stopping and prepare(call):
        await judge(call)
    if call.run.stopping or call.result is not None:
        await settle(call)


async def judge(call: ToolContext) -> None:
    """Let the hooks and the user decide; conclude a call that must not run."""
    ruling = await call.agent.hooks.before_tool.fire(call, check)
    call.ring = ruling.ring
    if isinstance(ruling.verdict, Ask) and call.result is None:
        ruling = await ask_user(call, ruling, ruling.verdict)
    call.run.check()
    rule(call, ruling)


def prepare(call: ToolContext) -> bool:
    """Make the arguments what hooks are to see; False where the call cannot run at all."""
    if call.call.fault is not None:
        refuse(call, call.call.fault)
    elif call.tool is None:
        names = sorted(call.agent.tools_of(call.session))
        near = nearest(call.call.name, names)
        hint = f"did you mean {near}? " if near else ""
        refuse(call, f"there is no tool {call.call.name!r}; {hint}there are: {', '.join(names)}")
    else:
        call.args = call.prepared()
    return call.result is None


def check(call: ToolContext) -> bool:
    """Hold the final arguments against the tool's schema; False where they do not fit."""
    if wrong := call.misfit:
        refuse(call, f"{_rewriter(call)}{wrong}")
    return not wrong


def _rewriter(call: ToolContext) -> str:
    """The hook that has made the arguments what they are, in front of what is wrong with them."""
    records = call.session.trace.of_call(call.call.id)
    found = [each for each in records if "args" in each.changed]
    if not found:
        return ""
    owner, name = found[-1].owner, found[-1].hook
    told = name if owner == name else f"{owner}.{name}"
    logger.warning(
        "the hook %s made arguments that %s does not take: %r", told, call.name, call.args
    )
    return f"the hook {told} has changed the arguments, and they do not fit: "


def refuse(call: ToolContext, fault: str) -> None:
    """Conclude a call that cannot run at all."""
    call.faulty = True
    conclude(call, "error", ToolResult.failure(fault))


def rule(call: ToolContext, ruling: Ruling) -> None:
    """Conclude a call that must not run, or that a hook answered; keep what was approved."""
    call.approved = kept(call.args)
    if isinstance(ruling.verdict, Stop):
        call.stop(ruling.reason)
    if ruling.refused:
        conclude(call, "denied", ToolResult.failure(ruling.reason or "denied by a hook"))
    elif ruling.answer is not None:
        conclude(call, "answered", ToolResult.of(ruling.answer.value))


# what the user says to it


async def ask_user(call: ToolContext, ruling: Ruling, ask: Ask) -> Ruling:
    """The ruling once ``on_permission`` hooks or the user have decided; never an `Ask`.

    What such a hook answers in the tool's place counts where the call is permitted.
    Arguments that these hooks have changed are judged again, before anybody's answer counts.
    """
    before = thawed(call.args)
    call.question, call.options, call.reason = ask, ask.options, ask.reason
    decided = await call.agent.hooks.on_permission.fire(call)
    if decided.refused:
        return decided
    answer = ruling.answer or decided.answer
    if call.args != before:
        again = await call.agent.hooks.before_tool.judge(call, check)
        call.ring = again.ring
        if strictness(again.verdict) >= strictness(ask):
            ruling = Ruling(again.verdict, answer, closed=again.closed)
        if call.result is not None or not isinstance(ruling.verdict, Ask):
            return ruling
        ask = ruling.verdict
    if isinstance(decided.verdict, Allow) and ask.rule is None:
        return Ruling(decided.verdict, answer)
    if ruling.closed is not None:
        return Ruling(Deny(ruling.closed.reason), answer)
    if is_attended(call.client) and not await _shall_answer(call):
        return NO_RULING
    return Ruling(await _answer(call, ask), answer)


async def _shall_answer(call: ToolContext) -> bool:
    """Call the user, unless the call cannot but fail: then it has."""
    if not await foresee(call):
        return False
    await call.agent.notify(call.session, "permission_prompt", _needed(call), call.run)
    return True


async def foresee(call: ToolContext) -> bool:
    """Ask the tool what the call would do; False where it cannot but fail, and has.

    What an earlier call of the same reply is still to do to the same file, nobody can tell.
    """
    if not implements(tool := call.tool, PreviewTool):
        return True
    try:
        args, what = thawed(call.args), f"the preview of {call.name}"
        told = await attended(call, call.name, what, tool, lambda _: tool.preview(args, call))
    except Exception:  # noqa: BLE001 - with a faulty one it is asked about all the same
        told = None
    if not isinstance(told, ToolResult) or (told.error and _comes_second(call)):
        return True
    call.diffs = told.diffs
    if told.error:
        conclude(call, "error", told)
    return not told.error


def _comes_second(call: ToolContext) -> bool:
    """True where a call that is about the same file waits to run before this one."""
    mine = {place.path for place in call.locations}
    before = itertools.takewhile(lambda other: other is not call, call.run.open)
    waiting = (other for other in before if other.result is None)
    return any(place.path in mine for other in waiting for place in other.locations)


def _needed(call: ToolContext) -> str:
    """What somebody who is not looking is told of a question."""
    name = call.call.name
    about = " ".join(call.title.removeprefix(name).split())
    return f"Crow needs your permission to use {name}" + (f": {about}" if about else "")


async def _answer(call: ToolContext, ask: Ask) -> Said:
    about = call.call, call.args, call.title, call.kind, ask.reason, ask.options
    shown = call.locations, call.diffs, ask.explanation
    request = PermissionRequest(*about, *shown, ask.rules, ask.keep)
    asked = perf_counter()
    with waiting(call, call.title):
        chosen = await call.client.permission(call.session.id, request)
    seconds = perf_counter() - asked
    option = next((option for option in ask.options if option.id == chosen), None)
    if option is None:
        denied = Deny(f"{NOBODY}: {ask.reason}" if ask.reason else NOBODY)
        return _said(call, "nobody", ask.unanswered or denied, seconds)
    if ask.answered is not None:
        heard = ask.answered(option.id)
        if isawaitable(heard):
            await heard
    verdict = Allow() if option.kind.startswith("allow") else Deny(REJECTED)
    return _said(call, option.id, verdict, seconds)


def _said(call: ToolContext, chosen: str, verdict: Said, seconds: float) -> Said:
    """Put the user's answer into the trace, behind the hooks that could have given it."""
    made = Record("on_permission", USER, chosen, verdict, seconds=seconds, call_id=call.call.id)
    tell(call, made, call.agent.hooks.watching(call.session, made.event))
    return verdict


# its run


async def together(calls: list[ToolContext]) -> None:
    """Execute calls side by side and wait for all of them."""
    if len(calls) == 1:
        await execute(calls[0])
    elif calls:
        ended = await asyncio.gather(*map(execute, calls), return_exceptions=True)
        for error in filter(None, ended):
            raise error


async def execute(call: ToolContext) -> None:
    """Run one tool inside its hooks; whatever it raises becomes its result."""
    started = perf_counter()
    ran = call

    async def run(judged: ToolContext) -> ToolResult:
        nonlocal ran
        hold_back(call)
        ran = judged
        call.begun = True
        result = await run_tool(judged)
        call.finished = True
        return result

    try:
        await call.emit(ToolStarted(call.call, call.args, call.title))
        value = await call.agent.hooks.around_tool.fire(call, run, other_call)
        call.run.check()
        result = ToolResult.of(value)
        conclude(call, "error" if result.error else "ok", result)
    except Exception as error:  # noqa: BLE001 - a tool may raise anything
        text, place = message_of(error), raised_at(error)
        if not isinstance(error, CrowError):
            said = place and place not in text  # a note says where a hook failed
            text = f"{type(error).__name__}: {text}" + (f" ({place})" if said else "")
        conclude(call, "error", ToolResult.failure(call.agent.scrubbed(text)))
        await call.fail(error, "tool", place)
    finally:
        call.duration = perf_counter() - started
        call.args = ran.args
        await settle(call)


async def other_call(call: ToolContext, args: dict[str, Any]) -> ToolContext:
    """The call with other arguments, judged as if the model had sent them; it may be refused."""
    other = ToolContext(call.run, replace(call.call, args=args), call.tool)
    other.launcher = call.launcher
    if prepare(other):
        await judge(other)
    if call.run.stopping:
        conclude(other, "denied", ToolResult.failure(NOT_RUN))
    if other.result is None:
        await call.emit(ToolStarted(call.call, other.args, other.title))
    return other


def hold_back(call: ToolContext) -> None:
    """Raise `HookError` where the call or the run is over, ``CancelledError`` where it was cut."""
    call.run.check()
    if call.run.stopping:
        raise HookError(NOT_RUN)
    if call.settled or call.result is not None:
        raise HookError(f"{call.call.name} does not run: the call is over")


async def run_tool(call: ToolContext) -> ToolResult:
    """Run the tool; the innermost of ``around_tool``. What runs is what was approved."""
    assert call.tool is not None
    hold_back(call)
    if call.args != call.approved:
        raise RuntimeError("a hook changed the arguments after they had been judged")
    tool, args = call.tool, thawed(call.approved)
    try:
        work = attended(call, call.name, f"the tool {call.name}", tool, partial(tool.run, args))
        return call.agent.scrubbed(ToolResult.of(await work))
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if call.run.cancelled or (task is not None and task.cancelling()):
            raise
        raise RuntimeError("the tool was cancelled by its own code") from None
    except SystemExit as error:
        raise RuntimeError(f"the tool wanted to end the program: exit {error}") from None
    except (Exception, KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as error:  # such as a failure of pytest's: it is no end of the run
        raise RuntimeError(f"{type(error).__name__}: {message_of(error)}") from error


# its end


def conclude(call: ToolContext, outcome: Outcome, result: ToolResult | str) -> ToolResult:
    """Give the call its outcome; the first one stands."""
    if call.result is None:
        call.outcome = outcome
        call.result = ToolResult.of(result)
    return call.result


def how_far(call: ToolContext) -> str:
    """What the model is told of a call that came to no end."""
    return CUT_OFF if call.begun else NOT_RUN


async def settle(call: ToolContext) -> None:
    """Say what came of the call; one without a result was cancelled.

    Every hook hears of it once, and so does the client, even where the run is cancelled meanwhile.
    """
    if not call.settled:
        call.settled = True
        conclude(call, "cancelled", CANCELLED if call.run.cancelled else how_far(call))
    if not call.ended:
        await call.agent.hooks.after_tool.fire(call, call.told)
        result = conclude(call, "cancelled", how_far(call))
        await call.emit(ToolEnded(call.call, call.outcome, result, call.duration))
        call.ended = True


def answers_of(calls: Iterable[ToolContext]) -> dict[str, Message]:
    """What is known of calls already, as messages by the calls' ids."""
    return {
        call.call.id: tool_answer(call.call.id, call.result.content)
        for call in calls
        if call.result is not None
    }


async def answer_calls(ctx: RunContext) -> None:
    """Put the results of the open calls into the history, in source order."""
    await ctx.heal()
    opened = ctx.open.take()
    if opened:
        ctx.has_called()
    answers = answers_of(opened)
    unanswered = set(ctx.session.unanswered())
    if not answers.keys() <= unanswered:  # somebody went around the methods of the history
        for message in ctx.session.repair(answers=answers):
            await ctx.tell_of(message)
    for call_id, answer in answers.items():
        if call_id in unanswered:
            await ctx.append(answer)
