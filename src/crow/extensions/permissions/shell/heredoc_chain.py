"""The rest of a line behind a here-document's mark, which the first parser misplaces: ``<<E|b``."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from crow.extensions.permissions.shell.script import Chain, Node

if TYPE_CHECKING:
    from tree_sitter import Node as Leaf

JOINTS = frozenset({"|", "&&", "||"})
JOINED = frozenset({*JOINTS, "pipeline"})
PARTS = frozenset({"heredoc_start", "heredoc_body", "heredoc_end"})


def continued(made: Node, node: Leaf, read: Callable[[Leaf], Node]) -> Node:
    """A command and all that is joined to it behind the mark, from the left."""
    op = ""
    for child in node.children:
        if child.type in JOINTS:
            op = child.type
        elif child.type == "pipeline" and child.children[0].type in JOINTS:
            made = _chained(made, "|", child, read)
        elif op and child.type not in PARTS:
            made = _chained(made, op, child, read)
    return made


def _chained(made: Node, op: str, node: Leaf, read: Callable[[Leaf], Node]) -> Node:
    wanted = "pipeline" if op == "|" else "list"
    if node.type != wanted:
        return Chain(op, made, read(node))
    for child in node.children:
        if child.type in JOINTS:
            op = child.type
        else:
            made = _chained(made, op, child, read)
    return made
