"""The commands ``/cd`` and ``/add-dir``: the directories that this session works in."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Literal

from crow import Answer, Command, Context, Point

if TYPE_CHECKING:
    from crow import CommandContext

DIRECTORY_ADDED = Point(
    "on_directory_added",
    "watch",
    ("directory", "source"),
    aliases=("DirectoryAdded",),
)


class DirectoryContext(Context):
    """A directory was added to those that a session works in."""

    __slots__ = ("directory", "source")

    def __init__(self, ctx: Context, directory: str) -> None:
        super().__init__(ctx.agent, ctx.session, ctx.run)
        self.directory = directory
        self.source: Literal["slash_command"] = "slash_command"


async def add(ctx: CommandContext) -> Answer:
    """Work in one more directory until the session ends; the model is told."""
    session = ctx.session
    if not ctx.args:
        there = "\n".join(f"- {path}" for path in session.roots)
        return Answer(f"This session works in:\n{there}\n/add-dir DIRECTORY adds one.")
    path = _meant(ctx)
    if not os.path.isdir(path):  # noqa: PTH112 - a path may be any text
        return Answer(f"There is no directory {path}.")
    if any(is_inside(path, root) for root in session.roots):
        return Answer(f"{path} is worked in already.")
    session.directories = (*session.directories, path)
    await ctx.inject_context(f"The user has added a directory to work in: {path}")
    await ctx.agent.hooks[DIRECTORY_ADDED.name].fire(DirectoryContext(ctx, path))
    return Answer(f"This session works in {path}, too.")


async def change(ctx: CommandContext) -> Answer:
    """Work in another directory from now on; the model is told."""
    old = ctx.cwd
    if not ctx.args:
        return Answer(f"This session works in {old}.\n/cd DIRECTORY goes to another one.")
    path = _meant(ctx)
    if not os.path.isdir(path):  # noqa: PTH112 - a path may be any text
        return Answer(f"There is no directory {path}.")
    if path == old:
        return Answer(f"This session works in {path} already.")
    await ctx.inject_context(
        f"The user has changed the working directory: from now on commands start in {path}, and "
        f"relative paths mean files there. It was {old}."
    )
    await ctx.change_directory(path)
    return Answer(f"This session works in {path} now.")


def _meant(ctx: CommandContext) -> str:
    """The directory that was typed, absolute."""
    written = os.path.expanduser(ctx.args.strip("'\""))
    return os.path.normpath(os.path.join(ctx.cwd, written))  # noqa: PTH118


def is_inside(path: str, root: str) -> bool:
    """True for a directory itself and everything below it."""
    return f"{path}{os.sep}".startswith(f"{root.rstrip(os.sep)}{os.sep}")


CD = Command("cd", "Work in another directory", change, "[directory]")
ADD_DIR = Command("add-dir", "Work in one more directory", add, "[directory]")
