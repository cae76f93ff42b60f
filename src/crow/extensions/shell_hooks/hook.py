"""The extension: hooks of settings files, hung on the points where their events happen."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

from crow.core.agent import Agent
from crow.core.calls import ToolName
from crow.core.contexts import Context, SessionContext
from crow.core.hooks import Owner
from crow.core.session import Session
from crow.extensions.shell_hooks import (
    calls,
    changing,
    display,
    requests,
    sessions,
    surroundings,
    turns,
)
from crow.extensions.shell_hooks.bounds import Bounds
from crow.extensions.shell_hooks.entry import Entry, File, entries_of
from crow.extensions.shell_hooks.event import KNOWN
from crow.extensions.shell_hooks.firing import Watch, place
from crow.extensions.shell_hooks.joined import NOTHING, Joined
from crow.extensions.shell_hooks.memory import NAME, SILENT, Memory, root_of
from crow.extensions.shell_hooks.terminal import send
from crow.trust import state_file

Moment = Callable[..., Any]
Applies = Callable[[str, str, Mapping[str, Any], str], bool]
LONGEST = 86_400.0  # of a point, in seconds: each handler has a limit of its own
GATES: tuple[tuple[str, tuple[str, ...], Moment], ...] = (
    ("UserPromptSubmit", tuple(KNOWN), turns.prompted),
    ("UserPromptExpansion", ("UserPromptExpansion",), turns.expanded),
    ("PreToolUse", ("PreToolUse",), calls.before),
    ("PermissionRequest", ("PermissionRequest",), calls.asked),
    ("PreModelSwitch", ("PreModelSwitch",), sessions.switching),
    ("ConfigChange", ("ConfigChange",), changing.edited),
    ("TaskCreated", ("TaskCreated",), sessions.created),
    ("TaskCompleted", ("TaskCompleted",), sessions.completed),
    ("Elicitation", ("Elicitation",), sessions.elicited),
    ("ElicitationResult", ("ElicitationResult",), sessions.answered),
    ("SubagentStart", ("SubagentStart", "SessionStart"), sessions.hired),
    ("SubagentStop", ("SubagentStop",), turns.finished),
)
"""Where something hangs, for which events, and what is called. Sub-agents inherit these."""
OWN: tuple[tuple[str, tuple[str, ...], Moment], ...] = (
    ("SessionStart", ("SessionStart", "PostModelSwitch", "FileChanged"), sessions.started),
    ("SessionEnd", ("SessionEnd",), sessions.ended),
    ("before_llm_request", ("BeforeModel", "AfterModel"), requests.asking),
    ("after_llm_response", tuple(KNOWN), turns.replied),
    ("after_tool", tuple(KNOWN), calls.after),
    ("PostToolBatch", ("PostToolBatch",), calls.batch),
    ("Stop", ("Stop", "StopFailure"), turns.finished),
    ("on_error", ("StopFailure",), turns.broken),
    ("PreCompact", ("PreCompact",), sessions.compacting),
    ("PostCompact", ("PostCompact", "SessionStart", "SessionEnd"), sessions.compacted),
    ("Setup", ("Setup",), surroundings.set_up),
    ("FileChanged", ("FileChanged",), surroundings.file_changed),
    ("DirectoryAdded", ("DirectoryAdded",), surroundings.directory_added),
    ("PostModelSwitch", ("PostModelSwitch",), sessions.switched),
    ("Notification", ("Notification",), sessions.noticed),
    ("MessageDisplay", ("MessageDisplay",), display.writing),
    ("after_loop", ("MessageDisplay",), display.left),
    ("InstructionsLoaded", ("InstructionsLoaded",), sessions.instructed),
)
"""The same for what hangs on an agent and on each of its sub-agents by itself."""


class ShellHooks:
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
        self.entries = tuple(self._read(files, self.warnings))
        self.project = project
        self.applies = applies
        self.directory = Path(directory or state_file().parent / "transcripts")
        self._others: dict[str, Entry] = {}
        self._chosen: dict[tuple[str, ...], tuple[Entry, ...]] = {}
        self._calls = {point: self._named(point, moment) for point, _, moment in (*GATES, *OWN)}

    def _read(self, files: Iterable[File], problems: list[str]) -> Iterator[Entry]:
        return map(self.bounds.within, entries_of(files, problems))

    def init_agent(self, agent: Agent) -> None:
        """Hang on every point that some entry is for."""
        self._hang(agent, (*self.entries, *self._others.values()))

    def of(self, session: Session) -> ShellHooks:
        """The hooks of a session and of its sub-agents: these, or what has replaced them there."""
        return changing.in_force(self, session)

    def replace(
        self, ctx: SessionContext, other: ShellHooks, *, late: bool = False
    ) -> Callable[[], Awaitable[None]]:
        """Let other hooks run in a session instead of these, from now on.

        What is returned tells those that are new that the session begins, or has begun: ``late``.
        """
        before = {entry.key for entry in self.of(ctx.session).entries}
        root_of(ctx.session).cache[changing.REPLACED] = other
        hung = self._hangs(ctx.agent, "SessionStart")
        active = (entry for entry in other.entries if not entry.inactive)
        self._others |= {entry.event.name: entry for entry in active}
        self._hang(ctx.agent, other.entries)
        fresh = copy(other)
        fresh.entries = tuple(each for each in other.entries if each.key not in before)
        fresh._chosen = {}  # noqa: SLF001 - its own
        told = fresh if late else other
        return lambda: changing.begin(told, other, ctx, late=late, hung=hung)

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

    def chosen(self, event: str, about: str) -> tuple[Entry, ...]:
        """The entries that match, each thing that they do once."""
        others = sorted(about.others) if isinstance(about, ToolName) else ()
        key = event, about, *others
        if key not in self._chosen:
            found: dict[str, Entry] = {}
            for entry in self.entries:
                if entry.event.name == event and not entry.inactive and entry.test(about):
                    twin = found.get(entry.key)
                    blocks = entry.blocks or (twin is not None and twin.blocks)
                    found[entry.key] = replace(twin or entry, blocks=blocks)
            self._chosen[key] = tuple(found.values())
        return self._chosen[key]

    def memory(self, ctx: Context) -> Memory:
        """What is remembered of a session."""
        return Memory.of(ctx.session, self.directory)

    async def settle(self, session: Session) -> list[str]:
        """Wait for the hooks of a session that run in the background; which took too long."""
        memory: Memory | None = session.cache.get(NAME)
        return [] if memory is None else await memory.settle()

    async def fire(
        self,
        event: str,
        ctx: Context,
        about: str,
        fields: Mapping[str, Any],
        *,
        env_file: str | None = None,
        watch: Watch | None = None,
    ) -> Joined:
        """Run the handlers of an event; ``about`` is what matchers look at."""
        if ctx.session.cache.get(SILENT):
            return NOTHING
        found = (*self.chosen(event, about), *added(ctx.session, event, about))
        entries = [e for e in found if self._is_meant(e, fields, ctx.cwd)]
        if not entries:
            return NOTHING
        firing = place(ctx, fields, entries[0], self.directory, self.project_of(ctx))
        firing.env_file, firing.watch = env_file, watch
        joined = Joined(await firing.run(entries))
        for entry, outcome in joined.outcomes:
            if outcome.notice:
                await ctx.ui.notify(outcome.notice, severity="warning")
            if outcome.message:
                text = f"{entry.event.name} hook: {outcome.message}"
                await ctx.ui.notify(text, severity="warning")  # no editor leaves these out
            send(ctx, outcome.output.get("terminalSequence"))
        return joined

    def _is_meant(self, entry: Entry, fields: Mapping[str, Any], cwd: str) -> bool:
        if not entry.condition or self.applies is None:
            return True
        return self.applies(entry.condition, fields["tool_name"], fields["tool_input"], cwd)

    def project_of(self, ctx: Context) -> str:
        """The project of a session: this extension's, where the session is inside."""
        start = root_of(ctx.session).cwd
        inside = self.project and f"{start}{os.sep}".startswith(f"{self.project}{os.sep}")
        return self.project if inside else start

    async def inject(self, ctx: Context, event: str, joined: Joined, about: str = "") -> None:
        """Hand the model what the hooks have for it, and why they block what has happened."""
        label = f"{event}:{about}" if about else event
        texts = [f"{label} hook additional context: {text}" for text in joined.contexts]
        if KNOWN[event].blocking == "tell":
            texts += [f"{label} hook blocking error: {reason}" for reason in joined.blocks]
        by_command = event == "SessionStart" and ctx.run is not None and not ctx.run.stored
        if by_command:  # such as /clear, whose own context goes with it
            self.memory(ctx).later += texts
            return
        for text in texts:
            await ctx.inject_context(text)


def added(session: Session, event: str, about: str) -> Iterator[Entry]:
    """The entries that match of files that were added to a session."""
    memory: Memory | None = session.cache.get(NAME)
    for entry in memory.entries if memory is not None else ():
        if entry.event.name == event and not entry.inactive and entry.test(about):
            yield entry


def of_sub_agent(file: File) -> File:
    """The same hooks, for a sub-agent: it does not stop, it is a sub-agent that stops."""
    table = dict(file.table)
    if "Stop" in table:
        mine, theirs = table.pop("Stop"), table.get("SubagentStop", [])
        both = isinstance(mine, list) and isinstance(theirs, list)
        table["SubagentStop"] = [*theirs, *mine] if both else mine
    return replace(file, table=table)
