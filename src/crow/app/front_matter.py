"""Hooks in the front matter of skills and sub-agents: hung on the session that uses them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from crow.app.ground import ground_of
from crow.app.plugins import may_bring, plugins_of
from crow.core.agent import Agent
from crow.core.context import Context
from crow.core.contexts import SessionContext
from crow.core.session import Session
from crow.project.plugins import Plugin
from crow.project.trust import is_trusted
from crow.settings import Settings

if TYPE_CHECKING:
    from crow.extensions.skills.use import SkillContext

UNTRUSTED = "{} is of a project that is not trusted (crow trust): its hooks do not run"
OF_PLUGIN = "{}: the agents of a plugin bring no hooks: they do not run"


class FrontMatter:
    """Hangs the hooks that a skill or a sub-agent's definition brings on the session.

    Where that session's settings have no objection. They end with it. ``options`` are those of
    the extension that runs hooks.
    """

    name = "front_matter"

    def __init__(self, settings: Settings, options: Mapping[str, Any]) -> None:
        self.settings = settings
        self.options = options

    def init_agent(self, agent: Agent) -> None:
        """Hang where skills are used and sub-agents begin."""
        if agent.hooks.knows("on_skill"):
            agent.hooks.register("on_skill", self.skill_used)
        agent.hooks.register("SubagentStart", self.hired)

    async def skill_used(self, ctx: SkillContext) -> None:
        """Hang the hooks of a skill on the session that uses it."""
        table: object = ctx.front_matter.get("hooks")
        if table is None or not may_bring(self._settings(ctx.session)):
            return
        if not ctx.trusted:
            await ctx.ui.notify(UNTRUSTED.format(ctx.path), severity="warning")
            return
        await self._hang(ctx, ctx.path, table, once=True)

    async def hired(self, ctx: SessionContext) -> None:
        """Hang the hooks of a sub-agent's definition on its session."""
        agent = ctx.agent
        while agent.parent is not None:
            agent = agent.parent
        helpers: Any = agent.extensions.get("subagents")
        known: Mapping[str, Any] = getattr(getattr(helpers, "definitions", None), "agents", {})
        definition = known.get(ctx.session.agent_type)
        if definition is None or not definition.hooks or not may_bring(self._settings(ctx.session)):
            return
        if self._plugin(ctx.session, definition.source) is not None:
            await ctx.ui.notify(OF_PLUGIN.format(definition.source), severity="warning")
            return
        await self._hang(ctx, definition.source, definition.hooks, once=False)

    def _settings(self, session: Session) -> Settings:
        ground = ground_of(session)
        return self.settings if ground is None else ground.settings

    def _is_trusted(self, session: Session, path: Path) -> bool:
        """False for a file of a project that is not trusted, or has changed since it was."""
        project = Path(self._settings(session).project or Path.home())
        inside = project != Path.home() and path.is_relative_to(project)
        return not inside or is_trusted(project)

    def _plugin(self, session: Session, path: str) -> Plugin | None:
        """The plugin that a file is of."""
        plugins, _ = plugins_of(self._settings(session))
        return next((each for each in plugins if Path(path).is_relative_to(each.root)), None)

    async def _hang(self, ctx: Context, path: str, table: object, *, once: bool) -> None:
        from crow.extensions.shell_hooks import File, ShellHooks

        session, name = ctx.session, f"hooks of {path}"
        if not isinstance(table, dict):
            await ctx.ui.notify(f"{path}: 'hooks' must be a table", severity="warning")
            return
        if not self._is_trusted(session, Path(path)):
            await ctx.ui.notify(UNTRUSTED.format(path), severity="warning")
            return
        if name in session.extensions:
            return
        plugin = self._plugin(session, path)
        file = File(path, cast("dict[str, Any]", table), once=once, plugin=plugin)
        mine = file if session.parent is None else file.of_sub_agent()
        hooks = session.use(ShellHooks([mine], **self.options), name=name, source=path)
        for problem in hooks.warnings:
            await ctx.ui.notify(problem, severity="warning")
