"""Compaction: makes room in the model's window before it is full, without losing the thread."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import KW_ONLY
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from crow import (
    Allow,
    Answer,
    Arg,
    Command,
    CommandContext,
    CompactContext,
    Completion,
    Context,
    Message,
    ToolContext,
    TurnContext,
    hook,
)
from crow.dataclasses import entity, mutable
from crow.errors import ModelError
from crow.events import Compacted
from crow.hooks import FIRST, LAST
from crow.keys import Key
from crow.messages import TokenCount

if TYPE_CHECKING:
    from crow import Agent
    from crow.extensions.compaction.history import Split
    from crow.extensions.compaction.outputs import Outputs
    from crow.project import OutputFolder

TIMEOUT = 900.0
OUTPUTS: Key[Outputs] = Key("compaction.outputs")
AUTO = "auto_compact"
ATTEMPTS = 2
RECENT_SHARE = 0.25
SUMMARY_SHARE = 0.5
PINNED_SHARE = 0.1
MOST_PINNED = 40_000
ENOUGH = 0.6
GROWTH = 0.05
CHARACTERS = 4

Outcome = Literal["done", "denied", "nothing"]
CallNext = Callable[[], Awaitable[Completion]]


@mutable
class Memory:
    """The memory of a session: compactions in a row that did not help, and when to wait.

    ``overflows`` counts requests in a row that were too long for the endpoint; ``wait_until`` is
    how many tokens there must be before it is tried again.
    """

    fruitless: int = 0
    overflows: int = 0
    wait_until: float = 0.0


MEMORY: Key[Memory] = Key("compaction")


@entity
class CompactionHook:
    """Replaces the older part of a history when the model's window is about to be full.

    At ``fraction`` of the window (what the provider reported, and an estimate of what came since)
    tool outputs of more than ``output_limit`` characters are moved to files under ``directory``.
    Where that is not enough, the model writes a summary. The last ``keep_turns`` turns stay as they
    are, as far as they fit into a quarter of the window. The user's own words and the files at hand
    stay, whoever it is that replaces the history, in up to a tenth of it. Where the window is not
    known, or the endpoint says that a request is too long, it is done then, and the request is sent
    once more.

    Two compactions in a row that do not help are enough: the run ends with a `ModelError` that
    says what it is that does not fit. Adds the command ``/compact``. Where a session's option
    ``auto_compact`` is False it waits for that command, or for the endpoint to complain.
    """

    name = "compaction"
    order = 80
    is_its_options = True
    switches = {  # noqa: RUF012 - a table
        AUTO: ("Compact automatically", "Make room before the model's window is full.")
    }

    fraction: Annotated[float, Arg(above=0, maximum=1)] = 0.8
    """How full the model's window may be."""
    _: KW_ONLY
    keep_turns: Annotated[int, Arg(minimum=1)] = 4
    """Turns that stay as they are."""
    output_limit: Annotated[int, Arg(minimum=0)] = 1000
    """Characters of an old result that stay."""
    directory: str | Path | None = None
    """Where old results are kept; without it that is in the user's cache."""

    def init_agent(self, agent: Agent) -> None:
        """Add the command."""
        told = "Replace the older part of the conversation by a summary"
        agent.add_command(Command("compact", told, self.compact, "[what the summary must keep]"))

    # the moments

    @hook("around_llm_request", order=FIRST, timeout=TIMEOUT)
    async def around_llm_request(self, ctx: TurnContext, call_next: CallNext) -> Completion:
        """Make room before a request that is nearly too long, or after one that was."""
        await self._ensure_room(ctx)
        memory = MEMORY.setdefault(ctx, Memory())
        try:
            reply = await _unless_stopped(ctx, call_next)
        except ModelError as error:
            if error.kind != "context_length" or ctx.run.partial:
                raise
            memory.overflows += 1
            await self._recover(ctx, error)
        else:
            memory.overflows = 0
            return reply
        try:
            return await _unless_stopped(ctx, call_next)
        except ModelError as error:
            if error.kind != "context_length":
                raise
            raise self._too_long(ctx) from error

    @hook("before_tool", tools={"Read", "Grep"})
    def before_tool(self, ctx: ToolContext) -> Allow | None:
        """Let the model read what was moved away from it, unless a rule forbids that."""
        path = ctx.args.get("file_path") or ctx.args.get("path")
        is_one = isinstance(path, str) and self._outputs(ctx).folder.holds(path)
        return Allow("an output of this session") if is_one else None

    @hook("before_compact", order=LAST)
    def before_compact(self, ctx: CompactContext) -> None:
        """Let the user's own words and the files at hand be there, whatever the summary says."""
        from crow.extensions.compaction.pins import pinned

        window = ctx.agent.context_window(ctx.session)
        room = min(int(PINNED_SHARE * CHARACTERS * window), MOST_PINNED) if window else MOST_PINNED
        if (block := pinned(ctx.session.messages, ctx.messages, room)) is not None:
            ctx.messages = [block, *ctx.messages]

    async def after_compact(self, ctx: CompactContext) -> None:
        """Tell the client, whoever it was that replaced the history; a new one starts afresh."""
        if ctx.trigger in ("restart", "manual"):
            MEMORY.pop(ctx)
        if ctx.trigger != "restart":
            await ctx.emit(Compacted(ctx.summary, ctx.trigger))

    async def forget_session(self, session_id: str) -> None:
        """Remove the outputs that were moved away in a session."""
        await asyncio.to_thread(self._folder(session_id).remove)

    async def compact(self, ctx: CommandContext) -> Answer:
        """The command ``/compact [what the summary must keep]``."""
        before = list(ctx.session.messages)
        if not before:
            return Answer("There is nothing to compact.")
        try:
            outcome = await self._shrink(ctx, "manual", ctx.args)
        except ModelError as error:
            return Answer(f"Nothing was compacted: {error}")
        if outcome != "done":
            return Answer("Nothing was compacted: a hook objected.")
        kept = set(map(id, ctx.session.messages))
        gone = sum(id(message) not in kept for message in before)
        return Answer(
            f"Compacted: a summary stands for {gone} of {len(before)} messages. "
            "The whole conversation stays stored."
        )

    # what they have in common

    async def _ensure_room(self, ctx: TurnContext) -> None:
        """Compact where it is time to. Raises `ModelError` where that was of no use before."""
        if ctx.session.options.get(AUTO) is False:
            return
        count = await ctx.get_token_count()
        memory = MEMORY.setdefault(ctx, Memory())
        if count["fraction"] is None or count["fraction"] < self.fraction:
            memory.fruitless = 0
            return
        if memory.fruitless >= ATTEMPTS:
            raise self._too_long(ctx)
        if count["total_tokens"] < memory.wait_until:
            return
        await ctx.ui.notify(f"The model's window is {count['fraction']:.0%} full: making room.")
        try:
            outcome = await self._shrink(ctx, "auto")
        except ModelError as error:
            told = f"The conversation could not be summarised: {error}"
            await ctx.ui.notify(told, severity="warning")
            outcome = "denied"
        if outcome == "done":
            memory.fruitless += 1
            await _begin_again(ctx)
        elif outcome == "denied":
            memory.wait_until = count["total_tokens"] + GROWTH * (count["context_window"] or 0)

    async def _recover(self, ctx: TurnContext, error: ModelError) -> None:
        """Compact after a request that was too long, or raise the error that ends the run."""
        if MEMORY.setdefault(ctx, Memory()).overflows > ATTEMPTS:
            raise self._too_long(ctx) from error
        await ctx.ui.notify("The conversation is too long for the model: making room.")
        try:
            outcome = await self._shrink(ctx, "overflow")
        except ModelError as failure:
            raise error from failure
        if outcome == "denied":
            raise error
        if outcome == "nothing":
            raise self._too_long(ctx) from error
        await _begin_again(ctx)

    async def _shrink(self, ctx: Context, trigger: str, wish: str = "") -> Outcome:
        """Replace the history by less. Raises `ModelError` where there is no summary to be had."""
        from crow.extensions.compaction.history import size, split

        history = ctx.session.messages
        count = await ctx.get_token_count()
        room = CHARACTERS * (count["context_window"] or 0) or size(history)
        parts = split(
            history, self.keep_turns, int(RECENT_SHARE * room), running=trigger != "manual"
        )
        outputs = self._outputs(ctx)
        if trigger == "auto" and self._is_enough(outputs.savings(parts.older), count):
            older = await asyncio.to_thread(outputs.moved, parts.older)
            return await _replace(ctx, [*older, *parts.recent], "", trigger)
        kept = await _kept(parts, outputs, int(RECENT_SHARE * room))
        summary = ""
        if parts.older:
            from crow.extensions.compaction.summary import summarise

            limit = int(SUMMARY_SHARE * room)
            summary = await summarise(ctx, parts.older, wish, limit, ctx.model_for("summary"))
        elif kept is parts.recent:
            return "nothing"
        return await _replace(ctx, kept, summary, trigger)

    def _folder(self, session_id: str) -> OutputFolder:
        from crow.project import OutputFolder

        return OutputFolder(session_id, self.directory)

    def _outputs(self, ctx: Context) -> Outputs:
        from crow.extensions.compaction.outputs import Outputs

        outputs = OUTPUTS.get(ctx)
        if outputs is None:
            folder = self._folder(ctx.session.id)
            outputs = OUTPUTS.set(ctx, Outputs(folder, self.output_limit))
        return outputs

    def _is_enough(self, saved: int, count: TokenCount) -> bool:
        """True where moving old outputs away makes room for a while."""
        left = count["total_tokens"] - saved / CHARACTERS
        return left <= ENOUGH * self.fraction * (count["context_window"] or 0)

    def _too_long(self, ctx: TurnContext) -> ModelError:
        """The error that names what does not fit."""
        from crow.extensions.compaction.history import size

        history = {id(message) for message in ctx.session.messages}
        added = size(message for message in ctx.messages if id(message) not in history)
        tools = sum(len(json.dumps(tool, ensure_ascii=False)) for tool in ctx.tools)
        window = ctx.agent.context_window(ctx.session)
        of = f" of {window} tokens" if window else ""
        return ModelError(
            f"the conversation does not fit into the model's window{of}, and compacting it does "
            f"not help: the system prompt and what hooks add have about {added // CHARACTERS} "
            f"tokens, the tools ({len(ctx.tools)}) {tools // CHARACTERS}, the summary and the last "
            f"turns {size(ctx.session.messages) // CHARACTERS}; use a model with a larger window "
            "or fewer tools and instructions, or begin anew with /clear",
            kind="context_length",
        )


async def _replace(ctx: Context, messages: list[Message], summary: str, trigger: str) -> Outcome:
    return "done" if await ctx.compact(messages, summary, trigger) else "denied"


async def _kept(parts: Split, outputs: Outputs, room: int) -> list[Message]:
    """What follows the summary; where the last turn alone is too long, its outputs are cut."""
    from crow.extensions.compaction.history import size
    from crow.extensions.compaction.outputs import HEAD

    if size(parts.kept) <= room or not outputs.savings(parts.recent, HEAD):
        return parts.kept
    recent = await asyncio.to_thread(outputs.moved, parts.recent, HEAD)
    return [parts.prompt, *recent] if parts.prompt else recent


async def _begin_again(ctx: TurnContext) -> None:
    """Make the request what the hooks before it make of the new history."""
    ctx.request = ctx.agent.request_of(ctx.session)
    await ctx.agent.hooks.before_llm_request.fire(ctx)


async def _unless_stopped(ctx: TurnContext, call_next: CallNext) -> Completion:
    return Completion() if ctx.run.stopping else await call_next()
