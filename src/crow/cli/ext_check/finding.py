"""Something that is wrong with an extension, and what to do about it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from crow.core.support.frozen import frozen

PLACE = re.compile(r"\s*\((?P<path>[^()\s]+\.py):(?P<line>\d+)\)")

SLOW = " blocked everything for "


@frozen
class Finding:
    """``what`` is wrong at a line of a file, where that is known, and what to ``do``.

    ``steps`` are those that it takes.
    """

    what: str
    do: str = ""
    path: str = ""
    line: int = 0
    steps: tuple[str, ...] = ()

    @classmethod
    def of(cls, text: str, do: str = "") -> Finding:
        """One from a line with a place in it, as Crow's messages have."""
        found = PLACE.search(text)
        if found is None:
            return cls(text, do)
        what = text[: found.start()] + text[found.end() :]
        return cls(what, do, found["path"], int(found["line"]))

    @property
    def place(self) -> tuple[str, int]:
        """Where it is."""
        return self.path, self.line

    @property
    def is_slow(self) -> bool:
        """True for a hook that kept everybody waiting, which depends on the machine as well."""
        return SLOW in self.what

    def __str__(self) -> str:
        place = f"{self.path}:{self.line}: " if self.path else ""
        steps = "".join(f"\n    {step}" for step in self.steps)
        return f"{place}{self.what}{f'; {self.do}' if self.do else ''}{steps}"

    @property
    def table(self) -> dict[str, object]:
        """The same as a JSON object."""
        steps = {"steps": self.steps} if self.steps else {}
        return {
            "path": self.path, "line": self.line, "what": self.what, "do": self.do, **steps
        }  # fmt: skip


def read(text: str) -> Iterator[Finding]:
    """Findings that were written as lines of JSON."""
    for line in text.splitlines():
        table = json.loads(line)
        steps = tuple(table.pop("steps", ()))
        yield Finding(**table, steps=steps)
