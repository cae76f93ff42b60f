"""Titles: a session is named by what it is about, where a model for that is named."""

from __future__ import annotations

import asyncio
from typing import Annotated

from crow import Arg, Completion, Request, RunContext, Session
from crow.dataclasses import entity
from crow.errors import ModelError
from crow.events import TitleChanged
from crow.keys import Key
from crow.messages import is_prompt, text_of, user
from crow.ports import PurposeModels, implements

NAME = "titles"
PURPOSE = "title"
ASKED: Key[bool] = Key(NAME)
LONGEST = 60
EXCERPT = 2000
WISH = (
    "Name the conversation below for a list of conversations: what it is about, in three to seven"
    " words and in its own language, without quotation marks and without a full stop. Answer with"
    " the name alone.\n\nThe user:\n{}\n\nThe assistant:\n{}"
)


@entity
class TitlesHook:
    """Names a session after its first answer, where ``purposes`` have a model for ``title``.

    Without one nothing is asked, and a session is called as its first prompt begins. A name that
    somebody gave stays, and sub-agents have none. Nobody waits for it.
    """

    name = NAME
    order = 185
    is_its_options = True

    timeout: Annotated[float, Arg(above=0)] = 30.0
    """Seconds that a title may take."""

    def after_run(self, ctx: RunContext) -> None:
        """Ask for a title beside the conversation, once."""
        session = ctx.session
        llm = ctx.agent.llm
        has_one = implements(llm, PurposeModels) and PURPOSE in llm.purposes
        if not has_one or session.parent is not None or session.closed:
            return
        if ctx.reply.stop_reason == "end_turn" and is_unnamed(session) and not ASKED.get(ctx):
            ASKED.set(ctx, True)
            session.spawn(self._name(ctx, ctx.reply.text))

    async def _name(self, ctx: RunContext, answer: str) -> None:
        before = ctx.session.title
        said = WISH.format(first_prompt(ctx.session)[:EXCERPT], answer[:EXCERPT])
        try:
            async with asyncio.timeout(self.timeout):
                wish = Request([user(said)], model=ctx.model_for(PURPOSE))
                title = title_in(await ctx.complete(wish))
        except (ModelError, TimeoutError):
            return  # it has a title, if not so good a one
        if title and ctx.session.title == before:
            ctx.session.title = title
            await ctx.emit(TitleChanged(title))


def first_prompt(session: Session) -> str:
    """What a person said first."""
    found = next(filter(is_prompt, session.messages), None)
    return text_of(found.get("content")) if found else ""


def is_unnamed(session: Session) -> bool:
    """Whether a session has no title but the beginning of its first prompt."""
    return first_prompt(session).lstrip().startswith(session.title.removesuffix("…"))


def title_in(reply: Completion) -> str:
    """The first line of an answer, without what models put around it."""
    line = next((line for line in map(str.strip, reply.text.splitlines()) if line), "")
    plain = line.removeprefix("Title:").strip(" \"'`*#“”„").removesuffix(".")
    return plain if len(plain) <= LONGEST else plain[: LONGEST - 1].rstrip() + "…"
