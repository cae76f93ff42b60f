"""Finding what lets a command run unasked: a rule, that it only reads, or the mode."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from crow.extensions.permissions import builtin, repository
from crow.extensions.permissions.characters import looks_special
from crow.extensions.permissions.command import CommandPattern
from crow.extensions.permissions.disk import Place
from crow.extensions.permissions.edits import ACCEPTED, Edits, edits
from crow.extensions.permissions.listing import INERT, fed_use
from crow.extensions.permissions.paths import Cwds, Paths
from crow.extensions.permissions.programs import Use
from crow.extensions.permissions.protected import holds_protected
from crow.extensions.permissions.readonly import reads
from crow.extensions.permissions.report import Report
from crow.extensions.permissions.rule import Rule
from crow.extensions.permissions.script import HOLE, Assignment, Text, Word
from crow.extensions.permissions.wrapper import (
    EXACT,
    INTERPRETERS,
    LOOSE,
    SEEN_THROUGH,
    SHELLS,
    is_fixed,
    program,
    unwrap,
)

FIND_ACTS = frozenset(
    {"-exec", "-execdir", "-ok", "-okdir", "-delete", "-fprint", "-fprint0", "-fprintf", "-fls"}
)


@dataclass(slots=True)
class Cover:
    """The allow rules. ``changed`` tells that a cd went before.

    ``fed`` tells that the command's input are names of files which may be read.
    """

    paths: Paths
    report: Report
    allow: Sequence[Rule]
    changed: bool = False
    uses_git: bool = False
    fed: bool = False

    def command(self, words: tuple[Word, ...], cwds: Cwds) -> Cwds:
        """Find what lets a command through; note it where nothing does."""
        if not all(word.known for word in words):
            self.report.suspect("it has an expansion that needs a look")
        name = words[0].text
        if name is None or not is_fixed(words[0]):
            self.report.miss("the name of the program cannot be foreseen")
            return cwds
        if any(looks_special(word.bare) for word in words):
            self.report.suspect("it has characters that only look like the shell's")
        if name == "cd":
            return self.change(words, cwds)
        if builtin.evaluates(words):
            if not self._may_source(words, cwds):
                self._note_builtin(words, name)
        elif not self.is_covered(words, cwds):
            self.report.miss(f"no rule allows {shown(words)}")
        return cwds

    def _may_source(self, words: tuple[Word, ...], cwds: Cwds) -> bool:
        """Whether a rule names the very file that is sourced, and nobody writes it unasked.

        What it makes of later commands is what the rule's author trusts it with. Its text would
        run in any case; it stays where it is as long as no ``cd`` went before.
        """
        if words[0].text not in {"source", "."} or len(words) != 2 or self.changed:
            return False
        text = words[1].text
        if text is None or "/" not in text or words[1].globbed or text.startswith("~"):
            return False
        rule = self._named_exactly(words)
        places = self.paths.places(words[1], cwds) if rule else []
        if rule is None or not places or not self.paths.may_read(words[1], cwds):
            return False
        if any(self.paths.files.write(where).kind == "allow" for where in places):
            return False
        self.report.rules.append(rule.text)
        return True

    def _named_exactly(self, words: tuple[Word, ...]) -> Rule | None:
        shapes = [word.shape for word in words]
        for rule in self.allow:
            pattern = rule.command
            if pattern is not None and pattern.exact and pattern.matches(shapes):
                return rule
        return None

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
        if self.fed and words[0].text == "xargs" and (use := fed_use(words)) is not None:
            return self._may_feed(words, cwds) and self.may_use(use, cwds)
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
        return pattern.matches(shapes) and HOLE not in shapes[0] and self._reaches(pattern, words)

    def spells_out(self, assignments: Sequence[Assignment], words: tuple[Word, ...]) -> Rule | None:
        """The allow rule that names a program and each variable before it, with its value."""
        if any(one.odd or one.value.text is None for one in assignments) or not all(
            word.known for word in words
        ):
            return None
        if builtin.evaluates(words) or words[0].text in {None, "cd"}:
            return None
        given = [f"{one.name}={one.value.shape}" for one in assignments]
        shapes = [*given, *(word.shape for word in words)]
        count = len(given)
        for rule in self.allow:
            pattern = rule.command
            if pattern is None or list(pattern.head[: count + 1]) != shapes[: count + 1]:
                continue
            if pattern.matches(shapes) and self._reaches(pattern, words, count):
                return rule
        return None

    def _reaches(self, pattern: CommandPattern, words: tuple[Word, ...], skipped: int = 0) -> bool:
        """Whether a rule that matches says enough about what the command will run."""
        name = program(words[0]) or ""
        if name in EXACT or (name == "find" and self._acts(words)):
            return pattern.exact or is_spelled_out(pattern.words[skipped:], words)
        if name in LOOSE or name in SEEN_THROUGH:
            return pattern.exact or self._names_inner(pattern.head[skipped:], words)
        if pattern.head or not (name in SHELLS or INTERPRETERS.fullmatch(name)):
            return True
        return len(words) == len(pattern.words)  # ``* --version`` means no script before it

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
        return use is not None and self.may_use(use, cwds)

    def _may_feed(self, words: Sequence[Word], cwds: Cwds) -> bool:
        """Whether names of files reach a command whole, and none of them is denied."""
        files = self.paths.files
        whole = any(word.text in {"-0", "-0r", "-r0", "--null"} for word in words)
        for cwd in cwds:
            if cwd is None or files.leads_out(Place(cwd, cwd)):
                return False
            if not whole and files.has_odd_names(cwd):
                return False
        return not files.has_read_limits

    def may_use(self, use: Use, cwds: Cwds) -> bool:
        """Whether all that a command reads may be read."""
        if not all(self.paths.may_read(word, cwds) for word in use.paths):
            return False
        if use.follows and any(
            self.paths.files.leads_out(where)
            for word in use.paths
            for where in self.paths.places(word, cwds)
        ):
            self.report.miss("it follows links, which may lead out of the working directories")
            return False
        return True

    def _git_reads(self, words: tuple[Word, ...], cwds: Cwds) -> bool:
        operands = repository.reads_only(words)
        if operands is None or len(cwds) != 1 or cwds[0] is None:
            return False
        if not repository.is_quiet(self.paths.files.disk, cwds[0]):
            self.report.miss("the settings of this git repository could run programs")
            return False
        outside = [w for w in operands if re.match(r"[/~]|(?:.*/)?\.\.(?:/|$)", w.text or "")]
        return all(self.paths.may_read(word, cwds) for word in outside)

    def only_edits(self, words: tuple[Word, ...], cwds: Cwds) -> bool:
        """Whether a command only edits files, in a mode and at places where that is accepted."""
        done = (
            edits(words)
            if self.paths.files.accepts and words[0].text in {*ACCEPTED, "sed"}
            else None
        )
        if done is None or not done.sure or not done.writes:
            return False
        if not all(self.paths.may_read(word, cwds) for word in done.reads):
            return False
        moved = {"mv": done.writes, "rm": done.writes, "cp": done.reads}.get(
            words[0].text or "", ()
        )
        if any(self._holds_protected(word, cwds) for word in moved):
            return False
        targets = placed(done) if words[0].text in {"mv", "cp"} else done.writes
        return all(self.paths.writes(word, cwds, known=True) for word in targets)

    def _holds_protected(self, word: Word, cwds: Cwds) -> bool:
        """Whether a directory that goes away, or is copied, has a protected path in it."""
        for where in self.paths.places(word, cwds):
            if holds_protected(self.paths.files.disk, where.path):
                self.report.guard = self.report.guard or f"{where.path} holds protected files"
                return True
        return False

    def change(self, words: tuple[Word, ...], cwds: Cwds) -> Cwds:
        """``cd``: where the next command runs, if that is a directory that is worked in."""
        operands = [word for word in words[1:] if word.text not in {"--", "-P", "-L"}]
        places = self.paths.places(operands[0], cwds) if len(operands) == 1 else []
        if not places or operands[0].text == "-" or operands[0].globbed:
            self.changed = True
            self.report.miss("cd to a directory that cannot be foreseen")
            return (None,)
        if {where.path for where in places} != set(cwds):
            self.changed = True
        for where in places:
            if not self.paths.files.is_inside(where):
                self.report.miss(f"cd leads out of the working directories, to {where.path}")
        return tuple(dict.fromkeys(where.path for where in places))


def placed(done: Edits) -> list[Word]:
    """What is written, with the names that files get in a directory that they are put into."""
    targets = list(done.writes)
    last = (targets[-1].text or "").rstrip("/")
    for source in (*done.reads, *targets[:-1]):
        name = (source.text or "").rstrip("/").rpartition("/")[2]
        targets.append(Word((Text(f"{last}/{name}"),)))
    return targets


def is_spelled_out(wanted: Sequence[str], words: Sequence[Word]) -> bool:
    """Whether a rule names a command word by word, its asterisks being quoted text."""
    texts = tuple(word.text for word in words)
    return texts == tuple(wanted) and not any(word.globbed for word in words)


def shown(words: Sequence[Word]) -> str:
    """A command as a person reads it."""
    text = " ".join(word.shape.replace(HOLE, "…") for word in words)
    return text if len(text) <= 80 else text[:79] + "…"
