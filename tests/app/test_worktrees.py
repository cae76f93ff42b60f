"""What was allowed for good in one worktree of a repository counts in all of them."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from tests.app.conftest import write

from crow.core.ports.client import PermissionRequest
from crow.project.trust import trust
from crow.project.worktree import main_worktree
from crow.settings import load
from crow.testing import BuildAgent, call

RULES = ".claude/settings.local.json"


@pytest.fixture
def main(tmp_path: Path) -> Path:
    """A repository, with a linked worktree beside it."""
    folder = tmp_path / "main"
    as_somebody = ["-c", "user.name=a", "-c", "user.email=a@b"]
    for line in (
        ["init", "-q", str(folder)],
        ["-C", str(folder), *as_somebody, "commit", "-q", "--allow-empty", "-m", "x"],
        ["-C", str(folder), "worktree", "add", "-q", str(tmp_path / "linked")],
    ):
        subprocess.run(["git", *line], check=True)
    return folder


@pytest.fixture
def linked(main: Path) -> Path:
    return main.parent / "linked"


def allowed(cwd: Path) -> list[str]:
    return [entry.text for entry in load(cwd).permissions.allow]


async def test_an_approval_given_in_a_linked_worktree_is_kept_for_all(
    build_agent: BuildAgent, main: Path, linked: Path
) -> None:
    class Person:
        files = terminals = None

        async def update(self, session_id: str, event: object) -> None: ...
        async def permission(self, session_id: str, request: PermissionRequest) -> str:
            return "allow_always"

        async def ask(self, session_id: str, question: object) -> None: ...

    async with build_agent(call("Bash", command="make x"), "done", cwd=linked) as agent:
        session = await agent.new_session(str(linked), client=Person())  # type: ignore[arg-type]
        await agent.prompt(session, "Go")
    kept = json.loads((main / RULES).read_text())
    assert kept == {"permissions": {"allow": ["Bash(make x *)"]}}
    assert not (linked / RULES).exists()
    assert allowed(linked) == allowed(main) == ["Bash(make x *)"]


def test_nothing_but_rules_is_shared_and_only_of_a_main_one_that_is_trusted(
    home: Path, main: Path, linked: Path
) -> None:
    del home
    rules = {"allow": ["Bash(a *)"], "deny": ["Bash(b *)"], "defaultMode": "acceptEdits"}
    write(main / RULES, {"permissions": rules, "env": {"X": "1"}})
    settings = load(linked)
    assert settings.trusted
    assert settings.permissions.allow == ()
    assert [each.text for each in settings.permissions.deny] == ["Bash(b *)"]
    trust(main)
    settings = load(linked)
    assert [each.text for each in settings.permissions.allow] == ["Bash(a *)"]
    assert settings.permissions.mode is None
    assert settings.env == {}
    write(linked / ".claude/settings.json", {"hooks": {}})
    assert allowed(linked) == []  # now this one itself would have to be trusted


def test_a_forged_pointer_borrows_no_approvals(home: Path, main: Path, tmp_path: Path) -> None:
    del home
    write(main / RULES, {"permissions": {"allow": ["Bash(a *)"]}})
    trust(main)
    evil = tmp_path / "evil"
    evil.mkdir()
    for named in (main / ".git/worktrees/linked", main / ".git", tmp_path / "none"):
        (evil / ".git").write_text(f"gitdir: {named}\n")
        assert main_worktree(evil) is None
        assert allowed(evil) == []
    inner = evil / "worktrees/evil"
    inner.mkdir(parents=True)
    (inner / "gitdir").write_text(str(evil / ".git"))
    (inner / "commondir").write_text(str(main / ".git"))
    (evil / ".git").write_text(f"gitdir: {inner}\n")
    assert main_worktree(evil) is None
    assert main_worktree(main) is None
    assert main_worktree(tmp_path / "linked") == main
