"""The handlers of settings files, and running those that an event is for."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crow.extensions.shell_hooks.event import KNOWN
from crow.extensions.shell_hooks.firing import Watch, place
from crow.extensions.shell_hooks.handler import Handler, handlers_of
from crow.extensions.shell_hooks.joint_outcome import NOTHING, JointOutcome
from crow.extensions.shell_hooks.memory import SILENT, Memory
from crow.extensions.shell_hooks.terminal import send
from crow.ports import RuleMatcher, first_implementing
from crow.project import HookFile
from crow.tools import ToolName

if TYPE_CHECKING:
    from crow import Context, Session
    from crow.extensions.shell_hooks.http_policy import Bounds

Applies = Callable[[str, str, Mapping[str, Any], str], bool]


class Handlers:
    """Runs the handlers of an event in a session; `ShellHooks` says what the fields mean."""

    def __init__(
        self,
        files: Iterable[HookFile],
        project: str,
        applies: Applies | None,
        directory: Path,
        bounds: Bounds,
    ) -> None:
        self.warnings: list[str] = []
        self.entries = tuple(map(bounds.within, handlers_of(files, self.warnings)))
        self.project = project
        self.applies = applies
        self.directory = directory
        self._chosen: dict[tuple[str, ...], tuple[Handler, ...]] = {}

    def chosen(self, event: str, about: str) -> tuple[Handler, ...]:
        """The entries that match, each thing that they do once."""
        others = sorted(about.others) if isinstance(about, ToolName) else ()
        key = event, about, *others
        if key not in self._chosen:
            found: dict[str, Handler] = {}
            for handler in self.entries:
                if handler.event.name == event and not handler.inactive and handler.test(about):
                    twin = found.get(handler.key)
                    blocks = handler.blocks or (twin is not None and twin.blocks)
                    found[handler.key] = replace(twin or handler, blocks=blocks)
            self._chosen[key] = tuple(found.values())
        return self._chosen[key]

    def fresh(self, before: Handlers) -> Handlers:
        """Those of the handlers that were not there ``before``."""
        known = {handler.key for handler in before.entries}
        fresh = copy(self)
        fresh.entries = tuple(handler for handler in self.entries if handler.key not in known)
        vars(fresh)["_chosen"] = {}
        return fresh

    def spend(self, handler: Handler) -> None:
        """Take an entry away that was to run once."""
        done = handler.event, handler.key
        self.entries = tuple(each for each in self.entries if (each.event, each.key) != done)
        self._chosen.clear()

    def memory(self, ctx: Context) -> Memory:
        """What is remembered of a session."""
        return Memory.of(ctx.session, self.directory)

    async def fire(
        self,
        event: str,
        ctx: Context,
        about: str,
        fields: Mapping[str, Any],
        *,
        env_file: str | None = None,
        watch: Watch | None = None,
    ) -> JointOutcome:
        """Run the handlers of an event; ``about`` is what matchers look at."""
        if SILENT.get(ctx.session):
            return NOTHING
        found = self.chosen(event, about)
        entries = [handler for handler in found if self._is_meant(handler, fields, ctx)]
        if not entries:
            return NOTHING
        firing = place(ctx, fields, entries[0], self.directory, self.project_of(ctx))
        firing.about, firing.env_file = about, env_file
        firing.watch, firing.spend = watch, self.spend
        joined = JointOutcome(await firing.run(entries))
        for handler, outcome in joined.outcomes:
            if outcome.notice:
                await ctx.ui.notify(outcome.notice, severity="warning")
            if outcome.message:
                text = f"{handler.event.name} hook: {outcome.message}"
                await ctx.ui.notify(text, severity="warning")  # no editor leaves these out
            send(ctx, outcome.output.get("terminalSequence"))
        return joined

    def _is_meant(self, handler: Handler, fields: Mapping[str, Any], ctx: Context) -> bool:
        applies = self.applies or judge_of(ctx.session.root) if handler.condition else None
        if applies is None:
            return True
        return applies(handler.condition, fields["tool_name"], fields["tool_input"], ctx.cwd)

    def project_of(self, ctx: Context) -> str:
        """The project of a session: this extension's, where the session is inside."""
        start = ctx.session.root.cwd
        inside = self.project and f"{start}{os.sep}".startswith(f"{self.project}{os.sep}")
        return self.project if inside else start

    async def inject(self, ctx: Context, event: str, joined: JointOutcome, about: str = "") -> None:
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


def judge_of(session: Session) -> Applies | None:
    """What says whether a permission rule speaks of a call; None where no extension can."""
    used = session.agent.extensions_of(session).values() if session.agent else ()
    matcher = first_implementing(used, RuleMatcher)
    return None if matcher is None else matcher.rule_applies
