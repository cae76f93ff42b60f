"""A search of Grep's, and the lines of its answer, whoever searches."""

from __future__ import annotations

from typing import Literal

from crow.core.support.frozen import frozen

Mode = Literal["content", "files_with_matches", "count"]
Line = tuple[str, str]
"""The file's name as seen from the searched folder, and the rest with its separator."""


@frozen
class Search:
    """A search: what is sought, where, and how the answer shall look."""

    pattern: str
    path: str
    glob: str
    type: str
    mode: Mode
    ignores_case: bool
    shows_numbers: bool
    before: int
    after: int
    spans_lines: bool
