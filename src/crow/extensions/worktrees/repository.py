"""A repository of git: its working trees, and what would be lost with one.

Git runs without the repository's hooks, and asks nobody.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
from pathlib import Path

from crow.errors import HookError
from crow.process import run

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
INCLUDE = ".worktreeinclude"
BRANCH = "worktree-"
BATCH = {"GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0"}
QUIET = ("-c", "core.hooksPath=/dev/null", "-c", "advice.detachedHead=false")


class WorktreeError(HookError):
    """There can be no such working tree; the text says why, and what to do."""


def check_name(name: str) -> None:
    """Raise `WorktreeError` for what cannot be the name of a folder and of a branch."""
    if not NAME.fullmatch(name):
        raise WorktreeError(f"a worktree is called by letters, digits, - and _: not {name!r}")


class Repository:
    """The repository that a directory is in; ``root`` is the directory's working tree."""

    def __init__(self, root: Path, main: Path) -> None:
        self.root = root
        self.main = main

    @classmethod
    async def of(cls, cwd: str) -> Repository:
        """The one around a directory. Raises `WorktreeError` where there is none."""
        try:
            root = await git(cwd, "rev-parse", "--show-toplevel")
        except WorktreeError:
            what = f"{cwd} is in no working tree of git: a worktree needs one"
            raise WorktreeError(what) from None
        first = (await git(cwd, "worktree", "list", "--porcelain", "-z")).split("\0", 1)[0]
        return cls(Path(root), Path(first.removeprefix("worktree ")))

    def place(self, name: str) -> Path:
        """Where a tree of this name is: beside the main one, where no rule of its own holds."""
        return self.main.with_name(f"{self.main.name}.worktrees") / name

    async def is_tree(self, path: Path) -> bool:
        """Whether a directory is a linked tree of this repository."""
        listed = (await git(self.root, "worktree", "list", "--porcelain", "-z")).split("\0")
        wanted = f"worktree {os.path.realpath(path)}"
        return path.is_dir() and wanted in listed and path.resolve() != self.main.resolve()

    async def add(self, name: str) -> Path:
        """Make a tree from the commit that is checked out here, or find the one of that name."""
        path = self.place(name)
        if await self.is_tree(path):
            return path
        if os.path.lexists(path):
            raise WorktreeError(f"{path} is there already, and no worktree of this repository")
        path.parent.mkdir(exist_ok=True)
        branch = f"{BRANCH}{name}"
        known = await git(self.root, "branch", "--list", branch)
        new = () if known else ("-b", branch)
        await git(self.root, "worktree", "add", *new, str(path), branch if known else "HEAD")
        await self._include(path)
        return path

    async def changes(self) -> int:
        """How many files have changes here that are in no commit."""
        return len((await git(self.root, "status", "--porcelain")).splitlines())

    async def losses(self, path: Path) -> list[str]:
        """What would be gone with a tree: in words, one kind each."""
        status = await git(path, "status", "--porcelain", "--ignored")
        lines = status.splitlines()
        ignored = sum(line.startswith("!!") for line in lines)
        lone = await git(path, "rev-list", "HEAD", "--not", "--branches", "--remotes", "--tags")
        counts = (
            (len(lines) - ignored, "changed or new and in no commit"),
            (ignored, "ignored by git"),
            (len(lone.split()), "commits on no branch"),
        )
        return [f"{count} {what}" for count, what in counts if count]

    async def has_news(self, path: Path) -> bool:
        """True for a tree with a change, or with a commit that the repository's own has not."""
        if await git(path, "status", "--porcelain"):
            return True
        head = await git(self.main, "rev-parse", "HEAD")
        return bool(await git(path, "rev-list", "-1", "HEAD", f"^{head.strip()}"))

    async def remove(self, path: Path) -> None:
        """Take a tree away with all that is in it; its branch stays where it has commits."""
        branch = await git(path, "branch", "--show-current")
        await git(self.main, "worktree", "remove", "--force", str(path))
        if branch.startswith(BRANCH):
            # -d refuses a branch with commits that are nowhere else: it is kept then
            await git(self.main, "branch", "-d", branch, fails=True)

    async def _include(self, path: Path) -> None:
        """Copy the ignored files that ``.worktreeinclude`` names, in the syntax of .gitignore."""
        listed = self.root / INCLUDE
        if not listed.is_file():
            return
        others = ("ls-files", "-z", "--others", "--ignored")
        wanted = await git(self.root, *others, f"--exclude-from={listed}")
        ignored = await git(self.root, *others, "--exclude-standard")
        for name in sorted({*wanted.split("\0")} & {*ignored.split("\0")} - {""}):
            await asyncio.to_thread(copy, self.root / name, path / name, path)


def copy(source: Path, target: Path, tree: Path) -> None:
    """Copy a file into a tree, never over another one and never through a link out of it."""
    parent = Path(os.path.realpath(target.parent))
    if os.path.lexists(target) or not parent.is_relative_to(os.path.realpath(tree)):
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(source, target, follow_symlinks=False)


async def git(cwd: Path | str, *words: str, fails: bool = False) -> str:
    """What git says; raises `WorktreeError` with its last line unless it may fail."""
    env = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    try:
        done = await run(["git", *QUIET, *words], cwd=cwd, env=env | BATCH)
    except OSError as error:
        raise WorktreeError(f"git cannot be run: {error.strerror}") from None
    if done.code and not fails:
        raise WorktreeError(f"git {words[0]}: {done.complaint}")
    return os.fsdecode(done.out).rstrip("\n")
