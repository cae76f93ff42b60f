"""Sessions that run as one of the agents."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.conftest import Crow, calls

from crow import Agent
from crow.extensions import SubagentsHook, SystemPromptHook
from crow.testing import ScriptedModel, call
from crow.testing.endpoint import Endpoint, answer

REVIEWER = """\
---
name: reviewer
description: Reviews changes.
tools: Read, Grep
model: small
permissionMode: plan
---
You review what others wrote.
"""


def define(folder: Path, text: str = REVIEWER, name: str = "reviewer") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.md").write_text(text)
    return folder


async def test_a_session_runs_as_an_agent(tmp_path: Path) -> None:
    folder = define(tmp_path / "agents")
    model = ScriptedModel(call("Bash", command="touch made"), "Done.", "Still here.")
    hooks = [SystemPromptHook(), SubagentsHook([folder], main="reviewer")]
    async with Agent(model, hooks=hooks) as agent:
        reply = await agent.run("Look", cwd=tmp_path)
        session = reply.session
        assert (session.agent_type, session.model) == ("reviewer", "small")
        assert reply.session.messages[2]["content"] == (
            "Bash is not in use here: the agent reviewer has it not"
        )
        await agent.prompt(session, "And?")
    first = model.asked[0]
    told = first["messages"][0]["content"]
    assert isinstance(told, str)
    assert told.startswith("You review what others wrote.\n\n# ")
    assert {each["function"]["name"] for each in first["tools"]} == {"Read", "Grep"}
    assert first["messages"][0] == model.asked[2]["messages"][0]


async def test_an_agent_that_is_not_there_is_named(crow: Crow) -> None:
    ended = await crow("-p", "hi", "--agent", "reviwer")
    assert ended.status == 1
    assert ended.complaint == "there is no agent 'reviwer'; there are: general-purpose"
    settings = Path.home() / ".claude/settings.json"
    settings.parent.mkdir(exist_ok=True)
    settings.write_text('{"agent": "reviwer"}')
    ended = await crow("-p", "hi")
    assert (ended.status, "there is no agent 'reviwer'" in ended.err) == (0, True)


async def test_what_the_command_line_says_counts_before_the_agent(
    crow: Crow, endpoint: Endpoint
) -> None:
    define(Path.home() / ".claude/agents")
    (Path.home() / ".claude/settings.json").write_text('{"agent": "reviewer"}')
    endpoint.play(*[answer("Done.")] * 4)
    ended = await crow("-p", "hi", "--output-format", "stream-json")
    init = ended.events[0]
    assert (init["model"], init["permissionMode"]) == ("small", "plan")
    more = ("--model", "large", "--mode", "acceptEdits", "--system-prompt", "")
    ended = await crow("-p", "hi", "--output-format", "stream-json", *more)
    init = ended.events[0]
    assert (init["model"], init["permissionMode"]) == ("large", "acceptEdits")
    other = {"other": {"description": "Else.", "prompt": "You are another."}}
    ended = await crow("-p", "hi", "--agents", json.dumps(other), "--agent", "other")
    for request, start in zip(
        endpoint.requests, ("You review", "You review", "You are another."), strict=True
    ):
        assert request.body["messages"][0]["content"].startswith(start)
    await crow("-p", "-c", "again", "--setting-sources", "", "--agents", json.dumps(other))
    assert endpoint.requests[-1].body["messages"][0]["content"].startswith("You are another.")


async def test_a_file_chooses_no_mode_without_questions(crow: Crow, endpoint: Endpoint) -> None:
    text = REVIEWER.replace("plan", "bypassPermissions").replace("tools: Read, Grep\n", "")
    define(Path.home() / ".claude/agents", text)
    endpoint.play(calls(("Bash", {"command": "touch made"})), answer("Done."))
    ended = await crow("-p", "hi", "--agent", "reviewer", "--no-sandbox")
    assert not (crow.cwd / "made").exists()
    assert "--mode bypassPermissions does" in ended.err
