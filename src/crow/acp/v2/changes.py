"""Changed files as version 2 tells of them: what happened to which path, and a git patch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from crow.acp.jsonrpc import Message
from crow.core.calls import Diff

UNENDED = "\\ No newline at end of file"
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
    if not old or not new:
        yield from _all(old, new)
        return
    from crow.tools.patch import hunks

    for hunk in hunks(_marked(old), _marked(new)):
        before, after = hunk["oldLines"], hunk["newLines"]
        yield f"@@ -{hunk['oldStart']},{before} +{hunk['newStart']},{after} @@"
        yield from _unmarked(hunk["lines"])


def _all(old: str, new: str) -> Iterator[str]:
    """A file that was, or has become, empty."""
    if old == new:
        return
    sign, lines = ("-", _marked(old)) if old else ("+", _marked(new))
    listed = [sign + line for line in lines.split("\n")]
    yield f"@@ -1,{len(listed)} +0,0 @@" if old else f"@@ -0,0 +1,{len(listed)} @@"
    yield from _unmarked(listed)


def _marked(text: str) -> str:
    """A text without its last line end; a last line that has none is marked."""
    return text[:-1] if text.endswith("\n") else f"{text}\0"


def _unmarked(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        yield line.removesuffix("\0")
        if line.endswith("\0"):
            yield UNENDED
