"""Hooks that stand in settings files, as Claude Code writes them: programs, requests, prompts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from crow.dataclasses import frozen
from crow.keys import Key
from crow.project import HookFile, define_front_matter, is_trusted, state_directory

if TYPE_CHECKING:
    from crow import Agent, Context, Session, SessionContext
    from crow.extensions.shell_hooks.handler import Handler
    from crow.extensions.shell_hooks.handlers import Applies, Handlers
    from crow.project import FrontMatterContext, Plugin, ProjectSettings

NAME = "shell_hooks"
LONGEST = 86_400.0  # of a point, in seconds: each handler has a limit of its own
UNTRUSTED = "{} is of a project that is not trusted (crow trust): its hooks do not run"
OF_PLUGIN = "{}: the agents of a plugin bring no hooks: they do not run"
NO_TABLE = "{}: 'hooks' must be a table"
BROUGHT: Key[dict[str, ShellHooks]] = Key("shell_hooks.brought")
"""The hooks of front matter that hang on a session, by the files' paths."""


@frozen
class ShellHooksOptions:
    """The settings of their hooks, beside `hooks`."""

    directory: str | Path | None = None
    """Where transcripts are written; without it that is beside the user's state."""


class ShellHooks:
    """Runs the hooks of settings files as Claude Code does.

    ``files`` are their ``hooks`` tables, the strongest last; give none that the user does not
    trust. ``project`` is what ``CLAUDE_PROJECT_DIR`` says. ``applies(rule, tool, args, cwd)`` says
    whether a permission rule (the ``if`` of a hook) speaks of a call; without it the extension does
    that has a method ``rule_applies``, and without one they all do. Transcripts are written under
    ``directory``. ``urls`` are patterns for those that may be asked, ``variables`` the names of
    those that headers may have; None is all. What is wrong with the files is in ``warnings``.

    With ``front_matter`` the hooks that a skill or a sub-agent's definition brings hang on the
    session that uses it, and end with it; ``plugins`` are those whose skills may be among them.
    """

    name = NAME
    order = 2000  # behind the files of the user and the project
    options = ShellHooksOptions

    def __init__(
        self,
        files: Iterable[HookFile] = (),
        *,
        project: str = "",
        plugins: Sequence[Plugin] = (),
        front_matter: bool = False,
        applies: Applies | None = None,
        directory: str | Path | None = None,
        urls: Sequence[str] | None = None,
        variables: Sequence[str] | None = None,
    ) -> None:
        self.files = [file for file in files if file.table]
        self.project = project
        self.plugins = plugins
        self.front_matter = front_matter
        self.applies = applies
        self.directory = Path(directory or state_directory() / "transcripts")
        self.urls = urls
        self.variables = variables
        self._agents: WeakSet[Agent | None] = WeakSet()

    @classmethod
    def options_from(cls, settings: ProjectSettings, own: Mapping[str, Any]) -> dict[str, Any]:
        """The options, with the hooks of settings files and plugins and what bounds them."""
        hooks = settings.hooks
        return {
            **own,
            "files": hooks.files,
            "project": settings.project,
            "plugins": settings.plugins,
            "front_matter": hooks.front_matter,
            "urls": hooks.urls,
            "variables": hooks.variables,
        }

    async def forget_session(self, session_id: str) -> None:
        """Remove the transcript of a session, with those of its sub-agents and their outputs."""
        import shutil

        from crow.extensions.shell_hooks.memory import plain

        name = plain(session_id)
        await asyncio.to_thread((self.directory / f"{name}.jsonl").unlink, missing_ok=True)
        await asyncio.to_thread(shutil.rmtree, self.directory / name, ignore_errors=True)

    @cached_property
    def handlers(self) -> Handlers:
        """The handlers of the files, read when there are any."""
        from crow.extensions.shell_hooks.handlers import Handlers
        from crow.extensions.shell_hooks.http_policy import Bounds

        bounds = Bounds(self.urls, self.variables)
        return Handlers(self.files, self.project, self.applies, self.directory, bounds)

    @property
    def entries(self) -> tuple[Handler, ...]:
        """The handlers one by one, in their order."""
        return self.handlers.entries if self.files else ()

    def chosen(self, event: str, about: str) -> tuple[Handler, ...]:
        """The handlers that run at an event; ``about`` is what matchers look at."""
        return self.handlers.chosen(event, about) if self.files else ()

    @property
    def warnings(self) -> Sequence[str]:
        """What is wrong with the files, a line each."""
        return self.handlers.warnings if self.files else ()

    def init_agent(self, agent: Agent) -> None:
        """Hang on every point that some entry is for; a sub-agent has its caller's gates anyway."""
        self._hang(agent, agent, gates=agent.parent not in self._agents)

    def init_session(self, session: Session) -> None:
        """Hang on every point that some entry is for, in one session."""
        assert session.agent is not None
        self._hang(session, session.agent, gates=True)
        if self.front_matter:  # what the one before has hung has gone with it
            for path, hooks in (BROUGHT.get(session) or {}).items():
                bring(session, path, hooks)

    def _hang(self, host: Agent | Session, agent: Agent, *, gates: bool) -> None:
        self._agents.add(agent)
        if self.front_matter and agent.parent is None:
            define_front_matter(agent)
            host.hooks.register("on_front_matter", self.use_front_matter)
        wanted = {handler.event.name for handler in self.entries if not handler.inactive}
        if not wanted:
            return
        from crow.extensions.shell_hooks.event_bindings import GATES, OWN

        for point, events, _ in (*GATES, *OWN) if gates else OWN:
            if not wanted.isdisjoint(events):
                host.hooks.register(point, self._calls[point], timeout=LONGEST)

    @cached_property
    def _calls(self) -> dict[str, Callable[[Context], Any]]:
        """What is called at each point, the same wherever that hangs."""
        from crow.extensions.shell_hooks.event_bindings import GATES, OWN

        return {point: named(point, moment, self.handlers) for point, _, moment in (*GATES, *OWN)}

    async def catch_up(self, ctx: SessionContext, before: ShellHooks) -> None:
        """Tell the hooks that were not there ``before`` that the session has begun."""
        if self.files or before.files:
            from crow.extensions.shell_hooks.session_events import begun_late

            await begun_late(self.handlers, before.handlers, ctx)

    async def use_front_matter(self, ctx: FrontMatterContext) -> None:
        """Hang the hooks of a file's front matter on the session that uses it."""
        table, path = ctx.front_matter.get("hooks"), Path(ctx.path)
        brought = BROUGHT.setdefault(ctx.session, {})
        if not table or ctx.path in brought:
            return
        plugin = next((each for each in self.plugins if path.is_relative_to(each.root)), None)
        if objection := self._objection(ctx, table, plugin):
            await ctx.ui.notify(objection.format(path), severity="warning")
            return
        folder = str(path.parent) if ctx.skill else ""
        file = HookFile(ctx.path, table, once=bool(ctx.skill), plugin=plugin, skill=folder)
        hooks = brought[ctx.path] = self._like(file if ctx.session.parent is None else sub(file))
        bring(ctx.session, ctx.path, hooks)
        for problem in hooks.warnings:
            await ctx.ui.notify(problem, severity="warning")

    def _objection(self, ctx: FrontMatterContext, table: object, plugin: Plugin | None) -> str:
        """Why the hooks of a file do not run; empty where they do."""
        if plugin is not None and not ctx.skill:
            return OF_PLUGIN
        project = Path(self.project or Path.home())
        inside = project != Path.home() and Path(ctx.path).is_relative_to(project)
        if not ctx.trusted or (inside and not is_trusted(project, ctx.path)):
            return UNTRUSTED
        return "" if isinstance(table, dict) else NO_TABLE

    def _like(self, file: HookFile) -> ShellHooks:
        """The same for one more file."""
        return ShellHooks(
            [file],
            project=self.project,
            applies=self.applies,
            directory=self.directory,
            urls=self.urls,
            variables=self.variables,
        )

    async def settle(self, session: Session) -> list[str]:
        """Wait for the hooks of a session that run in the background; which took too long."""
        from crow.extensions.shell_hooks.memory import MEMORY

        memory = MEMORY.get(session)
        return [] if memory is None else await memory.settle()


def bring(session: Session, path: str, hooks: ShellHooks) -> None:
    """Hang the hooks that a file brings, where they do not hang there already."""
    name = f"hooks of {path}"
    if name not in session.extensions:
        session.use(hooks, name=name, source=path)


def sub(file: HookFile) -> HookFile:
    """The same hooks, for a sub-agent: it does not stop, it is a sub-agent that stops."""
    table = dict(file.table)
    if "Stop" in table:
        mine, theirs = table.pop("Stop"), table.get("SubagentStop", [])
        both = isinstance(mine, list) and isinstance(theirs, list)
        table["SubagentStop"] = [*theirs, *mine] if both else mine
    return replace(file, table=table)


def named(point: str, moment: Callable[..., Any], handlers: Handlers) -> Callable[[Context], Any]:
    """What hangs at a point, called like it."""

    def call(ctx: Context) -> Any:
        return moment(handlers, ctx)

    call.__name__ = call.__qualname__ = point
    return call
