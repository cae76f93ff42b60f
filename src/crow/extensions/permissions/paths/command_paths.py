"""The paths in a command's words: where they lead, and what the path rules say about that."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from crow.extensions.permissions.paths.disk import ResolvedPath, inside, place
from crow.extensions.permissions.paths.files import Files, Finding
from crow.extensions.permissions.paths.globbing import MOST, expand
from crow.extensions.permissions.programs.lookup import Cwds
from crow.extensions.permissions.shell.executed_files import CODE
from crow.extensions.permissions.shell.report import Report
from crow.extensions.permissions.shell.script import (
    HOLE,
    Node,
    Part,
    Text,
    Variable,
    Word,
    walk,
    words_of,
)

KNOWN = frozenset({"HOME", "PWD", "TMPDIR", "USER", "LOGNAME"})
ELSEWHERE = re.compile(r"[/~].*[*?\[]|[*?\[].*/", re.DOTALL)
PLAIN = re.compile(r"[\w./@%+:,-]+")
SINKS = frozenset(
    {"/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty", "/dev/zero", "/dev/stdin"}
)


def holds_globs(script: Node) -> bool:
    """Whether a text in a script would be a glob that leads somewhere, were it not quoted there."""
    words = [word for node in walk(script) for word in words_of(node)]
    texts = [part.value for word in words for part in word.parts if isinstance(part, Text)]
    return any(map(ELSEWHERE.search, texts))


def _may_become_a_glob(word: Word) -> bool:
    return any(
        not part.quoted and not (isinstance(part, Variable) and part.name in KNOWN)
        for part in word.parts
        if not isinstance(part, Text)
    )


@dataclass(slots=True)
class CommandPaths:
    """The path rules, and the report that findings go into.

    ``linked`` are links that an earlier part of the command makes, with where they lead. ``made``
    are files that get a content, ``ran`` those that are run; any may be where ``makes_any``. With
    ``runs_code`` a file of somebody's language may be run though nothing names it;
    with ``holds_globs`` a variable may be a glob once it is expanded.
    """

    files: Files
    report: Report
    linked: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    carried: list[str] = field(default_factory=list[str])
    moves_git: bool = False
    made: list[ResolvedPath] = field(default_factory=list[ResolvedPath])
    ran: list[ResolvedPath] = field(default_factory=list[ResolvedPath])
    makes_any: bool = False
    runs_any: bool = False
    runs_code: bool = False
    holds_globs: bool = False

    def places(self, word: Word, cwds: Cwds) -> list[ResolvedPath]:
        """Where a word may lead; none where that cannot be foreseen."""
        found: list[ResolvedPath] = []
        for cwd in cwds:
            texts = self._texts(self.resolved(word, cwd), cwd)
            if not texts:
                return []
            found += [place(self.files.disk, cwd or "/", one) for one in texts]
        return [*found, *self._through_links(found)] if self.linked else found

    def carry(self, targets: Sequence[Word], cwds: Cwds) -> list[str]:
        """The directories that a command fills: links may have come along."""
        self.moves_git = self.moves_git or bool(targets)
        return [where.path for target in targets for where in self.places(target, cwds)]

    def _is_carried(self, places: Sequence[ResolvedPath]) -> bool:
        found = any(
            where.path != made and inside(where.path, made)
            for where in places
            for made in self.carried
        )
        if found:
            self.report.miss("links may lie where the same command puts a directory")
        return found

    def link(self, source: Word, name: Word, cwds: Cwds) -> None:
        """Remember a link that the command makes: what is named below it leads elsewhere."""
        names = [one.path for one in self.places(name, cwds)]
        for cwd in cwds:
            for start in {cwd, *(posixpath.dirname(one) for one in names)}:
                last = posixpath.basename((source.text or "").rstrip("/"))
                for where in self.places(source, (start,)):
                    for one in names:
                        self.linked += [(one, where.path), (f"{one}/{last}", where.path)]

    def _through_links(self, places: list[ResolvedPath]) -> Iterator[ResolvedPath]:
        for where in places:
            for name, target in self.linked:
                if where.path != name and inside(where.path, name):
                    yield place(self.files.disk, "/", target + where.path[len(name) :])

    def _texts(self, word: Word, cwd: str | None) -> list[str]:
        """The paths that a word stands for in a directory; none where that cannot be foreseen."""
        text = word.text
        if text is None or HOLE in text:
            return []
        if word.bare[:1] == "~":
            home = self._home(word, text.split("/")[0], cwd)
            if home is None:
                return []
            text = home + text[len(text.split("/")[0]) :]
        elif text.startswith("~"):
            text = "./" + text
        if cwd is None and not text.startswith(("/", "~")):
            return []
        return self._expanded(text, cwd) if word.globbed else [text]

    def _home(self, word: Word, prefix: str, cwd: str | None) -> str | None:
        """What a word's ``~`` or ``~user`` stands for."""
        first = word.parts[0]
        if not isinstance(first, Text) or not (len(word.parts) == 1 or "/" in first.value):
            return None
        if prefix in {"~", "~+"}:
            return prefix if prefix == "~" else cwd
        return self.files.disk.home_of(prefix[1:])

    def spellings(
        self, words: Sequence[Word], cwds: Cwds
    ) -> Iterator[tuple[tuple[Word, ...], Cwds]]:
        """A command with its variables resolved, and the directories in which it says that."""
        if len(cwds) == 1:
            yield tuple([self.resolved(word, cwds[0]) for word in words]), cwds
            return
        found: dict[tuple[Word, ...], Cwds] = {}
        for cwd in cwds:
            said = tuple(self.resolved(word, cwd) for word in words)
            found[said] = (*found.get(said, ()), cwd)
        yield from found.items()

    def resolved(self, word: Word, cwd: str | None) -> Word:
        """A word with the variables in it that lead to known directories."""
        if word.text is not None or word.braced:
            return word
        return Word.of([self._value(part, cwd) for part in word.parts])

    def _value(self, part: Part, cwd: str | None) -> Part:
        if not isinstance(part, Variable) or part.name not in KNOWN:
            return part
        value = cwd if part.name == "PWD" else self.files.disk.variable(part.name)
        if not value or not (part.quoted or PLAIN.fullmatch(value)):
            return part
        return Text(value, quoted=True)

    def may_look(self, words: Sequence[Word], cwds: Cwds) -> bool:
        """Whether the shell may look for the names that globs among words stand for.

        It does so whatever the program makes of them: ``echo ~/.ssh/*`` shows what is there.
        """
        if self.holds_globs and any(map(_may_become_a_glob, words)):
            self.report.miss("a variable in it may stand for names elsewhere")
            return False
        globs = [(word, cwd) for word in words if word.globbed for cwd in cwds]
        return all(
            self._may_list(self._texts(self.resolved(*one), one[1]), one[1]) for one in globs
        )

    def _may_list(self, found: Sequence[str], cwd: str | None) -> bool:
        """Whether the directories may be read in which a glob, expanded, found names."""
        if not 0 < len(found) <= MOST:
            self.report.miss("a path in it cannot be foreseen")
            return False
        folders = {found[0], *(posixpath.dirname(name.rstrip("/")) or "." for name in found[1:])}
        places = [place(self.files.disk, cwd or "/", folder) for folder in sorted(folders)]
        return all(self.report.note(self.files.read(where, deep=True)) for where in places)

    def expanded(self, word: Word, cwds: Cwds) -> list[str]:
        """The names that a glob stands for now, and the directory that it looks in."""
        return [one for cwd in cwds for one in self._expanded(word.text or "", cwd)]

    def _expanded(self, text: str, cwd: str | None) -> list[str]:
        found = expand(self.files.disk, cwd or "/", text)
        fixed = re.split(r"[*?\[]", text, maxsplit=1)[0].rpartition("/")
        return [(fixed[0] or fixed[1]) or ".", *found]

    def may_read(self, word: Word, cwds: Cwds) -> bool:
        """Whether everything that a word may mean may be read."""
        if word.piped or word.text == "-" or (word.text is not None and word.text in SINKS):
            return True
        places = self.places(word, cwds)
        if not places:
            self.report.miss("a path in it cannot be foreseen")
            return False
        if self._is_carried(places):
            return False
        return all(self.report.note(self.files.read(where, deep=True)) for where in places)

    def writes(self, word: Word, cwds: Cwds, *, known: bool, removed: bool = False) -> bool:
        """Whether everything that a word may mean may be written, or ``removed``.

        With ``known`` false only refusals and protected paths are noted.
        """
        if word.text in SINKS:
            return True
        self.report.writes = self.report.writes or known
        places = self.places(word, cwds)
        if not places and known:
            self.report.miss("a path in it cannot be foreseen")
        fine = bool(places) and not self._is_carried(places)
        for where in places:
            names = {name.casefold() for name in where.path.split("/")[-2:]}
            self.moves_git = self.moves_git or not names.isdisjoint({"head", ".git"})
            finding = self.files.write(where, removed=removed)
            lookup = self.files.lookup
            lookup.written = lookup.written or any(map(lookup.holds, where.names))
            if known or finding.kind in {"deny", "ask", "guard"}:
                fine = self.report.note(finding) and fine
        return fine

    def make(self, word: Word, cwds: Cwds) -> None:
        """Remember a file that gets a content."""
        places = self.places(word, cwds)
        self.made += [where for where in places if where.path not in SINKS]
        self.makes_any = self.makes_any or not places

    def run(self, word: Word, cwds: Cwds) -> None:
        """Remember a file that is run."""
        places = self.places(word, cwds)
        self.ran += places
        self.runs_any = self.runs_any or not places

    def runs_made(self) -> bool:
        """Whether a file is run that the same command may have written."""
        if (self.makes_any and (self.ran or self.runs_any)) or (self.made and self.runs_any):
            return True
        made = {name for where in self.made for name in (where.path, where.real) if name}
        if self.runs_code and any(map(CODE.fullmatch, made)):
            return True
        ran = {name for where in self.ran for name in (where.path, where.real) if name}
        return any(inside(one, other) for one in ran for other in made)

    def note_refusal(self, finding: Finding) -> None:
        """Keep a finding only where it refuses."""
        if finding.kind in {"deny", "ask"} or (
            finding.kind == "guard" and self.files.has_read_limits
        ):
            self.report.note(finding)
