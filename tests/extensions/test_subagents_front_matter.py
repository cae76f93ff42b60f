"""What the front matter of a sub-agent says beside its prompt and tools."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from tests.extensions.poet import TASK, built, define

from crow.events import Notice
from crow.extensions import SubagentsHook
from crow.testing import ScriptedUser, call


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()

    def git(*words: str) -> None:
        subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True)

    (folder / "a.txt").write_text("moon\n")
    git("init", "-q", "-b", "main")
    git("config", "user.email", "a@example.org")
    git("config", "user.name", "A")
    git("add", ".")
    git("commit", "-q", "-m", "Begin")
    return folder


@pytest.mark.parametrize(
    ("own", "callers", "runs"),
    [
        ("acceptEdits", "default", True),
        ("acceptEdits", "plan", False),
        ("plan", "acceptEdits", False),
        ("", "acceptEdits", True),
        ("bypassPermissions", "default", False),
    ],
)
async def test_a_mode_of_its_own(
    project: Path, home: Path, own: str, callers: str, runs: bool
) -> None:
    define(home, *([f"permissionMode: {own}"] if own else []))
    edit = call("Write", file_path=str(project / "b.txt"), content="sun")
    agent, _ = built(project, TASK, edit, "Sun.", "Ok.")
    async with agent:
        session = await agent.new_session(project, mode=callers)
        await agent.prompt(session, "Hi")
    assert (project / "b.txt").exists() is runs


async def test_a_limit_of_its_own(project: Path, home: Path) -> None:
    define(home, "maxTurns: 2")
    look = call("LS", path=".")
    agent, llm = built(project, TASK, look, look, "Ok.")
    async with agent:
        reply = await agent.run("Hi", cwd=project)
    assert len(llm.asked) == 4
    told = str(reply.session.messages[2].get("content"))
    assert "did not finish: stopped by turns: its limit of 2 requests" in told


async def test_skills_are_read_before_it_begins_and_instructions_can_stay_away(
    project: Path, home: Path
) -> None:
    skill = home / ".claude/skills/rhymes/SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("---\nname: rhymes\ndescription: Rhymes.\n---\nMoon goes with June.\n")
    (project / "AGENTS.md").write_text("Be kind.")
    define(home, "skills: rhymes", "omitClaudeMd: true")
    agent, llm = built(project, TASK, "June.", "Ok.")
    async with agent:
        await agent.run("Hi", cwd=project)
    first, second = (str(each["messages"][0].get("content")) for each in llm.asked[:2])
    assert ("Moon goes with June." in second, "Moon goes with June." in first) == (True, False)
    assert ("Be kind." in second, "Be kind." in first) == (False, True)


async def test_a_skill_that_is_not_there_is_named_once(project: Path, home: Path) -> None:
    define(home, "color: red", "skills: [nowhere]")
    user = ScriptedUser()
    agent, _ = built(project, TASK, "June.", TASK, "July.", "Ok.")
    async with agent:
        session = await agent.new_session(project, client=user)
        await agent.prompt(session, "Hi")
    (notice,) = (each.text for each in user.told if isinstance(each, Notice))
    assert notice == "the sub-agent poet: it has no skill nowhere: there is none"


async def test_named_servers_lend_their_tools(home: Path) -> None:
    define(home, "tools: Read", "mcpServers: [web]")
    poet = SubagentsHook().definitions.agents["poet"]
    assert [poet.may_have(name) for name in ("Read", "Bash", "mcp__web__get", "mcp__b__c")] == [
        *(True, False, True, False)
    ]


async def test_a_tree_of_its_own_stays_where_something_came_of_it(
    project: Path, home: Path
) -> None:
    define(home, "isolation: worktree")
    change = call("Bash", command="echo sun > b.txt; pwd")
    rules = {"permissions": {"allow": ["Bash"]}}
    agent, _ = built(project, TASK, change, "Done.", TASK, "Nothing to do.", "Ok.", **rules)
    async with agent:
        reply = await agent.run("Hi", cwd=project)
    first, second = (
        str(each.get("content")) for each in reply.session.messages if each["role"] == "tool"
    )
    tree = Path(first.rpartition("What it changed is in ")[2])
    assert tree.parent == project.parent / "project.worktrees"
    assert (tree / "b.txt").read_text() == "sun\n"
    assert not (project / "b.txt").exists()
    assert second == "Nothing to do."
    assert [*tree.parent.iterdir()] == [tree]
    assert reply.session.cwd == str(project)


async def test_without_a_repository_there_is_no_such_tree(tmp_path: Path, home: Path) -> None:
    define(home, "isolation: worktree")
    agent, _ = built(tmp_path, TASK, "Ok.")
    async with agent:
        reply = await agent.run("Hi", cwd=tmp_path)
    told = str(reply.session.messages[2].get("content"))
    assert told.startswith("it would work in a worktree of its own: ")
