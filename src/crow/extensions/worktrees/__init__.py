"""Working trees of git that sessions have to themselves."""

from __future__ import annotations

import os
from pathlib import Path

from crow import (
    Agent,
    Answer,
    Command,
    CommandContext,
    Context,
    Session,
    SessionContext,
    WorktreeContext,
    hook,
)
from crow.dataclasses import entity
from crow.errors import HookError
from crow.hooks import LAST

NAME = "worktrees"
REMOVE = "remove"
TAKE, KEEP = "Remove it", "Keep it"


@entity
class WorktreesHook:
    """Makes working trees of git for sessions: ``/worktree NAME``, and ``crow run --worktree``.

    They are beside the project, in ``PROJECT.worktrees/NAME`` on the branch ``worktree-NAME``, and
    stay until ``/worktree remove`` and a yes. Fires ``on_worktree_create`` and
    ``on_worktree_remove``.
    """

    name = NAME
    order = 186
    is_its_options = True

    @hook("on_session_start", order=LAST)
    async def look_for_it(self, ctx: SessionContext) -> None:
        """Say where the directory of a resumed session is gone."""
        if not os.path.isdir(ctx.session.cwd):  # noqa: PTH112
            what = f"the directory of this session is gone: {ctx.session.cwd}"
            await ctx.ui.notify(what, severity="warning")

    def init_agent(self, agent: Agent) -> None:
        """Add the command."""
        what = "Work in a working tree of your own, or remove the one that is worked in"
        agent.add_command(Command("worktree", what, self.answer, f"[NAME|{REMOVE}]"))

    async def answer(self, ctx: CommandContext) -> Answer:
        """What ``/worktree`` does."""
        try:
            if ctx.args.strip() == REMOVE:
                return Answer(await self._remove(ctx))
            return Answer(await self.enter_worktree(ctx.agent, ctx.session, ctx.args.strip()))
        except HookError as error:
            return Answer(str(error))

    async def enter_worktree(self, agent: Agent, session: Session, name: str = "") -> str:
        """Make the tree of this name, or find it, and let the session work there; says so.

        Raises `HookError` where there can be none.
        """
        from crow.extensions.worktrees.repository import Repository, check_name

        check_name(name := name or session.id[:8])
        wanted = WorktreeContext(agent, session, name)
        ruling = await agent.hooks.on_worktree_create.fire(wanted)
        if ruling.refused:
            raise HookError(ruling.reason or f"a hook refused the worktree {name!r}")
        left = ""
        if not wanted.path:
            repository = await Repository.of(session.cwd)
            wanted.path = str(await repository.add(name))
            if count := await repository.changes():
                what = (
                    "change that is in no commit stays"
                    if count == 1
                    else "changes that are in no commit stay"
                )
                left = f" {count} {what} in {repository.root}."
        await Context(agent, session).change_directory(wanted.path)
        return f"Work is in {wanted.path} now; /worktree {REMOVE} takes it away.{left}"

    async def leave_unused(self, agent: Agent, session: Session) -> bool:
        """Take the tree away that a session has worked in, if nothing came of that; else False."""
        from crow.extensions.worktrees.repository import Repository

        path = Path(session.cwd)
        repository = await Repository.of(session.cwd)
        if not await repository.is_tree(path) or await repository.has_news(path):
            return False
        gone = WorktreeContext(agent, session, path.name, str(path))
        await agent.hooks.on_worktree_remove.fire(gone)
        if os.path.lexists(path):
            await repository.remove(path)
        return True

    async def _remove(self, ctx: CommandContext) -> str:
        """Take the tree away that the session works in, if the user says so."""
        from crow.extensions.worktrees.repository import Repository

        repository = await Repository.of(ctx.cwd)
        path, main = repository.root, repository.main
        if not await repository.is_tree(path):
            return f"{path} is no worktree, but the repository itself: nothing was removed."
        losses = await repository.losses(path)
        detail = "\n".join(f"- {each}" for each in losses) or "Nothing is lost."
        chosen = await ctx.ui.select(
            f"Remove the worktree {path}, with all that is in it?",
            (TAKE, KEEP),
            kinds=("allow_once", "reject_once"),
            detail=detail,
        )
        if chosen != TAKE:
            told = f" It would take along: {', '.join(losses)}." if losses else ""
            return f"The worktree {path} stays.{told}"
        if await repository.losses(path) != losses:
            return f"The worktree {path} has changed meanwhile, and stays: ask again."
        await ctx.change_directory(str(main))
        gone = WorktreeContext(ctx.agent, ctx.session, path.name, str(path))
        await ctx.agent.hooks.on_worktree_remove.fire(gone)
        if os.path.lexists(path):
            await repository.remove(Path(path))
        return f"The worktree {path} is gone. Work is in {main} now."
