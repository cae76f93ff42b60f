"""Looking for deny and ask rules in a command, and in all that it runs."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from crow.extensions.permissions.paths.bulk import Bulk, bulk
from crow.extensions.permissions.paths.command_paths import CommandPaths, Cwds
from crow.extensions.permissions.paths.disk import Disk, ResolvedPath, place
from crow.extensions.permissions.paths.files import Finding
from crow.extensions.permissions.paths.globbing import expand
from crow.extensions.permissions.paths.protected import is_critical
from crow.extensions.permissions.paths.trees import findings
from crow.extensions.permissions.programs.edits import Edits, edits, may_read
from crow.extensions.permissions.programs.git_contents import steers_git, without_git_options
from crow.extensions.permissions.programs.git_history import History
from crow.extensions.permissions.programs.table import Use
from crow.extensions.permissions.rules.rule import EDITORS, READERS, PermissionRule
from crow.extensions.permissions.shell.builtin import evaluates, may_hide
from crow.extensions.permissions.shell.deny_words import (
    checked_words,
    globs,
    makes_links,
    opened,
    parts_of,
    placeholders,
    settled,
)
from crow.extensions.permissions.shell.executed_files import FETCHERS, UNWRITTEN, runs, runs_code
from crow.extensions.permissions.shell.language import given
from crow.extensions.permissions.shell.report import Report
from crow.extensions.permissions.shell.script import HOLE, Text, Word
from crow.extensions.permissions.shell.wrapper import (
    INTERPRETERS,
    LOOSE,
    SHELLS,
    is_fixed,
    program,
    shell_texts,
    unwrap,
)

DEEPEST = 6
MOVING = {"env": ("-C", "--chdir"), "sudo": ("-D", "--chdir"), "git": ("-C",)}
PLACERS = frozenset({"ln", "cp", "install", "mv", "link"})
REMOVERS = frozenset({"rm", "rmdir", "unlink", "shred"})
UNNAMED = {"nohup": (Word.plain("nohup.out"),)}
"""What a program writes without being told to: this one where its output is a terminal."""
RUNS_TEXT = frozenset(
    {"vim", "vi", "nvim", "ex", "ed", "emacs", "tar", "rsync", "sqlite3", "make", "less", "zip"}
)


@dataclass(slots=True)
class Search:
    """The deny and ask rules. ``visit`` goes through a text that a shell is given.

    ``fed`` are texts that the command which is looked at has for its input. ``marks`` are what
    ``find`` and ``xargs`` put names of files for, ``loose`` those that need not begin with a path.
    ``trees`` are whole directories that commands work on: they are looked into last, and only
    where that matters.
    """

    paths: CommandPaths
    report: Report
    ask: Sequence[PermissionRule]
    deny: Sequence[PermissionRule]
    visit: Callable[[str, Cwds], None]
    depth: int = 0
    fed: tuple[Word, ...] = ()
    marks: tuple[str, ...] = ()
    loose: tuple[str, ...] = ()
    trees: list[tuple[Bulk, Cwds]] = field(default_factory=list[tuple[Bulk, Cwds]])
    carried: list[str] = field(default_factory=list[str])

    def command(self, words: tuple[Word, ...], cwds: Cwds, *, vague: bool = False) -> None:
        """Look for deny and ask rules in a command, and in all that it runs."""
        if self.depth > DEEPEST:
            return self.report.suspect("the command is nested too deeply")
        words = opened(words, self.loose)
        inside, name = self.moved(words, cwds), program(words[0])
        self.match_rules(words, vague=vague)
        self.note_made(words, cwds)
        if not vague:
            self.note_steered(words)
            for said in self.paths.spellings(words, inside):
                self.match_paths(*said)
            self.guard_removal(words, cwds)
            if self.depth and evaluates(words) and may_hide(words):
                self.report.suspect(f"{words[0].text} changes the shell or evaluates text")
        self.depth += 1
        for inner in unwrap(words):
            more = (Word((Text(HOLE),)),) if inner.open else ()
            before, marks = (self.marks, self.loose), placeholders(words, inner)
            self.marks += marks
            self.loose += marks if name == "xargs" else ()
            self.command(inner.words + more, inside, vague=vague or inner.vague)
            self.marks, self.loose = before
        if not vague:
            self.search_texts(words, cwds)
        elif name in SHELLS:
            self.guess_texts(words, cwds)
        self.look_for_programs(words, cwds, vague=vague)
        self.depth -= 1
        return None

    def note_steered(self, words: Sequence[Word]) -> None:
        """Git is told to do, or to look at, something else than its words say."""
        texts = [word.shape for word in words]
        if program(words[0]) == "git" and any(text.startswith("alias.") for text in texts):
            self.report.suspect("a command of git's gets another name")
        if self.paths.files.has_read_limits and any(map(steers_git, texts)):
            self.report.suspect("a variable may change which repository git shows")

    def note_made(self, words: tuple[Word, ...], cwds: Cwds) -> None:
        """Remember the files that a command gives a content, and those that it runs."""
        name, done = program(words[0]) or "", edits(words)
        if done is not None and name not in UNWRITTEN:
            for word in done.writes:
                self.paths.make(word, cwds)
        if name in FETCHERS:
            for word in words[1:]:
                if self.paths.places(word, cwds):
                    self.paths.make(word, cwds)
        patches = name == "git" and any(word.text in {"apply", "am"} for word in words[1:])
        self.paths.makes_any = (
            self.paths.makes_any or name == "patch" or (patches and self.fed != ())
        )
        for word in runs(words):
            self.paths.run(word, cwds)
        self.paths.runs_code = self.paths.runs_code or runs_code(words)

    def moved(self, words: tuple[Word, ...], cwds: Cwds) -> Cwds:
        """Where a command runs what it is given: ``env -C`` and its like go elsewhere first."""
        options = MOVING.get(program(words[0]) or "", ())
        for index, word in enumerate(words[1:], 1):
            text = word.shape
            for option in options:
                if text == option:
                    where = words[index + 1] if index + 1 < len(words) else Word.plain("-")
                elif text.startswith(option) and len(option) == 2:
                    where = Word.plain(text[2:])
                elif text.startswith(option + "="):
                    where = Word.plain(text[len(option) + 1 :])
                else:
                    continue
                return tuple(one.path for one in self.paths.places(where, cwds)) or (None,)
        return cwds

    def search_texts(self, words: tuple[Word, ...], cwds: Cwds) -> None:
        """Look into texts that a command has a shell evaluate."""
        for text in shell_texts(words):
            if text is None or any(mark in text for mark in self.marks):
                self.report.suspect("it has a shell run text that cannot be foreseen")
            self.visit(text or "", cwds)
        name = program(words[0])
        first = next((one.shape for one in words[1:] if not one.shape.startswith("-")), HOLE)
        unclear = first.startswith(HOLE) or any(one.shape.startswith("-" + HOLE) for one in words)
        if name in {"at", "batch"} or (name in SHELLS and unclear):
            self.report.suspect("a shell reads commands from its input")

    def look_for_programs(self, words: tuple[Word, ...], cwds: Cwds, *, vague: bool) -> None:
        """Look at what an interpreter runs: it may be unknown, or come as its input."""
        told = given([settled(self.paths.resolved(word, cwds[0])) for word in words])
        if told is None:
            return
        has_dashes = self.paths.files.has_dashes
        hidden = told.globbed and any(cwd is None or has_dashes(cwd) for cwd in cwds)
        hidden = hidden or any(mark in one.shape for one in told.texts for mark in self.marks)
        if told.hidden or hidden:
            self.report.suspect(f"it has {program(words[0])} run text that cannot be foreseen")
        if told.from_input and not vague:
            if not self.fed or any(HOLE in word.shape for word in self.fed):
                self.report.suspect(f"{program(words[0])} reads what it runs from its input")
            self.match_rules((*words, *self.fed), vague=False)
            if self.paths.files.has_read_limits:
                self._match_others((*words, *self.fed), cwds)

    def guess_texts(self, words: tuple[Word, ...], cwds: Cwds) -> None:
        """Look into texts that a shell may be given, somewhere else perhaps; a denial asks."""
        denied = self.report.deny
        for text in shell_texts(words):
            if text is None:
                self.report.suspect("it has a shell run text that cannot be foreseen")
            self.visit(text or "", cwds)
        if (found := self.report.deny) is not denied and found is not None:
            self.report.deny = denied
            self.report.note(Finding("ask", f"the rule {found.rule} may deny it", found.rule))

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
        self,
        rule: PermissionRule,
        spellings: list[list[str]],
        words: tuple[Word, ...],
        *,
        vague: bool,
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
        told = checked_words(words)
        if name in PLACERS and any(word.shape.endswith(f"bin/{pattern.head[0]}") for word in words):
            return True
        runs_text = name in RUNS_TEXT or name in LOOSE or INTERPRETERS.fullmatch(name)
        runs_text = runs_text or (name == "man" and len(words) > 2)
        before = (
            r"(?:(?<![\w-])|^-[A-Za-z])(?:\S*/)?" if runs_text else r"(?:^!|[!=|;&`(]\s*)(?:\S*/)?"
        )
        named = re.compile(rf"{before}{wanted}(?![\w-])")
        return any(
            named.search(word.shape) and (runs_text or word.shape != wanted) for word in told
        )

    def _matched(self, rule: PermissionRule, kind: str) -> None:
        if kind == "deny":
            self.report.note(Finding("deny", f"the rule {rule.text} denies it", rule.text))
        else:
            verb = "asks about it" if rule.behaviour == "ask" else "may deny it"
            self.report.note(Finding("ask", f"the rule {rule.text} {verb}", rule.text))

    def match_paths(self, words: tuple[Word, ...], cwds: Cwds) -> None:
        """Compare the files that a command names with the path rules."""
        done = edits(words)
        for word in done.writes if done is not None else UNNAMED.get(program(words[0]) or "", ()):
            self.paths.writes(word, cwds, known=False)
        self._note_links(words, done, cwds)
        whole = bulk(words)
        self.paths.carried += self.carried  # by the commands before
        self.carried = []
        if whole is not None:
            self.carried = self.paths.carry([*(to for _, to in whole.copied), *whole.filled], cwds)
        self.trees += [(whole, cwds)] if whole is not None else []
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

    def _note_links(self, words: tuple[Word, ...], done: Edits | None, cwds: Cwds) -> None:
        """Remember links that a command makes."""
        if done is not None and makes_links(words):
            for source in done.reads:
                for word in done.writes:
                    self.paths.link(source, word, cwds)

    def match_trees(self, *, may_run: bool) -> None:
        """Look into the directories that are copied, moved, removed or filled whole.

        Only where that can change what becomes of the command, which ``may_run`` so far.
        """
        limited = self.paths.files.has_write_limits
        for done, cwds in self.trees:
            if not (may_run and self.report.is_free) and not (limited and done.copied):
                continue
            for finding in findings(self.paths, done, cwds):
                if finding.kind in {"deny", "ask", "guard"} or self.report.by_mode:
                    self.report.note(finding)

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
                    self.note_hidden(where, EDITORS | READERS, large=False)

    def _match_others(self, words: tuple[Word, ...], cwds: Cwds) -> None:
        """A command that is not known for reading files, given one that may not be read."""
        name = program(words[0])
        if name in {"echo", "printf", "git"}:
            return self._match_revisions(words, cwds) if name == "git" else None
        for word in words[1:]:
            text = self.paths.resolved(word, cwds[0]).shape
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
        History(self.paths, self.report).match(words, cwds)

    def note_hidden(
        self, where: ResolvedPath, tools: frozenset[str] = READERS, *, large: bool = True
    ) -> None:
        """Look for what may not be read below a directory that is read whole."""
        hidden = self.paths.files.hides_denied(where, tools)
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
