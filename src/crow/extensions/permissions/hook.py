"""Permissions on the loop: judges every call last, on its final arguments, and asks the user."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, Literal

from crow import (
    Allow,
    Answer,
    Ask,
    Command,
    CommandContext,
    CwdContext,
    Deny,
    Mode,
    SessionContext,
    ToolContext,
    hook,
)
from crow.dataclasses import frozen
from crow.events import ALLOW_ONCE, REJECT_ONCE, ConfigChanged, Notice, Option
from crow.extensions.permissions.settings import MODES, NO_LIMITS, OFFERED, QUIET, Limits
from crow.keys import GIVEN_MODE, MAY_READ, SANDBOX, UNASKED
from crow.ports import AskingTool, InteractiveTool, implements

if TYPE_CHECKING:
    from crow import Agent, Session
    from crow.extensions.permissions.decision import Decision
    from crow.extensions.permissions.permissions import Permissions
    from crow.extensions.permissions.settings import RuleText
    from crow.project import ProjectSettings

Behaviour = Literal["allow", "ask", "deny"]
Verdict = Allow | Ask | Deny
Save = Callable[[str, Behaviour], "Awaitable[None] | None"]
BUILT_IN = "(built in)"
BEHAVIOURS: tuple[Behaviour, ...] = ("allow", "ask", "deny")
CAUTIOUS: tuple[Behaviour, ...] = ("ask", "deny")
PLACE = "cwd"
"""In the session's state: where its user has allowed what is allowed. It counts there alone."""
LENT = "directories"
"""In the session's state: the directories that it has of the settings."""
GIVEN = "mode"
"""In the session's state: the mode that it has of the settings, where that is not the usual."""
KEPT: dict[str, Behaviour] = {"allow_always": "allow", "reject_always": "deny"}


@frozen
class PermissionsOptions:
    """The settings of the judge, beside `permissions`."""

    quiet: Sequence[str] = ()
    """Further tools that need no question."""


class PermissionsHook:
    """Lets calls through, asks about them or refuses them, by the rules of the settings.

    ``allow``, ``ask`` and ``deny`` are rules as Claude Code writes them. ``mode`` is the one that
    new sessions begin in. ``additional_directories`` are worked in beside the session's own.
    ``limits`` hold whatever the rules allow. ``quiet`` names tools that need no question.
    ``scripts`` gives absolute paths that are asked about before they are written. ``save`` is
    called with a rule that the user wants to keep, and whether it allows, asks or denies; without
    it such rules last as long as the session; ``drop`` takes one back, and says whether it was
    kept. Rules that are malformed are named in ``warnings``;
    the rest applies. A tool with a true member ``interactive`` is asked about each time.
    """

    name = "permissions"
    order = 10
    modes = tuple([Mode(each, *OFFERED.get(each, ("",))) for each in MODES])
    options = PermissionsOptions

    def __init__(
        self,
        allow: Iterable[RuleText | str] = (),
        ask: Iterable[RuleText | str] = (),
        deny: Iterable[RuleText | str] = (),
        mode: str = "default",
        additional_directories: Iterable[str] = (),
        *,
        limits: Limits | None = None,
        quiet: Iterable[str] = (),
        scripts: Callable[[], Iterable[str]] = tuple,
        save: Save | None = None,
        drop: Callable[[str], bool] | None = None,
        permissions: Permissions | None = None,
    ) -> None:
        self.mode = MODES.get(permissions.mode if permissions else mode, "default")
        self.save, self.drop = save, drop
        self._given = permissions
        self._rules: dict[str, Any] = {
            "allow": tuple(allow),
            "ask": tuple(ask),
            "deny": tuple(deny),
            "mode": mode,
            "directories": tuple(additional_directories),
            "limits": limits or NO_LIMITS,
            "quiet": QUIET | frozenset(quiet),
            "scripts": scripts,
        }

    @classmethod
    def options_from(cls, settings: ProjectSettings, own: Mapping[str, Any]) -> dict[str, Any]:
        """The options, with the rules of all settings."""
        from crow.extensions.permissions.settings import RuleText

        rules = settings.rules
        limits = Limits(
            "denyInsteadOfPrompting" in rules.switches,
            "blockReadsOutsideWorkingDirectories" in rules.switches,
            "blockWritesOutsideWorkingDirectories" in rules.switches,
            rules.excluded,
            "disableBypassPermissionsMode" in rules.switches,
        )
        return {
            **own,
            **{name: [RuleText(*rule) for rule in getattr(rules, name)] for name in BEHAVIOURS},
            "mode": rules.mode,
            "additional_directories": rules.directories,
            "limits": limits,
            "scripts": settings.scripts,
            "save": settings.keep_rule,
            "drop": settings.drop_rule,
        }

    async def catch_up(self, ctx: SessionContext, before: PermissionsHook) -> None:
        """Begin in an open session: its mode follows where its user has not chosen another."""
        self._settle(ctx)
        if before.mode != self.mode and ctx.session.mode == before.mode:
            self._give_mode(ctx)
            await ctx.emit(ConfigChanged({"mode": self.mode}))

    @cached_property
    def permissions(self) -> Permissions:
        """The rules, parsed when they are first asked for."""
        if self._given is not None:
            return self._given
        from crow.extensions.permissions.permissions import Permissions

        return Permissions.of(**self._rules)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is wrong with the rules, a line for each that is ignored."""
        if self._given is None and not self._can_be_wrong:
            return ()
        return self.permissions.warnings

    @property
    def _can_be_wrong(self) -> bool:
        """False where there is nothing to parse: the judge need not be imported for that."""
        rules = self._rules
        return bool(rules["allow"] or rules["ask"] or rules["deny"]) or rules["mode"] not in MODES

    def on_session_start(self, ctx: SessionContext) -> None:
        """Begin in the mode and directories of today's settings, but for what its user chose."""
        self._settle(ctx)
        is_new = ctx.source == "new" and ctx.session.mode == "default"
        if is_new or ctx.session.mode == ctx.state.get(GIVEN):
            self._give_mode(ctx)

    def _give_mode(self, ctx: SessionContext) -> None:
        """Let the mode be that of the settings, and remember whose it is."""
        ctx.session.mode = self.mode
        ctx.state.pop(GIVEN, None)
        if self.mode != "default":
            ctx.state[GIVEN] = self.mode

    def _settle(self, ctx: SessionContext) -> None:
        GIVEN_MODE.set(ctx, self.mode)
        self._confine(ctx.session)
        if ctx.session.parent is None:
            lend(ctx.session, ctx.state, self._rules["directories"])

    def _confine(self, session: Session) -> None:
        """Take a session out of the mode without questions where that is switched off."""
        if session.mode == "bypassPermissions" and self._rules["limits"].no_bypass:
            session.mode = "default"

    def init_agent(self, agent: Agent) -> None:
        """Add the command ``/permissions``."""
        agent.add_command(self._command, replace=True)

    def init_session(self, session: Session) -> None:
        """Add the command, for the rules of one session."""
        session.add_command(self._command, replace=True)

    @property
    def _command(self) -> Command:
        about = "Show what may be done and what was asked"
        return Command("permissions", about, self._overview, hint="[revoke RULE]")

    async def _overview(self, ctx: CommandContext) -> Answer:
        from crow.extensions.permissions.overview import permissions

        return await permissions(self, ctx)

    def written(self, behaviour: str) -> tuple[RuleText | str, ...]:
        """The rules of the settings that allow, ask or deny, as they were written."""
        return self._rules[behaviour]

    def sources_of(self, rule: str | None) -> tuple[str, ...]:
        """The settings files in which a rule stands."""
        from crow.extensions.permissions.settings import RuleText

        given = (each for name in ("deny", "ask", "allow") for each in self.written(name))
        written = (RuleText(each) if isinstance(each, str) else each for each in given)
        return tuple(each.source for each in written if each.text == rule)

    def rule_applies(self, rule: str, tool: str, args: Mapping[str, Any], cwd: str) -> bool:
        """Whether one rule, whoever has written it down, speaks of a call."""
        from crow.extensions.permissions.condition import applies

        return applies(rule, tool, args, cwd)

    @hook("before_tool", judge=True)
    def judge(self, ctx: ToolContext) -> Verdict | Awaitable[Verdict]:
        """Decide on a call, at once where that takes no other program."""
        self._confine(ctx.session)
        permissions = self.of_session(ctx)
        self._limit(ctx, permissions)
        if _takes_long(ctx):
            return self._judge_beside(ctx, permissions)
        return self._verdict(ctx, permissions, judged(permissions, ctx))

    async def _judge_beside(self, ctx: ToolContext, permissions: Permissions) -> Verdict:
        decision = await asyncio.to_thread(judged, permissions, ctx)
        return self._verdict(ctx, permissions, decision)

    def _verdict(self, ctx: ToolContext, permissions: Permissions, decision: Decision) -> Verdict:
        match decision.decision:
            case "allow":
                return Allow(decision.reason, decision.ring)
            case "deny" if not decision.default:
                return Deny(decision.reason, decision.rule)
            case "deny":
                return Ask(decision.reason, default=True, options=(), ring=decision.ring)
            case "ask" if not decision.rule and _asks_itself(ctx.tool):
                return Allow("it asks the user itself", decision.ring)
            case "ask" if decision.default:
                return self._question(ctx, permissions, decision)
            case "ask":
                rule = decision.rule or BUILT_IN
                return self._ask(ctx, decision)(rule=rule)

    def _limit(self, ctx: ToolContext, permissions: Permissions) -> None:
        """Tell tools which files need no question, and those that search what to leave out."""
        ctx.cache.setdefault(UNASKED, {})[self.name] = partial(_reads, permissions, ctx.cwd)
        limits = ctx.cache.setdefault(MAY_READ, {})
        if permissions.limits_reading:
            limits[self.name] = permissions.reader(ctx.cwd)
        else:
            limits.pop(self.name, None)

    def on_cwd_changed(self, ctx: CwdContext) -> None:
        """Let what was allowed before count where it was."""
        if "allow" in ctx.state:
            ctx.state.setdefault(PLACE, ctx.old_cwd)

    def of_session(self, ctx: ToolContext) -> Permissions:
        """The permissions as they are in a session: its mode, its directories, its own rules."""
        permissions = self.permissions
        cwd = ctx.session.root.cwd
        is_here = ctx.state.get(PLACE, cwd) == cwd
        for behaviour in BEHAVIOURS if is_here else CAUTIOUS:
            for text in ctx.state.get(behaviour, ()):
                permissions = permissions.with_rule(text, behaviour)
        return permissions.in_session(
            mode=MODES.get(ctx.session.mode, permissions.mode), cwd=ctx.cwd, roots=ctx.roots
        )

    def _ask(self, ctx: ToolContext, decision: Decision) -> Callable[..., Ask]:
        """A question with all that a decision says."""
        from crow.extensions.permissions.explanation import explain

        told = explain(ctx.call.called(ctx.tool), ctx.args, cwd=ctx.cwd)
        return partial(Ask, decision.reason, ring=decision.ring, explanation=told)

    def _question(self, ctx: ToolContext, permissions: Permissions, decision: Decision) -> Ask:
        from crow.extensions.permissions.suggestion import suggest

        rules = suggest(permissions, ctx.call.called(ctx.tool), ctx.args, cwd=ctx.cwd)
        state, save = ctx.state, self.save
        cwd = ctx.session.root.cwd

        async def answered(chosen: str) -> None:
            if chosen in KEPT:
                for rule in rules:
                    await keep(rule, KEPT[chosen], True)

        async def keep(rule: str, behaviour: Behaviour, lasting: bool) -> bool:
            changed = permissions.with_rule(rule, behaviour)
            if len(getattr(changed, behaviour)) == len(getattr(permissions, behaviour)):
                return False
            if behaviour == "allow":
                _allow_here(state, cwd)
            await _keep(ctx, state, rule, behaviour, save if lasting else None)
            return True

        ask = self._ask(ctx, decision)
        if not rules:
            return ask(default=True, keep=keep)
        named = ", ".join(rules).replace(f"(/{ctx.cwd}/", "(./")
        shown = named + ("" if save else " in this session")
        options = (
            ALLOW_ONCE,
            Option("allow_always", f"Always allow {shown}", "allow_always"),
            REJECT_ONCE,
            Option("reject_always", f"Never allow {shown}", "reject_always"),
        )
        return ask(
            default=True,
            options=options,
            answered=answered,
            rules=rules,
            keep=keep,
        )


def lend(session: Session, state: dict[str, Any], named: Iterable[str]) -> None:
    """Give a session the directories that settings name now, for those that they named before.

    What it has besides, of its user or its client, stays.
    """
    before: list[str] = state.pop(LENT, [])
    own = tuple(path for path in session.directories if path not in before)
    lent = [path for path in dict.fromkeys(named) if path not in (session.cwd, *own)]
    if lent:
        state[LENT] = lent
    if session.directories != (*own, *lent):
        session.directories = (*own, *lent)


def _asks_itself(tool: object) -> bool:
    return implements(tool, AskingTool) and tool.asks_user


def _takes_long(ctx: ToolContext) -> bool:
    """True for a command that may need a second parser's opinion, which is a process.

    What reads commands is loaded with the first one.
    """
    if ctx.name != "Bash":
        return False
    commands = sys.modules.get("crow.extensions.permissions.shell.commands")
    is_plain = getattr(commands, "is_plain", None)  # a thread may be importing it just now
    return is_plain is None or not is_plain(str(ctx.args.get("command")))


def judged(permissions: Permissions, ctx: ToolContext) -> Decision:
    """The decision on a call, a command's by what it would run in too. May block."""
    sandbox = SANDBOX.get(ctx) if ctx.name == "Bash" else None
    if sandbox is not None:
        from crow.extensions.permissions.confinement import Confinement

        permissions = replace(permissions, confined=Confinement.of(sandbox))
    interactive = implements(ctx.tool, InteractiveTool) and ctx.tool.interactive
    name = ctx.call.called(ctx.tool)
    return permissions.judge(name, ctx.args, cwd=ctx.cwd, interactive=interactive)


def _reads(permissions: Permissions, cwd: str, path: str) -> bool:
    """True where a file may be read without a question."""
    return permissions.judge("Read", {"file_path": path}, cwd=cwd).decision == "allow"


def _allow_here(state: dict[str, Any], cwd: str) -> None:
    """Let what is allowed count in this directory, and forget what was in another one."""
    if state.get(PLACE, cwd) != cwd:
        state["allow"] = []
    state[PLACE] = cwd


async def _keep(
    ctx: ToolContext, state: dict[str, Any], rule: str, behaviour: Behaviour, save: Save | None
) -> None:
    """Remember a rule in the session, and save it where that is wanted."""
    kept = state.setdefault(behaviour, [])
    if rule not in kept:
        kept.append(rule)
    if save is None:
        return
    try:
        saved = save(rule, behaviour)
        if isawaitable(saved):
            await saved
    except OSError as error:
        why = f"{error.filename}: the rule {rule} could not be kept: {error.strerror}"
        await ctx.emit(Notice(f"{why}; it holds in this session", "warning"))
