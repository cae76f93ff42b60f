"""The command ``/add-dir``: one more directory for this session to work in."""

from __future__ import annotations

import os
from typing import Literal, cast

from crow.core.context import Context
from crow.core.contexts import CommandContext
from crow.core.hook_points import Watch
from crow.core.points import Point
from crow.core.scope import Command
from crow.core.verdicts import Answer

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
    written = os.path.expanduser(ctx.args.strip("'\""))  # noqa: PTH111
    path = os.path.normpath(os.path.join(session.cwd, written))  # noqa: PTH118
    if not os.path.isdir(path):  # noqa: PTH112 - a path may be any text
        return Answer(f"There is no directory {path}.")
    if any(is_inside(path, root) for root in session.roots):
        return Answer(f"{path} is worked in already.")
    session.directories = (*session.directories, path)
    await ctx.inject_context(f"The user has added a directory to work in: {path}")
    point = cast("Watch[DirectoryContext]", ctx.agent.hooks[DIRECTORY_ADDED.name])
    await point.fire(DirectoryContext(ctx, path))
    return Answer(f"This session works in {path}, too.")


def is_inside(path: str, root: str) -> bool:
    """True for a directory itself and everything below it."""
    return f"{path}{os.sep}".startswith(f"{root.rstrip(os.sep)}{os.sep}")


ADD_DIR = Command("add-dir", "Work in one more directory", add, "[directory]")
