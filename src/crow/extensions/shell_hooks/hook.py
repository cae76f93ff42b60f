"""The extension: hooks of settings files, hung on the points where their events happen."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

from crow.core.agent import Agent
from crow.core.contexts import Context, SessionContext
from crow.core.hooks import Owner
from crow.core.session import Session
from crow.extensions.shell_hooks.bounds import Bounds
from crow.extensions.shell_hooks.changing import tell_beginning
from crow.extensions.shell_hooks.entry import Entry, File, entries_of
from crow.extensions.shell_hooks.handlers import Applies, Handlers
from crow.extensions.shell_hooks.memory import NAME, Memory, root_of
from crow.extensions.shell_hooks.moments import GATES, OWN, Moment
from crow.trust import state_file

REPLACED = "shell_hooks.replaced"
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
            tuple(self._read(files, self.warnings)),
            project,
            applies,
            Path(directory or state_file().parent / "transcripts"),
        )
        self._others: dict[str, Entry] = {}
        self._calls = {point: self._named(point, moment) for point, _, moment in (*GATES, *OWN)}

    def _read(self, files: Iterable[File], problems: list[str]) -> Iterator[Entry]:
        return map(self.bounds.within, entries_of(files, problems))

    def init_agent(self, agent: Agent) -> None:
        """Hang on every point that some entry is for."""
        self._hang(agent, (*self.entries, *self._others.values()))

    def of(self, session: Session) -> ShellHooks:
        """The hooks of a session and of its sub-agents: these, or what has replaced them there."""
        return root_of(session).cache.get(REPLACED, self)

    def replace(
        self, ctx: SessionContext, other: ShellHooks, *, late: bool = False
    ) -> Callable[[], Awaitable[None]]:
        """Let other hooks run in a session instead of these, from now on.

        What is returned tells those that are new that the session begins, or has begun: ``late``.
        """
        before = {entry.key for entry in self.of(ctx.session).entries}
        root_of(ctx.session).cache[REPLACED] = other
        hung = self._hangs(ctx.agent, "SessionStart")
        active = (entry for entry in other.entries if not entry.inactive)
        self._others |= {entry.event.name: entry for entry in active}
        self._hang(ctx.agent, other.entries)
        fresh = copy(other)
        fresh.entries = tuple(each for each in other.entries if each.key not in before)
        fresh._chosen = {}  # noqa: SLF001 - its own
        told = fresh if late else other
        return lambda: tell_beginning(told, other, ctx, late=late, hung=hung)

    def _hang(self, agent: Agent, entries: Iterable[Entry]) -> None:
        """Hang on the points that these entries are for, where nothing of this hangs yet."""
        wanted = {entry.event.name for entry in entries if not entry.inactive}
        above = agent.parent
        inherits = above is not None and self in above.extensions.values()
        if inherits and above is not None:
            self._hang(above, entries)
        for point, events, _ in (*(() if inherits else GATES), *OWN):
            if not wanted.isdisjoint(events) and not self._hangs(agent, point):
                owner = agent.hooks.owner or Owner(NAME, self)
                call = self._calls[point]
                agent.hooks.register(point, call, timeout=LONGEST, owner=owner)

    def _hangs(self, agent: Agent, point: str) -> bool:
        if point not in agent.hooks.names:
            return any((point, NAME) == waiting[:2] for waiting in agent.hooks.waiting)
        call = self._calls[point]
        return any(hook.function is call for hook in agent.hooks[point].entries)

    def add(self, agent: Agent, session: Session, file: File) -> list[str]:
        """Let the hooks of one more file run in a session, until it ends.

        What is wrong with them is returned, a line each. A file is added once. In a sub-agent
        ``Stop`` means ``SubagentStop``.
        """
        memory = Memory.of(session, self.directory)
        problems: list[str] = []
        if file.path not in memory.files:
            memory.files.add(file.path)
            mine = file if session.parent is None else of_sub_agent(file)
            fresh = list(self.of(session)._read([mine], problems))  # noqa: SLF001 - its own
            memory.entries += fresh
            self._hang(agent, fresh)
        return problems

    def _named(self, point: str, moment: Moment) -> Callable[[Context], Any]:
        def call(ctx: Context) -> Any:
            return moment(self.of(ctx.session), ctx)

        call.__name__ = call.__qualname__ = point
        return call

    async def settle(self, session: Session) -> list[str]:
        """Wait for the hooks of a session that run in the background; which took too long."""
        memory: Memory | None = session.cache.get(NAME)
        return [] if memory is None else await memory.settle()


def of_sub_agent(file: File) -> File:
    """The same hooks, for a sub-agent: it does not stop, it is a sub-agent that stops."""
    table = dict(file.table)
    if "Stop" in table:
        mine, theirs = table.pop("Stop"), table.get("SubagentStop", [])
        both = isinstance(mine, list) and isinstance(theirs, list)
        table["SubagentStop"] = [*theirs, *mine] if both else mine
    return replace(file, table=table)
