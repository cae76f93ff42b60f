"""Linked worktrees of git: which repository's main one they belong to, if both sides say so."""

from __future__ import annotations

import os
from pathlib import Path


def main_worktree(project: Path) -> Path | None:
    """The main worktree of a repository that a linked one belongs to; None for all else.

    The linked one's own word is not enough, for whoever wrote it could name any repository: that
    one must name it, too.
    """
    pointer = project / ".git"
    inner = _named(pointer, "gitdir: ")
    if inner is None or _named(inner / "gitdir") != pointer.resolve():
        return None
    common = inner.parent.parent
    is_linked = inner.parent.name == "worktrees" and common.name == ".git"
    is_repository = all((common / name).exists() for name in ("HEAD", "objects", "refs"))
    return common.parent if is_linked and is_repository and not common.is_symlink() else None


def _named(file: Path, before: str = "") -> Path | None:
    """The real path that a file names."""
    try:
        with file.open(encoding="utf-8") as opened:
            text = opened.read(4096).strip()
    except (OSError, ValueError):
        return None
    if not text.startswith(before):
        return None
    path = os.path.join(file.parent, text.removeprefix(before))  # noqa: PTH118 - it may be absolute
    return Path(os.path.realpath(path))
