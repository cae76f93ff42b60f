"""Changed files as version 2 tells of them: what happened to which path, and a git patch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from crow.core.tools import Diff

if TYPE_CHECKING:
    import crow.acp.v2.outgoing as v2

NOTHING = "/dev/null"


def diff(changes: Sequence[Diff]) -> v2.ToolCallContentDiff:
    """Changes on a card."""
    files = {each.path: [one for one in changes if one.path == each.path] for each in changes}
    patch = "".join(map(git_patch, files.values()))
    listed: v2.ToolCallContentDiff = {
        "type": "diff",
        "changes": [change(parts[0]) for parts in files.values()],
    }
    return {**listed, "patch": {"format": "git_patch", "text": patch}} if patch else listed


def change(each: Diff) -> v2.DiffChange:
    """What happened to a file."""
    if each.old is None:
        return {"operation": "add", "path": each.path, "fileType": "text"}
    return {"operation": "modify", "path": each.path, "fileType": "text"}


def git_patch(parts: Sequence[Diff]) -> str:
    """One file's part of a patch; empty where nothing is different."""
    path, is_new = parts[0].path.lstrip("/"), parts[0].old is None
    hunks = list(_hunks(parts))
    if not hunks and not is_new:
        return ""
    head = [f"diff --git a/{path} b/{path}"]
    if is_new:
        head.append("new file mode 100644")
    if hunks:
        head += [f"--- {NOTHING if is_new else f'a/{path}'}", f"+++ b/{path}"]
    return "\n".join([*head, *hunks]) + "\n"


def _hunks(parts: Sequence[Diff]) -> Iterator[str]:
    """The lines of the hunks; ``grown`` is by how many lines the file has become longer before."""
    from crow.tools.patch import hunks

    grown = 0
    for part in parts:
        first = (part.line or 1) - 1
        for hunk in hunks(part.old or "", part.new):
            before = _range(hunk["oldStart"] + first - grown, hunk["oldLines"])
            yield f"@@ -{before} +{_range(hunk['newStart'] + first, hunk['newLines'])} @@"
            yield from hunk["lines"]
        grown += part.new.count("\n") - (part.old or "").count("\n")


def _range(start: int, count: int) -> str:
    """Lines as git writes them: none are those after the line before."""
    return f"{start if count else start - 1},{count}"
