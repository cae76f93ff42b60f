"""A prompt's whole life: it arrives, is refused or accepted, runs, is answered, followed up."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from crow.core.cache import ENDING
from crow.core.errors import (
    CrowError,
    ExtensionError,
    ModelError,
    SessionError,
    hint_of,
    message_of,
)
from crow.core.events import Notice, RunEnded, TextDelta, UserMessage
from crow.core.hooks.call_stack import OWN, attended, is_awaited, watching
from crow.core.hooks.contexts import CommandContext
from crow.core.hooks.hook import place_of
from crow.core.hooks.outcome import name_slips
from crow.core.hooks.run_context import Reply, RunContext
from crow.core.loop import react
from crow.core.messages import Content, text_of, user
from crow.core.ports.client import Client
from crow.core.session import Session
from crow.core.support.tasks import DOING, nobodys, uncut
from crow.core.tool_call import CANCELLED, answer_calls, answers_of, settle
from crow.core.turn import deliver
from crow.core.verdicts import Answer, Ruling

if TYPE_CHECKING:
    from crow.core.host import Agent

logger = logging.getLogger("crow.extensions")

GRACE = 0.5
TRIES = 8
"""How often the end of a call is gone on with where somebody cancels that."""
FOLLOWING = "after_run"
LATELY = 200
"""Runs of hooks among which a verdict is looked for."""
ELSEWHERE = (
    "the session is at work in another event loop, and can only be waited for there: use "
    "asyncio.run_coroutine_threadsafe(agent.prompt(...), loop)"
)


async def answered(
    agent: Agent,
    session: Session,
    prompt: Content,
    *,
    shown: bool = False,
    written: list[dict[str, Any]] | None = None,
) -> Reply:
    """The reply to a prompt; what comes after it goes on beside that."""
    session.refuse_closed()
    ctx = RunContext(agent, session, prompt, written)
    ctx.shown = shown
    session.enter(ctx)
    try:
        await answer(ctx)
    finally:
        session.leave(ctx)
        follow_up(ctx)
    return ctx.reply


async def run_prompt(
    agent: Agent,
    prompt: Content,
    session: Session | None,
    cwd: str | os.PathLike[str],
    client: Client | None,
) -> Reply:
    """The reply to a prompt, in a new session where none is given; raises what it failed with."""
    session = session or await agent.new_session(cwd, client=client)
    reply = await agent.prompt(session, prompt)
    await asyncio.sleep(0)
    await asyncio.gather(*following(session), return_exceptions=True)
    if reply.error is not None:
        raise reply.error
    return reply


async def queued(
    agent: Agent, session: Session, prompt: Content, written: list[dict[str, Any]] | None
) -> None:
    """Answer a prompt that nobody waits for: the client hears of a failure."""
    reply = await nobodys(answered(agent, session, prompt, written=written))
    if reply.error is not None:  # nobody else hears of it
        await session.client.update(session.id, Notice(reply.detail, "error"))


async def answer(ctx: RunContext) -> None:
    """Work on a prompt until ``ctx.reply`` is what the caller gets.

    Returns within a second of a cancellation, even if a hook or a tool swallows that. Holds the
    session's lock when it returns, so that the prompts of a session follow one another.
    """
    ctx.caller = asyncio.current_task()
    task = ctx.task = asyncio.create_task(_work(ctx))
    ctx.supervisor = asyncio.create_task(_supervise(ctx, task))
    await uncut(ctx.supervisor, ctx.cancel)


async def _supervise(ctx: RunContext, task: asyncio.Task[None]) -> None:
    """See to it that a run comes to its end, whoever is cancelled how often."""
    await _take(ctx, partial(_ended, ctx, task), times=2)
    if not task.done():
        ctx.mark("abandoned")
    error = _error(ctx, task)
    if isinstance(error, SessionError) and not ctx.holds_lock:
        ctx.reply.error = error
        raise error
    await _conclude(ctx, task)


async def _take(ctx: RunContext, step: Callable[[], Awaitable[object]], times: int = 1) -> bool:
    """Take a step of the end; False where somebody cancelled that each time.

    Whoever does so cancels the run, and what is left of its end is still done.
    """
    for _ in range(times):
        try:
            await step()
        except asyncio.CancelledError:
            ctx.cancel()
            cast("asyncio.Task[None]", ctx.supervisor).uncancel()
        else:
            return True
    return False


async def _ended(ctx: RunContext, task: asyncio.Task[None]) -> None:
    """Wait for the work; once it is cancelled, no longer than the grace."""
    cancelled = asyncio.ensure_future(ctx.cancellation.wait())
    try:
        await asyncio.wait({task, cancelled}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            await asyncio.wait({task}, timeout=GRACE)
    finally:
        cancelled.cancel()


async def _work(ctx: RunContext) -> None:
    await _turn(ctx.session)
    ctx.mark("holds_lock")
    await ctx.agent.scope.turnstile.turn()
    ctx.check()
    await ctx.agent.start()
    if ctx.session.hung is not None:
        await ctx.session.hung.start()
    await name_slips(ctx)
    if await accepted(ctx):
        await ctx.agent.scope.turnstile.turn()  # who were stored together would go on together
        await ctx.agent.hooks.around_run.fire(ctx, lambda: react(ctx))
        await _name_unread(ctx)


async def _name_unread(ctx: RunContext) -> None:
    """Tell the user once of parts of the system prompt that no request had."""
    if ctx.session.parent is None and (names := ctx.agent.scope_of(ctx.session).unread("sections")):
        hint = ctx.agent.defaults.hint("sections")
        text = f"no request has the prompt section {', '.join(names)}: {hint}"
        logger.warning("%s", text)
        await ctx.ui.notify(text, severity="warning")


async def _turn(session: Session) -> None:
    """Wait until the session is free. Raises `SessionError` once that waits for who prompts."""
    if session.lock.locked() and _is_elsewhere(session):
        raise SessionError(ELSEWHERE)
    doing = DOING.get()
    try:
        async with asyncio.timeout(None) as limit:

            def look() -> None:
                if session.lock.locked() and is_awaited(session, doing):
                    limit.reschedule(0)

            with watching(doing, look):
                await session.lock.acquire()
    except TimeoutError:
        raise SessionError(OWN) from None


def _is_elsewhere(session: Session) -> bool:
    """Whether another event loop works on a session: its lock would wake nobody in this one."""
    here = asyncio.get_running_loop()
    work = [*session.tasks, *(run.task for run in session.runs if run.task is not None)]
    return any(task.get_loop() is not here for task in work)


async def accepted(ctx: RunContext) -> bool:
    """True where the prompt is in the history and the model is to be asked."""
    pending = ctx.session.pending
    before = len(pending)
    ruling = await ctx.ui.agreed(await ctx.agent.hooks.before_run.fire(ctx))
    about_it = slice(before, len(pending))
    if not ruling.refused and ruling.answer is None:
        ruling = await _command(ctx)
    if ruling.refused or ctx.stopping:
        pending.put(pending[:before])
        await _refuse(ctx, ruling)
        return False
    if ruling.answer is not None:
        pending.put([*pending[: about_it.start], *pending[about_it.stop :]])
        await _say(ctx, str(ruling.answer.value))
        return False
    await store(ctx)
    return True


async def store(ctx: RunContext) -> None:
    """Put the prompt and the context that belongs to it into the history."""
    ctx.mark("stored")
    unchanged = ctx.sent["content"] == ctx.prompt
    message = ctx.sent if unchanged else user(ctx.prompt)
    if not ctx.shown:
        message_id = ctx.session.next_message_id
        await ctx.emit(UserMessage(ctx.prompt, message_id, message.get("written", ())))
    await ctx.append(message)
    await deliver(ctx)


async def _command(ctx: RunContext) -> Ruling:
    """Expand a slash command; an `Answer` where no model is to be asked."""
    text = text_of(ctx.prompt).lstrip()
    if not text.startswith("/"):
        return Ruling()
    name, *rest = text.split(maxsplit=1)
    command = ctx.agent.commands_of(ctx.session).get(name[1:])
    if command is None:
        return Ruling()
    now = CommandContext(ctx.agent, ctx.session, name[1:], "".join(rest).strip(), run=ctx)
    ruling = await now.ui.agreed(await ctx.agent.hooks.before_command.fire(now))
    if ruling.refused or ruling.answer is not None:
        return ruling
    now.owner = ctx.agent.scope_of(ctx.session).owner_of("commands", name[1:])
    what = f"the command /{now.command}"
    try:
        said = await attended(now, now.owner, what, command.run, lambda _: command.run(now))
    except CrowError:
        raise
    except Exception as error:
        place = place_of(command.run, error)
        raise ExtensionError(f"{what} failed: {error!r}{hint_of(error)} ({place})") from error
    match said:
        case str():
            ctx.prompt = said
            return Ruling()
        case Answer() | None:
            return Ruling(answer=said or Answer(""))
        case _:
            told = f"{what} returned {said!r:.60}: a prompt (str), an Answer or None is expected"
            raise ExtensionError(f"{told} ({place_of(command.run)})")


async def _refuse(ctx: RunContext, ruling: Ruling) -> None:
    ctx.reply.stop_reason = "refusal"
    ctx.reply.detail = ruling.reason or _of_stopping(ctx)
    by = _who(ctx, ruling)
    told = f"refused by {by}: {ctx.reply.detail}" if by else ctx.reply.detail
    await ctx.emit(Notice(told or "the prompt was refused by a hook", "warning", by))


def _who(ctx: RunContext, ruling: Ruling) -> str:
    """The extension that has refused a prompt; empty for those that come with Crow."""
    own = {each.name for each in ctx.agent.hooks.owners if each.source == "crow"}
    trace, verdict = ctx.session.trace, ruling.verdict
    lately = reversed(trace.since(max(trace.count - LATELY, 0)))
    by = next((each.owner for each in lately if each.answer == verdict), "")
    return "" if verdict is None or not ruling.reason or by in own else by


def _of_stopping(ctx: RunContext) -> str:
    """A stop in the stopper's words, else who it was."""
    stopping = ctx.stopping
    return stopping.reason or f"stopped by {stopping.by or 'a hook'}" if stopping else ""


async def _say(ctx: RunContext, text: str) -> None:
    """Answer in the model's place; nothing of it enters the history."""
    ctx.reply.text = text
    if text:
        await ctx.emit(TextDelta(text, ctx.session.next_message_id))


async def _conclude(ctx: RunContext, task: asyncio.Task[None]) -> None:
    """Leave a whole history and a reply that says how the run ended."""
    error = _error(ctx, task)
    why = CANCELLED if ctx.cancelled or error is None else "not run: the run failed"
    opened = list(ctx.open)
    try:
        closed = await _take(ctx, partial(_close, ctx, why))
    except Exception as failure:  # noqa: BLE001 - a client that is gone fails once more
        closed, error = False, error or failure
    if not closed:
        ctx.session.history.undo()
        ctx.session.repair(why, answers_of(opened), ongoing=False)
    _explain(ctx, error)
    if error is not None:
        where = "model" if isinstance(error, ModelError) else "loop"
        await _take(ctx, partial(ctx.fail, error, where))
    await _take(ctx, partial(ctx.agent.hooks.after_loop.fire, ctx))
    with suppress(Exception):
        ended = RunEnded(ctx.reply.stop_reason, ctx.reply.detail)
        await _take(ctx, partial(ctx.emit, ended))


async def _close(ctx: RunContext, why: str) -> None:
    for call in ctx.open:
        await _take(ctx, partial(settle, call), TRIES)
    await answer_calls(ctx)
    await keep_partial(ctx)
    if ctx.holds_lock and ctx.session.unanswered():
        for message in ctx.session.repair(why, ongoing=False):
            await ctx.tell_of(message)


async def keep_partial(ctx: RunContext) -> None:
    """Put what the model had said when it was interrupted into the history."""
    text = "".join(ctx.partial.take())
    if text:
        ctx.reply.text = text
        await ctx.append({"role": "assistant", "content": text})


def _error(ctx: RunContext, task: asyncio.Task[None]) -> BaseException | None:
    if not task.done() or task.cancelled():
        return None if ctx.cancelled else RuntimeError("the run was cancelled by its own code")
    error = task.exception()
    return None if ctx.cancelled else error


def _explain(ctx: RunContext, error: BaseException | None) -> None:
    reply = ctx.reply
    if ctx.cancelled:
        reply.stop_reason = "cancelled"
    elif error is not None:
        reply.stop_reason, reply.error = "error", error
        reply.detail = message_of(error)
    elif ctx.stopping is not None and reply.stop_reason != "refusal":
        reply.stop_reason = ctx.stopping.stop_reason
        by = f"stopped by {ctx.stopping.by}" if ctx.stopping.by else "stopped by a hook"
        reply.detail = f"{by}: {ctx.stopping.reason}" if ctx.stopping.reason else by


def follow_up(ctx: RunContext) -> None:
    """Let happen what comes after the answer was returned; then it is the next prompt's turn."""
    task = ctx.session.spawn(_follow_up(ctx))
    task.set_name(FOLLOWING)
    if ctx.holds_lock:
        task.add_done_callback(lambda _: ctx.session.lock.release())


def following(session: Session) -> list[asyncio.Task[Any]]:
    """What still comes after answers that were returned."""
    return [task for task in session.tasks if task.get_name() == FOLLOWING]


async def _follow_up(ctx: RunContext) -> None:
    if ending := ENDING.get(ctx):
        await asyncio.wait(ending)
    if ctx.holds_lock or not isinstance(ctx.reply.error, SessionError):  # which was refused
        await ctx.agent.hooks.after_run.fire(ctx)
