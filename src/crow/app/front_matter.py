"""Hooks in the front matter of skills and sub-agents: added to the session that uses them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from crow.app.plugins import may_bring
from crow.core.agent import Agent
from crow.core.context import Context, SessionContext
from crow.plugins import Plugin
from crow.settings import Settings

if TYPE_CHECKING:
    from crow.extensions import ShellHooks
    from crow.extensions.shell_hooks import File
    from crow.extensions.skills.use import SkillContext
    from crow.extensions.subagents import Definition

NAME = "shell_hooks"
Table = Mapping[str, Any]


class FrontMatter:
    """Hangs where skills are used and sub-agents begin, and adds what they bring.

    Where the settings of that session have no objection. ``options`` are those of the extension
    that runs hooks; it is made when there are some.
    """

    name = NAME

    def __init__(
        self, agent: Agent, settings: Settings, plugins: Iterable[Plugin], options: Table
    ) -> None:
        self.agent = agent
        self.settings = settings
        self.plugins = tuple(plugins)
        self.options = options

    async def skill_used(self, ctx: SkillContext) -> None:
        """Add the hooks of a skill; they stay until the session ends."""
        table: object = ctx.front_matter.get("hooks")
        if table is None or not self._may(ctx):
            return
        if not ctx.trusted:
            text = f"the skill {ctx.skill} is of a project that is not trusted (crow trust)"
            await ctx.ui.notify(f"{text}: its hooks do not run", severity="warning")
            return
        await self._add(ctx, ctx.path, table, once=True)

    async def hired(self, ctx: Context, definition: Definition) -> None:
        """Add the hooks of a sub-agent's definition, which end with it."""
        if not self._may(ctx):
            return
        path = Path(definition.source)
        folders = [folder for plugin in self.plugins for folder in plugin.parts["agents"]]
        if any(path.is_relative_to(folder) for folder in folders):
            text = f"{path}: the agents of a plugin bring no hooks: they do not run"
            await ctx.ui.notify(text, severity="warning")
            return
        await self._add(ctx, definition.source, definition.hooks, once=False)

    def _may(self, ctx: Context) -> bool:
        from crow.app.live import ground_of

        ground = ground_of(ctx.session)
        return may_bring(self.settings if ground is None else ground.settings)

    async def _add(self, ctx: Context, path: str, table: object, *, once: bool) -> None:
        if not isinstance(table, dict):
            await ctx.ui.notify(f"{path}: 'hooks' must be a table", severity="warning")
            return
        file = self._file(path, cast("dict[str, Any]", table), once=once)
        for problem in self._extension().add(ctx.agent, ctx.session, file):
            await ctx.ui.notify(problem, severity="warning")

    def _file(self, path: str, table: dict[str, Any], *, once: bool) -> File:
        from crow.extensions.shell_hooks import File

        mine = [plugin for plugin in self.plugins if Path(path).is_relative_to(plugin.root)]
        return File(path, table, once=once, plugin=mine[0] if mine else None)

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
