"""Changed files as version 2 tells of them: what happened to which path, and a git patch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from crow.acp.jsonrpc import Message
from crow.core.calls import Diff

NOTHING = "/dev/null"


def diff(changes: Sequence[Diff]) -> Message:
    """Changes on a card."""
    patch = "".join(map(git_patch, changes))
    listed = {"type": "diff", "changes": [change(each) for each in changes]}
    return {**listed, "patch": {"format": "git_patch", "text": patch}} if patch else listed


def change(each: Diff) -> Message:
    """What happened to a file."""
    operation = "add" if each.old is None else "modify"
    return {"operation": operation, "path": each.path, "fileType": "text"}


def git_patch(each: Diff) -> str:
    """One file's part of a patch; empty where nothing is different."""
    hunks = list(_hunks(each.old or "", each.new))
    if not hunks and each.old is not None:
        return ""
    path = each.path.lstrip("/")
    head = [f"diff --git a/{path} b/{path}"]
    if each.old is None:
        head.append("new file mode 100644")
    if hunks:
        head += [f"--- {NOTHING if each.old is None else f'a/{path}'}", f"+++ b/{path}"]
    return "\n".join([*head, *hunks]) + "\n"


def _hunks(old: str, new: str) -> Iterator[str]:
    """The lines of the hunks."""
    from crow.tools.patch import hunks

    for hunk in hunks(old, new):
        before = _range(hunk["oldStart"], hunk["oldLines"])
        yield f"@@ -{before} +{_range(hunk['newStart'], hunk['newLines'])} @@"
        yield from hunk["lines"]


def _range(start: int, count: int) -> str:
    """Lines as git writes them: none are those after the line before."""
    return f"{start if count else start - 1},{count}"
