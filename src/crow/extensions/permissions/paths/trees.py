"""Directories that are copied, moved, removed or filled whole: what in them is not to be touched.

A walk looks at no more than a few thousand names. Where there are more, the user is asked.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from posixpath import basename

from crow.extensions.permissions.paths.bulk import Bulk
from crow.extensions.permissions.paths.command_paths import CommandPaths, Cwds
from crow.extensions.permissions.paths.disk import ResolvedPath, place
from crow.extensions.permissions.paths.files import Files, Finding
from crow.extensions.permissions.paths.protected import INSTALLED, is_protected
from crow.extensions.permissions.shell.script import Word

MOST = 5000
HISTORIES = frozenset({".git", ".hg", ".svn", ".jj", ".claude", ".crow"})


def findings(paths: CommandPaths, done: Bulk, cwds: Cwds) -> Iterator[Finding]:
    """What speaks against each of the directories."""
    files = paths.files
    for where in _places(paths, done.removed, cwds):
        yield from removed(files, where, done)
    for where in _places(paths, done.filled, cwds):
        yield from filled(files, where)
    for source, target in done.copied:
        for where in _places(paths, (source,), cwds):
            for goal in _places(paths, (target,), cwds):
                yield from copied(files, where, goal, done.spared)


def _places(paths: CommandPaths, words: Sequence[Word], cwds: Cwds) -> Iterator[ResolvedPath]:
    for word in words:
        yield from paths.places(word, cwds)


def removed(files: Files, where: ResolvedPath, done: Bulk) -> Iterator[Finding]:
    """Removing a directory, or moving it away."""
    for path in below(files, where.path, done.spared, installed=True, hidden=bool(done.named)):
        if path is None:
            yield too_large(where)
            return
        name = basename(path)
        if done.named:
            if any(fnmatchcase(name, one) for one in done.named) and is_protected(path):
                yield holds(where)
                return
        elif _is_kept(files, path):
            yield holds(where)
            return


def _is_kept(files: Files, path: str) -> bool:
    """Whether a removed path is protected; what was installed can be installed once more."""
    name = basename(path)
    if files.is_installed(path):
        return name.casefold() in HISTORIES
    return is_protected(_short(path))


def filled(files: Files, where: ResolvedPath) -> Iterator[Finding]:
    """Putting files into a directory that could replace any in it."""
    if is_protected(where.path):
        yield Finding("guard", f"{where.path} is protected")
    for path in below(files, where.path):
        if path is None:
            yield too_large(where)
            return
        if is_protected(_short(path)):
            yield holds(where)
            return


def copied(
    files: Files, where: ResolvedPath, target: ResolvedPath, spared: frozenset[str] = frozenset()
) -> Iterator[Finding]:
    """Copying a directory, or all that is in it, to a path or into a directory."""
    disk = files.disk
    goals = [f"{target.path}/{basename(where.path)}", target.path]
    goals = goals if disk.is_dir(target.path) else goals[1:]
    for path in below(files, where.path, spared):
        if path is None:
            yield too_large(where)
            return
        rest = path[len(where.path.rstrip("/")) :]
        for goal in goals:
            finding = _put(files, goal + rest)
            if finding.kind != "allow":
                yield finding
                if finding.kind != "none":
                    return


def _put(files: Files, path: str) -> Finding:
    """What speaks against writing one file of many."""
    if is_protected(_short(path)):
        return Finding("guard", f"{path} is protected")
    replaced = files.disk.exists(path) and (files.disk.is_link(path) or not files.disk.is_dir(path))
    if replaced or files.has_write_limits:
        return files.write(place(files.disk, "/", path))
    if files.is_started(path):
        return Finding("none", f"{path} is not the project's source")
    return Finding("allow", "")


def below(
    files: Files,
    path: str,
    spared: frozenset[str] = frozenset(),
    *,
    installed: bool = False,
    hidden: bool = False,
) -> Iterator[str | None]:
    """All paths below a directory, the shallow ones first; None where there are too many.

    ``installed`` gives up silently where too much was installed. What is ``hidden`` in protected
    directories is left out otherwise.
    """
    left = MOST
    waiting, later = deque([path] if files.disk.is_dir(path) else []), deque[str]()
    while waiting or later:
        directory = (waiting or later).popleft()
        names = files.disk.names(directory, left)
        if names is None:
            if not (installed and files.is_installed(directory)):
                yield None
            return
        left -= len(names) + 1
        for name in names:
            bare = name.rstrip("/")
            if bare in spared:
                continue
            one = f"{directory.rstrip('/')}/{bare}"
            yield one
            if name.endswith("/") and (hidden or not is_protected(bare)):
                queue = later if installed and bare.casefold() in INSTALLED else waiting
                queue.append(one)


def _short(path: str) -> str:
    """The last two names of a path: what is above them was looked at before."""
    return "/".join(path.rsplit("/", 2)[-2:])


def holds(where: ResolvedPath) -> Finding:
    """A directory with something protected in it."""
    return Finding("guard", f"{where.path} holds protected files")


def too_large(where: ResolvedPath) -> Finding:
    """A directory of which nobody can tell."""
    return Finding("guard", f"{where.path} is too large to look for protected files")
