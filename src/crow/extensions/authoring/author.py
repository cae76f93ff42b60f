"""The tools and instructions of a session in which the model may write an extension."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from crow import Allow, Ask, Context, ToolContext, hook
from crow.extensions.authoring.tool import NAME as TOOL
from crow.extensions.authoring.tool import LoadExtension
from crow.ports import is_attended

if TYPE_CHECKING:
    from crow.project import Proposals


class Author:
    """Lets the model read a skill's ``folder``, and offers the tool to one that has read it."""

    def __init__(self, folder: Path, proposals: Callable[[], Proposals] | None) -> None:
        self._proposals = proposals
        self._skill = folder.name
        self._own = [each.resolve() for each in (folder, folder / "docs", folder / "examples")]

    @hook("before_tool", tools={"Read"}, judge=True)
    def judge_reading(self, ctx: ToolContext) -> Allow | None:
        """What comes with Crow needs no question."""
        path = Path(str(ctx.args.get("file_path"))).resolve()
        is_own = any(path.is_relative_to(folder) for folder in self._own)
        return Allow("it comes with Crow") if is_own else None

    @hook("before_tool", tools={TOOL}, judge=True)
    def judge(self, ctx: ToolContext) -> Ask | None:
        """Have the user asked."""
        return ctx.tool.judge(ctx) if isinstance(ctx.tool, LoadExtension) else None

    @hook("after_tool", tools={"Read", "Skill"})
    def look(self, ctx: ToolContext) -> None:
        """Offer the tool to a model that has read the skill."""
        if self._skill in " ".join(map(str, ctx.args.values())):
            self.offer(ctx)

    def offer(self, ctx: Context) -> None:
        """Let the model have the tool in this session, where somebody can look at the code."""
        session = ctx.session
        if (
            self._proposals is None
            or not is_attended(ctx.client)
            or ctx.agent.tool(TOOL, session) is not None
        ):
            return
        ctx.state[TOOL] = True
        session.add_tool(LoadExtension(self._proposals()))
