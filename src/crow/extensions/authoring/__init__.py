"""Extensions that the model writes: it learns how where that helps, and gets a tool with it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crow import hook
from crow.dataclasses import frozen
from crow.hooks import FIRST
from crow.keys import Key
from crow.messages import text_of

if TYPE_CHECKING:
    from crow import RunContext
    from crow.extensions.authoring.author import Author
    from crow.project import ProjectSettings, Proposals

__all__ = ["AuthoringHook"]

NAME = "authoring"
AUTHOR: Key[Author] = Key(NAME)
SKILL = "crow-extensions"
SKILLS = Path(__file__).parent / "guide"
"""Where its skill lies: what is in the folder `skills` of a package, every session is told of."""
MENTIONED = r"(?<![\w./-])(crow|extensions?|hooks?)(?![\w/]|\.\w)"
"""A word of a sentence in small letters, and no part of a path."""
SPOKEN = 32 * 1024
"""Characters in which a prompt says what it is about; a file of 8 MB may be part of it."""


@frozen
class AuthoringOptions:
    """The settings of the extension."""

    always: bool = False
    """Tell the model of the skill in every session, whatever the prompts are about."""


class AuthoringHook:
    """Lets the model write extensions of Crow.

    Its skill ``crow-extensions`` holds Crow's own documentation and examples. The model is told of
    it in a line once a prompt speaks of Crow, extensions or hooks, or ``always``, and reads it
    without a question. With the skill it gets the tool ``LoadExtension``, where somebody can
    answer: the user sees the code and what it hangs on, and with their consent it is used at once.
    """

    name = NAME
    order = 105
    is_its_options = True
    options = AuthoringOptions

    def __init__(
        self, *, always: bool = False, proposals: Callable[[], Proposals] | None = None
    ) -> None:
        self.always = always
        self._proposals = proposals

    @classmethod
    def options_from(cls, settings: ProjectSettings, own: Mapping[str, Any]) -> dict[str, Any]:
        """The options, with what puts extensions into use."""
        return {**own, "proposals": settings.proposals}

    @hook("before_run", order=FIRST)  # before skills are announced, wherever this hangs
    async def look(self, ctx: RunContext) -> None:
        """Tell of the skill where a prompt speaks of what it is about, or one before did.

        At the first prompt the tool comes with it; later on that would cost the model's cache.
        """
        prompt, known = text_of(ctx.prompt)[:SPOKEN], NAME in ctx.session.state
        if not (known or self.always or re.search(MENTIONED, prompt.lower())):
            return
        author = AUTHOR.get(ctx) or self._begin(ctx)
        if author is not None and (SKILL in prompt or not ctx.session.messages):
            author.offer(ctx)

    def _begin(self, ctx: RunContext) -> Author | None:
        """Have the skill announced, and its files read without a question, in this session."""
        skills = ctx.agent.extensions.get("skills")
        if skills is None or ctx.session.parent is not None:
            return None
        from crow.extensions.authoring.author import TOOL, Author

        skills.add_folder(SKILLS, ctx.session)
        author = AUTHOR.set(ctx, Author(SKILLS / SKILL, self._proposals))
        ctx.session.use(author, name=NAME)
        if ctx.state.setdefault(TOOL, False):
            author.offer(ctx)
        return author
