"""Every event is fired by what makes it happen, and is given what the documentation promises."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest
from tests.extensions.shell_hooks.conftest import Stage, given

from crow.core.agent import Agent
from crow.core.errors import ModelError
from crow.core.hooks.context import Context
from crow.extensions import (
    CommandsHook,
    CompactionHook,
    FileWatcherHook,
    InstructionsHook,
    McpHook,
    PermissionsHook,
    PersistenceHook,
    PlanHook,
    SetupHook,
    SubagentsHook,
    SystemPromptHook,
)
from crow.extensions.mcp.elicitation import elicit
from crow.extensions.shell_hooks.event import EVENTS, KNOWN, OWN_EVENTS
from crow.testing import ScriptedModel, call, text

ELSEWHERE = "ConfigChange"
TREES = frozenset({"WorktreeCreate", "WorktreeRemove"})
"""Tried in test_surroundings.py, with a repository."""
"""It is fired, and tried, where settings are read again."""
DOCS = Path(__file__).parents[3] / "docs" / "claude-hooks.md"
USAGE: Any = {"input_tokens": 9, "output_tokens": 2, "total_tokens": 11}
TODO = {"content": "Work", "status": "completed", "activeForm": "Working"}
SCRIPT = (
    [
        call("Write", file_path="made.txt", content="x"),
        call("Bash", command="exit 3"),
        call("Read", file_path="CLAUDE.md"),
        call("TodoWrite", todos=[TODO]),
    ],
    call("Agent", description="A task", prompt="Do it"),
    text("Done.", usage=USAGE),
    "That was all.",
    "A summary.",
    ModelError("slow down", kind="rate_limit"),
)


def extensions(store: Path) -> list[Any]:
    return [
        SetupHook(),
        PersistenceHook(db_path=str(store)),
        PermissionsHook(["Bash", "TodoWrite", "Agent"], deny=["WebFetch"]),
        SystemPromptHook(),
        InstructionsHook(),
        CommandsHook(),
        CompactionHook(),
        PlanHook(),
        SubagentsHook(()),
        McpHook({}),
        FileWatcherHook(),
    ]


async def happen(stage: Stage, agent: Agent, told: Path) -> str:
    """All that can happen in a session, once at least; its id."""
    session = await agent.new_session(stage.cwd, client=stage.person)
    session.options["params"] = {"reasoning_effort": "high"}
    await agent.run("Please", session=session)
    await agent.run(f"/add-dir {stage.scripts}", session=session)
    for place in (stage.scripts, stage.cwd):
        await agent.run(f"/cd {place}", session=session)
    await agent.run("/compact keep the names", session=session)
    await agent.configure(session, model="scripted")
    question = {"message": "Who?", "mode": "form", "requested_schema": {"type": "object"}}
    await elicit(Context(agent, session), "the-server", question)
    with pytest.raises(ModelError):
        await agent.run("Again", session=session)
    (stage.cwd / "watched").write_text("")
    async with asyncio.timeout(30):
        while not re.search(r'"FileChanged".*\n', told.read_text()):  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    return session.id


async def recorded(stage: Stage) -> dict[str, list[dict[str, Any]]]:
    """What hooks were given, by event."""
    path = stage.scripts / "all"
    for name in KNOWN:
        handler = {"type": "command", "command": f"cat >> {path}"}
        stage.handle(
            name, handler, "watched" if name == "FileChanged" else None, name in OWN_EVENTS
        )
    (stage.cwd / "CLAUDE.md").write_text("Be kind.")
    store = stage.scripts / "crow.db"
    async with stage.agent(*SCRIPT, hooks=extensions(store)) as agent:
        session_id = await happen(stage, agent, path)
    stage.model.verify()
    async with Agent(ScriptedModel(), hooks=[*extensions(store), stage.hooks()]) as agent:
        await agent.load_session(session_id, source="resume")
    found: dict[str, list[dict[str, Any]]] = {}
    for event in given(path):
        found.setdefault(event["hook_event_name"], []).append(event)
    return found


def promised() -> dict[str, set[str]]:
    """The fields of every event by the table of the documentation; those with ``?`` may lack."""
    table = DOCS.read_text("utf-8").partition("### What they are given")[2].partition("\n## ")[0]
    fields: dict[str, set[str]] = {}
    for line in table.splitlines():
        match = re.fullmatch(r"\| (`\w+`(?:, `\w+`)*|every one) \| (.*) \|", line)
        if match:
            named = set(re.findall(r"`(\w+\??)`(?!\))", match[2]))
            for name in re.findall(r"\w+", match[1].replace("every one", "every")):
                fields[name] = named
    return fields


def test_the_documentation_speaks_of_every_event():
    silent = {event.name for event in KNOWN.values() if event.absent}
    assert promised().keys() - {"every", ELSEWHERE} == KNOWN.keys() - silent - {ELSEWHERE}
    text = DOCS.read_text("utf-8")
    assert all(f"`{name}`" in text for name in KNOWN)


@pytest.mark.slow
async def test_every_event_is_given_what_the_documentation_promises(stage: Stage):
    found = await recorded(stage)
    fields = promised()
    silent = {event.name for event in KNOWN.values() if event.absent}
    assert found.keys() == KNOWN.keys() - silent - {ELSEWHERE} - TREES
    for name, events in found.items():
        wanted = fields[name] | fields["every"]
        if name in OWN_EVENTS:
            wanted |= {"usage", "context_tokens"}
        known = {field.rstrip("?") for field in wanted}
        for event in events:
            assert event.keys() <= known, name
            assert {field for field in wanted if field.isidentifier()} <= event.keys(), name
            assert ("permission_mode" in event) == KNOWN[name].mode, name
    about_tools = [
        event for name in EVENTS if KNOWN[name].has_tool for event in found.get(name, ())
    ]
    assert {event["effort"]["level"] for event in about_tools} == {"high"}
    assert found["PreCompact"][0]["custom_instructions"] == "keep the names"
    assert found["PostCompact"][0]["compact_summary"]
    [resumed] = [event for event in found["SessionStart"] if event["source"] == "resume"]
    assert resumed["context_tokens"] > 0
    assert resumed["seconds_since_last_response"] >= 0
    assert "prompt_id" not in resumed
    assert found["PermissionRequest"][0]["permission_suggestions"][0]["type"] == "addRules"


SHAPES = {
    "Write": {"type", "filePath", "content", "structuredPatch", "originalFile"},
    "Edit": {
        "filePath",
        "oldString",
        "newString",
        "originalFile",
        "structuredPatch",
        "userModified",
        "replaceAll",
    },
    "Read": {"type", "file"},
    "Glob": {"durationMs", "numFiles", "filenames", "truncated"},
    "Grep": {"mode", "numFiles", "filenames"},
    "Bash": {"stdout", "stderr", "interrupted", "isImage"},
}


async def test_the_responses_of_tools_have_the_shapes_that_scripts_read(stage: Stage):
    seen = stage.on("PostToolUse")
    path = str(stage.cwd / "a.txt")
    await stage.run(
        call("Write", file_path="a.txt", content="one\n"),
        call("Edit", file_path="a.txt", old_string="one", new_string="two"),
        call("Read", file_path="a.txt"),
        call("Glob", pattern="*.txt"),
        call("Grep", pattern="two"),
        call("Bash", command="echo out; echo err >&2"),
        "Ok.",
    )
    responses = {event["tool_name"]: event["tool_response"] for event in given(seen)}
    assert {name: SHAPES[name] - response.keys() for name, response in responses.items()} == {
        name: set[str]() for name in SHAPES
    }
    assert all(event["tool_input"].get("file_path", path) == path for event in given(seen))
    assert responses["Read"]["file"]["content"] == "two"
    assert responses["Bash"]["stdout"] == "out\n"
