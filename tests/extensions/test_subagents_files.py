"""Definitions of sub-agents: read from files as people write them, the broken ones named in a line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.watching import Watching

from crow import Agent
from crow.app import build
from crow.core.errors import ExtensionError
from crow.extensions import SubagentsHook
from crow.project.trust import trust
from crow.testing import ScriptedModel, call

REVIEWER = """\
---
name: reviewer
description: Use this agent to review code. Examples: "have a look", <example>user: check it</example>
tools: Read, Grep, Task
disallowedTools: [Bash, "Write"]
model: inherit
color: blue
---

You review code.

---
Be kind.
"""


def write(folder: Path, name: str, text: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(text)
    return path


def agent_file(name: str, prompt: str = "Work.", **fields: str) -> str:
    lines = [f"{key}: {value}" for key, value in {"description": "Works.", **fields}.items()]
    return "\n".join(["---", f"name: {name}", *lines, "---", prompt])


async def notices(hook: SubagentsHook) -> list[str]:
    client = Watching()
    await Agent(llm=ScriptedModel(), hooks=[hook], tools=[]).new_session(client=client)
    return client.notices


async def test_a_file_as_claude_code_writes_it_defines_an_agent(tmp_path: Path):
    path = write(tmp_path / "deep" / "er", "reviewer.md", REVIEWER)
    hook = SubagentsHook([tmp_path])
    found = hook.definitions.agents["reviewer"]
    assert found.description.startswith("Use this agent to review code. Examples: ")
    assert found.prompt == "You review code.\n\n---\nBe kind."
    assert found.tools == {"Read", "Grep", "Agent"}
    assert found.without == {"Bash", "Write"}
    assert (found.model, found.source) == ("inherit", str(path))
    assert await notices(hook) == []


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, None),
        ({"tools": "3"}, {"3"}),
        ({"tools": "{Read: true}"}, set[str]()),
        ({"tools": "Read Grep\n  Glob"}, {"Read", "Grep", "Glob"}),
        ({"tools": "- Read"}, {"Read"}),
        ({"allowedTools": "Read"}, {"Read"}),
        ({"tools": "'*'"}, None),
        ({"tools": "Read, Grep"}, {"Read", "Grep"}),
        ({"tools": "[Read, Grep]"}, {"Read", "Grep"}),
        ({"tools": "[]"}, set[str]()),
    ],
)
def test_tools_are_a_list_or_a_text_with_commas_or_blanks(
    tmp_path: Path, fields: Any, expected: Any
):
    write(tmp_path, "a.md", agent_file("a", **fields))
    assert SubagentsHook([tmp_path]).definitions.agents["a"].tools == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Just text.", "it has no front matter"),
        ("---\nname: a\n", "is not closed by ---"),
        ("---\nname: a\n---\nWork.", "it has no description"),
        ("---\nname: a\ndescription: b\n---\n \n", "it has no prompt"),
        ("---\n- a\n- b\n---\nWork.", "no table of names and values"),
        ("---\n{[\n---\nWork.", "no YAML"),
        (agent_file("a", "x" * 100_000), "more than 100000 characters"),
    ],
)
async def test_a_file_that_defines_no_agent_is_named_in_a_line_and_the_rest_counts(
    tmp_path: Path, text: str, expected: str
):
    path = write(tmp_path, "broken.md", text)
    write(tmp_path, "good.md", agent_file("good"))
    write(tmp_path, "README.txt", "no agent at all")
    hook = SubagentsHook([tmp_path])
    [problem] = await notices(hook)
    assert problem.startswith(f"{path} defines no agent: ")
    assert expected in problem
    assert "\n" not in problem
    assert list(hook.definitions.agents) == ["good", "general-purpose"]


async def test_bytes_that_are_no_text_and_files_that_cannot_be_read_are_named(tmp_path: Path):
    (tmp_path / "binary.md").write_bytes(b"---\ndescription: x\n---\nWork\0")
    (tmp_path / "folder.md").mkdir()
    (tmp_path / "gone.md").symlink_to(tmp_path / "nowhere")
    told = await notices(SubagentsHook([tmp_path]))
    assert [Path(line.split(" defines")[0]).name for line in told] == [
        "binary.md",
        "folder.md",
        "gone.md",
    ]


async def test_a_tool_that_is_given_in_part_is_not_given_and_that_is_said(tmp_path: Path):
    path = write(tmp_path, "a.md", agent_file("a", tools="Bash(git log:*, x), Read"))
    hook = SubagentsHook([tmp_path])
    assert hook.definitions.agents["a"].tools == {"Bash(git log:*, x)", "Read"}
    [problem] = await notices(hook)
    assert problem.startswith(f"{path}: the tool 'Bash(git log:*, x)' is not given")


def test_a_file_without_a_name_is_named_like_the_file_and_the_first_of_a_name_counts(
    tmp_path: Path,
):
    nameless = "---\ndescription: x\n---\nFrom the file."
    write(tmp_path / "one", "helper.md", nameless)
    write(tmp_path / "two", "helper.md", agent_file("helper", "From the other."))
    write(tmp_path / "two", "general.md", agent_file("general-purpose", "Mine."))
    agents = SubagentsHook([tmp_path / "one", tmp_path / "two", tmp_path / "no"]).definitions.agents
    assert agents["helper"].prompt == "From the file."
    assert agents["general-purpose"].prompt == "Mine."


def test_options_that_make_no_sense_are_refused():
    for options in ({"folders": "~/agents"}, {"inherit": "limits"}):
        arguments: Any = options
        with pytest.raises(ExtensionError, match="are lists"):
            SubagentsHook(**arguments)


async def test_an_agent_of_a_file_works(tmp_path: Path, home: Path):
    write(home / ".claude" / "agents", "poet.md", agent_file("poet", "You rhyme."))
    script = [call("Agent", subagent_type="poet", description="Rhyme", prompt="Go"), "Moon.", "Ok."]
    llm = ScriptedModel(*script)
    await Agent(llm=llm, hooks=[SubagentsHook()], tools=[]).run("Hi")
    assert llm.asked[1]["messages"][0] == {"role": "system", "content": "You rhyme."}


# on the agent that the command builds


@pytest.fixture
def project(tmp_path: Path, home: Path) -> Path:
    folder = tmp_path / "project"
    (folder / ".git").mkdir(parents=True)
    write(folder / ".crow" / "agents", "a.md", agent_file("a", "The project's, for crow."))
    write(folder / ".claude" / "agents", "a.md", agent_file("a", "The project's."))
    write(folder / ".claude" / "agents", "b.md", agent_file("b", "The project's."))
    write(home / ".crow" / "agents", "b.md", agent_file("b", "The user's."))
    write(home / ".claude" / "agents", "c.md", agent_file("c", "The user's."))
    return folder


def prompts(agent: Agent) -> dict[str, str]:
    extension = agent.extensions["subagents"]
    return {
        name: each.prompt for name, each in extension.definitions.agents.items() if len(name) == 1
    }


def test_agents_of_a_project_count_once_it_is_trusted(project: Path):
    assert prompts(build(cwd=project, env={})) == {"b": "The user's.", "c": "The user's."}
    trust(project)
    assert prompts(build(cwd=project, env={})) == {
        "a": "The project's, for crow.",
        "b": "The project's.",
        "c": "The user's.",
    }
    write(project / ".crow" / "agents", "a.md", agent_file("a", "Changed behind the user's back."))
    assert "a" not in prompts(build(cwd=project, env={}))


def test_the_settings_can_name_other_folders_and_take_it_all_away(project: Path, home: Path):
    write(home / "mine", "d.md", agent_file("d", "Mine."))
    write(home / ".crow", "settings.toml", '[extensions.subagents]\nfolders = ["~/mine"]\n')
    assert prompts(build(cwd=project, env={})) == {"d": "Mine."}
    write(home / ".crow", "settings.toml", '[extensions]\ndisable = ["subagents", "plan"]\n')
    tools = build(cwd=project, env={}).tools
    assert not {"Agent", "TodoWrite"} & set(tools)


async def test_a_built_agent_hands_over_with_everything_hung(project: Path):
    trust(project)
    (project / "AGENTS.md").write_text("Be kind.")
    agent = build(cwd=project, env={})
    agent.llm = llm = ScriptedModel(
        call("Agent", subagent_type="a", description="Work", prompt="Do it."),
        call("Read", file_path=str(project / "AGENTS.md")),
        "Kind.",
        "Ok.",
    )
    async with agent:
        reply = await agent.run("Hi", cwd=project)
    system = str(llm.asked[1]["messages"][0].get("content"))
    assert system.startswith("The project's, for crow.")
    assert "Be kind." in system
    assert reply.session.messages[2].get("content") == "Kind."
    assert [record.error for record in reply.session.trace if record.error] == []
    offered = [spec["function"]["name"] for spec in llm.asked[1]["tools"]]
    assert "TodoWrite" in offered
    assert "Agent" not in offered
