"""The decision on one command: what the rules find in it, and whether two parsers read the same."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from threading import local
from typing import TYPE_CHECKING

from crow.dataclasses import frozen
from crow.extensions.permissions.decision import Decision
from crow.extensions.permissions.paths.files import Files, Finding
from crow.extensions.permissions.rules.rule import PermissionRule, limits_commands
from crow.extensions.permissions.settings import Mode
from crow.extensions.permissions.shell.characters import fault, visible
from crow.extensions.permissions.shell.judge import ShellJudge
from crow.extensions.permissions.shell.report import Report
from crow.extensions.permissions.shell.script import Node, Other, Simple, Word
from crow.extensions.permissions.shell.shfmt import SecondOpinion
from crow.extensions.permissions.shell.tree_sitter import Parsed, new_parser, read

if TYPE_CHECKING:
    from tree_sitter import Parser

PLAIN = re.compile(r"[A-Za-z0-9_ ./:=@%+,-]*")
RESERVED = frozenset(
    {"time", "coproc", "function", "select", "case", "if", "for", "while", "until"}
)


WORDS = re.compile(r" *[A-Za-z_./][A-Za-z0-9_./-]*(?: [A-Za-z0-9_ ./:,-]*)?")
NOT_FIRST = RESERVED | frozenset(
    "then do done fi else elif esac in declare export readonly local typeset unset let".split()
)


def plain_command(text: str) -> Simple | None:
    """What a text reads as that is words and nothing else; None where that takes a parser."""
    words = text.split() if WORDS.fullmatch(text) else []
    is_one = words and words[0] not in NOT_FIRST
    return Simple(tuple(map(Word.plain, words))) if is_one else None


class _Parsers(local):
    """A parser for each thread."""

    parser: Parser | None = None

    def read(self, text: str) -> Parsed:
        if (plain := plain_command(text)) is not None:
            return Parsed(plain)
        if self.parser is None:
            self.parser = new_parser()
        return read(self.parser, text)


PARSERS = _Parsers()


def script_of(text: str) -> Node:
    """A shell script as the first parser reads it."""
    return PARSERS.read(text).script


def is_plain(text: str) -> bool:
    """True for words without any special character: one parser's reading is enough."""
    return bool(PLAIN.fullmatch(text)) and RESERVED.isdisjoint(text.split(maxsplit=1)[:1])


@cache
def shfmt() -> SecondOpinion:
    """The second parser, which remembers what it was asked."""
    return SecondOpinion()


@frozen
class Commands:
    """The rules for commands. ``bare`` is the one that allows all of them.

    ``limits_reading`` says that some path may not be read, ``second`` is the second parser.
    """

    files: Files
    allow: tuple[PermissionRule, ...]
    ask: tuple[PermissionRule, ...]
    deny: tuple[PermissionRule, ...]
    mode: Mode
    bare: PermissionRule | None
    limits_reading: bool
    second: Callable[[str], Node | None] | None

    def judge(self, text: str) -> Decision:
        """Decide on a command line."""
        wrong = fault(text)
        reading = PARSERS.read(visible(text) if wrong else text)
        wrong = wrong or reading.fault
        report = self._report(reading.script, text)
        refused = self._refused(report, text)
        if refused is not None:
            return refused
        if wrong is not None:
            return Decision("ask", wrong, default=not limits_commands(self.deny, self.ask))
        return self._permitted(report, reading.script, text)

    def _report(self, script: Node, text: str) -> Report:
        judge = ShellJudge(self.files, self.allow, self.ask, self.deny, script_of)
        report = judge.report
        try:
            judge.judge(script)
        except RecursionError:
            report.suspect("the command is nested too deeply")
        runs = report.uncovered is None or self.bare or self._spelled_out(text)
        judge.search.match_trees(may_run=bool(runs))
        return report

    def _refused(self, report: Report, text: str) -> Decision | None:
        """What nothing but the user can let through, strictest first."""
        for rules in (self.deny, self.ask):
            for rule in rules:
                if rule.command is not None and rule.command.matches_source(text):
                    kind = rule.behaviour
                    finding = Finding(
                        "deny" if kind == "deny" else "ask",
                        f"the rule {rule.text} speaks of it",
                        rule.text,
                    )
                    report.note(finding)
        if report.deny is not None:
            return Decision("deny", report.deny.reason, report.deny.rule)
        if report.ask is not None:
            return Decision("ask", report.ask.reason, report.ask.rule)
        if report.critical is not None:
            return Decision("ask", report.critical)
        if report.guard is not None:
            bypass = self.mode == "bypassPermissions"
            return Decision("ask", report.guard, default=bypass, ring="outside")
        return None

    def _permitted(self, report: Report, script: Node, text: str) -> Decision:
        whole = self.bare
        free = whole is not None or self.mode == "bypassPermissions"
        limited = limits_commands(self.deny, self.ask) or self.limits_reading
        if report.doubt is not None and limited:
            return Decision("ask", f"{report.doubt}, and a denied command could hide in it")
        spelled = None if free or report.uncovered is None else self._spelled_out(text)
        if not free and spelled is None and report.uncovered is not None:
            secret = report.secret is not None
            return Decision("ask", report.uncovered, default=True, secret=secret)
        if (limited or not free) and not self._agreed(script, text):
            return Decision("ask", "the parsers disagree about the command", default=not limited)
        if whole is not None:
            return Decision("allow", f"the rule {whole.text} allows it", whole.text)
        if spelled is not None:
            return Decision("allow", f"the rule {spelled.text} spells it out", spelled.text)
        if free and report.uncovered is not None:
            return Decision("allow", "the mode is bypassPermissions")
        rule = report.rules[0] if report.rules else None
        if rule is not None:
            return Decision("allow", f"the rule {rule} allows it", rule)
        where = " in the mode acceptEdits" if self.mode == "acceptEdits" else ""
        reads = not (report.writes or report.by_mode)
        reason = f"it only does what needs no permission{where}"
        return Decision("allow", reason, ring="reading" if reads else "workspace")

    def _spelled_out(self, text: str) -> PermissionRule | None:
        """The rule that is the command, letter by letter."""
        for rule in self.allow:
            if (
                rule.command is not None
                and rule.command.exact
                and rule.command.text == text.strip()
            ):
                return rule
        return None

    def _agreed(self, script: Node, text: str) -> bool:
        """Whether both parsers read the same; words without any special character need only one."""
        if is_plain(text):
            return True
        return not isinstance(script, Other) and (self.second or shfmt())(text) == script
