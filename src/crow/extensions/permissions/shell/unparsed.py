"""Text that the first parser passed over: what it does not show could be a command."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Node as Leaf

BLANK = re.compile(rb"(?:[ \t\n]|(?<=[ \t])\\\n(?![ \t]*\n))*")
LEAVES = frozenset({"heredoc_body", "string", "raw_string"})
PASSED_OVER = "the parser passed over a part of the command"


def gap_fault(root: Leaf, source: bytes) -> str | None:
    """Name text that the parser passed over although it is no blank."""
    position = 0
    for start, end in _leaves(root):
        if start < position:
            continue
        if start > position and not is_gap(source, position, start):
            return PASSED_OVER
        position = end
    return None if BLANK.fullmatch(source, position, len(source)) else PASSED_OVER


def is_gap(source: bytes, start: int, end: int) -> bool:
    """Whether nothing stands there, or a ``-`` before a here-document, which the reader adds."""
    return BLANK.fullmatch(source, start, end) is not None or is_lost_dash(source, start, end)


def is_lost_dash(source: bytes, start: int, end: int) -> bool:
    """Whether a lone ``-`` stands between a command and a here-document."""
    return source.startswith(b"<<", end) and source[start:end].strip(b" \t") == b"-"


def _leaves(root: Leaf) -> Iterator[tuple[int, int]]:
    waiting = [root]
    while waiting:
        node = waiting.pop()
        children = node.children
        if node.type in LEAVES or not children:
            yield node.start_byte, node.end_byte
        else:
            waiting.extend(reversed(children))
