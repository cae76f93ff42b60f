"""What settings say, brought to what hangs on an agent already, for a session or for the whole."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, cast

from crow.app.composer import UNTRUSTED, Composer
from crow.app.models import MODEL, keys_of, models_of
from crow.core.agent import Agent
from crow.core.contexts import SessionContext
from crow.core.errors import CrowError
from crow.core.events import ConfigChanged
from crow.core.extensions import make
from crow.core.ports import LLM
from crow.core.session import SUBAGENTS, Session
from crow.settings import Settings

AS_THEY_ARE = frozenset({"limits", "stuck", "truncation", "compaction", "plan", "cost"})
"""Extensions that are nothing but their options."""
FROM_ELSEWHERE = frozenset({"permissions", "mcp", "shell_hooks", "disable"})

JUDGED = ("permissions", "unread", "trusted", "project", "hooks", "mcp_servers")
"""What the permissions are made of."""


class Effect:
    """Brings new settings into force.

    ``llm`` is the model that the settings named when the agent was made; ``env`` gives the
    environment. ``exported`` is what `os.environ` had where the settings' variables are now, None
    where they were not put there.
    """

    def __init__(self, agent: Agent, llm: LLM, env: Callable[[], Mapping[str, str]]) -> None:
        self.agent = agent
        self.llm = llm
        self.env = env
        self.exported: dict[str, str | None] | None = None

    # for a session

    async def on_session(
        self, ctx: SessionContext, old: Settings, new: Settings, *, late: bool
    ) -> Callable[[], Awaitable[None]]:
        """Let rules, hooks and servers of a session be those of other settings.

        ``late`` is for a session that has begun before. What is returned tells new hooks of the
        beginning; it may take as long as they do.
        """
        begin = nothing
        before, now = Composer(self.agent, old), Composer(self.agent, new)
        if any(getattr(old, name) != getattr(new, name) for name in JUDGED):
            await self._permissions(ctx, now, late=late)
        if before.hook_files() != now.hook_files() and "shell_hooks" not in now.disabled:
            begin = self._hooks(ctx, now, late=late)
        if before.given("mcp") != now.given("mcp") and "mcp" in self.agent.extensions:
            from crow.extensions import McpHook

            hang(ctx.session, "mcp", McpHook(**now.options("mcp") | now.given("mcp")))
        return begin

    def warnings(self, session: Session) -> Iterator[str]:
        """What is wrong with the rules and hooks of a session, a line each."""
        used = self.agent.extensions_of(session)
        for name in ("permissions", "shell_hooks"):
            yield from getattr(used.get(name), "warnings", ())

    async def _permissions(self, ctx: SessionContext, composer: Composer, *, late: bool) -> None:
        from crow.extensions import PermissionsHook

        before = self.agent.extensions_of(ctx.session).get("permissions")
        if not isinstance(before, PermissionsHook):
            return
        options = composer.options("permissions") | composer.given("permissions")
        rules = PermissionsHook(**options)
        hang(ctx.session, "permissions", rules)
        if late and before.mode != rules.mode and ctx.session.mode == before.mode:
            ctx.session.mode = rules.mode
            await ctx.emit(ConfigChanged({"mode": rules.mode}))

    def _hooks(
        self, ctx: SessionContext, composer: Composer, *, late: bool
    ) -> Callable[[], Awaitable[None]]:
        from crow.extensions import ShellHooks

        before: Any = self.agent.extensions_of(ctx.session).get("shell_hooks")
        options = composer.options("shell_hooks") | composer.for_hooks()
        hooks = ShellHooks(composer.hook_files(), **options)
        hang(ctx.session, "shell_hooks", hooks)
        helpers: Mapping[str, Session] = ctx.session.cache.get(SUBAGENTS, {})
        for sub in helpers.values():  # beside the gates, which they have from here
            if sub.agent is not None and "shell_hooks" in sub.agent.extensions_of(sub):
                hang(sub, "shell_hooks", hooks)
        return partial(hooks.catch_up, ctx, before) if late else nothing

    # for the agent

    def on_agent(self, old: Settings, new: Settings) -> Iterator[str]:
        """Let model, environment and extensions be as other settings say; lines about the rest."""
        if old.env != new.env:
            self._export(new.env)
        self.agent.withheld = keys_of(new)
        if any(getattr(old, name) != getattr(new, name) for name in (*MODEL, "models", "env")):
            self._models(new)
        if old.project != new.project or (new.trusted and not old.trusted):
            self._project(new)
        if old.disabled != new.disabled:
            yield "extensions.disable counts from the next start on"
        yield from self._options(old, new)

    def _export(self, env: Mapping[str, str]) -> None:
        before = self.exported
        if before is None:
            return
        for name in [name for name in before if name not in env]:
            restore(name, before.pop(name))
        self.exported = {**export(env), **before}

    def _models(self, new: Settings) -> None:
        """Ask other models from the next request on; those that are being asked end first."""
        if self.agent.llm is self.llm:
            fresh: Any = models_of(new, {**self.env(), **new.env})
            become: Callable[[Any], None] | None = getattr(self.llm, "become", None)
            if become is not None:
                become(fresh)

    def _project(self, new: Settings) -> None:
        """Use what a project brings, or what was left out of it until now."""
        composer = Composer(self.agent, new)
        left = [found for found in self.agent.found if found.error == UNTRUSTED]
        for found in left:
            self.agent.found.remove(found)
        if Path(new.project) != Path.home():
            composer.use_project()
        for name in ("skills", "commands"):
            thing: Any = self.agent.extensions.get(name)
            add: Callable[[Any], None] = getattr(thing, "add_plugin", lambda _: None)
            for plugin in composer.plugins:
                add(plugin)
        helpers: Any = self.agent.extensions.get("subagents")
        if helpers is not None:
            helpers.folders = tuple(composer.for_subagents()["folders"])
            helpers.plugins = tuple(composer.plugins)
            helpers.__dict__.pop("definitions", None)  # read again when they are asked for

    def _options(self, old: Settings, new: Settings) -> Iterator[str]:
        before, now = Composer(self.agent, old), Composer(self.agent, new)
        names = {*old.extensions, *new.extensions, "limits"} - FROM_ELSEWHERE
        for name in sorted(names):
            options = now.options(name)
            if options != before.options(name) and not self._configured(name, options):
                yield f"extensions.{name} counts from the next start on"

    def _configured(self, name: str, options: dict[str, Any]) -> bool:
        """Give an extension its options anew; False where it cannot take them."""
        thing: Any = self.agent.extensions.get(name)
        configure: Callable[..., None] | None = getattr(thing, "configure", None)
        try:
            if configure is not None:
                configure(**options)
            elif name in AS_THEY_ARE:
                thing.__dict__.update(vars(make(cast("type[Any]", type(thing)), name, options)))
            else:
                return False
        except (CrowError, TypeError, ValueError):
            return False
        return True


def hang(session: Session, name: str, extension: object) -> None:
    """Use an extension on a session, in place of what hung there under its name."""
    if name in session.extensions:
        session.remove(name)
    session.use(extension, name=name, source="crow")


async def nothing() -> None:
    """Nobody has to be told of anything."""


def export(env: Mapping[str, str]) -> dict[str, str | None]:
    """Put variables into the environment of this process; what was there before."""
    before = {name: os.environ.get(name) for name in env}
    os.environ.update(env)
    return before


def restore(name: str, value: str | None) -> None:
    """Put an environment variable back to what it was."""
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value
