"""MessageDisplay: hooks see what the model writes before the user does, and may show other text.

Whole lines go to them together, at most twice a second, so that slow hooks slow nobody's reading
down; the last piece of a message is marked ``final``.
"""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING

from crow import Deny
from crow.events import TextDelta
from crow.extensions.shell_hooks.memory import Display

if TYPE_CHECKING:
    from crow import Context, RunContext, TurnContext, UpdateContext
    from crow.extensions.shell_hooks.handlers import Handlers

PAUSE = 0.5


def of(hooks: Handlers, ctx: Context) -> Display:
    """What these hooks hold back."""
    return hooks.memory(ctx).displays.setdefault(hooks, Display())


async def show_writing(hooks: Handlers, ctx: UpdateContext) -> TextDelta | Deny | None:
    """Hold text back until its line is whole, and show it as the hooks have it."""
    delta = ctx.update
    display = of(hooks, ctx)
    in_loop = ctx.run is not None and ctx.run.stored
    if not isinstance(delta, TextDelta) or not in_loop or not display.is_open:
        return None
    display.text += delta.text
    lines, newline, rest = display.text.rpartition("\n")
    if not newline or monotonic() - display.shown < PAUSE:
        return Deny()
    display.text = rest
    text = await _piece(hooks, ctx, lines + newline, is_last=False)
    display.shown = monotonic()
    return TextDelta(text, delta.message_id) if text else Deny()


async def show_written(hooks: Handlers, ctx: TurnContext) -> None:
    """The message is complete: show the rest of it."""
    display = of(hooks, ctx)
    text = display.text if display.index or display.text else ctx.reply.text
    is_seen = text == display.text
    if text or display.index:
        shown = await _piece(hooks, ctx, text, is_last=True)
        if is_seen:
            display.text = shown
            await release(hooks, ctx)
    hooks.memory(ctx).displays.pop(hooks, None)


async def _piece(hooks: Handlers, ctx: Context, text: str, *, is_last: bool) -> str:
    """Fire for a piece of a message; what is to be shown of it."""
    memory = hooks.memory(ctx)
    display = of(hooks, ctx)
    fields = {
        "turn_id": memory.prompt(ctx),
        "message_id": f"msg_{ctx.session.next_message_id}",
        "index": display.index,
        "final": is_last,
        "delta": text,
    }
    joined = await hooks.fire("MessageDisplay", ctx, "", fields)
    display.index += 1
    said: str | None = joined.last("displayContent")
    return text if said is None else said


async def show_left(hooks: Handlers, ctx: RunContext) -> None:
    """The run is over: show what was held back of a message that was cut off."""
    await release(hooks, ctx)
    hooks.memory(ctx).displays.pop(hooks, None)


async def release(hooks: Handlers, ctx: Context) -> None:
    """Show what is held back, as it is."""
    display = of(hooks, ctx)
    text, display.text = display.text, ""
    if text:
        display.is_open = False
        await ctx.emit(TextDelta(text, ctx.session.next_message_id))
        display.is_open = True
