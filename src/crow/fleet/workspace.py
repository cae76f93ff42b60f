"""The workspace of a session of a fleet: a folder, or a working tree of its own of a repository.

All trees of a repository on one machine share one store of objects, a bare mirror. What a session
changes is kept as a patch with the job, so that it can go on where there is only the mirror. Git
runs without hooks and asks nobody.

What a container has written is a stranger's, also to Git: that is told which repository it is, and
looks into no other one that lies in the tree, whose settings can name programs.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
import tempfile
from pathlib import Path

from crow.extensions.container import Container, ContainerHook
from crow.fleet.containers import Kinds, kind_of, named
from crow.fleet.task import FleetError, Workspace
from crow.process import run

LONGEST = 16 * 2**20
"""Bytes of a patch; what has changed more than that does not move with its session."""
QUIET = ("-c", "core.hooksPath=/dev/null", "-c", "advice.detachedHead=false")
BASE = "base "
"""What the first line of a patch begins with; the commit that it is against follows."""
NONE: Kinds = {}
IDENTITY = ("-c", "user.name=Crow", "-c", "user.email=crow@localhost")


class JobFolder:
    """The workspace of one job on this machine."""

    def __init__(self, recipe: Workspace, root: Path, job: str, kinds: Kinds = NONE) -> None:
        self.recipe = recipe
        self.hook: ContainerHook | None = None
        self.container: Container | None = None
        self._kinds = kinds
        self.job = job
        self.folder = Path(recipe.folder) if recipe.folder else root / "trees" / job
        self._root = root
        self._mirror = root / "mirrors" / hashlib.sha256(recipe.git.encode()).hexdigest()[:16]
        self._base = ""
        self._git_dir = ""
        self._kept = b""

    @property
    def is_tree(self) -> bool:
        """True for a working tree that is this job's alone."""
        return bool(self.recipe.git)

    @property
    def branch(self) -> str:
        """The branch that the tree is on."""
        return f"crow/{self.job[:12]}"

    async def prepare(self, patch: bytes | None) -> None:
        """Make the folder as the session left it, and its container, or find that one.

        Raises `FleetError`, and `ContainerError` where a container cannot be had.
        """
        if self.recipe.container:
            self.hook = kind_of(self._kinds, self.recipe)
        await self._prepare_folder(patch)
        if self.hook is not None:
            shown = [str(self._mirror)] * self.is_tree
            folder = str(self.folder)
            self.container = Container(self.hook, named(self.job), folder, shown=shown)
            self.hook.use(self.container)
            await self.container.start()

    async def _prepare_folder(self, patch: bytes | None) -> None:
        if not self.is_tree:
            if self.recipe.folder and not self.folder.is_dir():
                raise FleetError(f"there is no folder {self.folder} on this machine")
            self.folder.mkdir(parents=True, exist_ok=True)
            return
        newest = await self._update_mirror()
        await self._discard(emptied=self.folder.is_dir())  # which a container may have mounted
        self._base = _base_of(patch) if patch else newest
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        tree = ("worktree", "add", "-f", "-B", self.branch, str(self.folder), self._base)
        await self._git(self._mirror, *tree)
        found = await self._git(self.folder, "rev-parse", "--absolute-git-dir")
        self._git_dir = found.decode().strip()
        if patch:
            await self._git(self.folder, "apply", "--binary", "--whitespace=nowarn", stdin=patch)
            self._kept = patch

    async def changes(self) -> bytes | None:
        """What differs from the beginning, as a patch; None where nothing changed since the last.

        The index of the session is not touched.
        """
        if not self.is_tree:
            return None
        with tempfile.TemporaryDirectory() as folder:
            env = {"GIT_INDEX_FILE": os.path.join(folder, "index")}  # noqa: PTH118
            await self._git(self.folder, "read-tree", self._base, env=env)
            await self._git(self.folder, "add", "--all", *await self._own(), env=env)
            diff = ("diff", "--cached", "--binary", "--no-ext-diff", self._base)
            patch = f"{BASE}{self._base}\n".encode() + await self._git(self.folder, *diff, env=env)
        if (
            patch == self._kept
            or (patch.count(b"\n") == 1 and not self._kept)
            or len(patch) > LONGEST
        ):
            return None
        self._kept = patch
        return patch

    async def push(self, title: str) -> str:
        """Bring what changed to a branch of the repository; its name, empty where nothing did."""
        if not (self.is_tree and self.recipe.push):
            return ""
        await self._git(self.folder, "add", "--all", *await self._own())
        if await self._git(self.folder, "status", "--porcelain", "--ignore-submodules=all"):
            await self._git(self.folder, *IDENTITY, "commit", "--quiet", "-m", title or "Work")
        head = (await self._git(self.folder, "rev-parse", "HEAD")).decode().strip()
        if head == self._base:
            return ""
        target = f"HEAD:refs/heads/{self.branch}"
        await self._git(self.folder, "push", "--quiet", "--force", self.recipe.git, target)
        return self.branch

    async def _own(self) -> list[str]:
        """What is this repository's, as paths for Git: all but other ones in a container's tree."""
        found = await asyncio.to_thread(_nested, self.folder) if self.container else []
        return ["--", ".", *(f":(exclude,literal){path}" for path in found)]

    async def remove(self) -> None:
        """Take the container and the tree away; a folder that somebody named stays."""
        if self.container is not None:
            await self.container.stop()
        if self.is_tree:
            await self._discard()

    async def _discard(self, *, emptied: bool = False) -> None:
        await asyncio.to_thread(_empty if emptied else _remove, self.folder)
        if self._mirror.exists():
            await self._git(self._mirror, "worktree", "prune")

    async def _update_mirror(self) -> str:
        """Make the store of objects, or bring it up to date; the commit that ``ref`` is now.

        One at a time does so on a machine.
        """
        import fcntl

        self._mirror.parent.mkdir(parents=True, exist_ok=True)
        lock = os.open(f"{self._mirror}.lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            await asyncio.to_thread(fcntl.flock, lock, fcntl.LOCK_EX)
            if not (self._mirror / "HEAD").exists():
                await asyncio.to_thread(shutil.rmtree, self._mirror, ignore_errors=True)
                clone = ("clone", "--quiet", "--bare", self.recipe.git, str(self._mirror))
                await self._git(self._mirror.parent, *clone)
            refs = ("+refs/heads/*:refs/remotes/origin/*", "+refs/tags/*:refs/tags/*")
            await self._git(self._mirror, "fetch", "--quiet", self.recipe.git, *refs)
            begin = f"+{self.recipe.ref}:refs/crow/begin"
            await self._git(self._mirror, "fetch", "--quiet", self.recipe.git, begin)
            found = await self._git(self._mirror, "rev-parse", "refs/crow/begin^{commit}")
            return found.decode().strip()
        finally:
            os.close(lock)

    async def _git(
        self, folder: Path, *args: str, stdin: bytes = b"", env: dict[str, str] | None = None
    ) -> bytes:
        own = ("--git-dir", self._git_dir, "--work-tree", str(folder))
        where = own if self._git_dir and folder == self.folder else ()
        try:
            done = await run(
                ["git", *QUIET, *where, *args],
                cwd=folder,
                env={**os.environ, "GIT_TERMINAL_PROMPT": "0", **(env or {})},
                stdin=stdin,
            )
        except OSError as error:
            raise FleetError(f"git {args[0]} in {folder}: {error}") from error
        if done.code:
            raise FleetError(f"git {args[0]} in {folder}: {done.complaint}")
        return done.out


def _remove(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)


def _empty(folder: Path) -> None:
    """Take away what is in a folder, and leave it itself."""
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            _remove(path)
        else:
            path.unlink(missing_ok=True)


def _nested(folder: Path) -> list[str]:
    """The folders below one that are repositories of their own."""
    found: list[str] = []
    for path, names, files in os.walk(folder):
        if path != str(folder) and ".git" in (*names, *files):
            found.append(os.path.relpath(path, folder))
            names.clear()
        names[:] = [name for name in names if name != ".git"]
    return found


def _base_of(patch: bytes) -> str:
    return patch.partition(b"\n")[0].decode().removeprefix(BASE)
