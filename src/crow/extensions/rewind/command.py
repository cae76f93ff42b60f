"""``/rewind``, for clients that have no list of their own to choose from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from crow import Answer, CommandContext
from crow.extensions.rewind.plan import Plan
from crow.messages import is_prompt

if TYPE_CHECKING:
    from crow import Session
    from crow.extensions.rewind.restoring import Outcome

BACK = "back"
SHOWN = 60
MOST = 30
FILES, TALK, BOTH = "Files alone", "Conversation alone", "Files and conversation"
OVER, NOTHING = "Files and conversation, over what others changed", "Nothing"


class Keeper(Protocol):
    """Whoever keeps files, and can bring them back."""

    async def plan_rewind(self, session: Session, since: float) -> Plan: ...
    async def carry_out_rewind(
        self, session: Session, plan: Plan, *, overwrite: bool = False
    ) -> Outcome: ...
    async def rewinds(self, session: Session) -> list[float]: ...


class Rewinding:
    """Asks where to and what, shows what would change, and does it."""

    def __init__(self, rewind: Keeper) -> None:
        self.rewind = rewind

    async def run(self, ctx: CommandContext) -> Answer:
        """Go back."""
        word = ctx.args.strip()
        if word == BACK:
            return await self._back(ctx)
        prompts = await prompts_of(ctx)
        if not prompts:
            return Answer("There is no earlier prompt.")
        told = [f"{n}. {in_short(text)}" for n, (text, _) in enumerate(prompts, 1)]
        if not word:
            asked = "Back to before which prompt?"
            chosen = await ctx.ui.select(asked, [*reversed(told[-MOST:]), NOTHING], default=None)
            if chosen is None:
                return Answer("\n".join([*told, "/rewind NUMBER goes back to before that prompt."]))
            word = chosen.partition(".")[0]
        if not word.isdecimal() or not 1 <= int(word) <= len(prompts):
            return Answer("Nothing was changed." if word == NOTHING else f"No prompt {word!r}.")
        number = int(word)
        return await self._to(ctx, prompts[number - 1][1], len(prompts) - number + 1)

    async def _to(self, ctx: CommandContext, since: float, count: int) -> Answer:
        """Go back to before the prompt that is so many from the end."""
        plan = await self.rewind.plan_rewind(ctx.session, since)
        at = start_of(ctx, count)
        choices = choices_of(plan, has_talk=at is not None)
        lines = plan.lines(ctx.cwd)
        detail = "\n".join(lines or ["no files to bring back"])
        chosen = await ctx.ui.select("Bring back what?", choices, default=None, detail=detail)
        if chosen is None:
            return Answer(f"{detail}\n\nNothing was changed: nobody could be asked.")
        if chosen == NOTHING:
            return Answer("Nothing was changed.")
        said: list[str] = []
        if chosen != TALK and plan.does_something:
            said += await self._files(ctx, plan, overwrite=chosen == OVER)
        if chosen != FILES and at is not None:
            await ctx.restart_with_new_session(ctx.session.messages[:at])
            said.append("The conversation ends before that prompt; what followed stays stored.")
        return Answer("\n".join(said) or "Nothing was changed.")

    async def _back(self, ctx: CommandContext) -> Answer:
        """Take the last rewind of files back."""
        before = await self.rewind.rewinds(ctx.session)
        if not before:
            return Answer("No files were brought back in this session.")
        plan = await self.rewind.plan_rewind(ctx.session, before[-1])
        if not plan.does_something:
            return Answer("The files are as they were before the last rewind.")
        detail = "\n".join(plan.lines(ctx.cwd))
        question = "Bring the files back to before the last rewind?"
        chosen = await ctx.ui.select(question, (FILES, NOTHING), default=None, detail=detail)
        if chosen != FILES:
            return Answer(f"{detail}\n\nNothing was changed.")
        return Answer("\n".join(await self._files(ctx, plan, overwrite=False)))

    async def _files(self, ctx: CommandContext, plan: Plan, *, overwrite: bool) -> list[str]:
        outcome = await self.rewind.carry_out_rewind(ctx.session, plan, overwrite=overwrite)
        failed = [f"{path}: {reason}" for path, reason in outcome.failed]
        return [f"Files brought back: {len(outcome.done)}; /rewind {BACK} undoes that.", *failed]


def in_short(text: str) -> str:
    """A prompt as a line of a list."""
    line = " ".join(text.split())
    return line if len(line) <= SHOWN else f"{line[: SHOWN - 1]}…"


def choices_of(plan: Plan, *, has_talk: bool) -> list[str]:
    """What can be chosen."""
    wanted = [
        (BOTH, has_talk and plan.does_something),
        (FILES, plan.does_something),
        (TALK, has_talk),
        (OVER, has_talk and bool(plan.foreign)),
        (NOTHING, True),
    ]
    return [text for text, is_offered in wanted if is_offered]


async def prompts_of(ctx: CommandContext) -> list[tuple[str, float]]:
    """The prompts of the session and when they were said, as the store has them."""
    tree: Any = getattr(ctx.agent.store, "tree", None)
    if tree is None:
        return []
    points = await tree(ctx.session.id)
    return [(each.text, each.at) for each in points if each.is_here and each.kind == "prompt"]


def start_of(ctx: CommandContext, count: int) -> int | None:
    """Where the prompt that is so many from the end stands; None where it was compacted."""
    places = [n for n, each in enumerate(ctx.session.messages) if is_prompt(each)]
    return places[-count] if count <= len(places) else None
