"""The run of one prompt, until nothing is left to do, its exit status and what is said of it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from crow.cli.parser import UsageError
from crow.core.support.validation import first_implementing, implementing
from crow.keys import FIRST_PROMPT
from crow.ports.extensions import CommandChecker

if TYPE_CHECKING:
    from crow.cli.output import Output
    from crow.core.agent import Agent
    from crow.core.hooks.run_context import Reply
    from crow.core.messages import Content
    from crow.core.ports.client import PermissionRequest
    from crow.core.session import Session

DONE, FAILED, INTERRUPTED = 0, 1, 130
SUCCESSES = ("end_turn", "hook_stopped")
PATIENCE = 2.0
"""Seconds until somebody is told what a run waits for that has its answer."""
CUT_OFF = "the answer is longer than the model may write at once"


async def run_to_end(agent: Agent, session: Session, prompt: Content, out: Output) -> Reply:
    """The answer, when hooks have had theirs and nothing is left to do."""
    reply = None
    if (first := FIRST_PROMPT.pop(session)) is not None:  # a hook's wish
        reply = await agent.prompt(session, first, shown=False)
        await idle(session)
    if reply is None or reply.stop_reason != "cancelled":
        reply = await agent.prompt(session, prompt)
        await idle(session)
    await settle(agent, session, out)
    return reply


def refuse_unknown(agent: Agent, session: Session, prompt: str) -> None:
    """Raise for a command that does not exist; those of servers may still come."""
    for extension in implementing(agent.extensions_of(session).values(), CommandChecker):
        told = extension.no_such_command(prompt, agent.commands_of(session))
        if told and not prompt.startswith("/mcp__"):
            raise UsageError(told)


async def settle(agent: Agent, session: Session, out: Output) -> None:
    """Let hooks in the background end, which are ended with the session, and what they wake."""
    from crow.ports.faces import BackgroundWorker

    used = agent.extensions_of(session).values()
    hooks = first_implementing(used, BackgroundWorker)
    if hooks is None:
        return
    settling = asyncio.ensure_future(hooks.settle(session))
    if not (await asyncio.wait({settling}, timeout=PATIENCE))[0]:
        out.note("waiting for hooks in the background to end")
    for name in await settling:
        out.error(f"the {name} in the background was not done in time and is ended ('timeout')")
    await idle(session)


async def idle(session: Session) -> None:
    """Wait until nothing is left to do: hooks of the end, and prompts that they queued."""
    await asyncio.sleep(0)
    while True:
        after = [task for task in session.tasks if task.get_name() == "after_run"]
        if after:
            await asyncio.wait(after)
        elif session.busy:
            await asyncio.sleep(0.02)
        else:
            return
        await asyncio.sleep(0)


def conclude(
    reply: Reply,
    unasked: Sequence[PermissionRequest],
    out: Output,
    interrupted: int | None = None,
) -> int:
    """Say how the run ended, where that was not simply the end; the exit status.

    ``unasked`` are the calls that were denied because nobody could be asked.
    """
    if out.gone:
        return FAILED
    short = reply.session.id[:8]
    if unasked:
        names = ", ".join(sorted({request.call.name for request in unasked}))
        options = [option for request in unasked for option in request.options]
        by_rule = any(option.kind == "allow_always" for option in options)
        how = "allow it with --allow RULE (crow run --help), or " if by_rule else ""
        out.error(f"{names} needed permission and nobody could be asked: {how}run in a terminal")
    if reply.stop_reason == "cancelled":
        out.error(f'interrupted; crow run --resume {short} "..." goes on')
        return interrupted or INTERRUPTED
    if reply.stop_reason != "end_turn":
        cut = CUT_OFF if reply.stop_reason == "max_tokens" else reply.stop_reason
        if not reply.detail or not out.complaint.endswith(reply.detail):
            out.error(reply.detail or cut)
    return DONE if reply.stop_reason in SUCCESSES else FAILED
