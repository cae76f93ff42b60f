"""Hooks in the front matter of skills and sub-agents: added to the session that uses them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from crow.app.ground import ground_of
from crow.app.plugins import may_bring, plugins_of
from crow.core.agent import Agent
from crow.core.contexts import Context, SessionContext
from crow.plugins import Plugin
from crow.settings import Settings
from crow.trust import is_trusted

if TYPE_CHECKING:
    from crow.extensions import ShellHooks
    from crow.extensions.skills.use import SkillContext
    from crow.extensions.subagents import Definition

NAME = "shell_hooks"
UNTRUSTED = "{} is of a project that is not trusted (crow trust): its hooks do not run"


class FrontMatter:
    """Hangs where skills are used and sub-agents begin, and adds what they bring.

    Where the settings of that session have no objection. ``options`` are those of the extension
    that runs hooks, which is made when there are some.
    """

    name = NAME

    def __init__(self, agent: Agent, settings: Settings, options: Mapping[str, Any]) -> None:
        self.agent = agent
        self.settings = settings
        self.options = options

    async def skill_used(self, ctx: SkillContext) -> None:
        """Add the hooks of a skill; they stay until the session ends."""
        table: object = ctx.front_matter.get("hooks")
        if table is None or not may_bring(self._settings(ctx)):
            return
        if not ctx.trusted:
            await ctx.ui.notify(UNTRUSTED.format(ctx.path), severity="warning")
            return
        await self._add(ctx, ctx.path, table, once=True)

    async def hired(self, ctx: Context, definition: Definition) -> None:
        """Add the hooks of a sub-agent's definition, which end with it."""
        if not may_bring(self._settings(ctx)):
            return
        if self._plugin(ctx, definition.source) is not None:
            text = f"{definition.source}: the agents of a plugin bring no hooks: they do not run"
            await ctx.ui.notify(text, severity="warning")
            return
        await self._add(ctx, definition.source, definition.hooks, once=False)

    def _settings(self, ctx: Context) -> Settings:
        ground = ground_of(ctx.session)
        return self.settings if ground is None else ground.settings

    def _is_trusted(self, ctx: Context, path: Path) -> bool:
        """False for a file of a project that is not trusted, or has changed since it was."""
        project = Path(self._settings(ctx).project or Path.home())
        inside = project != Path.home() and path.is_relative_to(project)
        return not inside or is_trusted(project)

    def _plugin(self, ctx: Context, path: str) -> Plugin | None:
        """The plugin that a file is of."""
        plugins, _ = plugins_of(self._settings(ctx))
        return next((each for each in plugins if Path(path).is_relative_to(each.root)), None)

    async def _add(self, ctx: Context, path: str, table: object, *, once: bool) -> None:
        if not isinstance(table, dict):
            await ctx.ui.notify(f"{path}: 'hooks' must be a table", severity="warning")
            return
        from crow.extensions.shell_hooks import File

        if not self._is_trusted(ctx, Path(path)):
            await ctx.ui.notify(UNTRUSTED.format(path), severity="warning")
            return
        plugin = self._plugin(ctx, path)
        file = File(path, cast("dict[str, Any]", table), once=once, plugin=plugin)
        for problem in self._extension().add(ctx.agent, ctx.session, file):
            await ctx.ui.notify(problem, severity="warning")

    def _extension(self) -> ShellHooks:
        from crow.extensions import ShellHooks

        known: ShellHooks | None = self.agent.extensions.get(NAME)
        return known or self.agent.use(ShellHooks, name=NAME, source="crow", **self.options)


class Hired:
    """Hangs on a sub-agent whose definition has hooks."""

    name = "definition_hooks"

    def __init__(self, front_matter: FrontMatter, definition: Definition) -> None:
        self.front_matter = front_matter
        self.definition = definition

    async def on_session_start(self, ctx: SessionContext) -> None:
        """Add them."""
        await self.front_matter.hired(ctx, self.definition)
