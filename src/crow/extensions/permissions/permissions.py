"""Permission rules: one decision for one tool call, made from the rules, the mode and the disk.

The operating system is the boundary; this only decides when to ask.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from crow.extensions.permissions.confinement import Confinement
from crow.extensions.permissions.decision import Decision, of_finding, strictness, worst_of
from crow.extensions.permissions.paths.arguments import (
    SEARCHERS,
    named_directories,
    named_paths,
)
from crow.extensions.permissions.paths.disk import Disk, LocalDisk, place
from crow.extensions.permissions.paths.files import Files, Finding
from crow.extensions.permissions.programs.lookup import Lookup
from crow.extensions.permissions.rules.domain import host_of, possible_hosts
from crow.extensions.permissions.rules.name import means, name_of
from crow.extensions.permissions.rules.rule import (
    EDITORS,
    READERS,
    Behaviour,
    PermissionRule,
    limits_commands,
    parse_rules,
    tool_name,
)
from crow.extensions.permissions.settings import (
    MODES,
    NO_LIMITS,
    QUIET,
    Limits,
    Mode,
    RuleText,
    unknown_mode,
)

if TYPE_CHECKING:
    from crow.extensions.permissions.shell.script import Node

INTERACTIVE = frozenset({"AskUserQuestion", "ExitPlanMode"})


@dataclass(frozen=True)
class Permissions:
    """The rules, the mode and the directories, parsed once and never changed.

    ``base`` is the primary working directory (the call's own where it is None); ``directories``
    are worked in beside it. ``limits`` hold whatever the rules allow. ``quiet`` names further tools
    that need no question by default. ``scripts`` gives the files that hooks and servers run, asked
    for at every write: none of them is written without a question.
    ``elsewhere`` tells that calls name their directory, which is no working directory by that.
    ``confined`` is what commands run in, where something holds them.
    ``second`` is the other parser's opinion, shfmt's where it is None; where it has none, complex
    commands are asked about.
    """

    allow: tuple[PermissionRule, ...] = ()
    ask: tuple[PermissionRule, ...] = ()
    deny: tuple[PermissionRule, ...] = ()
    mode: Mode = "default"
    base: str | None = None
    directories: tuple[str, ...] = ()
    limits: Limits = NO_LIMITS
    quiet: frozenset[str] = QUIET
    warnings: tuple[str, ...] = ()
    scripts: Callable[[], Iterable[str]] = tuple
    elsewhere: bool = False
    confined: Confinement | None = None
    disk: Disk = field(default_factory=LocalDisk)
    second: Callable[[str], Node | None] | None = None

    @classmethod
    def of(
        cls,
        *,
        allow: Iterable[RuleText | str] = (),
        ask: Iterable[RuleText | str] = (),
        deny: Iterable[RuleText | str] = (),
        mode: str = "default",
        **options: Any,
    ) -> Permissions:
        """Parse rules. What is malformed is left out and named in ``warnings``."""
        warnings: list[str] = []
        if mode not in MODES:
            warnings.append(unknown_mode(mode))
        return cls(
            parse_rules(allow, "allow", warnings),
            parse_rules(ask, "ask", warnings),
            parse_rules(deny, "deny", warnings),
            MODES.get(mode, "default"),
            warnings=tuple(warnings),
            **options,
        )

    def with_rule(self, text: str | RuleText, behaviour: Behaviour = "allow") -> Permissions:
        """These permissions and one more rule; the same ones where it is malformed."""
        added = parse_rules((text,), behaviour, [])
        return replace(self, **{behaviour: (*getattr(self, behaviour), *added)})

    def in_session(self, *, mode: Mode, cwd: str, roots: Sequence[str]) -> Permissions:
        """These permissions in a session's mode and directories."""
        directories = tuple(dict.fromkeys((*self.directories, *roots)))
        return replace(self, mode=mode, base=self.base or cwd, directories=directories)

    def judge(
        self, tool: str, args: Mapping[str, Any], *, cwd: str, interactive: bool = False
    ) -> Decision:
        """Decide on one call. Never raises. ``cwd`` is absolute.

        An ``interactive`` tool wants its user asked each time, whatever the rules allow.
        """
        name = tool_name(tool)
        refused = self._whole(self.deny, name, args)
        if refused is not None:
            return Decision("deny", f"the rule {refused.text} denies it", refused.text)
        decision = self.by_kind(name, args, cwd)
        for path in named_directories(args):
            decision = min(decision, self._in_directory(path, name, args, cwd), key=strictness)
        if interactive and decision.decision != "deny":
            decision = Decision("ask", f"{name} wants its user to be asked")
        decision = self._confined(decision, args) if name == "Bash" else decision
        asked = self._whole(self.ask, name, args)
        if asked is not None and decision.decision != "deny" and not self._skips(asked, decision):
            reason = f"the rule {asked.text} asks about it"
            decision = Decision("ask", reason, asked.text, ring=decision.ring)
        return self._in_mode(decision)

    def _confined(self, decision: Decision, args: Mapping[str, Any]) -> Decision:
        """What becomes of a decision about a command by what that would run in."""
        if self.confined is None:
            return decision if decision.ring in ("", "reading") else replace(decision, ring="")
        bare = self._bare("Bash")
        named = decision.rule is not None and (bare is None or decision.rule != bare.text)
        plans = self.mode == "plan" and not self.limits.blocks_reads
        strict = self._is_strict
        return self.confined.settled(decision, args, named=named, is_strict=strict, plans=plans)

    @property
    def _is_strict(self) -> bool:
        """Whether commands are asked about that could write, or read anything, in the sandbox."""
        return self.mode == "plan" or self.limits.blocks_reads

    def _skips(self, asked: PermissionRule, decision: Decision) -> bool:
        """Whether a rule's question need not be asked of a command that stays where it is held."""
        if self.confined is None or asked.tool != "Bash" or not asked.bare:
            return False
        return self.confined.skips(decision, is_strict=self._is_strict)

    def _in_directory(self, path: str, name: str, args: Mapping[str, Any], cwd: str) -> Decision:
        """Decide on a call that names the directory which it is to run in."""
        where = place(self.disk, cwd, path)
        read = self.files(cwd).read(where, deep=True, tool=name)
        found = of_finding(read, bypass=self.mode == "bypassPermissions")
        if name != "Bash" and name not in READERS | EDITORS:
            refused = found.decision != "allow" and not found.default
            return found if refused else Decision("allow", "its directory may be read")
        directories = (*self.directories, cwd)
        base = self.base or cwd
        there = replace(self, base=base, directories=directories, elsewhere=True)
        return min(found, there.by_kind(name, args, where.path), key=strictness)

    def by_kind(self, name: str, args: Mapping[str, Any], cwd: str) -> Decision:
        """Decide by what the tool does."""
        if name == "Bash":
            from crow.extensions.permissions.shell.fields import steering

            field = steering(args)
            unclear = Decision("ask", f"what its field {field} does cannot be foreseen")
            decision = self._shell(args, cwd)
            return decision if field is None else min(decision, unclear, key=strictness)
        if name in READERS or name in EDITORS:
            return self._file(name, args, cwd)
        if name == "WebFetch":
            return self._fetch(args)
        if name in {"Agent", "Skill"}:
            return self._named(name, args)
        return self._plainly(name)

    def _whole(
        self, rules: Sequence[PermissionRule], name: str, args: Mapping[str, Any]
    ) -> PermissionRule | None:
        """The rule that speaks of every use of a tool, or of one of the call's arguments."""
        for rule in rules:
            if rule.names(name) and (rule.bare or rule.has_parameter(args)):
                return rule
        return None

    def _bare(self, name: str) -> PermissionRule | None:
        """The rule that allows every use of a tool."""
        return self._whole(self.allow, name, {})

    def _in_mode(self, decision: Decision) -> Decision:
        if self.mode == "bypassPermissions" and decision.decision == "ask" and decision.default:
            return Decision("allow", "the mode is bypassPermissions", ring=decision.ring)
        if decision.decision == "ask" and (self.mode == "dontAsk" or self.limits.never_asks):
            why = "the mode is dontAsk" if self.mode == "dontAsk" else "nobody is to be asked"
            reason = f"{why}, and {decision.reason}"
            return Decision("deny", reason, decision.rule, decision.default)
        return decision

    def _plainly(self, name: str) -> Decision:
        rule = self._bare(name)
        if rule is not None and name not in INTERACTIVE:
            return Decision("allow", f"the rule {rule.text} allows it", rule.text)
        if name in self.quiet:
            return Decision("allow", f"{name} needs no permission")
        return Decision("ask", f"no rule allows {name}", default=name not in INTERACTIVE)

    # Files

    def files(self, cwd: str) -> Files:
        """The path rules as they count in a directory."""
        base = self.base or cwd
        here = () if self.elsewhere else (cwd,)
        roots = tuple(dict.fromkeys((base, *here, *self.directories)))
        settled = (self.disk.settled(root) or root for root in roots)
        lookup = Lookup(self.disk, tuple(dict.fromkeys((*roots, *settled))))
        accepts = self.mode in {"acceptEdits", "bypassPermissions"}
        frozen = self.mode == "plan"
        return Files(
            self.disk,
            cwd,
            base,
            roots,
            lookup,
            self.allow,
            self.ask,
            self.deny,
            accepts,
            frozen,
            self.limits,
            self.scripts,
        )

    @property
    def limits_reading(self) -> bool:
        """Whether any deny or ask rule, or a limit, speaks of paths that may be read."""
        return self.limits.blocks_reads or any(
            rule.path is not None for rule in (*self.deny, *self.ask)
        )

    def reader(self, cwd: str) -> Callable[[str], bool]:
        """Tells of a path whether no rule keeps it from being read; for tools that search."""
        files = self.files(cwd)

        def may_read(path: str) -> bool:
            return files.read(place(self.disk, cwd, path)).kind not in {"deny", "ask", "guard"}

        return may_read

    def _file(self, name: str, args: Mapping[str, Any], cwd: str) -> Decision:
        files = self.files(cwd)
        paths = named_paths(name, args)
        if paths is None:
            return Decision("ask", f"{name} names no path")
        findings: list[Finding] = []
        for path in paths:
            where = place(self.disk, cwd, path)
            if name in READERS:
                found = files.read(where, deep=name in SEARCHERS, tool=name)
            else:
                found = files.write(where, tool=name)
            findings.append(found)
        return of_finding(worst_of(findings), bypass=self.mode == "bypassPermissions")

    # The web, agents and skills

    def _fetch(self, args: Mapping[str, Any]) -> Decision:
        url = args.get("url")
        if not isinstance(url, str):
            return Decision("ask", "WebFetch names no URL")
        hosts = possible_hosts(url)
        for rules, decision in ((self.deny, "deny"), (self.ask, "ask")):
            for rule in rules:
                if rule.domain and any(rule.domain.fullmatch(host) for host in hosts):
                    verb = "denies" if decision == "deny" else "asks about"
                    reason = f"the rule {rule.text} {verb} this domain"
                    return Decision("deny" if decision == "deny" else "ask", reason, rule.text)
        host = host_of(url)
        for rule in self.allow:
            if rule.domain and host and rule.domain.fullmatch(host):
                return Decision("allow", f"the rule {rule.text} allows {host}", rule.text)
        return self._plainly("WebFetch")

    def _named(self, name: str, args: Mapping[str, Any]) -> Decision:
        """Agents and skills, whose rules name one of them."""
        value = name_of(name, args)
        for rules, decision in ((self.deny, "deny"), (self.ask, "ask"), (self.allow, "allow")):
            for rule in rules:
                if rule.tool == name and rule.specifier and means(rule, value):
                    return Decision(
                        "deny" if decision == "deny" else "ask" if decision == "ask" else "allow",
                        f"the rule {rule.text} speaks of {value.split(' ')[0] or name}",
                        rule.text,
                    )
        return self._plainly(name)

    # The shell

    def _shell(self, args: Mapping[str, Any], cwd: str) -> Decision:
        text = args.get("command")
        if not isinstance(text, str) or not text.strip():
            default = not limits_commands(self.deny, self.ask)
            return Decision("ask", "Bash is given no command", default=default)
        from crow.extensions.permissions.shell.commands import Commands  # half of the judgement

        return Commands(
            self.files(cwd),
            self.allow,
            self.ask,
            self.deny,
            self.mode,
            self._bare("Bash"),
            self.limits_reading,
            self.second,
        ).judge(text)
