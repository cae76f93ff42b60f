"""Sub-agents in a worktree of their own: git's or a hook's, gone where nothing was changed."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from crow import Agent, Deny
from crow.extensions import SubagentsHook
from crow.extensions.subagents import Definition
from crow.project import state_directory
from crow.testing import ScriptedModel, call

ALONE = Definition("alone", "Works alone", "Work.", front_matter={"isolation": "worktree"})
TASK = call("Agent", description="A task", prompt="Do it", subagent_type="alone")
WRITE = call("Write", file_path="made.txt", content="x")


def git(folder: Path, *args: str) -> str:
    names = ("-c", "user.name=A", "-c", "user.email=a@example.org")
    ran = subprocess.run(["git", *names, *args], cwd=folder, check=True, capture_output=True)
    return ran.stdout.decode().strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with one commit, of a file in a folder."""
    folder = tmp_path / "repository"
    (folder / "inside").mkdir(parents=True)
    (folder / "inside/a.txt").write_text("one")
    git(folder, "init", "--quiet")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "-m", "Begin")
    return folder


async def result(cwd: Path, *lines: Any, hooks: Any = ()) -> str:
    """What the caller of a sub-agent is told."""
    model = ScriptedModel(TASK, *lines, "Done.")
    extensions = [SubagentsHook((), agents=[ALONE]), *hooks]
    async with Agent(model, hooks=extensions) as agent:
        reply = await agent.run("Go", cwd=cwd)
        model.verify()
        return str(reply.session.messages[2]["content"])


def worktrees() -> list[Path]:
    folder = state_directory() / "worktrees"
    return sorted(folder.iterdir()) if folder.is_dir() else []


async def test_what_was_changed_there_stays_and_the_caller_is_told_where(repository: Path) -> None:
    told = await result(repository / "inside", WRITE, "I have made it.")
    (tree,) = worktrees()
    assert told.startswith("I have made it.")
    assert f"is kept: {tree}, on the branch crow/{tree.name}." in told
    assert (tree / "inside/made.txt").read_text() == "x"
    assert (tree / "inside/a.txt").read_text() == "one"
    assert git(repository, "status", "--porcelain") == ""


async def test_one_in_which_nothing_was_changed_is_gone_with_its_branch(repository: Path) -> None:
    read = call("Read", file_path="inside/a.txt")
    assert await result(repository, read, "It says one.") == "It says one."
    assert worktrees() == []
    assert len(git(repository, "worktree", "list").splitlines()) == 1
    assert git(repository, "branch", "--list", "crow/*") == ""


async def test_a_commit_there_is_kept_as_well(repository: Path) -> None:
    for name, value in (("user.name", "A"), ("user.email", "a@example.org")):
        git(repository, "config", name, value)
    commit = call("Bash", command="git commit --quiet --allow-empty -m More")
    assert "which is kept" in await result(repository, commit, "Committed.")


async def test_programs_of_the_repository_do_not_run(repository: Path) -> None:
    hook = repository / ".git/hooks/post-checkout"
    hook.write_text("#!/bin/sh\ntouch ran\n")
    hook.chmod(0o755)
    await result(repository, "Ok.")
    assert not (repository / "ran").exists()


async def test_without_a_repository_there_is_none_and_the_model_is_told(tmp_path: Path) -> None:
    assert "not a git repository" in await result(tmp_path)


async def test_a_hook_makes_it_another_way_and_takes_it_away(repository: Path) -> None:
    heard: list[str] = []
    place = repository.parent / "place"

    class Places:
        def on_worktree_create(self, name: str) -> str:
            heard.append(name.partition("-")[0])
            git(repository, "worktree", "add", "--quiet", "--detach", str(place))
            return str(place)

        def on_worktree_remove(self, worktree_path: str) -> None:
            heard.append(worktree_path)
            git(repository, "worktree", "remove", worktree_path)

    assert await result(repository, call("Bash", command="pwd"), "Ok.", hooks=[Places()]) == "Ok."
    assert heard == ["alone", str(place)]
    assert worktrees() == []


async def test_a_hook_that_refuses_fails_or_names_no_directory_makes_none(
    repository: Path,
) -> None:
    for answer, said in ((Deny("not today"), "not today"), ("nowhere", "is no directory")):

        def on_worktree_create(ctx: Any, answer: Any = answer) -> Any:
            return answer

        assert said in await result(repository, hooks=[on_worktree_create])

    def broken(ctx: Any) -> None:
        raise OSError("full")

    class Broken:
        on_worktree_create = staticmethod(broken)

    assert "could not decide" in await result(repository, hooks=[Broken()])
    assert worktrees() == []


async def test_one_that_a_hook_will_not_remove_is_named(repository: Path) -> None:
    place = repository.parent / "place"

    class Places:
        def on_worktree_create(self, name: str) -> str:
            git(repository, "worktree", "add", "--quiet", "--detach", str(place))
            return str(place)

        def on_worktree_remove(self) -> Deny:
            return Deny("I want to look at it")

    told = await result(repository, "Ok.", hooks=[Places()])
    assert f"which is kept: {place}. It could not be removed: I want to look at it" in told
