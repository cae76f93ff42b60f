"""Hooks of type ``agent``: a small agent looks for itself, and then judges."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from crow import Allow, Continue
from crow.errors import ModelError
from crow.extensions.shell_hooks.handler import Handler
from crow.extensions.shell_hooks.memory import SILENT
from crow.extensions.shell_hooks.outcome import Outcome, failed
from crow.extensions.shell_hooks.prompt import filled, judged, model_for, verdict_of
from crow.messages import add_usage

if TYPE_CHECKING:
    from crow import Context, Message, RunContext, Session, ToolContext, TurnContext

TURNS = 50
REMINDERS = 2
TOOLS = ("Read", "Grep", "Glob", "LS", "Bash")
DECIDING = ("before_tool", "on_permission")
SYSTEM = (
    "You judge one event of a coding agent by the condition that the user gives. Look for yourself "
    "with the tools before you judge; change nothing. What no rule allows is refused, and nobody "
    "can be asked. The conversation so far is in the file transcript_path, a JSON object a line. "
    'Your last message is one JSON object and nothing else: {"ok": true} where the condition '
    'holds, {"ok": false, "reason": "..."} where it does not. Where it can never hold, add '
    '"impossible": true.'
)
REMINDER = 'Answer with the JSON object alone: {"ok": true} or {"ok": false, "reason": "..."}.'


class Verifier:
    """Hangs on the agent that judges: says what it is for, and that it ends with a verdict.

    It may read ``transcript`` without a rule for that.
    """

    name = "verifier"

    def __init__(self, transcript: str) -> None:
        self.transcript = transcript
        self.turns = 0

    def before_llm_request(self, ctx: TurnContext) -> list[Message]:
        """Put the instructions first; end the run where it takes too long."""
        self.turns += 1
        if self.turns > TURNS:
            ctx.stop(f"it has not judged within {TURNS} turns")
        return [{"role": "system", "content": SYSTEM}, *ctx.messages]

    def before_tool(self, ctx: ToolContext) -> Allow | None:
        """Let it read the conversation that it judges."""
        reads = ctx.call.name == "Read" and ctx.args.get("file_path") == self.transcript
        return Allow("it is the conversation that is judged") if reads else None

    def on_stop(self, ctx: RunContext) -> Continue | None:
        """Ask once more for a verdict."""
        is_done = verdict_of(ctx.reply.text) is not None or ctx.count >= REMINDERS
        return None if is_done else Continue(REMINDER)


async def ask_agent(handler: Handler, ctx: Context, text: str, transcript: str) -> Outcome:
    """Let an agent judge; its tokens count for the session. Raises `ModelError`.

    It has a history of its own and the session's gates: calls are judged in the mode ``dontAsk``,
    and no settings hook fires for what it does.
    """
    tools = ctx.agent.tools_of(ctx.session)
    mine = [tools[name] for name in TOOLS if name in tools]
    child = ctx.agent.child(hooks=[Verifier(transcript)], tools=mine)
    session: Session | None = None
    try:
        session = await child.new_session(ctx.cwd, parent=ctx.session, **_fields(handler, ctx))
        reply = await child.prompt(session, filled(handler.spec["prompt"], text))
    finally:
        if session is not None:
            _count(ctx, session)
        await child.close()
    if isinstance(reply.error, ModelError):
        raise reply.error
    verdict = verdict_of(reply.text)
    if verdict is None:
        why = f"the agent gave no verdict: {reply.detail or reply.text[:200]}"
        return failed(handler, why, unread=True)
    return judged(handler, verdict)


def _fields(handler: Handler, ctx: Context) -> dict[str, Any]:
    """The session in which it works; rules that the user gave today hold there."""
    session = ctx.session
    points = [ctx.agent.hooks.points[point] for point in DECIDING]
    owners = {hook.owner.name for hook_point in points for hook in hook_point.chain(session)}
    return {
        "directories": session.directories,
        "model": model_for(handler, ctx),
        "mode": "dontAsk",
        "options": dict(session.options),
        "state": {name: session.state.setdefault(name, {}) for name in sorted(owners)},
        "cache": {SILENT: True},
    }


def _count(ctx: Context, session: Session) -> None:
    ctx.session.usage = add_usage(ctx.session.usage, session.usage)
    if ctx.run is not None:
        ctx.run.reply.usage = add_usage(ctx.run.reply.usage, session.usage)
