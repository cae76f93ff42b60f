"""A shell script under the rules: one pass over all its commands, which gathers what is found.

A script may run unasked where every command in it is covered: by an allow rule, by being one
that only reads, or by the mode. Deny and ask rules are looked for in every command, those inside
of wrappers and of quoted shell texts included.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from crow.extensions.permissions.paths.command_paths import SINKS, CommandPaths, Cwds, holds_globs
from crow.extensions.permissions.paths.files import Files
from crow.extensions.permissions.programs.listing import names_listed
from crow.extensions.permissions.rules.rule import PermissionRule
from crow.extensions.permissions.shell.allow_rules import Cover
from crow.extensions.permissions.shell.braces import expanded
from crow.extensions.permissions.shell.builtin import HOOKED, is_loop_name, is_own, is_safe
from crow.extensions.permissions.shell.deny_rules import Search
from crow.extensions.permissions.shell.executed_files import runs
from crow.extensions.permissions.shell.loop import PLAIN, unrolled
from crow.extensions.permissions.shell.report import Report
from crow.extensions.permissions.shell.script import (
    HOLE,
    Assignment,
    Chain,
    Group,
    Node,
    Other,
    Redirect,
    Simple,
    Word,
    children,
    substitutions,
    words_of,
)
from crow.extensions.permissions.shell.script import Sequence as Commands
from crow.extensions.permissions.shell.secret import secrets_in

QUIET_KINDS = frozenset({"case_statement", "case_item", "function_definition", "for_statement"})
NETWORK = re.compile(r"/dev/(?:tcp|udp)/")
DESCRIPTOR = re.compile(r"\d+-?|-")
EXPANDED_ONCE = re.compile(r"[A-Za-z0-9_./-]+")
HERE = frozenset({"<<", "<<-", "<<<"})
DUPLICATES = frozenset({">&", "<&"})
OPERATORS = frozenset({"<", ">", ">>", ">|", "&>", "&>>", ">&"})


class ShellJudge:
    """One pass over one script."""

    def __init__(
        self,
        files: Files,
        allow: Sequence[PermissionRule],
        ask: Sequence[PermissionRule],
        deny: Sequence[PermissionRule],
        parse: Callable[[str], Node],
    ) -> None:
        self.report = Report()
        self.paths = CommandPaths(files, self.report)
        self.search = Search(self.paths, self.report, ask, deny, self.visit_text)
        self.cover = Cover(self.paths, self.report, allow)
        self.parse = parse

    def judge(self, script: Node) -> Report:
        """Go through a script."""
        self.paths.holds_globs = holds_globs(script)
        self.visit(script, (self.paths.files.cwd,))
        if self.cover.changed and self.cover.uses_git:
            self.report.miss("cd before git: the other directory's settings could run programs")
        if self.cover.uses_git and self.paths.moves_git:
            self.report.miss("it makes what git could take for a repository")
        if self.paths.runs_made():
            self.report.suspect("it runs a file that it may have written itself")
        if self.report.secret is not None:
            self.report.miss(self.report.secret)
        lookup = self.paths.files.lookup
        if lookup.used and lookup.written:
            self.report.miss("it writes to a directory that programs are looked for in")
        if self.cover.makes_files and self.cover.uses_globs:
            self.report.miss("a file that it makes could be taken for an option")
        return self.report

    def visit_text(self, text: str, cwds: Cwds) -> None:
        """Look for what is denied in a text that a shell is given; it covers nothing."""
        uncovered = self.report.uncovered
        self.visit(self.parse(text), cwds)
        self.report.uncovered = uncovered

    def visit(self, node: Node, cwds: Cwds) -> Cwds:
        """Go through a node; the directories that the next command may run in."""
        for inner in substitutions(words_of(node)):
            self.visit(inner, cwds)
        self.note_variables(node)
        match node:
            case Simple():
                return self.simple(node, cwds)
            case Chain():
                return self.chain(node, cwds)
            case Commands():
                return self.in_turn(node.items, cwds)
            case Group():
                return self.group(node, cwds)
            case Other():
                return self.other(node, cwds)

    def note_variables(self, node: Node) -> None:
        """Variables of the script's own, and those with secrets outside of commands' words."""
        if isinstance(node, Group) and node.name:
            self.cover.own |= {node.name} & {node.name.lower()}
        if isinstance(node, Simple):
            names = {one.name for one in node.assignments if is_own(one)}
            names |= {word.text or "" for word in node.words[1:] if node.name == "read"}
            self.cover.own |= {name for name in names if name == name.lower()}
            words = words_of(node)[len(node.words) :]
        else:
            words = words_of(node)
        if words:
            self.cover.show(secrets_in((Word.plain(""), *words)))

    def chain(self, node: Chain, cwds: Cwds) -> Cwds:
        """``&&``, ``||`` and pipes."""
        left = self.visit(node.left, cwds)
        if node.op == "&&":
            return self.visit(node.right, left)
        self.cover.fed = names_listed(node.left) if node.op == "|" else ""
        right = self.visit(node.right, cwds if node.op != "||" else union(cwds, left))
        self.cover.fed = ""
        return union(left, right) if node.op == "||" else cwds

    def in_turn(self, nodes: Sequence[Node], cwds: Cwds) -> Cwds:
        """One command after another, whether the one before succeeded or not."""
        for node in nodes:
            cwds = union(self.visit(node, cwds), cwds)
        return cwds

    def group(self, node: Group, cwds: Cwds) -> Cwds:
        """A compound command."""
        if node.kind == "for" and not is_loop_name(node.name):
            self.report.miss(f"the loop changes the variable {node.name}")
            self._suspect_name(node.name)
        if node.kind == "for":
            self.paths.may_look(node.words, cwds)
        if not all(word.known for word in node.words):
            self.report.suspect("the loop goes through words that cannot be foreseen")
        self.redirects(node.redirects, cwds)
        parts = (
            unrolled(node, lambda word: self.is_plain(word, cwds))
            if node.kind == "for"
            else node.parts
        )
        after = self.in_turn(parts, cwds)
        if after != cwds and parts is node.parts and node.kind in {"while", "for"}:
            after = self.in_turn(parts, (None,))  # it may go further with each turn
        return cwds if node.kind == "subshell" else after

    def is_plain(self, word: Word, cwds: Cwds) -> bool:
        """Whether all that a loop's word stands for now are single words without any quotes."""
        names = self.paths.expanded(word, cwds) if word.globbed else [word.text or ""]
        return all(PLAIN.fullmatch(name) for name in names)

    def other(self, node: Other, cwds: Cwds) -> Cwds:
        """Something that is never let through by itself."""
        reason = f"the command has a part that needs a look ({node.kind.replace('_', ' ')})"
        if node.kind in QUIET_KINDS:
            self.report.miss(reason)
        else:
            self.report.suspect(reason)
        return union(self.in_turn(children(node), cwds), cwds)

    def simple(self, node: Simple, cwds: Cwds) -> Cwds:
        """A simple command."""
        makes_any = self.paths.makes_any
        self.redirects(node.redirects, cwds)
        if node.words and any(runs(node.words)):  # whose output is trusted as it is itself
            self.paths.makes_any = makes_any
        if not node.words:
            for assignment in node.assignments:
                if not is_own(assignment):
                    self.report.miss(f"it sets the variable {assignment.name}")
                self._suspect_assignment(assignment)
            return cwds
        words = node.words if node.name == "[[" else expanded(node.words)
        before, self.search.fed = self.search.fed, input_of(node)
        self.search.command(words, cwds)
        self.search.fed = before
        if node.assignments and (rule := self.cover.spells_out(node.assignments, words)):
            self.report.rules.append(rule.text)
            return cwds
        for assignment in node.assignments:
            if not is_safe(assignment):
                self.report.miss(f"the variable {assignment.name} may change what runs")
                self._suspect_assignment(assignment)
        return self.cover.command(words, cwds)

    def _suspect_assignment(self, assignment: Assignment) -> None:
        if assignment.odd or not assignment.value.known:
            self.report.suspect(f"the variable {assignment.name} may change what runs")
        self._suspect_name(assignment.name)

    def _suspect_name(self, name: str) -> None:
        self.search.note_steered((Word.plain(f"{name}="),))
        if name in HOOKED:
            self.report.suspect(f"the variable {name} changes what later words mean")

    def redirects(self, redirects: tuple[Redirect, ...], cwds: Cwds) -> None:
        """Files that a command's input comes from and its output goes to."""
        for one in redirects:
            text = one.target.text
            if one.op in HERE:
                if not one.target.known:
                    self.report.suspect("it has an expansion that needs a look")
            elif one.op in DUPLICATES and DESCRIPTOR.fullmatch(text or ""):
                continue
            elif fault := redirect_fault(one):
                self.report.suspect(fault)
            elif one.op == "<":
                self.reads_from(one.target, cwds)
            elif text not in SINKS:
                self.writes_to(one, cwds)

    def reads_from(self, target: Word, cwds: Cwds) -> None:
        """Input from a file."""
        if not self.paths.may_read(target, cwds) or target.globbed:
            self.report.miss("it reads from a file that no rule allows to read")
        if self.paths.files.has_read_limits and not self.paths.places(target, cwds):
            self.report.suspect("it reads from a file that cannot be foreseen")

    def writes_to(self, redirect: Redirect, cwds: Cwds) -> None:
        """Output to a file."""
        name = redirect.target.shape.rpartition("/")[2]
        self.cover.makes_files = self.cover.makes_files or name[:1] in {"-", HOLE}
        if redirect.target.globbed or self.cover.changed:
            self.report.miss("it writes to a file that cannot be foreseen")
        self.paths.writes(redirect.target, cwds, known=True)
        self.paths.make(redirect.target, cwds)


def input_of(node: Simple) -> tuple[Word, ...]:
    """The texts that a command has for its input."""
    return tuple(one.target for one in node.redirects if one.op in HERE and one.fd in {"", "0"})


def redirect_fault(redirect: Redirect) -> str | None:
    """Why a redirect does more than to name a file; None where it does not."""
    text = redirect.target.text or ""
    if redirect.op not in OPERATORS:
        return "it has an unusual redirect"
    if redirect.op == ">&" and not EXPANDED_ONCE.fullmatch(text):
        return "bash expands such a redirect twice"
    return "it opens a network connection" if NETWORK.match(text) else None


def union(one: Cwds, other: Cwds) -> Cwds:
    """All directories of both; None once there are too many."""
    together = tuple(dict.fromkeys((*one, *other)))
    return together if len(together) <= 6 else (None,)
