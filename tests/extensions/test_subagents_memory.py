"""An agent's memory: where it lies, what the agent is told of it, what it may do there."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.extensions.poet import TASK, built, define

from crow.testing import ScriptedModel, call

FOLDERS = {"user": "agent-memory", "project": "agent-memory", "local": "agent-memory-local"}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / ".git").mkdir(parents=True)
    (folder / "a.txt").write_text("moon\n")
    return folder


def folder_of(scope: str, project: Path, home: Path) -> Path:
    return (home if scope == "user" else project) / ".claude" / FOLDERS[scope] / "poet"


def told(llm: ScriptedModel, request: int) -> str:
    """The system message of a request."""
    return str(llm.asked[request]["messages"][0].get("content"))


@pytest.mark.parametrize("scope", ["user", "project", "local"])
async def test_it_is_written_without_a_question_and_told_the_next_time(
    project: Path, home: Path, scope: str
) -> None:
    define(home, "tools: Grep", f"memory: {scope}")
    path = folder_of(scope, project, home) / "MEMORY.md"
    note = call("Write", file_path=str(path), content="Moon goes with June.\n")
    agent, llm = built(project, TASK, note, "June.", TASK, "July.", "Ok.")
    async with agent:
        await agent.run("Hi", cwd=project)
    assert path.read_text() == "Moon goes with June.\n"
    assert "## MEMORY.md\n\n(nothing yet)" in told(llm, 1)
    assert "## MEMORY.md\n\nMoon goes with June." in told(llm, 4)
    assert str(path.parent) in told(llm, 1)
    assert "MEMORY.md" not in told(llm, 0)
    names = {each["function"]["name"] for each in llm.asked[1]["tools"]}
    assert names == {"Grep", "Read", "Write", "Edit"}


async def test_tools_for_it_are_for_nothing_else(project: Path, home: Path) -> None:
    define(home, "tools: Grep", "memory: project")
    look = call("Read", file_path=str(project / "a.txt"))
    change = call("Write", file_path=str(project / "b.txt"), content="sun")
    settings = {"permissions": {"allow": ["Write", "Edit"]}}
    agent, llm = built(project, TASK, look, change, "Done.", "Ok.", **settings)
    async with agent:
        await agent.run("Hi", cwd=project)
    results = [
        str(each.get("content")) for each in llm.asked[3]["messages"] if each["role"] == "tool"
    ]
    assert ["is for the agent's memory alone" in each for each in results] == [True, True]
    assert not (project / "b.txt").exists()


async def test_rules_go_before_it(project: Path, home: Path) -> None:
    define(home, "memory: project")
    path = folder_of("project", project, home) / "MEMORY.md"
    note = call("Write", file_path=str(path), content="Moon.")
    agent, _ = built(project, TASK, note, "Done.", "Ok.", permissions={"deny": ["Write"]})
    async with agent:
        await agent.run("Hi", cwd=project)
    assert not path.exists()


async def test_what_leads_elsewhere_is_no_memory(project: Path, home: Path, tmp_path: Path) -> None:
    define(home, "memory: project")
    (tmp_path / "secret.md").write_text("Nobody knows.")
    folder = folder_of("project", project, home)
    folder.mkdir(parents=True)
    (folder / "MEMORY.md").symlink_to(tmp_path / "secret.md")
    note = call("Write", file_path=str(folder / "MEMORY.md"), content="Moon.")
    up = call("Write", file_path=str(folder / "../../../../up.md"), content="Moon.")
    agent, llm = built(project, TASK, note, up, "Done.", "Ok.")
    async with agent:
        await agent.run("Hi", cwd=project)
    assert "Nobody knows." not in told(llm, 1)
    assert (tmp_path / "secret.md").read_text() == "Nobody knows."
    assert not (tmp_path / "up.md").exists()


async def test_a_long_one_is_told_in_part(project: Path, home: Path) -> None:
    define(home, "memory: local")
    folder = folder_of("local", project, home)
    folder.mkdir(parents=True)
    (folder / "MEMORY.md").write_text("".join(f"line {n}.\n" for n in range(300)))
    agent, llm = built(project, TASK, "Done.", "Ok.")
    async with agent:
        await agent.run("Hi", cwd=project)
    assert "line 199.\n(there is more in the file" in told(llm, 1)
    assert "line 200." not in told(llm, 1)


async def test_a_session_that_runs_as_the_agent_has_it_too(project: Path, home: Path) -> None:
    define(home, "tools: Grep", "memory: user")
    path = folder_of("user", project, home) / "MEMORY.md"
    note = call("Write", file_path=str(path), content="Moon.")
    agent, llm = built(project, note, "Done.", agent="poet")
    async with agent:
        await agent.run("Hi", cwd=project)
    assert path.read_text() == "Moon."
    assert "# Memory" in told(llm, 0)
