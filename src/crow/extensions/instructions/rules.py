"""Files of a folder of rules: which of them hold for everything, and which for certain files."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, cast

from crow.project import FrontMatter

SUFFIXES = (".md", ".mdc")
MOST = 200
"""Files of one folder that are looked at."""
LONGEST_DESCRIPTION = 300
LONGEST_HEAD = 10_000
"""Characters of a rule in which its front matter ends."""


class RuleFile(NamedTuple):
    """A file of a folder of rules: for files that fit ``patterns``, None for all.

    One without patterns that is not for all is offered by its ``description``, where it has one.
    """

    path: Path
    patterns: tuple[str, ...] | None
    description: str = ""

    @classmethod
    def of(cls, path: Path) -> RuleFile:
        """What the front matter of a file says; one that cannot be read is for no file."""
        try:
            with path.open(encoding="utf-8-sig", errors="replace") as opened:
                table = FrontMatter.parse(opened.read(LONGEST_HEAD)).table
        except OSError:
            return cls(path, ())
        patterns = tuple(_listed(table.get("paths")) + _listed(table.get("globs")))
        is_cursors = path.suffix == ".mdc" or "alwaysApply" in table
        if not is_cursors:
            return cls(path, patterns or None)
        told = " ".join(str(table.get("description") or "").split())[:LONGEST_DESCRIPTION]
        return cls(path, None if table.get("alwaysApply") is True else patterns, told)

    @property
    def is_offered(self) -> bool:
        """True for one that the model may choose to read."""
        return self.patterns == () and bool(self.description)

    def holds_for(self, path: str, top: Path) -> bool:
        """True for a file below a folder of which it holds, whether it names patterns or not."""
        return self.patterns is None or self.fits(path, top)

    def fits(self, path: str, top: Path) -> bool:
        """True for a file below a folder that a pattern is for."""
        from pathspec import GitIgnoreSpec

        if not Path(path).is_relative_to(top):
            return False
        within = Path(path).relative_to(top).as_posix()
        return GitIgnoreSpec.from_lines(self.patterns or ()).match_file(within)


def rules_in(folder: Path) -> list[RuleFile]:
    """The rules in a folder and those below it, by their paths."""
    found = (each for each in folder.rglob("*") if each.suffix in SUFFIXES)
    return list(map(RuleFile.of, sorted(islice(filter(Path.is_file, found), MOST))))


def _listed(value: object) -> list[str]:
    """Patterns as a list, or as a text with commas."""
    if isinstance(value, str):
        return [each.strip() for each in value.split(",") if each.strip()]
    return [str(each) for each in cast("list[Any]", value)] if isinstance(value, list) else []
