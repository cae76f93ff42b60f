"""Events around a conversation: a project is set up, files change, directories are added."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from crow import Deny
from crow.extensions.shell_hooks.event import EVENTS
from crow.extensions.shell_hooks.handler import Handler
from crow.extensions.shell_hooks.joint_outcome import JointOutcome
from crow.extensions.shell_hooks.spill import capped
from crow.keys import ENV_FILE, WATCHED

if TYPE_CHECKING:
    from crow import Context, CwdContext, Verdict, WorktreeContext
    from crow.extensions.shell_hooks.handlers import Handlers


async def project_set_up(hooks: Handlers, ctx: Any) -> None:
    """Setup; all that it prints counts for nothing, what it exports stays."""
    path = env_file(hooks, ctx, "Setup", ctx.trigger)
    await hooks.fire("Setup", ctx, ctx.trigger, {"trigger": ctx.trigger}, env_file=path)
    hooks.memory(ctx).is_set_up = True
    source_variables(ctx, path)


async def file_changed(hooks: Handlers, ctx: Any) -> None:
    """FileChanged; matchers look at the name of the file without its folder."""
    fields = {"file_path": ctx.file_path, "event": ctx.event}
    about = EVENTS["FileChanged"].about(fields)
    path = env_file(hooks, ctx, "FileChanged", about)
    joined = await hooks.fire("FileChanged", ctx, about, fields, env_file=path)
    source_variables(ctx, path)
    watch_files(hooks, ctx, joined)


async def cwd_changed(hooks: Handlers, ctx: CwdContext) -> None:
    """CwdChanged; of the variables those stay that were there when the session began."""
    path = env_file(hooks, ctx, "CwdChanged", "")
    kept = hooks.memory(ctx).variables
    if os.path.exists(path):  # noqa: PTH110
        Path(path).write_bytes(kept)
    fields = {"old_cwd": ctx.old_cwd, "new_cwd": ctx.new_cwd}
    joined = await hooks.fire("CwdChanged", ctx, "", fields, env_file=path)
    source_variables(ctx, path)
    watch_files(hooks, ctx, joined)


async def directory_added(hooks: Handlers, ctx: Any) -> None:
    """DirectoryAdded; no prompt waits for it, and its messages are the model's."""
    hooks.memory(ctx).watch(ctx.session.spawn(_directory_added(hooks, ctx)))


async def _directory_added(hooks: Handlers, ctx: Any) -> None:
    fields = {"directory": ctx.directory, "source": ctx.source}
    joined = await hooks.fire("DirectoryAdded", ctx, ctx.source, fields)
    for _, outcome in joined.outcomes:
        if message := outcome.output.get("systemMessage"):
            text = capped(message, hooks.memory(ctx).folder)
            await ctx.inject_context(f"DirectoryAdded hook: {text}")


async def worktree_wanted(hooks: Handlers, ctx: WorktreeContext) -> Verdict | None:
    """WorktreeCreate; the last line that a hook prints is where it has made one.

    One that fails says that there is none to be, whatever its exit status.
    """
    joined = await hooks.fire("WorktreeCreate", ctx, "", {"name": ctx.name})
    for _, outcome in joined.outcomes:
        if outcome.kind != "success" or outcome.block is not None:
            return Deny(outcome.block or outcome.notice or "a hook could not make the worktree")
    lines = [line.strip() for text in joined.contexts for line in text.splitlines()]
    if path := next(filter(None, reversed(lines)), ""):
        ctx.path = path
    return None


async def worktree_unwanted(hooks: Handlers, ctx: WorktreeContext) -> None:
    """WorktreeRemove; the hook that made the working tree removes it."""
    await hooks.fire("WorktreeRemove", ctx, "", {"worktree_path": ctx.path})


def env_file(hooks: Handlers, ctx: Context, event: str, about: str) -> str:
    """The file whose variables every later command gets; there where a hook could write to it."""
    path = env_path(hooks, ctx)
    if hooks.chosen(event, about) and not path.exists():
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.touch(mode=0o600)
    return str(path)


def env_path(hooks: Handlers, ctx: Context) -> Path:
    """Where that file is, or would be."""
    return hooks.memory(ctx).folder.parent / "env.sh"


def forget_variables(hooks: Handlers, ctx: Context) -> None:
    """Forget the variables of what went before."""
    path = env_path(hooks, ctx)
    if path.exists():
        os.truncate(path, 0)


def keep_variables(hooks: Handlers, ctx: Context, path: str) -> None:
    """Remember the variables of the beginning, and let commands have them."""
    hooks.memory(ctx).variables = Path(path).read_bytes() if os.path.exists(path) else b""  # noqa: PTH110
    source_variables(ctx, path)


def source_variables(ctx: Context, path: str) -> None:
    """Let commands have what was written to the file."""
    if os.path.exists(path) and os.stat(path).st_size:  # noqa: PTH110, PTH116
        ENV_FILE.set(ctx.session, path)


def watch_files(hooks: Handlers, ctx: Context, joined: JointOutcome) -> None:
    """Have files watched: those that matchers name, and those that hooks named last."""
    memory = hooks.memory(ctx)
    named = cast("list[list[object]]", list(joined.answers("watchPaths")))
    if named:
        texts = (path for paths in named for path in paths if isinstance(path, str))
        memory.watched = {os.path.normpath(path) for path in texts if _is_whole(path)}
    used = ctx.agent.extensions_of(ctx.session).values()
    every = (getattr(each, "handlers", None) for each in used)
    entries = [
        handler for each in every if isinstance(each, type(hooks)) for handler in each.entries
    ]
    always = {os.path.normpath(Path(ctx.cwd, name)) for name in names(entries)}
    WATCHED.set(ctx.session, always | memory.watched)


def _is_whole(path: str) -> bool:
    return os.path.isabs(path) and "\0" not in path  # noqa: PTH117


def names(entries: Iterable[Handler]) -> set[str]:
    """The files that matchers of FileChanged name, split at ``|``."""
    texts = {handler.matcher for handler in entries if handler.event.name == "FileChanged"}
    named = {name.strip() for text in texts for name in text.split("|")}
    return {name for name in named if name and name != "*"}
