"""Git commands that show contents, where something may not be read: of today, or of all history."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from crow.dataclasses import frozen
from crow.extensions.permissions.paths.command_paths import CommandPaths
from crow.extensions.permissions.paths.disk import ResolvedPath, inside, place
from crow.extensions.permissions.paths.files import Finding
from crow.extensions.permissions.programs.git_contents import (
    HERE,
    Shown,
    contents_shown,
    leads_away,
    repository,
    settings,
    sources,
    tracked,
    without_git_options,
)
from crow.extensions.permissions.programs.lookup import Cwds
from crow.extensions.permissions.shell.report import Report
from crow.extensions.permissions.shell.script import Word

CHECKS_OUT = frozenset(
    "checkout restore reset switch read-tree merge pull rebase cherry-pick revert stash".split()
)


@frozen
class History:
    """Compares what git shows with the deny and ask rules for reading."""

    paths: CommandPaths
    report: Report

    def match(self, words: Sequence[Word], cwds: Cwds) -> None:
        """Note what a git command could show though it may not be read."""
        texts = without_git_options([word.shape for word in words])
        options, rest = words[1 : 1 - len(texts)], words[len(words) - len(texts) + 1 :]
        plain = (words[0], *rest)
        self._match_sources(sources(plain), cwds)
        if any(leads_away(*each) for each in settings(options)):
            self._match_sources((HERE,), cwds)
        found = contents_shown(plain, [self._exists(word, cwds) for word in plain])
        moved = any(word.shape.startswith(("--git-dir", "--work-tree")) for word in options)
        if found is None and moved and plain[1:] and plain[1].text in CHECKS_OUT:
            found = Shown(unclear=True)
        if found is None:
            return
        if moved or None in cwds:
            self.report.suspect("it cannot be told which repository git shows")
        for cwd in cwds:
            top = repository(self.paths.files.disk, cwd) if cwd else None
            if cwd and top:
                self._judge(found, cwd, top)

    def _match_sources(self, copied: Sequence[Word], cwds: Cwds) -> None:
        """A repository that is copied, with what may not be read in it."""
        disk = self.paths.files.disk
        for word in copied:
            places = self.paths.places(word, cwds)
            if not places:
                self.report.suspect("it cannot be told which repository git copies")
            for where in places:
                top = repository(disk, where.path) if disk.is_dir(where.path) else None
                if top:
                    self._judge(Shown(), where.path, top)

    def _exists(self, word: Word, cwds: Cwds) -> bool:
        disk = self.paths.files.disk
        return any(disk.exists(where.path) for where in self.paths.places(word, cwds))

    def _judge(self, found: Shown, cwd: str, top: str) -> None:
        files = self.paths.files
        for name in found.objects:
            for start in (cwd, top):
                self.paths.note_refusal(files.read(place(files.disk, start, name)))
        for area in self._areas(found, cwd, top):
            if files.limits.blocks_reads and not files.is_inside(ResolvedPath(area, area)):
                self.report.suspect(f"git shows all of {area}")
            rules = files.denials_below(area)
            if rules and (not found.current or self._is_tracked(top, area)):
                text = f"git could show what the rule {rules[0].text} speaks of"
                self.report.note(Finding("ask", text, rules[0].text))

    def _areas(self, found: Shown, cwd: str, top: str) -> Iterator[str]:
        """The directories of which git may show anything."""
        if found.unclear or not (found.paths or found.objects):
            yield top
        for word in found.paths:
            for where in self.paths.places(word, (cwd,)) or [ResolvedPath(top, top)]:
                self.paths.note_refusal(self.paths.files.read(where))
                if self.paths.files.disk.is_dir(where.path):
                    yield where.real or where.path

    def _is_tracked(self, top: str, area: str) -> bool:
        """Whether git tracks a file below a directory that may not be read, or may."""
        names = tracked(self.paths.files.disk, top)
        if names is None:
            return True
        paths = (f"{top.rstrip('/')}/{name}" for name in names)
        return any(
            self.paths.files.read(ResolvedPath(path, path)).kind in {"deny", "ask"}
            for path in paths
            if inside(path, area)
        )
