"""The check of a workspace's protected paths, before a command and after it.

No mount protects what is not there: it would leave an empty file behind, for everybody to see. And
some files of git must stay writable for git to work. What a command put there is taken away,
into a folder of the user's, and what it changed is made as it was.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator

from crow.extensions.sandbox.backend import Finding, Outcome
from crow.extensions.sandbox.mounts import is_below, real
from crow.extensions.sandbox.policy import Policy
from crow.extensions.sandbox.protected import IN_REPOSITORY
from crow.extensions.sandbox.repositories import folders, is_repository, repositories
from crow.extensions.sandbox.repository import culprits, new_links
from crow.extensions.sandbox.snapshot import Snapshot, take_away

_INNER = ("commondir", "config.worktree")  # of a repository: they lead git to other settings
_OF_WORKTREE = (*_INNER, "gitdir")
_UNDER_WAY = ("rebase-merge/git-rebase-todo", "rebase-apply/git-rebase-todo", "sequencer/todo")
_RUNS = (b"exec ", b"x ")
_GRAIN = 20_000_000  # nanoseconds by which the clock of a file system may be late


class WorkspaceCheck:
    """Around a command; what it finds goes into ``found``.

    ``restores`` where nothing else keeps a protected path as it is. Otherwise what changed there
    was changed by somebody else, and is only told.
    """

    def __init__(self, policy: Policy, found: list[Finding], *, restores: bool = False) -> None:
        self._found, self._restores = found, restores
        self._policy = policy
        self._began = 0
        self._tops: tuple[str, ...] = ()
        self._repositories: frozenset[str] = frozenset()
        self._before: list[Snapshot] = []
        self._inner: list[Snapshot] = []
        self._todo: dict[str, bytes] = {}

    def __enter__(self) -> None:
        if self._policy.ring != "workspace":
            return
        self._began = time.time_ns() - _GRAIN
        writable = (*self._policy.roots, *self._policy.writable)
        self._tops = tuple(map(real, writable))
        paths = [path for path in self._policy.read_only if is_below(path, writable)]
        self._before = [Snapshot(path, with_data=self._restores) for path in paths]
        self._repositories = frozenset(self._all_repositories())
        inner = [path for each in self._repositories for path in _inner(each)]
        self._inner = [Snapshot(path, with_data=True) for path in inner]
        self._todo = dict(self._under_way())

    def __exit__(self, *_: object) -> None:
        if self._policy.ring != "workspace":
            return
        made = [each for each in self._all_repositories() if each not in self._repositories]
        as_a_whole = {f"{each}/{name}" for each in made for name in IN_REPOSITORY}
        self._judge([each for each in self._before if each.path not in as_a_whole], self._restores)
        self._judge(self._inner, restores=True)
        for repository in made:
            for path in self._ways_in(repository):
                self._remove(path, "git would run what it names")
        for repository in self._repositories:
            for path in new_links(repository, self._began, self._tops):
                self._remove(path, "git would write where it leads")
        self._look_at_worktrees()
        self._look_at_todo()

    def _all_repositories(self) -> Iterator[str]:
        places = [each for root in self._policy.roots for each in repositories(root)]
        for each in dict.fromkeys((*places, *self._policy.writable)):
            if is_repository(each) and is_below(real(each), self._tops):
                yield each

    def _judge(self, before: list[Snapshot], restores: bool) -> None:
        for snapshot in (each for each in before if each.has_changed()):
            path = snapshot.path
            if not snapshot.was_there:
                self._remove(path, "it is protected")
            elif restores and snapshot.restore(self._tops):
                self._tell(path, "restored", "is protected: it was made as it was before")
            else:
                self._tell(path, "kept", "is protected and changed while a command ran: look at it")

    def _remove(self, path: str, why: str) -> None:
        kept = take_away(path, self._tops)
        if kept:
            self._tell(path, "removed", f"was taken away, for {why} (kept as {kept})")
        else:
            self._tell(path, "kept", f"cannot be taken away, though {why}: look at it")

    def _tell(self, path: str, outcome: Outcome, text: str) -> None:
        self._found.append(Finding(path, outcome, f"{path} {text}."))

    @staticmethod
    def _ways_in(repository: str) -> list[str]:
        """What must go so that git runs nothing of a new repository.

        A project's own folders can be part of one that is bare: without a head it is none.
        """
        found = culprits(repository)
        return found if repository.endswith("/.git") or not found else [f"{repository}/HEAD"]

    def _look_at_worktrees(self) -> None:
        """A linked worktree that is new may lead to nothing but its own repository."""
        known = {each.path for each in self._inner}
        for repository in self._repositories:
            for folder in folders(f"{repository}/worktrees"):
                for path in (f"{folder}/{name}" for name in _INNER):
                    if path not in known and os.path.lexists(path) and _read(path) != b"../..":
                        self._remove(path, "it leads git to other settings")

    def _under_way(self) -> Iterator[tuple[str, bytes]]:
        for repository in self._repositories:
            for path in (f"{repository}/{name}" for name in _UNDER_WAY):
                yield path, _read(path)

    def _look_at_todo(self) -> None:
        """Only whoever continues a rebase runs what its list says: tell it."""
        for path, lines in self._under_way():
            if lines != self._todo[path] and any(
                each.lstrip().startswith(_RUNS) for each in lines.splitlines()
            ):
                self._tell(path, "kept", "has lines that run programs when the rebase continues")


def _inner(repository: str) -> list[str]:
    worktrees = folders(f"{repository}/worktrees")
    return [f"{repository}/{name}" for name in _INNER] + [
        f"{folder}/{name}" for folder in worktrees for name in _OF_WORKTREE
    ]


def _read(path: str) -> bytes:
    """The beginning of a regular file, b"" without one."""
    with contextlib.suppress(OSError):
        number = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with open(number, "rb") as file:  # noqa: PTH123
            return file.read(65536).strip()
    return b""
