"""The sandbox: what runs for a model is confined by the operating system.

Nothing of a back end is imported before a first command needs one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any

from crow import (
    Answer,
    Arg,
    Command,
    CommandContext,
    Deny,
    SessionContext,
    Tool,
    ToolContext,
    ToolEnvironment,
    ToolResult,
    hook,
)
from crow.dataclasses import frozen
from crow.hooks import FIRST, LAST, NextCall
from crow.keys import PROGRAMS, SANDBOX, Key
from crow.ports import CheckedTool, PreviewTool, TitledTool, implements
from crow.project import SandboxSettings
from crow.tools import ToolKind

if TYPE_CHECKING:
    from crow import Agent, Session
    from crow.extensions.sandbox.finder import Finder
    from crow.extensions.sandbox.session import SessionSandbox
    from crow.project import ProjectSettings

SESSION: Key[SessionSandbox] = Key("sandbox.session")
RUNS = frozenset({"Bash"})
GOES_ON = frozenset({"BashOutput", "KillShell"})
BARE = "NO SANDBOX: commands run with all that you may do; {} (crow sandbox says more)"
REFUSED = "sandbox.required is set, and no sandbox works here: {}"
NO_COMMAND = f"{REFUSED}. No command will run."
ESCAPE = "dangerouslyDisableSandbox"
"""The argument by which a model asks to run a command outside."""


Amount = Annotated[int | None, Arg(minimum=0)]


@frozen
class SandboxOptions:
    """Limits of what a command may use, 0 being none; `sandbox` in settings says what it touches.

    What runs outside is limited as well.
    """

    processes: Amount = None
    """Processes and threads of a command together, by default 2048 or 256 a core; more end it."""
    memory: Amount = None
    """Bytes of memory of a command together, by default three quarters of all; more end it."""
    open_files: Amount = None
    """Open files of each process, by default 65536 where more would be inherited."""
    file_size: Amount = None
    """Bytes of each file that a command writes."""


class SandboxHook:
    """Runs commands in a sandbox, by what the settings' `sandbox` says.

    What the judge lets run because it only reads runs in the reading ring, what a person or a rule
    lets out runs outside, and everything else in the workspace ring. ``rules`` are the permissions:
    what they keep from being read is masked. Further options are those of `SandboxOptions`.
    """

    name = "sandbox"
    order = 15
    options = SandboxOptions

    def __init__(
        self,
        settings: SandboxSettings | None = None,
        *,
        rules: Any = None,
        processes: int | None = None,
        memory: int | None = None,
        open_files: int | None = None,
        file_size: int | None = None,
    ) -> None:
        self.settings = settings or SandboxSettings()
        self.rules = rules
        self.limits = SandboxOptions(processes, memory, open_files, file_size)

    @cached_property
    def finder(self) -> Finder:
        """Who looks for a back end."""
        from crow.extensions.sandbox.finder import Finder

        return Finder(self.settings.backend)

    @classmethod
    def options_from(cls, settings: ProjectSettings, own: Mapping[str, Any]) -> dict[str, Any]:
        """The options, with what all settings say."""
        return {**own, "settings": settings.sandbox, "rules": settings.rules}

    def init_agent(self, agent: Agent) -> None:
        """Add the command, and the argument by which a model asks to run something outside."""
        self._add(agent, agent.tools.get("Bash"))

    def init_session(self, session: Session) -> None:
        """Be a session's own, where its settings are others."""
        agent = session.agent
        self._add(session, None if agent is None else agent.tools.get("Bash"))
        self._begin(session)

    def _add(self, host: Agent | Session, bash: Tool | None) -> None:
        host.add_command(Command("sandbox", "Show what commands run in", tell), replace=True)
        plain = bash.without_sandbox if isinstance(bash, Escapable) else bash
        if plain is not None and self.settings.enabled and self.settings.escapes:
            host.add_tool(Escapable(plain), replace=True)
        elif plain is not bash and plain is not None:
            host.add_tool(plain, replace=True)

    @property
    def switches(self) -> dict[str, tuple[str, str]]:
        """What an editor's user can switch: the sandbox of a session, unless it is required."""
        if not self.settings.enabled or self.settings.required:
            return {}
        return {self.name: ("Sandbox", f"What commands run in: {self.finder.line}")}

    # the moments

    @hook("on_session_start", order=FIRST)
    async def open(self, ctx: SessionContext) -> None:
        """Hold the session's commands from now on, or say at once that nothing can."""
        sandbox = self._begin(ctx.session)
        if sandbox is None or ctx.session.parent is not None or not sandbox.is_on:
            return
        if self.finder.is_bare and not await asyncio.to_thread(lambda: sandbox.name):
            await self._say_bare(ctx, sandbox)

    def _begin(self, session: Session) -> SessionSandbox | None:
        """Let judges, tools and clients find the sandbox of a session; None where it has none."""
        if not self.settings.enabled:
            from crow.extensions.sandbox.finder import SwitchedOff

            SANDBOX.set(session, SwitchedOff(self.settings.off))
            SESSION.pop(session)
            return None
        from crow.extensions.sandbox.session import SessionSandbox, Wishes

        before = sandbox = SESSION.get(session)
        wishes = Wishes(self.settings, self.rules, self.limits)
        if sandbox is None or sandbox.wishes != wishes:
            root = None if session.parent is None else SESSION.get(session.root)
            sandbox = SessionSandbox(session, wishes, self.finder, root)
            sandbox.follow(before)
            SANDBOX.set(session, SESSION.set(session, sandbox))
            self._confine_programs(session, sandbox)
        return sandbox

    def _confine_programs(self, session: Session, sandbox: SessionSandbox) -> None:
        """Let the commands of hooks and MCP servers run inside, where that is wanted."""
        programs = PROGRAMS.setdefault(session, {})
        wanted = {"hooks": self.settings.hooks, "servers": self.settings.servers}
        for what, inside in wanted.items():
            programs.pop(what, None)
            if inside:
                programs[what] = sandbox.launcher("workspace", is_named=True)

    @hook("on_session_end")
    def close(self, ctx: SessionContext) -> None:
        """Remove the session's temporary folder."""
        if (sandbox := SESSION.get(ctx)) is not None:
            sandbox.close()

    @hook("before_tool", order=FIRST, tools=RUNS)
    def look(self, ctx: ToolContext) -> Awaitable[Deny | None] | None:
        """Look for what can hold a command before it is judged; say once where nothing can."""
        sandbox = self._begin(ctx.session)
        if sandbox is None or not sandbox.is_on or (self.finder.is_done and sandbox.name):
            return None
        return self._look(ctx, sandbox)

    async def _look(self, ctx: ToolContext, sandbox: SessionSandbox) -> Deny | None:
        if await asyncio.to_thread(lambda: sandbox.name):
            return None
        if self.settings.required:
            return Deny(REFUSED.format(await asyncio.to_thread(lambda: self.finder.why)))
        await self._say_bare(ctx, sandbox)
        return None

    async def _say_bare(self, ctx: SessionContext | ToolContext, sandbox: SessionSandbox) -> None:
        if not sandbox.is_told_bare:
            sandbox.is_told_bare = True
            text = NO_COMMAND if self.settings.required else BARE
            why = await asyncio.to_thread(lambda: self.finder.why)
            await ctx.ui.notify(text.format(why), severity="warning")

    @hook("around_tool", order=LAST, tools=RUNS)
    def confine(self, ctx: ToolContext, call_next: NextCall) -> Awaitable[ToolResult]:
        """Run a command in its ring, and tell the model what that has refused and what ended it."""
        sandbox = SESSION.get(ctx)
        return call_next() if sandbox is None else self._confined(ctx, call_next, sandbox)

    async def _confined(
        self, ctx: ToolContext, call_next: NextCall, sandbox: SessionSandbox
    ) -> ToolResult:
        is_outside = ctx.ring == "outside" or not sandbox.name
        if is_outside and ctx.client.terminals is not None:
            return await call_next()
        is_reading = ctx.ring == "reading"
        ring = "outside" if is_outside else "reading" if is_reading else "workspace"
        ctx.launcher = launcher = sandbox.launcher(ring)
        result = await call_next()
        return sandbox.annotated(str(ctx.args.get("command")), result, launcher)

    @hook("around_tool", order=LAST, tools=GOES_ON)
    async def tell_later(self, ctx: ToolContext, call_next: NextCall) -> ToolResult:
        """Tell what was found when a command in the background had ended."""
        result = await call_next()
        sandbox = SESSION.get(ctx)
        return result if sandbox is None else sandbox.told_late(result)


async def tell(ctx: CommandContext) -> Answer:
    """Show what commands run in."""
    sandbox = SESSION.get(ctx)
    if sandbox is None:
        off = SANDBOX.get(ctx)
        return Answer(f"Commands run in {off.line if off else 'nothing: it is switched off'}.")
    lines = await asyncio.to_thread(lambda: [*sandbox.lines])
    return Answer("\n".join(lines))


class Escapable:
    """A tool such as Bash whose calls may ask to run outside; all else is the tool's own."""

    def __init__(self, tool: Tool) -> None:
        self.without_sandbox = tool
        self.name, self.description = tool.name, tool.description
        self.kind: ToolKind = tool.kind
        argument = {ESCAPE: {"type": "boolean"}}  # the line of a refusal says what it is for
        own = tool.parameters
        self.parameters = {**own, "properties": {**own["properties"], **argument}}

    def __getattr__(self, name: str) -> Any:
        return getattr(self.without_sandbox, name)

    def check(self, args: dict[str, Any]) -> str | None:
        """What is wrong with arguments."""
        if not isinstance(args.get(ESCAPE, False), bool):
            return f"{ESCAPE} must be true or false"
        own = self.without_sandbox
        return own.check(without(args)) if implements(own, CheckedTool) else None

    def title(self, args: dict[str, Any]) -> str:
        """The command, and whether it is to run outside."""
        own = self.without_sandbox
        said = own.title(without(args)) if implements(own, TitledTool) else self.name
        return f"{said}  (outside the sandbox)" if args.get(ESCAPE) is True else said

    async def preview(self, args: dict[str, Any], ctx: ToolEnvironment) -> ToolResult | None:
        """The failure that a call cannot but end in."""
        own = self.without_sandbox
        return await own.preview(without(args), ctx) if implements(own, PreviewTool) else None

    async def run(self, args: dict[str, Any], ctx: ToolEnvironment) -> ToolResult | str:
        """Run the command; where, others have decided."""
        return await self.without_sandbox.run(without(args), ctx)


def without(args: dict[str, Any]) -> dict[str, Any]:
    """The arguments that the tool itself knows."""
    return {name: value for name, value in args.items() if name != ESCAPE}
