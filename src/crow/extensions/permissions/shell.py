"""A shell script under the rules: one pass over all its commands, which gathers what is found.

A script may run unasked where every command in it is covered: by an allow rule, by being one
that only reads, or by the mode. Deny and ask rules are looked for in every command, those inside
of wrappers and of quoted shell texts included.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from crow.extensions.permissions import builtin, repository
from crow.extensions.permissions.characters import looks_special
from crow.extensions.permissions.disk import Place, place
from crow.extensions.permissions.edits import Edits, edits, may_read
from crow.extensions.permissions.files import Files, Finding
from crow.extensions.permissions.globbing import expand
from crow.extensions.permissions.protected import is_critical
from crow.extensions.permissions.readonly import reads
from crow.extensions.permissions.rule import Rule
from crow.extensions.permissions.script import (
    HOLE,
    Assignment,
    Chain,
    Group,
    Node,
    Other,
    Redirect,
    Simple,
    Text,
    Word,
    children,
    substitutions,
    words_of,
)
from crow.extensions.permissions.script import (
    Sequence as Commands,
)
from crow.extensions.permissions.wrapper import (
    EXACT,
    INTERPRETERS,
    LOOSE,
    SEEN_THROUGH,
    SHELLS,
    program,
    shell_texts,
    unwrap,
)

Cwds = tuple[str | None, ...]
DEEPEST = 6
SINKS = frozenset(
    {"/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty", "/dev/zero", "/dev/stdin"}
)
FIND_ACTS = frozenset(
    {"-exec", "-execdir", "-ok", "-okdir", "-delete", "-fprint", "-fprint0", "-fprintf", "-fls"}
)
REMOVERS = frozenset({"rm", "rmdir", "unlink", "shred"})
QUIET_KINDS = frozenset({"case_statement", "case_item", "function_definition", "for_statement"})
GIT_VALUED = frozenset({"-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path"})


@dataclass(slots=True)
class Report:
    """What one pass found. ``uncovered`` says why the script may not run unasked."""

    deny: Finding | None = None
    ask: Finding | None = None
    guard: str | None = None
    critical: str | None = None
    doubt: str | None = None
    uncovered: str | None = None
    rules: list[str] = field(default_factory=list[str])

    def note(self, finding: Finding) -> bool:
        """Keep a finding about a path; whether the path is fine."""
        match finding.kind:
            case "deny":
                self.deny = self.deny or finding
            case "ask":
                self.ask = self.ask or finding
            case "guard":
                self.guard = self.guard or finding.reason
            case "none":
                self.miss(finding.reason)
            case "allow":
                return True
        return False

    def miss(self, reason: str) -> None:
        """Something that nothing covers."""
        self.uncovered = self.uncovered or reason

    def suspect(self, reason: str) -> None:
        """Something behind which a denied command could hide."""
        self.doubt = self.doubt or reason
        self.miss(reason)


@dataclass(slots=True)
class ShellJudge:
    """One pass over one script."""

    files: Files
    allow: Sequence[Rule]
    ask: Sequence[Rule]
    deny: Sequence[Rule]
    parse: Callable[[str], Node]
    report: Report = field(default_factory=Report)
    depth: int = 0
    changed: bool = False  # whether a cd went before
    uses_git: bool = False

    def judge(self, script: Node) -> Report:
        """Go through a script."""
        self.visit(script, (self.files.cwd,))
        if self.changed and self.uses_git:
            self.report.miss("cd before git: the other directory's settings could run programs")
        return self.report

    def visit(self, node: Node, cwds: Cwds) -> Cwds:
        """Go through a node; the directories that the next command may run in."""
        for inner in substitutions(words_of(node)):
            self.visit(inner, cwds)
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

    def chain(self, node: Chain, cwds: Cwds) -> Cwds:
        """``&&``, ``||`` and pipes."""
        left = self.visit(node.left, cwds)
        if node.op == "&&":
            return self.visit(node.right, left)
        right = self.visit(node.right, cwds if node.op != "||" else union(cwds, left))
        return union(left, right) if node.op == "||" else cwds

    def in_turn(self, nodes: Sequence[Node], cwds: Cwds) -> Cwds:
        """One command after another, whether the one before succeeded or not."""
        for node in nodes:
            cwds = union(self.visit(node, cwds), cwds)
        return cwds

    def group(self, node: Group, cwds: Cwds) -> Cwds:
        """A compound command."""
        if node.kind == "for" and not builtin.is_loop_name(node.name):
            self.report.miss(f"the loop changes the variable {node.name}")
        if not all(word.known for word in node.words):
            self.report.suspect("the loop goes through words that cannot be foreseen")
        self.redirects(node.redirects, cwds)
        after = self.in_turn(node.parts, cwds)
        return cwds if node.kind == "subshell" else after

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
        self.redirects(node.redirects, cwds)
        if not node.words:
            for assignment in node.assignments:
                self.report.miss(f"it sets the variable {assignment.name}")
                self._suspect_assignment(assignment)
            return cwds
        if node.assignments and not self._exactly(node):
            for assignment in node.assignments:
                if not builtin.is_safe(assignment):
                    self.report.miss(f"the variable {assignment.name} may change what runs")
                    self._suspect_assignment(assignment)
        self.search(node.words, cwds)
        return self.cover(node.words, cwds)

    def _suspect_assignment(self, assignment: Assignment) -> None:
        if assignment.odd or not assignment.value.known or assignment.name in builtin.HOOKED:
            self.report.suspect(f"the variable {assignment.name} may change what runs")

    def _exactly(self, node: Simple) -> bool:
        """Whether an allow rule spells out the command with its variables."""
        shapes = [f"{one.name}={one.value.shape}" for one in node.assignments if not one.odd]
        shapes += [word.shape for word in node.words]
        return any(
            rule.command is not None and rule.command.exact and rule.command.matches(shapes)
            for rule in self.allow
        )

    # Looking for what is denied

    def search(self, words: tuple[Word, ...], cwds: Cwds, *, vague: bool = False) -> None:
        """Look for deny and ask rules in a command, and in all that it runs."""
        if self.depth > DEEPEST:
            return self.report.suspect("the command is nested too deeply")
        self.match_rules(words, vague=vague)
        if not vague:
            self.match_paths(words, cwds)
            self.guard_removal(words, cwds)
        self.depth += 1
        for inner in unwrap(words):
            more = (Word((Text(HOLE),)),) if inner.open else ()
            self.search(inner.words + more, cwds, vague=vague or inner.vague)
        if not vague:
            self.search_texts(words, cwds)
        self.depth -= 1
        return None

    def search_texts(self, words: tuple[Word, ...], cwds: Cwds) -> None:
        """Look into texts that a command has a shell evaluate."""
        for text in shell_texts(words):
            if text is None:
                self.report.suspect("it has a shell run text that cannot be foreseen")
            else:
                covered = self.report.uncovered
                self.visit(self.parse(text), cwds)
                self.report.uncovered = covered
        if program(words[0]) in SHELLS and not any(
            word.text is not None and not word.text.startswith("-") for word in words[1:]
        ):
            self.report.suspect("a shell reads commands from its input")

    def match_rules(self, words: tuple[Word, ...], *, vague: bool) -> None:
        """Compare a command with the deny and ask rules."""
        name = words[0]
        if (
            name.text is None
            or name.globbed
            or name.bare.startswith("~")
            or not name.text.isascii()
        ):
            return self.report.suspect("the name of the program cannot be foreseen")
        shapes = [word.shape for word in words]
        spellings = [shapes, [program(name) or "", *shapes[1:]]]
        if spellings[1][0] == "git":
            spellings.append(without_git_options(spellings[1]))
        for rules, kind in ((self.deny, "deny"), (self.ask, "ask")):
            for rule in rules:
                if rule.command is None:
                    continue
                if any(rule.command.matches(one) for one in spellings):
                    self._matched(rule, "ask" if vague else kind)
                elif self._may_match(rule, spellings, words, vague=vague):
                    self._matched(rule, "ask")
        return None

    def _may_match(
        self, rule: Rule, spellings: list[list[str]], words: tuple[Word, ...], *, vague: bool
    ) -> bool:
        assert rule.command is not None
        if vague:
            return False
        if any(rule.command.may_match(one) or rule.command.resembles(one) for one in spellings):
            return True
        if not INTERPRETERS.fullmatch(spellings[1][0]) or not rule.command.head:
            return False
        named = re.compile(rf"(?<![\w-]){re.escape(rule.command.head[0])}(?![\w-])")
        return any(named.search(word.shape) and re.search(r"\W", word.shape) for word in words[1:])

    def _matched(self, rule: Rule, kind: str) -> None:
        if kind == "deny":
            self.report.note(Finding("deny", f"the rule {rule.text} denies it", rule.text))
        else:
            verb = "asks about it" if rule.behaviour == "ask" else "may deny it"
            self.report.note(Finding("ask", f"the rule {rule.text} {verb}", rule.text))

    def match_paths(self, words: tuple[Word, ...], cwds: Cwds) -> None:
        """Compare the files that a command names with the path rules."""
        done = edits(words)
        if done is not None:
            for word in done.writes:
                self.writes(word, cwds, known=False)
        if not self.files.has_read_limits:
            return
        found = may_read(words)
        if found is None:
            self._match_others(words, cwds)
        else:
            self._match_reads(*found, cwds)

    def _match_reads(self, paths: list[Word], deep: bool, cwds: Cwds) -> None:
        for word in paths:
            if word.text is None or HOLE in word.text:
                self.report.suspect("a file that it reads cannot be foreseen")
            for where in self.places(word, cwds):
                self.note_refusal(self.files.read(where, deep=True))
                if deep and self.files.disk.is_dir(where.path):
                    self.note_hidden(where)

    def _match_others(self, words: tuple[Word, ...], cwds: Cwds) -> None:
        """A command that is not known for reading files, given one that may not be read."""
        name = program(words[0])
        if name in {"echo", "printf", "git"}:
            return self._match_revisions(words, cwds) if name == "git" else None
        for word in words[1:]:
            if word.text is None or not re.search(r"[/.]", word.text):
                continue
            for part in {word.text, word.text.rpartition("=")[2]} - {""}:
                for where in self.places(Word.plain(part), cwds):
                    finding = self.files.read(where)
                    if finding.kind in {"deny", "ask"} and self.files.disk.exists(where.path):
                        self.report.note(Finding("ask", finding.reason, finding.rule))
        return None

    def _match_revisions(self, words: tuple[Word, ...], cwds: Cwds) -> None:
        for word in words[2:]:
            for part in (word.text or "").split(":"):
                if part and not part.startswith("-"):
                    for where in self.places(Word.plain(part), cwds):
                        self.note_refusal(self.files.read(where))

    def note_refusal(self, finding: Finding) -> None:
        """Keep a finding only where it refuses."""
        if finding.kind in {"deny", "ask"} or (
            finding.kind == "guard" and self.files.has_read_limits
        ):
            self.report.note(finding)

    def note_hidden(self, where: Place) -> None:
        """Look for what may not be read below a directory that is read whole."""
        hidden = self.files.hides_denied(where)
        if hidden == "unknown":
            self.report.suspect(f"{where.path} is too large to look for what may not be read")
        elif hidden is not None:
            verb = "speaks of something in"
            self.report.note(
                Finding("ask", f"the rule {hidden.text} {verb} {where.path}", hidden.text)
            )

    def guard_removal(self, words: tuple[Word, ...], cwds: Cwds) -> None:
        """Notice the removal of what must not be removed unasked."""
        name = program(words[0])
        if name not in REMOVERS:
            return
        for word in words[1:]:
            text = word.text
            if text is not None and text.startswith("-"):
                continue
            if text is None or HOLE in text:
                self.critical(f"{name} of a path that cannot be foreseen")
            elif None in cwds:
                self.critical(f"{name} in a directory that cannot be foreseen")
            else:
                self._guard_target(name, word, tuple(cwd for cwd in cwds if cwd))

    def _guard_target(self, name: str, word: Word, cwds: tuple[str, ...]) -> None:
        text = word.text or ""
        if word.globbed:
            text = re.sub(r"(?:^|/)[^/]*[*?\[].*$", "", text) or ("/" if text[0] == "/" else ".")
            if (
                not re.search(r"(?:^|/)(?:\*|\.\*|\?\*|\.\[.*|\{.*)/?(?:\*)?$", word.text or "")
                and text == "."
            ):
                return
        if text.startswith("~") and text != "~" and not text.startswith("~/"):
            self.critical(f"{name} of a home directory")
        kept = (*cwds, self.files.cwd, self.files.base)
        for cwd in cwds:
            where = place(self.files.disk, cwd, text)
            if is_critical(self.files.disk, where, kept):
                self.critical(f"{name} of {where.path}")

    def critical(self, reason: str) -> None:
        """Keep a removal that only the user may approve."""
        self.report.critical = self.report.critical or reason

    # Looking for what covers it

    def cover(self, words: tuple[Word, ...], cwds: Cwds) -> Cwds:
        """Find what lets a command through; note it where nothing does."""
        if not all(word.known for word in words):
            self.report.suspect("it has an expansion that needs a look")
        name = words[0].text
        if name is None or words[0].globbed or words[0].bare.startswith("~"):
            self.report.miss("the name of the program cannot be foreseen")
            return cwds
        if any(looks_special(word.bare) for word in words):
            self.report.suspect("it has characters that only look like the shell's")
        if name == "cd":
            return self.change(words, cwds)
        if builtin.evaluates(words):
            self._note_builtin(words, name)
        elif not self.is_covered(words, cwds):
            self.report.miss(f"no rule allows {shown(words)}")
        return cwds

    def _note_builtin(self, words: tuple[Word, ...], name: str) -> None:
        reason = f"{name} changes the shell or evaluates text"
        if builtin.may_hide(words):
            self.report.suspect(reason)
        else:
            self.report.miss(reason)

    def is_covered(self, words: tuple[Word, ...], cwds: Cwds, *, open_end: bool = False) -> bool:
        """Whether a rule, the list of reading commands or the mode lets a command through."""
        self.uses_git = self.uses_git or words[0].text == "git"
        for rule in self.allow:
            if rule.command is not None and self.allows(rule, words):
                self.report.rules.append(rule.text)
                return True
        for inner in unwrap(words):
            if inner.plain:
                more = (Word((Text(HOLE),)),) if inner.open else ()
                if builtin.evaluates(inner.words) or inner.words[0].text == "cd":
                    return False
                return self.is_covered(inner.words + more, cwds, open_end=inner.open)
        if open_end:
            plain = words[:-1]
            return (
                self.only_reads(plain, cwds) and reads(plain) is not None and plain[0].text in INERT
            )
        return self.only_reads(words, cwds) or self.only_edits(words, cwds)

    def allows(self, rule: Rule, words: tuple[Word, ...]) -> bool:
        """Whether an allow rule means a command."""
        pattern = rule.command
        assert pattern is not None
        shapes = [word.shape for word in words]
        if not pattern.matches(shapes) or HOLE in shapes[0]:
            return False
        name = program(words[0]) or ""
        if name in EXACT or (name == "find" and self._acts(words)):
            return pattern.exact or pattern.text == shown(words)
        if name in LOOSE or name in SEEN_THROUGH:
            return pattern.exact or self._names_inner(pattern.head, words)
        return bool(pattern.head) or not (name in SHELLS or INTERPRETERS.fullmatch(name))

    def _acts(self, words: tuple[Word, ...]) -> bool:
        return any(
            word.text is None or word.text in FIND_ACTS or word.globbed for word in words[1:]
        )

    def _names_inner(self, head: tuple[str, ...], words: tuple[Word, ...]) -> bool:
        """Whether a rule's literal words reach to the program that a wrapper runs."""
        runs = [inner for inner in unwrap(words) if not inner.vague]
        if not runs:
            return len(head) > 1
        return all(len(head) > len(words) - len(inner.words) for inner in runs)

    def only_reads(self, words: tuple[Word, ...], cwds: Cwds) -> bool:
        """Whether a command only reads, and only what may be read."""
        if words[0].text == "git":
            return self._git_reads(words, cwds)
        if words[0].text == "command" and len(words) == 3 and words[1].text in {"-v", "-V"}:
            return words[2].text is not None
        use = reads(words)
        if use is None:
            return False
        return all(self.may_read(word, cwds) for word in use.paths)

    def _git_reads(self, words: tuple[Word, ...], cwds: Cwds) -> bool:
        operands = repository.reads_only(words)
        if operands is None or len(cwds) != 1 or cwds[0] is None:
            return False
        if not repository.is_quiet(self.files.disk, cwds[0]):
            self.report.miss("the settings of this git repository could run programs")
            return False
        outside = [w for w in operands if re.match(r"[/~]|(?:.*/)?\.\.(?:/|$)", w.text or "")]
        return all(self.may_read(word, cwds) for word in outside)

    def only_edits(self, words: tuple[Word, ...], cwds: Cwds) -> bool:
        """Whether a command only edits files, in a mode and at places where that is accepted."""
        done = edits(words) if self.files.accepts and words[0].text in ACCEPTED else None
        if done is None or not done.sure or not done.writes:
            return False
        if not all(self.may_read(word, cwds) for word in done.reads):
            return False
        return all(self.writes(word, cwds, known=True) for word in self._targets(done))

    def _targets(self, done: Edits) -> list[Word]:
        """What is written, with the names that files get in a directory that they are put into."""
        targets = list(done.writes)
        last = targets[-1].text or ""
        for source in (*done.reads, *targets[:-1]):
            name = (source.text or "").rstrip("/").rpartition("/")[2]
            targets.append(Word((Text(f"{last.rstrip('/')}/{name}"),)) if done.reads else source)
            if not done.reads:
                targets.append(Word((Text(f"{last.rstrip('/')}/{name}"),)))
        return targets

    def may_read(self, word: Word, cwds: Cwds) -> bool:
        """Whether everything that a word may mean may be read."""
        if word.text == "-":
            return True
        if word.text is not None and word.text in SINKS:
            return True
        places = self.places(word, cwds)
        if not places:
            self.report.miss("a path in it cannot be foreseen")
            return False
        return all(self.report.note(self.files.read(where, deep=True)) for where in places)

    def writes(self, word: Word, cwds: Cwds, *, known: bool) -> bool:
        """Whether everything that a word may mean may be written.

        With ``known`` false only refusals and protected paths are noted.
        """
        if word.text in SINKS:
            return True
        places = self.places(word, cwds)
        if not places and known:
            self.report.miss("a path in it cannot be foreseen")
        fine = bool(places)
        for where in places:
            finding = self.files.write(where)
            if known or finding.kind in {"deny", "ask", "guard"}:
                fine = self.report.note(finding) and fine
        return fine

    def places(self, word: Word, cwds: Cwds) -> list[Place]:
        """Where a word may lead; none where that cannot be foreseen."""
        text = word.text
        if text is None or HOLE in text or (None in cwds and not text.startswith("/")):
            return []
        tilde = word.bare[:1] == "~"
        if tilde and text != "~" and not text.startswith("~/"):
            return []
        if not tilde and text.startswith("~"):
            text = "./" + text
        texts = [text]
        disk = self.files.disk
        if word.globbed:
            texts = self.expanded(word, cwds)
        return [place(disk, cwd or "/", one) for cwd in cwds for one in texts]

    def expanded(self, word: Word, cwds: Cwds) -> list[str]:
        """The names that a glob stands for now, and the directory that it looks in."""
        text = word.text or ""
        found = [one for cwd in cwds for one in expand(self.files.disk, cwd or "/", text)]
        fixed = re.split(r"[*?\[]", text, maxsplit=1)[0].rpartition("/")
        return [(fixed[0] or fixed[1]) or ".", *found]

    def change(self, words: tuple[Word, ...], cwds: Cwds) -> Cwds:
        """``cd``: where the next command runs, if that is a directory that is worked in."""
        operands = [word for word in words[1:] if word.text not in {"--", "-P", "-L"}]
        places = self.places(operands[0], cwds) if len(operands) == 1 else []
        if not places or operands[0].text == "-" or operands[0].globbed:
            self.changed = True
            self.report.miss("cd to a directory that cannot be foreseen")
            return (None,)
        if {where.path for where in places} != set(cwds):
            self.changed = True
        for where in places:
            if not self.files.is_inside(where):
                self.report.miss(f"cd leads out of the working directories, to {where.path}")
        return tuple(dict.fromkeys(where.path for where in places))

    def redirects(self, redirects: tuple[Redirect, ...], cwds: Cwds) -> None:
        """Files that a command's input comes from and its output goes to."""
        for one in redirects:
            text = one.target.text
            if one.op in {"<<", "<<-", "<<<"}:
                if not one.target.known:
                    self.report.suspect("it has an expansion that needs a look")
            elif one.op in {">&", "<&"} and text is not None and re.fullmatch(r"\d+-?|-", text):
                continue
            elif text is not None and re.match(r"/dev/(?:tcp|udp)/", text):
                self.report.suspect("it opens a network connection")
            elif one.op == "<":
                self.reads_from(one.target, cwds)
            elif text not in SINKS:
                self.writes_to(one, cwds)

    def reads_from(self, target: Word, cwds: Cwds) -> None:
        """Input from a file."""
        if target.globbed or not self.may_read(target, cwds):
            self.report.miss("it reads from a file that no rule allows to read")

    def writes_to(self, redirect: Redirect, cwds: Cwds) -> None:
        """Output to a file."""
        if redirect.op not in {">", ">>", ">|", "&>", "&>>", ">&"}:
            self.report.suspect("it has an unusual redirect")
        if redirect.target.globbed or self.changed:
            self.report.miss("it writes to a file that cannot be foreseen")
        self.writes(redirect.target, cwds, known=True)


ACCEPTED = frozenset({"mkdir", "touch", "rm", "rmdir", "mv", "cp", "sed"})
INERT = frozenset(
    {"echo", "cat", "head", "tail", "ls", "grep", "egrep", "fgrep", "stat", "basename", "dirname"}
)


def union(one: Cwds, other: Cwds) -> Cwds:
    """All directories of both; None once there are too many."""
    together = tuple(dict.fromkeys((*one, *other)))
    return together if len(together) <= 6 else (None,)


def without_git_options(words: list[str]) -> list[str]:
    """``git -C dir push`` as ``git push``."""
    index = 1
    while index < len(words) and words[index].startswith("-"):
        index += 2 if words[index] in GIT_VALUED else 1
    return [words[0], *words[index:]]


def shown(words: Sequence[Word]) -> str:
    """A command as a person reads it."""
    text = " ".join(word.shape.replace(HOLE, "…") for word in words)
    return text if len(text) <= 80 else text[:79] + "…"
