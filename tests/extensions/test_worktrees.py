"""Worktrees: sessions work in one, and it goes by consent only."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from crow import Agent, Deny, WorktreeContext
from crow.extensions import PersistenceHook, WorktreesHook
from crow.testing import ScriptedModel, ScriptedUser, call
from crow.tools import builtin

TAKE, KEEP = "Remove it", "Keep it"
IDENTITY = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")


def git(cwd: Path, *words: str) -> str:
    done = subprocess.run(
        ["git", *IDENTITY, *words], cwd=cwd, check=True, capture_output=True, text=True
    )
    return done.stdout


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    (folder / "a.txt").write_text("committed\n")
    (folder / ".gitignore").write_text(".env\n*.log\n")
    (folder / ".worktreeinclude").write_text(".env\na.txt\n")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "First")
    return folder


async def test_a_session_works_in_a_tree_of_its_own_and_the_project_stays_as_it_is(project: Path):
    (project / "a.txt").write_text("dirty\n")
    (project / ".env").write_text("KEY=1\n")
    (project / "x.log").write_text("noise\n")
    tree = project.parent / "project.worktrees" / "feat"
    model = ScriptedModel(call("Write", file_path="made.txt", content="x"), "Done.")
    async with Agent(model, hooks=[WorktreesHook()], tools=builtin()) as agent:
        reply = await agent.run("/worktree feat", cwd=project)
        assert reply.text.startswith(f"Work is in {tree} now")
        assert "1 change that is in no commit stays" in reply.text
        await agent.run("Go", session=reply.session)
    assert (tree / "made.txt").read_text() == "x"
    assert not (project / "made.txt").exists()
    assert (project / "a.txt").read_text() == "dirty\n"
    assert (tree / "a.txt").read_text() == "committed\n"
    assert (tree / ".env").read_text() == "KEY=1\n"
    assert not (tree / "x.log").exists()
    assert git(tree, "branch", "--show-current") == "worktree-feat\n"


async def test_two_sessions_share_a_tree_by_its_name_and_others_are_refused(project: Path):
    async with Agent(ScriptedModel(), hooks=[WorktreesHook()], tools=[]) as agent:
        first = await agent.run("/worktree feat", cwd=project)
        second = await agent.run("/worktree feat", cwd=project)
        assert first.session.cwd == second.session.cwd != str(project)
        (project.parent / "project.worktrees" / "taken").mkdir()
        taken = await agent.run("/worktree taken", cwd=project)
        assert "is there already" in taken.text
        for name in ("../x", "-f", "a b", ".git"):
            assert "letters" in (await agent.run(f"/worktree {name}", cwd=project)).text
        nowhere = await agent.run("/worktree x", cwd=project.parent)
        assert "no working tree of git" in nowhere.text
        assert nowhere.session.cwd == str(project.parent)


async def test_it_goes_with_a_yes_that_was_told_what_would_be_lost(project: Path):
    gone: list[tuple[str, str]] = []

    def on_worktree_remove(ctx: WorktreeContext) -> None:
        gone.append((ctx.name, ctx.path))

    hooks = [WorktreesHook(), on_worktree_remove]
    with ScriptedUser(KEEP, TAKE) as user:
        async with Agent(ScriptedModel(), hooks=hooks, tools=[]) as agent:
            session = await agent.new_session(project, client=user)
            await agent.run("/worktree feat", session=session)
            tree = Path(session.cwd)
            (tree / "a.txt").write_text("changed\n")
            (tree / "new.log").write_text("")
            kept = await agent.run("/worktree remove", session=session)
            assert "1 changed or new and in no commit, 1 ignored by git" in kept.text
            assert (tree / "a.txt").read_text() == "changed\n"
            assert (gone, session.cwd) == ([], str(tree))
            git(tree, "commit", "-qam", "Kept on its branch")
            assert "is gone" in (await agent.run("/worktree remove", session=session)).text
            assert not tree.exists()
            assert session.cwd == str(project)
            assert gone == [("feat", str(tree))]
            back = await agent.run("/worktree remove", session=session)
            assert "nothing was removed" in back.text
    assert "Kept on its branch" in git(project, "log", "worktree-feat")


async def test_nobody_is_asked_means_that_it_stays(project: Path):
    async with Agent(ScriptedModel(), hooks=[WorktreesHook()], tools=[]) as agent:
        reply = await agent.run("/worktree feat", cwd=project)
        stays = await agent.run("/worktree remove", session=reply.session)
    assert stays.text == f"The worktree {reply.session.cwd} stays."
    assert Path(reply.session.cwd).is_dir()


async def test_a_hook_makes_the_tree_itself_or_refuses_it(project: Path):
    other = project.parent / "other"
    other.mkdir()

    def on_worktree_create(name: str) -> str | Deny:
        return Deny("not now") if name == "never" else str(other)

    hooks = [WorktreesHook(), on_worktree_create]
    async with Agent(ScriptedModel(), hooks=hooks, tools=[]) as agent:
        refused = await agent.run("/worktree never", cwd=project)
        assert (refused.text, refused.session.cwd) == ("not now", str(project))
        made = await agent.run("/worktree feat", cwd=project)
        assert made.session.cwd == str(other)
    assert git(project, "branch", "--list", "worktree-*") == ""


async def test_a_resumed_session_finds_its_tree_or_says_that_it_is_gone(
    project: Path, tmp_path: Path
):
    def parts() -> list[object]:
        return [WorktreesHook(), PersistenceHook(db_path=str(tmp_path / "crow.db"))]

    async with Agent(ScriptedModel("Hello."), hooks=parts(), tools=[]) as agent:
        reply = await agent.run("/worktree feat", cwd=project)
        await agent.run("Hello", session=reply.session)
        tree = reply.session.cwd
    async with Agent(ScriptedModel(), hooks=parts(), tools=[]) as agent:
        assert (await agent.load_session(reply.session.id)).cwd == tree
    git(project, "worktree", "remove", tree)
    with ScriptedUser() as user:
        async with Agent(ScriptedModel(), hooks=parts(), tools=[]) as agent:
            await agent.load_session(reply.session.id, client=user)
        assert f"the directory of this session is gone: {tree}" in user.text
