"""A git worktree of its own for a sub-agent's work: made before it begins, gone where it is clean.

Whoever has another way to keep work apart hangs on the two events.
"""

from __future__ import annotations

import asyncio
import os
import re
import uuid
from typing import TYPE_CHECKING, Any

from crow import Context, CrowError, Point, ToolResult, frozen
from crow.project import state_directory

if TYPE_CHECKING:
    from crow import Agent, ToolContext

SAFELY = ("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false")
"""What keeps git from running programs of the repository."""


def made_at(ctx: Any, answer: object) -> Any:
    """Text is the path of the worktree that the hook has made."""
    if not isinstance(answer, str):
        return NotImplemented
    ctx.path = answer
    return None


CREATE = Point(
    "on_worktree_create",
    "gate",
    ("name", "path"),
    changes=("path",),
    plain=made_at,
    aliases=("WorktreeCreate",),
)
REMOVE = Point("on_worktree_remove", "gate", ("worktree_path",), aliases=("WorktreeRemove",))


class WorktreeContext(Context):
    """A worktree is wanted. A hook that makes one sets its ``path``; where none does, git does."""

    __slots__ = ("name", "path")
    shapes = {"path": str}  # noqa: RUF012 - a table

    def __init__(self, ctx: Context, name: str) -> None:
        super().__init__(ctx.agent, ctx.session, ctx.run)
        self.name = name
        self.path = ""


class WorktreeRemovalContext(Context):
    """A worktree that a hook has made is to be removed, from ``worktree_path``."""

    __slots__ = ("worktree_path",)

    def __init__(self, ctx: Context, path: str) -> None:
        super().__init__(ctx.agent, ctx.session, ctx.run)
        self.worktree_path = path


@frozen
class Worktree:
    """A directory to work in.

    ``path`` is its root, ``cwd`` what stands for the caller's directory in it, ``base`` the commit
    that it began with. ``branch`` is empty where a hook has made it.
    """

    path: str
    cwd: str
    base: str
    branch: str = ""

    async def is_clean(self) -> bool:
        """True where git says that nothing was changed there, nor committed."""
        try:
            changed = await git(self.path, "status", "--porcelain")
            return not changed and await git(self.path, "rev-parse", "HEAD") == self.base
        except CrowError:
            return False


async def make(call: ToolContext, agent_type: str) -> Worktree:
    """A worktree for a sub-agent: a hook's, else git's. Raises `CrowError` where there is none."""
    name = f"{re.sub(r'[^A-Za-z0-9]+', '-', agent_type).strip('-')}-{uuid.uuid4().hex[:8]}"
    wanted = WorktreeContext(call, name)
    point = _home(call.agent, CREATE).hooks[CREATE.name]
    ruling = await wanted.ui.agreed(await point.fire(wanted))
    if ruling.refused:
        raise CrowError(f"no worktree was made: {ruling.reason or 'a hook refused it'}")
    if not wanted.path:
        return await _git_worktree(call.cwd, name)
    path = os.path.join(call.cwd, wanted.path)  # noqa: PTH118
    if not os.path.isdir(path):  # noqa: PTH112
        raise CrowError(f"no worktree was made: the hook names {path}, which is no directory")
    return Worktree(path, path, await _head(path))


async def _git_worktree(cwd: str, name: str) -> Worktree:
    base = await git(cwd, "rev-parse", "HEAD")
    inside = await git(cwd, "rev-parse", "--show-prefix")
    path, branch = str(state_directory() / "worktrees" / name), f"crow/{name}"
    await git(cwd, "worktree", "add", "--quiet", "-b", branch, path, base)
    return Worktree(path, os.path.normpath(os.path.join(path, inside)), base, branch)  # noqa: PTH118


async def _head(path: str) -> str:
    try:
        return await git(path, "rev-parse", "HEAD")
    except CrowError:  # kept apart by something else than git
        return ""


async def leave(call: ToolContext, tree: Worktree) -> str:
    """Remove a worktree in which nothing was changed; else where the work lies, for the caller."""
    try:
        if await tree.is_clean():
            await _remove(call, tree)
            return ""
        why = ""
    except CrowError as error:
        why = f" It could not be removed: {error}"
    on = f", on the branch {tree.branch}" if tree.branch else ""
    return f"It worked in a worktree of its own, which is kept: {tree.path}{on}.{why}"


async def _remove(call: ToolContext, tree: Worktree) -> None:
    if tree.branch:
        await git(call.cwd, "worktree", "remove", tree.path)
        await git(call.cwd, "branch", "--quiet", "-D", tree.branch)
        return
    ctx = WorktreeRemovalContext(call, tree.path)
    point = _home(call.agent, REMOVE).hooks[REMOVE.name]
    ruling = await ctx.ui.agreed(await point.fire(ctx))
    if ruling.refused and os.path.isdir(tree.path):  # noqa: PTH112
        raise CrowError(ruling.reason or "a hook refused it")
    if os.path.isdir(tree.path):  # noqa: PTH112
        raise CrowError("no hook has removed it")


def _home(agent: Agent, point: Point) -> Agent:
    """The agent that has the event: sub-agents that call others have it from their caller."""
    while agent.parent is not None and not agent.hooks.knows(point.name):
        agent = agent.parent
    return agent


def told(result: ToolResult, where: str) -> ToolResult:
    """A sub-agent's result with the place where its work lies."""
    if not where:
        return result
    text = f"{result.text}\n\n{where}"
    data = {**result.data, "content": [{"type": "text", "text": text}]}
    return ToolResult(text, result.error, data, result.diffs)


async def git(cwd: str, *args: str) -> str:
    """What git prints. Raises `CrowError` with its last words."""
    try:
        process = await asyncio.create_subprocess_exec(
            "git",
            *SAFELY,
            *args,
            cwd=cwd,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
    except OSError as error:
        raise CrowError(f"git cannot be started: {error}") from error
    printed, complaint = await process.communicate()
    if process.returncode:
        words = complaint.decode(errors="replace").strip().splitlines()
        raise CrowError(words[-1] if words else f"git {args[0]} failed")
    return printed.decode(errors="replace").strip()
