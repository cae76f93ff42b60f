"""The repositories of a root: wherever git, called in it, looks for settings and hooks."""

from __future__ import annotations

import os
from collections.abc import Iterator

from crow.extensions.sandbox.index import gitlinks
from crow.extensions.sandbox.mounts import is_below, real

_MANY = 1000  # folders of a root that are looked into for repositories of their own
_MODULES = 200


def repositories(root: str) -> Iterator[str]:
    """Git's folders in a root: its own, there or not, those of submodules and of its folders.

    A linked worktree's own is the one that it shares. What git calls in passing counts wherever it
    lies: submodules, and whatever else the index names. A folder with ``HEAD``, ``objects`` and
    ``refs`` is one as well.
    """
    own = shared_repository(root) or git_folder(root) or f"{root}/.git"
    top = (real(root),)
    seen = {own: None}
    yield own
    left = [*_called(own, root), *modules(own)]
    for folder in (root, *folders(root)):
        left += [(git_folder(folder), folder), (folder, "")]
    while left and len(seen) < _MODULES:
        path, worktree = left.pop(0)
        if path in seen or not is_repository(path):
            continue
        seen[path] = None
        if is_below(real(path), top):
            yield path
            left += [*_called(path, worktree), *modules(path)]


def _called(repository: str, worktree: str) -> list[tuple[str, str]]:
    """The repositories that git looks into on its way, with their worktrees."""
    if not worktree:
        return []
    lead = _pointer(f"{worktree}/.git") or repository  # of a linked worktree
    places = [f"{worktree}/{link}" for link in gitlinks(lead, repository)]
    return [(git_folder(place), place) for place in places]


def modules(repository: str) -> Iterator[tuple[str, str]]:
    """Those of submodules, whose names may have slashes, and of theirs."""
    left = [f"{repository}/modules"]
    for _ in range(_MODULES):
        if not left:
            return
        for folder in folders(left.pop()):
            if is_repository(folder):
                yield folder, ""
                left.append(f"{folder}/modules")
            else:
                left.append(folder)


def git_folder(folder: str) -> str:
    """Git's folder of a worktree, which a file may name; its ``.git`` where there is none.

    The folder of a linked worktree belongs to a repository, and is none itself: ``""``.
    """
    own = f"{folder}/.git"
    named = _pointer(own)
    is_linked = os.path.basename(os.path.dirname(named)) == "worktrees"  # noqa: PTH119, PTH120
    if is_linked and is_repository(os.path.dirname(os.path.dirname(named))):  # noqa: PTH120
        return ""
    return named or own


def _pointer(path: str) -> str:
    """Where a file that stands for git's folder leads; empty for anything else."""
    try:
        if not os.path.isfile(path):  # noqa: PTH113
            return ""
        with open(path, encoding="utf-8") as file:  # noqa: PTH123
            word, _, place = file.read(4096).strip().partition(": ")
    except (OSError, ValueError):
        return ""
    if word != "gitdir" or not place or "\0" in place:
        return ""
    return os.path.normpath(os.path.join(os.path.dirname(path), place))  # noqa: PTH118, PTH120


def is_repository(path: str) -> bool:
    """True for a folder that git takes for a repository; another one may have its objects."""
    return os.path.exists(f"{path}/HEAD") and (  # noqa: PTH110
        os.path.lexists(f"{path}/commondir")
        or all(os.path.exists(f"{path}/{name}") for name in ("objects", "refs"))  # noqa: PTH110
    )


def folders(path: str) -> list[str]:
    """Its folders, a bounded number of them; none where it cannot be read."""
    found: list[str] = []
    try:
        with os.scandir(path) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    found.append(entry.path)
                if len(found) == _MANY:
                    break
    except OSError:
        return []
    return found


def shared_repository(root: str) -> str | None:
    """The repository that a linked worktree belongs to, if the repository says so too.

    The worktree's own word is not enough: a command may have written it.
    """
    inner = _pointer(f"{root}/.git")
    try:
        with open(f"{inner}/gitdir") as back:  # noqa: PTH123
            claimed = real(back.read(4096).strip())
    except (OSError, ValueError):
        return None
    if not inner or claimed != real(f"{root}/.git"):
        return None
    common = os.path.dirname(os.path.dirname(real(inner)))  # noqa: PTH120
    return common if is_repository(common) else None
