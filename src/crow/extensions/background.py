"""Background work: when it ends, the user is notified and the model hears of it at the tail."""

from __future__ import annotations

from crow import Context, Message, ToolContext
from crow.keys import JOBS, Job, Key
from crow.messages import context_block

NAME = "background"
TOLD: Key[dict[str, Message | None]] = Key(NAME)
KIND = "background_done"


class BackgroundHook:
    """Tells when a command that runs in the background ends, once for each.

    The user gets a notice, ``on_notification`` fires with the kind ``background_done``, and the
    model finds a line behind its next prompt or tool result, unless it has read of the end by
    itself meanwhile. Works for every job that a tool keeps in the session's
    cache.
    """

    name = NAME
    order = 130

    def after_tool(self, ctx: ToolContext) -> None:
        """Wait for what the call left running, and forget to tell what it has told."""
        jobs = JOBS.get(ctx) or {}
        told = TOLD.setdefault(ctx, {}) if jobs else {}
        for job_id, job in jobs.items():
            if job_id not in told:
                told[job_id] = None
                ctx.session.spawn(_watch(Context(ctx.agent, ctx.session), job_id, job, told))
            elif job.reported:
                ctx.session.take_back(told[job_id])


async def _watch(ctx: Context, job_id: str, job: Job, told: dict[str, Message | None]) -> None:
    ended = await job.wait()
    if job.reported:
        return
    text = f"{job_id} in the background has ended: {ended}. It was: {job.title}"
    told[job_id] = message = context_block(text, NAME)
    ctx.session.pending.append(message)
    ctx.owner = NAME
    await ctx.ui.notify(text)
    await ctx.agent.notify(ctx.session, KIND, text)
