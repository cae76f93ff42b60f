"""Finding what lets a command run unasked: a rule, that it only reads, or the mode."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from crow.extensions.permissions.paths.command_paths import CommandPaths
from crow.extensions.permissions.paths.disk import ResolvedPath
from crow.extensions.permissions.programs.edits import ACCEPTED, Edits, edits
from crow.extensions.permissions.programs.git import moved, reads_only
from crow.extensions.permissions.programs.git_safety import is_quiet
from crow.extensions.permissions.programs.listing import INERT, Names, fed_use, found_use
from crow.extensions.permissions.programs.lookup import BUILT_IN, Cwds
from crow.extensions.permissions.programs.readonly import reads
from crow.extensions.permissions.programs.table import Use, program_of
from crow.extensions.permissions.rules.command import CommandPattern
from crow.extensions.permissions.rules.rule import PermissionRule
from crow.extensions.permissions.shell.builtin import evaluates, may_hide
from crow.extensions.permissions.shell.characters import looks_special
from crow.extensions.permissions.shell.report import Report
from crow.extensions.permissions.shell.script import HOLE, Assignment, Text, Word
from crow.extensions.permissions.shell.secret import ENVIRON, secrets_in
from crow.extensions.permissions.shell.wrapper import (
    EXACT,
    INTERPRETERS,
    LOOSE,
    SEEN_THROUGH,
    SHELLS,
    is_fixed,
    program,
    unwrap,
)

PLAIN_NAME = re.compile(r"[A-Za-z][\w+-]*")
MOVERS = frozenset({"cd", "pushd", "popd"})
FIND_ACTS = frozenset(
    {"-exec", "-execdir", "-ok", "-okdir", "-delete", "-fprint", "-fprint0", "-fprintf", "-fls"}
)


@dataclass(slots=True)
class Cover:
    """The allow rules. ``changed`` tells that a cd went before.

    ``fed`` tells that the command's input are names of files, which may be read. ``own`` are
    variables that the script itself sets. ``makes_files`` tells of a command that may make some,
    under any name.
    """

    paths: CommandPaths
    report: Report
    allow: Sequence[PermissionRule]
    changed: bool = False
    uses_git: bool = False
    uses_globs: bool = False
    makes_files: bool = False
    fed: Names = ""
    own: set[str] = field(default_factory=set[str])

    def command(self, words: tuple[Word, ...], cwds: Cwds) -> Cwds:
        """Find what lets a command through; note it where nothing does."""
        if not all(word.known for word in words):
            self.report.suspect("it has an expansion that needs a look")
        name = words[0].text
        self.show(secrets_in(words), words)
        if name is None or not is_fixed(words[0]):
            self.report.miss("the name of the program cannot be foreseen")
            return cwds
        if any(looks_special(word.bare) for word in words):
            self.report.suspect("it has characters that only look like the shell's")
        if name != "cd":
            self._find(words, name, cwds)
        inner = unwrapped(words)
        return self.change(inner, cwds) if inner[0].text in MOVERS else cwds

    def _find(self, words: tuple[Word, ...], name: str, cwds: Cwds) -> None:
        """Find what lets a command through that is no ``cd``."""
        if evaluates(words):
            if not self._may_source(words, cwds):
                self._note_builtin(words, name)
        elif not self.is_covered(words, cwds):
            self.report.miss(f"no rule allows {command_text(words)}")

    def show(self, names: Iterable[str], words: tuple[Word, ...] = ()) -> None:
        """Note variables that carry secrets; a rule for the command may name them."""
        for name in names:
            if name not in self.own and not any(
                re.search(rf"\b{name}\b", rule.text) and self.allows(rule, words)
                for rule in self.allow
                if rule.command is not None and words
            ):
                what = "the environment of a process" if name == ENVIRON else f"the variable {name}"
                self.report.secret = f"{what} may carry a secret"

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
        if any(self.paths.files.write(where, removed=True).kind == "allow" for where in places):
            return False
        self.report.rules.append(rule.text)
        self.makes_files = True
        self.paths.files.lookup.first += [where.path.rpartition("/")[0] for where in places]
        return True

    def _named_exactly(self, words: tuple[Word, ...]) -> PermissionRule | None:
        shapes = [word.shape for word in words]
        for rule in self.allow:
            pattern = rule.command
            if pattern is not None and pattern.exact and pattern.matches(shapes):
                return rule
        return None

    def _note_builtin(self, words: tuple[Word, ...], name: str) -> None:
        reason = f"{name} changes the shell or evaluates text"
        if may_hide(words):
            self.report.suspect(reason)
        else:
            self.report.miss(reason)

    def is_covered(
        self,
        words: tuple[Word, ...],
        cwds: Cwds,
        *,
        open_end: bool = False,
        outside: bool = False,
    ) -> bool:
        """Whether a rule, the list of reading commands or the mode lets a command through.

        ``outside`` of the shell another program starts it.
        """
        self.uses_git = self.uses_git or words[0].text == "git"
        for rule in self.allow:
            if rule.command is not None and self.allows(rule, words):
                self.report.rules.append(rule.text)
                self.makes_files = self.makes_files or not is_reading(words)
                return True
        if self.fed and words[0].text == "xargs" and (use := fed_use(words, self.fed)) is not None:
            fed = self._may_feed(words, cwds) and self.may_use(use, cwds)
            return fed and self._is_found(words, cwds, outside=outside)
        if (found := found_use(words)) is not None:
            return self._may_run_on_found(*found, cwds, outside=outside)
        for inner in unwrap(words):
            if inner.plain:
                more = (Word((Text(HOLE),)),) if inner.open else ()
                started = outside or words[0].text not in BUILT_IN
                if evaluates(inner.words) or inner.words[0].text == "cd":
                    return False
                return self._is_found(words[:1], cwds, outside=outside) and self.is_covered(
                    inner.words + more, cwds, open_end=inner.open, outside=started
                )
        fine = self._is_unasked(words, cwds, open_end=open_end)
        return fine and self._is_found(words, cwds, outside=outside)

    def _is_unasked(self, words: tuple[Word, ...], cwds: Cwds, *, open_end: bool) -> bool:
        """Whether the list of reading commands or the mode lets a command through."""
        if open_end:
            plain = words[:-1]
            return (
                self.only_reads(plain, cwds) and reads(plain) is not None and plain[0].text in INERT
            )
        return self.only_reads(words, cwds) or self.only_edits(words, cwds)

    def _is_found(self, words: Sequence[Word], cwds: Cwds, *, outside: bool = False) -> bool:
        """Whether the names of programs lead to those that everybody knows by them."""
        names = words[:1]
        if words[0].text == "xargs":
            names = [word for word in words if PLAIN_NAME.fullmatch(word.text or "")]
        for word in names:
            outside = outside or word is not words[0]
            fault = self.paths.files.lookup.fault(word.text or "", cwds, outside=outside)
            if fault is not None:
                self.report.miss(fault)
                return False
        return True

    def allows(self, rule: PermissionRule, words: tuple[Word, ...]) -> bool:
        """Whether an allow rule means a command."""
        pattern = rule.command
        assert pattern is not None
        shapes = [word.shape for word in words]
        if HOLE in shapes[0] or not (
            pattern.matches(shapes)
            or ("$" in pattern.text and pattern.matches([word.spelled for word in words]))
        ):
            return False
        return self._reaches(pattern, words)

    def spells_out(
        self, assignments: Sequence[Assignment], words: tuple[Word, ...]
    ) -> PermissionRule | None:
        """The allow rule that names a program and each variable before it, with its value."""
        if any(one.odd or one.value.text is None for one in assignments) or not all(
            word.known for word in words
        ):
            return None
        if evaluates(words) or words[0].text in {None, "cd"}:
            return None
        given = [f"{one.name}={one.value.shape}" for one in assignments]
        shapes = [*given, *(word.shape for word in words)]
        count = len(given)
        for rule in self.allow:
            pattern = rule.command
            if pattern is None or list(pattern.head[: count + 1]) != shapes[: count + 1]:
                continue
            if pattern.matches(shapes) and self._reaches(pattern, words, count):
                self.makes_files = self.makes_files or not is_reading(words)
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
        only = cwds[0] if len(cwds) == 1 else None
        use = reads([self.paths.resolved(word, only) for word in words])
        if use is not None and is_version(words) and not self._is_systems(words[0]):
            return False
        looked = words if words[0].text != "[[" else ()
        return use is not None and self.may_use(use, cwds) and self.paths.may_look(looked, cwds)

    def _is_systems(self, name: Word) -> bool:
        """Whether a program is the system's own, and none that picks another by the directory."""
        if self.paths.files.lookup.is_systems(name.text or ""):
            return True
        self.report.miss(f"{name.text} may be another program in each directory")
        return False

    def _may_run_on_found(
        self,
        search: tuple[Word, ...],
        inner: tuple[Word, ...],
        use: Use,
        cwds: Cwds,
        *,
        outside: bool,
    ) -> bool:
        """Whether a search only reads, and the command too to which what is found is given."""
        files, looked = self.paths.files, reads(search)
        if looked is None or files.has_read_limits or not self.only_reads(search, cwds):
            return False
        places = [where for word in looked.paths for where in self.paths.places(word, cwds)]
        if any(map(files.leads_out, places)):
            self.report.miss("it follows links, which may lead out of the working directories")
            return False
        found = self._is_found(search, cwds, outside=outside)
        return found and self._is_found(inner, cwds, outside=True) and self.may_use(use, cwds)

    def _may_feed(self, words: Sequence[Word], cwds: Cwds) -> bool:
        """Whether names of files reach a command whole, and none of them is denied."""
        files = self.paths.files
        whole = any(word.text in {"-0", "-0r", "-r0", "--null"} for word in words)
        for cwd in cwds:
            if cwd is None or files.leads_out(ResolvedPath(cwd, cwd)):
                return False
            if not whole and files.has_odd_names(cwd):
                return False
        return not files.has_read_limits

    def may_use(self, use: Use, cwds: Cwds) -> bool:
        """Whether all that a command reads may be read."""
        if not all(self.paths.may_read(word, cwds) for word in use.paths):
            return False
        if use.globs:
            self.uses_globs = True
            if any(cwd is None or self.paths.files.has_dashes(cwd) for cwd in cwds):
                self.report.miss("a file could be taken for an option")
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
        start, words = moved(words)
        if start is not None:
            there = self.paths.places(start, cwds)
            if start.globbed or len(there) != 1 or not self.paths.files.is_inside(there[0]):
                return False
            cwds = (there[0].path,)
        operands = reads_only(words)
        if operands is None or len(cwds) != 1 or cwds[0] is None:
            return False
        if not is_quiet(self.paths.files.disk, cwds[0]):
            self.report.miss("the settings of this git repository could run programs")
            return False
        return all(self.paths.may_read(word, cwds) for word in operands)

    def only_edits(self, words: tuple[Word, ...], cwds: Cwds) -> bool:
        """Whether a command only edits files, in a mode and at places where that is accepted."""
        is_edit = words[0].text in {*ACCEPTED, "sed"}
        done = edits(words) if self.paths.files.accepts and is_edit else None
        if done is None or not done.sure or not done.writes:
            return False
        if not all(self.paths.may_read(word, cwds) for word in done.reads):
            return False
        self.report.by_mode = True
        self.makes_files = True
        targets = placed(done) if words[0].text in {"mv", "cp"} else done.writes
        removed = words[0].text in {"rm", "rmdir"}
        return all(self.paths.writes(word, cwds, known=True, removed=removed) for word in targets)

    def change(self, words: tuple[Word, ...], cwds: Cwds) -> Cwds:
        """``cd``: where the next command runs, if that is a directory that is worked in."""
        operands = [word for word in words[1:] if word.text not in {"--", "-P", "-L", "-e", "-@"}]
        if not operands and words[0].text == "cd":
            operands = [Word.plain("~")]
        places = self.paths.places(operands[0], cwds) if len(operands) == 1 else []
        physical = any(word.text in {"-P", "-e", "-@"} for word in words[1:])
        if not places or operands[0].text == "-" or operands[0].globbed or physical:
            self.changed = True
            self.report.miss("cd to a directory that cannot be foreseen")
            return (None,)
        if {where.path for where in places} != set(cwds):
            self.changed = True
        for where in places:
            if not self.paths.files.is_inside(where):
                self.report.miss(f"cd leads out of the working directories, to {where.path}")
        return tuple(dict.fromkeys(where.path for where in places))


def is_version(words: Sequence[Word]) -> bool:
    """Whether a command asks a program for its version, which does everything else too."""
    found = program_of(words[0].text)
    return found is not None and found.operands == "version"


def is_reading(words: Sequence[Word]) -> bool:
    """Whether a command makes no files, whatever a rule says of it."""
    read = reads_only(words) if words[0].text == "git" else reads(words)
    return read is not None


def unwrapped(words: tuple[Word, ...]) -> tuple[Word, ...]:
    """The command behind ``command``, ``builtin`` and their like."""
    inner = next((one.words for one in unwrap(words) if one.plain), None)
    return words if inner is None else unwrapped(inner)


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


def command_text(words: Sequence[Word]) -> str:
    """A command as a person reads it."""
    text = " ".join(word.shape.replace(HOLE, "…") for word in words)
    return text if len(text) <= 80 else text[:79] + "…"
