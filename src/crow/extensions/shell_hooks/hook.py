"""The extension: hooks of settings files, hung on the points where their events happen."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any
from weakref import WeakSet

from crow.core.agent import Agent
from crow.core.context import Context
from crow.core.contexts import SessionContext
from crow.core.hooks import Hooks
from crow.core.session import Session
from crow.extensions.shell_hooks.bounds import Bounds
from crow.extensions.shell_hooks.entry import File, entries_of
from crow.extensions.shell_hooks.handlers import Applies, Handlers
from crow.extensions.shell_hooks.joined import NOTHING
from crow.extensions.shell_hooks.memory import NAME, Memory
from crow.extensions.shell_hooks.moments import GATES, OWN, Moment
from crow.extensions.shell_hooks.sessions import SOURCES, session_begun
from crow.extensions.shell_hooks.surroundings import watch_files
from crow.project import state_directory

LONGEST = 86_400.0  # of a point, in seconds: each handler has a limit of its own


class ShellHooks(Handlers):
    """Runs the hooks of settings files as Claude Code does.

    ``files`` are their ``hooks`` tables, the strongest last; give none that the user does not
    trust. ``project`` is what ``CLAUDE_PROJECT_DIR`` says. ``applies(rule, tool, args, cwd)`` says
    whether a permission rule (the ``if`` of a hook) speaks of a call; without it they all do.
    Transcripts are written under ``directory``. ``urls`` are patterns for those that may be asked,
    ``variables`` the names of those that headers may have; None is all. What is wrong with the
    files is in ``warnings``.
    """

    name = NAME

    def __init__(
        self,
        files: Iterable[File] = (),
        *,
        project: str = "",
        applies: Applies | None = None,
        directory: str | Path | None = None,
        urls: Sequence[str] | None = None,
        variables: Sequence[str] | None = None,
    ) -> None:
        self.warnings: list[str] = []
        self.bounds = Bounds(urls, variables)
        super().__init__(
            tuple(map(self.bounds.within, entries_of(files, self.warnings))),
            project,
            applies,
            Path(directory or state_directory() / "transcripts"),
        )
        self._agents: WeakSet[Agent | None] = WeakSet()
        self._calls = {point: self._named(point, moment) for point, _, moment in (*GATES, *OWN)}

    def init_agent(self, agent: Agent) -> None:
        """Hang on every point that some entry is for; a sub-agent has its caller's gates anyway."""
        self._hang(agent.hooks, OWN if agent.parent in self._agents else (*GATES, *OWN))
        self._agents.add(agent)

    def init_session(self, session: Session) -> None:
        """Hang on every point that some entry is for, in one session."""
        self._hang(session.hooks, (*GATES, *OWN))
        self._agents.add(session.agent)

    def _hang(self, hooks: Hooks, points: Iterable[tuple[str, tuple[str, ...], Moment]]) -> None:
        wanted = {entry.event.name for entry in self.entries if not entry.inactive}
        for point, events, _ in points:
            if not wanted.isdisjoint(events):
                hooks.register(point, self._calls[point], timeout=LONGEST)

    async def catch_up(self, ctx: SessionContext, before: ShellHooks | None) -> None:
        """Tell the hooks that were not there ``before`` that the session has begun."""
        fresh = self.fresh(before)
        if fresh.entries:
            await session_begun(fresh, ctx, SOURCES.get(ctx.source, "startup"))
        watch_files(self, ctx, NOTHING)

    def _named(self, point: str, moment: Moment) -> Callable[[Context], Any]:
        def call(ctx: Context) -> Any:
            return moment(self, ctx)

        call.__name__ = call.__qualname__ = point
        return call

    async def settle(self, session: Session) -> list[str]:
        """Wait for the hooks of a session that run in the background; which took too long."""
        memory: Memory | None = session.cache.get(NAME)
        return [] if memory is None else await memory.settle()
