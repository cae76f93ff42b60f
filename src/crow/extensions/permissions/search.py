"""Looking for deny and ask rules in a command, and in all that it runs."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from crow.extensions.permissions import builtin
from crow.extensions.permissions.disk import Disk, Place, place
from crow.extensions.permissions.edits import edits, may_read
from crow.extensions.permissions.files import Finding
from crow.extensions.permissions.globbing import expand
from crow.extensions.permissions.paths import Cwds, Paths
from crow.extensions.permissions.programs import Use
from crow.extensions.permissions.protected import is_critical
from crow.extensions.permissions.report import Report
from crow.extensions.permissions.rule import Rule
from crow.extensions.permissions.script import HOLE, Text, Word
from crow.extensions.permissions.wrapper import (
    INTERPRETERS,
    LOOSE,
    SHELLS,
    is_fixed,
    program,
    shell_texts,
    unwrap,
)

DEEPEST = 6
PLACERS = frozenset({"ln", "cp", "install", "mv", "link"})
PATH_LIKE = re.compile(r"[\w./~-]*[./][\w./~-]*")
SCRIPTED_PATH = re.compile(r"[rRwW]\s*([\w./~-]*[./][\w./~-]*)")
REMOVERS = frozenset({"rm", "rmdir", "unlink", "shred"})
GIT_VALUED = frozenset({"-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path"})
RUNS_TEXT = frozenset(
    {"vim", "vi", "nvim", "ex", "ed", "emacs", "tar", "rsync", "sqlite3", "make", "less", "zip"}
)


@dataclass(slots=True)
class Search:
    """The deny and ask rules. ``visit`` goes through a text that a shell is given."""

    paths: Paths
    report: Report
    ask: Sequence[Rule]
    deny: Sequence[Rule]
    visit: Callable[[str, Cwds], None]
    depth: int = 0

    def command(self, words: tuple[Word, ...], cwds: Cwds, *, vague: bool = False) -> None:
        """Look for deny and ask rules in a command, and in all that it runs."""
        if self.depth > DEEPEST:
            return self.report.suspect("the command is nested too deeply")
        self.match_rules(words, vague=vague)
        if not vague:
            if program(words[0]) == "git" and any(w.shape.startswith("alias.") for w in words):
                self.report.suspect("a command of git's gets another name")
            self.match_paths(words, cwds)
            self.guard_removal(words, cwds)
            if self.depth and builtin.evaluates(words) and builtin.may_hide(words):
                self.report.suspect(f"{words[0].text} changes the shell or evaluates text")
        self.depth += 1
        for inner in unwrap(words):
            more = (Word((Text(HOLE),)),) if inner.open else ()
            self.command(inner.words + more, cwds, vague=vague or inner.vague)
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
                self.visit(text, cwds)
        name = program(words[0])
        operands = [word for word in words[1:] if not (word.text or "-").startswith("-")]
        if name in {"at", "batch"} or (name in SHELLS and not operands):
            self.report.suspect("a shell reads commands from its input")

    def match_rules(self, words: tuple[Word, ...], *, vague: bool) -> None:
        """Compare a command with the deny and ask rules."""
        name = words[0]
        if not is_fixed(name) or not (name.text or "").isascii():
            return self.report.suspect("the name of the program cannot be foreseen")
        shapes = [word.shape for word in words]
        spellings = [shapes, [program(name) or "", *shapes[1:]]]
        if spellings[1][0] == "git":
            spellings.append(without_git_options(spellings[1]))
        lower = spellings[1][0].lower()
        others = [[lower, *shapes[1:]]] if lower != spellings[1][0] else []
        for rules, kind in ((self.deny, "deny"), (self.ask, "ask")):
            for rule in rules:
                if rule.command is None:
                    continue
                if any(rule.command.matches(one) for one in spellings):
                    self._matched(rule, "ask" if vague else kind)
                elif self._may_match(rule, spellings, words, vague=vague) or any(
                    map(rule.command.matches, others)
                ):
                    self._matched(rule, "ask")
        return None

    def _may_match(
        self, rule: Rule, spellings: list[list[str]], words: tuple[Word, ...], *, vague: bool
    ) -> bool:
        pattern = rule.command
        assert pattern is not None
        if vague:
            return False
        globbed = any(word.globbed for word in words) and globs(words, pattern.words)
        if any(pattern.may_match(one) or pattern.resembles(one) for one in spellings):
            return True
        if globbed and any(
            pattern.may_match(
                [HOLE if w.globbed else text for w, text in zip(words, one, strict=False)]
            )
            for one in spellings[:2]
        ):
            return True
        if not pattern.head:
            return False
        name, wanted = spellings[1][0], re.escape(pattern.head[0])
        if name in PLACERS and any(word.shape.endswith(f"bin/{pattern.head[0]}") for word in words):
            return True
        runs_text = name in RUNS_TEXT or name in LOOSE or INTERPRETERS.fullmatch(name)
        runs_text = runs_text or (name == "man" and len(words) > 2)
        before = (
            r"(?:(?<![\w-])|^-[A-Za-z])(?:\S*/)?" if runs_text else r"(?:^!|[!=|;&`(]\s*)(?:\S*/)?"
        )
        named = re.compile(rf"{before}{wanted}(?![\w-])")
        return any(
            named.search(word.shape) and (runs_text or word.shape != wanted) for word in words[1:]
        )

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
                self.paths.writes(word, cwds, known=False)
        if not self.paths.files.has_read_limits:
            return
        found = may_read(words)
        if found is not None:
            self._match_reads(found, cwds)
        name = program(words[0]) or ""
        if found is None or name == "sed" or name in RUNS_TEXT or INTERPRETERS.fullmatch(name):
            self._match_others(words, cwds)
        if name in {"mv", "rm"} and done is not None:
            self._match_moved(done.writes, cwds)
        if any((word.text or "").startswith("--files0-from") for word in words):
            self.report.suspect("it reads files that a file names")

    def _match_reads(self, use: Use, cwds: Cwds) -> None:
        for word in use.paths:
            places = self.paths.places(word, cwds)
            if not places and not word.piped:
                self.report.suspect("a file that it reads cannot be foreseen")
            for where in places:
                self.paths.note_refusal(self.paths.files.read(where, deep=True))
                if use.deep and self.paths.files.disk.is_dir(where.path):
                    self.note_hidden(where)
                    if use.follows and self.paths.files.leads_out(where):
                        self.report.suspect("it follows links, which may lead to a denied file")

    def _match_moved(self, paths: Sequence[Word], cwds: Cwds) -> None:
        """A directory that is moved away or removed, with what must not be touched in it."""
        for word in paths:
            for where in self.paths.places(word, cwds):
                if self.paths.files.disk.is_dir(where.path):
                    self.note_hidden(where, large=False)

    def _match_others(self, words: tuple[Word, ...], cwds: Cwds) -> None:
        """A command that is not known for reading files, given one that may not be read."""
        name = program(words[0])
        if name in {"echo", "printf", "git"}:
            return self._match_revisions(words, cwds) if name == "git" else None
        for word in words[1:]:
            text = word.shape
            if not re.search(r"[/.]", text):
                continue
            for part in parts_of(text):
                for where in self.paths.places(Word.plain(part), cwds):
                    finding = self.paths.files.read(where)
                    if finding.kind in {"deny", "ask"} and self.paths.files.disk.exists(where.path):
                        self.report.note(Finding("ask", finding.reason, finding.rule))
        return None

    def _match_revisions(self, words: tuple[Word, ...], cwds: Cwds) -> None:
        if "grep" in {word.text for word in words[1:4]}:
            for where in self.paths.places(Word.plain("."), cwds):
                self.note_hidden(where)
        for word in words[2:]:
            for part in (word.text or "").split(":"):
                if part and not part.startswith("-"):
                    for where in self.paths.places(Word.plain(part), cwds):
                        self.paths.note_refusal(self.paths.files.read(where))

    def note_hidden(self, where: Place, *, large: bool = True) -> None:
        """Look for what may not be read below a directory that is read whole."""
        hidden = self.paths.files.hides_denied(where)
        if hidden is True:
            if large:
                self.report.suspect(f"{where.path} is too large to look for what may not be read")
        elif hidden is not None:
            text = f"the rule {hidden} speaks of something in {where.path}"
            self.report.note(Finding("ask", text, hidden))

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
                self.critical(f"{name} would remove a path that cannot be foreseen")
            elif None in cwds:
                self.critical(
                    f"{name} would remove something in a directory that cannot be foreseen"
                )
            else:
                self._guard_target(name, word, tuple(cwd for cwd in cwds if cwd))

    def _guard_target(self, name: str, word: Word, cwds: tuple[str, ...]) -> None:
        text = word.text or ""
        if text.startswith("~") and text != "~" and not text.startswith("~/"):
            self.critical(f"{name} would remove a home directory")
        kept = (*cwds, self.paths.files.cwd, self.paths.files.base)
        for cwd in cwds:
            for one in removed(self.paths.files.disk, cwd, text) if word.globbed else [text]:
                where = place(self.paths.files.disk, cwd, one)
                if is_critical(self.paths.files.disk, where, kept):
                    self.critical(f"{name} would remove {where.path}")

    def critical(self, reason: str) -> None:
        """Keep a removal that only the user may approve."""
        self.report.critical = self.report.critical or reason


def removed(disk: Disk, cwd: str, text: str) -> list[str]:
    """What the removal of a glob removes: a whole directory where it matches all that is in it."""
    segments = text.split("/")
    first = next(i for i, one in enumerate(segments) if re.search(r"[*?\[]", one))
    head = "/".join(segments[:first])
    head = head or ("/" if text.startswith("/") else ".")
    if head == "/" or not re.sub(r"\[[^\]]*\]|[*?.]", "", segments[first]):
        return [head]
    return expand(disk, cwd, text)


def parts_of(text: str) -> set[str]:
    """All in a text that may be a path; what follows an unknown part may be below the cwd."""
    found = {text, *PATH_LIKE.findall(text), *SCRIPTED_PATH.findall(text)}
    if HOLE in text:
        found |= {part.lstrip("/") for part in found}
    return {part for part in found if part and HOLE not in part}


def globs(words: Sequence[Word], wanted: Sequence[str]) -> bool:
    """Whether a glob among words could stand for a literal word of a rule."""
    for word in words:
        if word.globbed:
            expression = wildcards(word.shape)
            if any(expression.fullmatch(one) for one in wanted if "*" not in one):
                return True
    return False


def wildcards(text: str) -> re.Pattern[str]:
    """A glob of the shell, taken generously."""
    return re.compile(
        "".join(".*" if one in "*?[]" or one == HOLE else re.escape(one) for one in text), re.DOTALL
    )


def without_git_options(words: list[str]) -> list[str]:
    """``git -C dir push`` as ``git push``."""
    index = 1
    while index < len(words) and words[index].startswith("-"):
        index += 2 if words[index] in GIT_VALUED else 1
    return [words[0], *words[index:]]
