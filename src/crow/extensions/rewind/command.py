"""``/rewind``, for clients that have no list of their own to choose from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, Protocol

from crow import Answer, CommandContext
from crow.extensions.rewind.plan import Plan, named
from crow.messages import is_prompt
from crow.ports import TreeStore, implements

if TYPE_CHECKING:
    from crow import Session
    from crow.extensions.rewind.restoring import Outcome

Kind = Literal["allow_once", "reject_once"]
BACK = "back"
SHOWN = 60
MOST = 30
"""Prompts that can be chosen from, and paths that are shown."""
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
            chosen = await choice(ctx, asked, [*reversed(told[-MOST:]), NOTHING])
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
        detail = listed(plan, ctx.cwd)
        chosen = await choice(ctx, "Bring back what?", choices, detail)
        if chosen is None:
            return Answer(f"{detail}\n\nNothing was changed: nobody has answered.")
        if chosen == NOTHING:
            return Answer("Nothing was changed.")
        said: list[str] = []
        if chosen in (FILES, BOTH, OVER) and plan.steps:
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
        if not plan.steps:
            return Answer("The files are as they were before the last rewind.")
        detail = listed(plan, ctx.cwd)
        question = "Bring the files back to before the last rewind?"
        if (
            not plan.does_something
            or await choice(ctx, question, (FILES, NOTHING), detail) != FILES
        ):
            return Answer(f"{detail}\n\nNothing was changed.")
        return Answer("\n".join(await self._files(ctx, plan, overwrite=False)))

    async def _files(self, ctx: CommandContext, plan: Plan, *, overwrite: bool) -> list[str]:
        outcome = await self.rewind.carry_out_rewind(ctx.session, plan, overwrite=overwrite)
        failed = [f"{path}: {reason}" for path, reason in outcome.failed]
        count = sum(not step.is_folder for step in outcome.done)
        return [f"Files brought back: {count}; /rewind {BACK} undoes that.", *failed]


async def choice(
    ctx: CommandContext, text: str, choices: Sequence[str], detail: str = ""
) -> str | None:
    """What the user chooses; None where nobody answers. The last choice is to do nothing."""
    kinds: list[Kind] = ["allow_once"] * (len(choices) - 1)
    return await ctx.ui.select(text, choices, kinds=[*kinds, "reject_once"], detail=detail)


def listed(plan: Plan, cwd: str) -> str:
    """What a plan does to each file, as a list of Markdown: editors show it as such."""
    told = [
        f"- {step.action} `{named(step, cwd)}`" + (f" ({step.reason})" if step.reason else "")
        for step in plan.shown[:MOST]
    ]
    more = len(plan.shown) - MOST
    told += [*([f"- … and {more} more"] if more > 0 else []), *(f"- {it}" for it in plan.notes)]
    return "\n".join(told) or "No files to bring back."


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
    store = ctx.agent.store
    points = await store.tree(ctx.session.id) if implements(store, TreeStore) else ()
    return [(each.text, each.at) for each in points if each.is_here and each.kind == "prompt"]


def start_of(ctx: CommandContext, count: int) -> int | None:
    """Where the prompt that is so many from the end stands; None where it was compacted."""
    places = [n for n, each in enumerate(ctx.session.messages) if is_prompt(each)]
    return places[-count] if count <= len(places) else None
