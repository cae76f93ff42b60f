"""What is protected is looked at after a command: what it made is gone, what it changed is told."""

from __future__ import annotations

import asyncio
import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.extensions.sandbox.conftest import backend, run

from crow.extensions.sandbox.backend import Backend
from crow.extensions.sandbox.policy import Policy
from crow.extensions.sandbox.protected import protected_paths
from crow.extensions.sandbox.repositories import shared_repository
from crow.extensions.sandbox.snapshot import take_away

Workspace = Callable[..., Policy]


def git(root: Path, *line: str) -> str:
    who = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "protocol.file.allow=always"]
    return subprocess.check_output(["git", *who, *line], cwd=root, text=True)


@pytest.fixture
def repository(root: Path) -> Path:
    git(root, "init", "-q", "-b", "main")
    (root / "a").write_text("one\n")
    git(root, "add", "a")
    git(root, "commit", "-qm", "one")
    return root


DEEP = """
    git init -q far/off/it
    git -C far/off/it -c user.name=a -c user.email=a@b commit -q --allow-empty -m x
    git add far/off/it 2>&1; {}
    git -C far/off/it config core.fsmonitor x
"""
ELSEWHERE = """
    mkdir -p at/v/q/objects at/v/q/refs; echo 'ref: refs/heads/x' > at/v/q/HEAD
    printf '[core]\nfsmonitor = x\n' > at/v/q/config
"""


@pytest.mark.parametrize(
    "name, command",
    [
        (".mcp.json", "echo '{}' > .mcp.json"),
        (".vscode", "mkdir .vscode; echo x > .vscode/tasks.json"),
        (".husky", "ln -s / .husky"),
        (".git/commondir", "echo /evil > .git/commondir"),
        (".git/config.worktree", "echo x > .git/config.worktree"),
        (
            ".git/worktrees/x/commondir",
            "mkdir -p .git/worktrees/x; cp a .git/worktrees/x/commondir",
        ),
        ("new/.git/config", "git init -q new; git -C new config core.fsmonitor x"),
        ("far/off/it/.git/config", DEEP.format("true")),
        ("far/off/it/.git/config", DEEP.format("git update-index --index-version 4")),
        ("far/off/it/.git/config", DEEP.format("git update-index --split-index")),
        ("at/v/q/HEAD", f"{ELSEWHERE} echo 'gitdir: v/q' > at/.git"),
        ("at/.git/config", f"{ELSEWHERE} ln -s v/q at/.git"),
        (".git/COMMIT_EDITMSG", "ln -sf /etc/passwd .git/COMMIT_EDITMSG"),
        (".git/logs/refs/stash", "ln -s ../../../../else .git/logs/refs/stash"),
    ],
)
async def test_what_a_command_makes_there_is_taken_away_and_kept_elsewhere(
    any_backend: Backend, repository: Path, workspace: Workspace, name: str, command: str
) -> None:
    ran = await run(any_backend, workspace(), command)
    assert ran.code == 0, ran.output
    [found] = ran.found
    assert (found.path, found.outcome) == (f"{repository}/{name}", "removed")
    assert not Path(found.path).is_symlink()
    assert not Path(found.path).exists()
    kept = Path(found.line.rpartition("kept as ")[2].rstrip(".)"))
    assert kept.is_symlink() or kept.exists()
    git(repository, "status")


async def test_an_ordinary_day_with_git_is_no_news(
    any_backend: Backend, repository: Path, workspace: Workspace
) -> None:
    command = """
        set -e
        export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
        echo two >> a; git commit -qam two
        git checkout -q -b side; echo three > b; git add b; git commit -qm three
        git checkout -q main; git merge -q side; git tag t; git stash list; git log --oneline
        echo four >> a; git stash -q; git stash pop -q; git checkout -q a
        git worktree add -q tree; git worktree remove tree; git gc -q
        git init -q fresh; git -C fresh commit -q --allow-empty -m x
        git clone -q --bare . copy.git; git clone -q . copy
    """
    ran = await run(any_backend, workspace(), command)
    assert (ran.code, ran.found) == (0, []), ran.output


async def test_the_folders_of_a_project_are_not_taken_for_a_repository(
    any_backend: Backend, root: Path, workspace: Workspace
) -> None:
    (root / "hooks").mkdir()
    (root / "hooks" / "useThing.js").write_text("x")
    (root / "config").write_text("anything")
    command = "mkdir -p objects refs; echo ref: refs/heads/x > HEAD; echo more >> hooks/useThing.js"
    ran = await run(any_backend, workspace(), command)
    assert [(each.path, each.outcome) for each in ran.found] == [(f"{root}/HEAD", "removed")]
    assert (root / "hooks" / "useThing.js").read_text() == "xmore\n"
    assert (root / "objects").is_dir()


async def test_a_bare_repository_in_the_root_does_not_distract(
    any_backend: Backend, root: Path, workspace: Workspace
) -> None:
    command = (
        "mkdir objects refs hooks; echo ref: x > HEAD; echo x > hooks/pre-commit; cp HEAD .envrc"
    )
    ran = await run(any_backend, workspace(), command)
    assert {each.path for each in ran.found} == {f"{root}/HEAD", f"{root}/.envrc"}


@pytest.mark.parametrize(
    "command",
    [
        "echo '[core] fsmonitor = x' >> .git/config",
        "rm -rf .git/hooks .git/config",
        "mv .git g; mkdir -p .git/hooks; echo x > .git/hooks/pre-commit; echo x > .git/config",
        "mv .git g; ln -s g .git; echo x >> g/config; echo y > g/hooks/post-commit",
        "rm .claude/settings.json; ln -s /etc/passwd .claude/settings.json; chmod 777 .git/config",
    ],
)
async def test_what_landlock_cannot_keep_is_made_as_it_was(
    repository: Path, workspace: Workspace, command: str
) -> None:
    (repository / ".claude").mkdir()
    (repository / ".claude" / "settings.json").write_text("{}")
    places = [repository / ".git" / "config", *sorted((repository / ".git" / "hooks").iterdir())]
    places.append(repository / ".claude" / "settings.json")
    before = [(each, each.lstat().st_mode, each.read_text()) for each in places]
    ran = await run(backend("landlock"), workspace(), command)
    assert {each.outcome for each in ran.found} <= {"restored", "removed"}
    assert ran.found
    assert [(each, each.lstat().st_mode, each.read_text()) for each in places] == before
    assert sorted((repository / ".git" / "hooks").iterdir()) == places[1:-1]


async def test_a_change_from_outside_meanwhile_is_told_and_left(
    repository: Path, workspace: Workspace
) -> None:
    (repository / "go").write_text("")
    config = repository / ".git" / "config"
    command = f"echo x > {repository}/up; while [ -e go ]; do sleep 0.01; done"

    async def edit() -> None:
        while not (repository / "up").exists():  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        config.write_text(config.read_text() + "[user]\n\tname = me\n")
        (repository / "go").unlink()

    editing = asyncio.create_task(edit())
    ran = await run(backend("bubblewrap"), workspace(), command)
    await editing
    assert [(each.path, each.outcome) for each in ran.found] == [(str(config), "kept")]
    assert "name = me" in config.read_text()


async def test_a_planted_rebase_is_told(
    any_backend: Backend, repository: Path, workspace: Workspace
) -> None:
    command = "mkdir .git/rebase-merge; echo 'exec evil' > .git/rebase-merge/git-rebase-todo"
    ran = await run(any_backend, workspace(), command)
    [found] = ran.found
    assert (found.path.rpartition("/")[2], found.outcome) == ("git-rebase-todo", "kept")
    assert "run programs" in found.line


async def test_a_linked_worktree_commits_into_the_repository_that_it_shares(
    any_backend: Backend, repository: Path, root: Path
) -> None:
    git(repository, "worktree", "add", "-q", "tree")
    tree = repository / "tree"
    shared = shared_repository(str(tree))
    assert shared is not None
    assert shared == f"{repository}/.git"
    protected = protected_paths(str(tree))
    assert f"{repository}/.git/config" in protected
    policy = Policy("workspace", (str(tree),), writable=(shared,), read_only=protected)
    command = "echo x > b; git add b; git -c user.name=a -c user.email=a@b commit -qm b"
    ran = await run(any_backend, policy, f"{command}; echo x > .git; echo x >> ../.git/config")
    assert git(tree, "log", "-1", "--format=%s") == "b\n", ran.output


def test_a_worktree_that_only_claims_a_repository_has_none(repository: Path, root: Path) -> None:
    (root / "evil").mkdir()
    (root / "evil" / ".git").write_text(f"gitdir: {repository}/.git/worktrees/x\n")
    assert shared_repository(f"{root}/evil") is None


def test_what_was_taken_away_is_kept_for_a_month(home: Path, tmp_path: Path) -> None:
    del home
    for name in ("old", "new", "last"):
        (tmp_path / name).write_text(name)
    old = Path(take_away(str(tmp_path / "old"), (str(tmp_path),)))
    new = Path(take_away(str(tmp_path / "new"), (str(tmp_path),)))
    ago = time.time() - 31 * 24 * 3600
    os.utime(old.parent, (ago, ago))
    assert Path(take_away(str(tmp_path / "last"), (str(tmp_path),))).read_text() == "last"
    assert not old.parent.exists()
    assert new.read_text() == "new"


async def test_crow_takes_nothing_away_that_a_link_leads_to(
    any_backend: Backend, root: Path
) -> None:
    """Nor does it restore anything there: what a command links to is somebody else's."""
    work, other = root / "work", root / "other"
    for each in (work, other):
        each.mkdir()
        git(each, "init", "-q")
    git(other, "config", "alias.x", "!ls")
    (other / ".git/hooks/pre-commit").write_text("mine")
    (other / "trees/x").mkdir(parents=True)
    (other / "trees/x/config.worktree").write_text("mine")
    policy = Policy("workspace", (str(work),), read_only=protected_paths(str(work)))
    command = f"mkdir new; ln -s {other}/.git new/.git; ln -s {other}/trees .git/worktrees"
    ran = await run(any_backend, policy, command)
    assert (other / ".git/hooks/pre-commit").read_text() == "mine"
    assert "alias" in (other / ".git/config").read_text()
    assert (other / "trees/x/config.worktree").read_text() == "mine"
    assert [each.path for each in ran.found] == [f"{work}/.git/worktrees"]


async def test_what_gits_settings_name_is_protected_as_they_are(
    any_backend: Backend, repository: Path, workspace: Workspace
) -> None:
    git(repository, "config", "core.hooksPath", "tools/hooks")
    git(repository, "config", "include.path", '../"shared config"'.replace('"', ""))
    git(repository, "config", "includeIf.onbranch:main.path", "../more")
    for name in ("tools/hooks/pre-commit", "shared config", "more"):
        (repository / name).parent.mkdir(parents=True, exist_ok=True)
        (repository / name).write_text("# mine\n")
    command = """
        echo x >> tools/hooks/pre-commit; echo x > tools/hooks/pre-push; mv tools others
        echo x >> "shared config"; mv more less; echo ok > free
    """
    await run(any_backend, workspace(), command)
    assert (repository / "free").exists()
    for name in ("tools/hooks/pre-commit", "shared config", "more"):
        assert (repository / name).read_text() == "# mine\n"
    assert [each.name for each in (repository / "tools/hooks").iterdir()] == ["pre-commit"]


async def test_a_submodule_whose_name_has_slashes_is_protected(
    any_backend: Backend, repository: Path, tmp_path: Path, workspace: Workspace
) -> None:
    git(tmp_path, "clone", "-q", str(repository), "lib")
    git(repository, "submodule", "--quiet", "add", str(tmp_path / "lib"), "libs/one")
    config = repository / ".git/modules/libs/one/config"
    before = config.read_text()
    command = "echo '[core] fsmonitor = x' >> .git/modules/libs/one/config; git status >&2"
    await run(any_backend, workspace(), command)
    assert config.read_text() == before
    assert "modified" not in git(repository, "status")
