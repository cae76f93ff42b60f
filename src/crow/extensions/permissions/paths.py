"""Words of a command as paths: where they lead, and what the path rules say about that."""

from __future__ import annotations

import re
from dataclasses import dataclass

from crow.extensions.permissions.disk import Place, place
from crow.extensions.permissions.files import Files, Finding
from crow.extensions.permissions.globbing import expand
from crow.extensions.permissions.report import Report
from crow.extensions.permissions.script import HOLE, Word

Cwds = tuple[str | None, ...]
SINKS = frozenset(
    {"/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty", "/dev/zero", "/dev/stdin"}
)


@dataclass(slots=True)
class Paths:
    """The path rules, and the report that findings go into.

    ``Cwds`` are the directories that a command may run in; None is one that cannot be foreseen.
    """

    files: Files
    report: Report

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

    def may_read(self, word: Word, cwds: Cwds) -> bool:
        """Whether everything that a word may mean may be read."""
        if word.piped or word.text == "-" or (word.text is not None and word.text in SINKS):
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

    def note_refusal(self, finding: Finding) -> None:
        """Keep a finding only where it refuses."""
        if finding.kind in {"deny", "ask"} or (
            finding.kind == "guard" and self.files.has_read_limits
        ):
            self.report.note(finding)
