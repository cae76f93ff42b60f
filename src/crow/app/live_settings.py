"""Live settings: looked at before every prompt and call, and asked about where they change.

A look is a ``stat`` of a dozen files. So an edit that was saved before a call holds for that call,
on every file system, without a thread or a descriptor; nobody waits for news.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crow.app.extension_loader import Sources
from crow.app.plugins import plugins_of
from crow.app.settings_updater import NAME, Applied, SessionSettings, SettingsUpdater, ground_of
from crow.app.startup_warnings import of_settings, of_trust
from crow.core.agent import Agent
from crow.core.catalog import Command
from crow.core.events import ConfigChanged
from crow.core.hooks.context import Context
from crow.core.hooks.contexts import CommandContext, SessionContext, ToolContext
from crow.core.hooks.discovery import hook
from crow.core.hooks.registry import FIRST
from crow.core.hooks.run_context import RunContext
from crow.core.session import Session
from crow.core.support.validation import implements
from crow.core.verdicts import Answer, Deny
from crow.ports.clients import OpeningClient
from crow.project.files import stamp
from crow.project.trust import (
    fingerprint,
    is_refused,
    is_touched,
    project_of,
    refuse,
    stamps,
    trust,
)
from crow.settings import Memory, Settings

if TYPE_CHECKING:
    from crow.project.plugins import Plugin
    from crow.project.settings import Proposals

TRUST, NOT_NOW, NEVER = "Trust this project", "Not now", "Never for this project"
CHOICES = (NOT_NOW, NEVER, TRUST)
LINES = 40
LONGEST = 86_400.0  # of a look, in seconds: the hooks that are asked have limits of their own


class LiveSettings:
    """Keeps the settings of every session as its files say.

    ``settings`` are those that the agent was made with; they follow the project of its first
    session. ``asks`` says that a person at a terminal can be asked before a prompt is answered;
    a client that says when it is ready is asked beside the conversation. ``told`` are complaints
    that nobody has to hear again.
    """

    name = NAME

    def __init__(self, settings: Settings, updater: SettingsUpdater) -> None:
        self.settings = settings
        self._made = settings
        self._would_run = stamps(Path(settings.project)) if settings.project else ()
        self.updater = updater
        self.sources = Sources()
        self.asks = False
        self.told: set[str] = set()
        self._is_begun = False
        self._put_off: set[str] = set()
        self._own: set[tuple[str, Any]] = set()
        self._plugins: tuple[Settings, list[dict[str, str]]] | None = None

    def init_agent(self, agent: Agent) -> None:
        """Offer what the user can have done by hand."""
        agent.add_command(Command("reload", "Use extensions as their files are now", self.reload))

    async def reload(self, ctx: CommandContext) -> Answer:
        """Use everything that has changed of the extensions."""
        from crow.app.extension_reloader import ExtensionReloader

        held = ground_of(ctx.session)
        settings = self.settings if held is None else held.settings
        reloading = ExtensionReloader(ctx.agent, settings, self.sources)
        if reloading.is_busy(ctx.session):
            return Answer("Another session is at work: /reload when it is done.")
        await reloading.reload(asked=True)
        return Answer("\n".join([*reloading.said, *reloading.failed]) or "Nothing has changed.")

    def offers_in(self, session: Session) -> dict[str, list[dict[str, str]]]:
        """The plugins of a session."""
        held = ground_of(session)
        settings = self.settings if held is None else held.settings
        if self._plugins is None or self._plugins[0] is not settings:
            self._plugins = settings, [*map(told_of, plugins_of(settings)[0])]
        return {"plugins": self._plugins[1]}

    def proposals(self) -> Proposals:
        """What puts extensions into use while the agent works."""
        from crow.app.extension_reloader import ExtensionReloader
        from crow.app.proposals import Proposed

        agent, sources = self.updater.agent, self.sources
        return Proposed(lambda: ExtensionReloader(agent, self.settings, sources))

    # the moments

    @hook("on_session_start", order=FIRST, timeout=LONGEST)
    async def open(self, ctx: SessionContext) -> None:
        """Let the settings of the session's project hold, and tell what is wrong with them."""
        await self._open(ctx, late=False)

    async def _open(self, ctx: SessionContext, *, late: bool) -> None:
        if ctx.session.parent is not None or NAME in ctx.cache or self.settings.reader is None:
            return
        held = self._held(ctx.cwd)
        new = None
        if held.settings is not self._made:
            new = self.updater.on_session(ctx.session, self._made, held.settings)
        ctx.cache[NAME] = held
        held.begins = not late
        await self._applied(ctx, held, new, late=late)
        if not self._is_begun or held.settings.project == self.settings.project:
            await self._follow(ctx, held, held.settings)
        self._is_begun = True
        asked = self._will_ask(ctx, held)
        await self._tell(ctx, held, later=[*of_trust(held.settings)] if asked else ())
        await self._offer(ctx, held)
        held.begins = False

    @hook("before_run", order=FIRST, timeout=LONGEST)
    async def look(self, ctx: RunContext) -> None:
        """Look at everything before a prompt."""
        held = await self._known(ctx)
        if held is None:
            return
        if held.cwd != ctx.session.root.cwd:
            await self._move(ctx.session.root, held)
        elif held.memory.changed or held.would_run != stamps(held.project):
            await self.refresh(ctx.session, held)
        if self.sources.touched:
            await self._reload(ctx, held)
        await self._offer(_context(ctx), held)

    async def _reload(self, ctx: RunContext, held: SessionSettings) -> None:
        """Use what the user has changed of their extensions, unless another session is at work."""
        from crow.app.extension_reloader import ExtensionReloader

        reloading = ExtensionReloader(self.updater.agent, held.settings, self.sources)
        if reloading.is_busy(ctx.session):
            return
        await reloading.reload(asked=False)
        for text in reloading.said:
            await ctx.ui.notify(text)
        for text in reloading.failed:
            await ctx.ui.notify(text, severity="error")

    @hook("before_tool", order=FIRST, timeout=LONGEST)
    def look_again(self, ctx: ToolContext) -> Deny | Awaitable[Deny | None] | None:
        """Look at the files that are known before a call; for new ones a prompt is soon enough."""
        held = ground_of(ctx.session)
        if (
            held is None
            or held.cwd != ctx.session.root.cwd
            or held.memory.changed
            or is_touched(held.would_run)
        ):
            return self._look_again(ctx)
        return _refusal(held)

    async def _look_again(self, ctx: ToolContext) -> Deny | None:
        held = await self._known(ctx)
        if held is not None and held.cwd != ctx.session.root.cwd:
            await self._move(ctx.session.root, held)
        elif held is not None:
            await self.refresh(ctx.session, held)
        return None if held is None else _refusal(held)

    # what is done

    async def _known(self, ctx: Context) -> SessionSettings | None:
        """What holds in a session, which is looked at now if that could not be done before.

        The beginning of a session goes on where a hook fails; a call must not.
        """
        if ground_of(ctx.session) is None:
            await self._open(_context(ctx), late=True)
        return ground_of(ctx.session)

    def _held(self, cwd: str) -> SessionSettings:
        """What holds in a directory now; the agent's own settings where these still are it."""
        base = self.settings
        assert base.reader is not None
        memory = base.memory.copy() if base.memory else Memory()
        project = project_of(Path(cwd), base.reader.home)
        would_run = stamps(project)
        if str(project) == base.project and not memory.changed and would_run == self._would_run:
            return SessionSettings(base, memory, cwd, would_run, set(self.told))
        return SessionSettings(
            base.reader.load(cwd, memory), memory, cwd, would_run, set(self.told)
        )

    async def _move(self, session: Session, held: SessionSettings) -> None:
        """Let the settings of another directory hold: the session works there now."""
        ctx = _context(Context(self.updater.agent, session))
        async with held.lock:
            there, old = self._held(session.cwd), held.settings
            new = self.updater.on_session(session, old, there.settings)
            held.settings, held.memory = there.settings, there.memory
            held.cwd, held.would_run = there.cwd, there.would_run
            held.unjudged = new.unjudged
        await self._applied(ctx, held, new, late=True)
        await self._tell(ctx, held)
        await ctx.emit(ConfigChanged({NAME: []}))

    async def refresh(self, session: Session, held: SessionSettings) -> None:
        """Read again what has changed; hooks may refuse it, except the administrator's."""
        from crow.app.settings_changes import changed_files

        root = session.root
        ctx = _context(Context(self.updater.agent, root))
        async with held.lock:
            old, ran = held.settings, set(held.would_run)
            news = await changed_files(ctx, held, self._own)
            if held.settings == old and held.settings.rejected == old.rejected:
                return
            new = self.updater.on_session(root, old, held.settings)
            held.unjudged = new.unjudged
            if held.settings.project == self.settings.project:
                await self._follow(ctx, held, held.settings)
        await self._applied(ctx, held, new, late=not held.begins)
        is_lost = old.trusted and not held.settings.trusted
        for path in news:
            if not (is_lost and Path(path).is_relative_to(held.project)):
                await ctx.ui.notify(f"{path} was changed: what it says holds from now on")
        if is_lost:
            await ctx.ui.notify(lost(held, ran), severity="warning")
        await self._tell(ctx, held)
        await ctx.emit(ConfigChanged({NAME: news}))

    async def _applied(
        self, ctx: SessionContext, held: SessionSettings, new: Applied | None, *, late: bool
    ) -> None:
        """Go on from what came of other settings: say what is broken, tell what is new."""
        if new is None:
            return
        held.unjudged = new.unjudged
        for name, error in new.broken.items():
            text = f"the extension {name} stays as it was, the settings break it: {error}"
            await ctx.ui.notify(text, severity="error")
        for catch_up in new.late if late else ():  # which may look at settings themselves
            await catch_up(ctx)

    async def _follow(self, ctx: Context, held: SessionSettings, new: Settings) -> None:
        """Let the agent's own things be as a session's settings say."""
        old, self.settings, self._would_run = self.settings, new, held.would_run
        for text in self.updater.on_agent(old, new):
            if text not in held.told:
                held.told.add(text)
                await ctx.ui.notify(text, severity="warning")

    async def _tell(
        self, ctx: Context, held: SessionSettings, *, later: Iterable[str] = ()
    ) -> None:
        """Say what is wrong with the settings, each thing once until it is mended."""
        wrong = [*of_settings(held.settings), *self.updater.warnings(ctx.session)]
        held.told &= set(wrong)
        for text in wrong:
            if text not in held.told and text not in later:
                held.told.add(text)
                await ctx.ui.notify(text, severity="warning")

    def kept(self, path: Path) -> None:
        """Take note of a file that was written for the user, who need not be told of it."""
        self._own.add((str(path), stamp(str(path))))

    # trust

    async def _offer(self, ctx: SessionContext, held: SessionSettings) -> None:
        """Ask about a project that wants something, where somebody can be asked."""
        if not self._will_ask(ctx, held):
            return
        if implements(ctx.client, OpeningClient):
            ctx.session.spawn(self._ask_when(ctx.client.ready, ctx, held))
        else:
            await self.ask(ctx, held)

    def _will_ask(self, ctx: SessionContext, held: SessionSettings) -> bool:
        if not wanted_of(held.settings) or is_refused(held.project):
            return False
        return self.asks or implements(ctx.client, OpeningClient)

    async def _ask_when(
        self, ready: Callable[[], Awaitable[None]], ctx: SessionContext, held: SessionSettings
    ) -> None:
        await ready()
        await self.ask(ctx, held)

    async def ask(self, ctx: SessionContext, held: SessionSettings) -> None:
        """Ask whether the project is trusted, once for what it wants now."""
        shown = fingerprint(held.project)
        lines = wanted_of(held.settings)
        if not lines:
            return
        if shown in self._put_off:
            if not held.asking:
                await self._tell(ctx, held)
            return
        self._put_off.add(shown)
        text = f"Trust {held.project}? It would use what is listed here."
        held.asking = True
        try:
            chosen = await ctx.ui.select(text, CHOICES, detail=shortened(lines), word="trust")
        finally:
            held.asking = False
        if chosen == NEVER:
            refuse(held.project)
        if chosen != TRUST:
            await self._tell(ctx, held)
            return
        if trust(held.project, shown) is None:
            await ctx.ui.notify(f"{held.project} has changed meanwhile", severity="warning")
        await self.refresh(ctx.session, held)
        await self._offer(ctx, held)


def told_of(plugin: Plugin) -> dict[str, str]:
    """A plugin as programs are told of it."""
    version = {"version": plugin.version} if plugin.version else {}
    return {"name": plugin.name, "path": str(plugin.root), **version}


def wanted_of(settings: Settings) -> list[str]:
    """What the project would run or change, were it trusted; nothing where it is."""
    if settings.trusted:
        return []
    from crow.app.trust_summary import project_requests

    return project_requests(settings)


def lost(held: SessionSettings, before: set[Any]) -> str:
    """That a project is not trusted any more, and which of its files have changed."""
    changed = {stamp[0] for stamp in before.symmetric_difference(held.would_run)}
    names = sorted(str(Path(path).relative_to(held.project)) for path in changed)
    rest = "only its deny and ask rules hold until it is trusted again"
    if not names:
        return f"{held.project} is not trusted any more: {rest}"
    which = ", ".join([*names[:3], *(["…"] if len(names) > 3 else ())])
    return f"{held.project} has changed since it was trusted ({which}): {rest}"


def shortened(lines: Iterable[str]) -> str:
    """Lines for a question, and how many are left out."""
    every = list(lines)
    left = len(every) - LINES
    more = [f"… and {left} more (crow trust lists all)"] if left > 0 else []
    return "\n".join([*every[:LINES], *more])


def _refusal(held: SessionSettings) -> Deny | None:
    """No call runs while nobody judges as the settings want."""
    text = f"the permissions cannot be judged: {held.unjudged}"
    return Deny(text) if held.unjudged else None


def _context(ctx: Context) -> SessionContext:
    """A context of the session's own, which outlives a hook."""
    own = SessionContext(ctx.agent, ctx.session.root)
    own.owner = NAME
    return own


def live_of(agent: Agent) -> LiveSettings:
    """The settings of an agent that `crow.app.build` has made."""
    return agent.extensions[NAME]
