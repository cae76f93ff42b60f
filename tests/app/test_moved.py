"""A session whose user goes to another directory: rules, trust and hooks are those of that place."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.app.conftest import Room, write

from crow.core.errors import HookError
from crow.core.ports.client import PermissionRequest
from crow.project.trust import trust
from crow.testing import call

TOUCH = call("Bash", command="touch made")


@pytest.fixture
def other(tmp_path: Path) -> Path:
    """Another project."""
    folder = tmp_path / "other"
    (folder / ".git").mkdir(parents=True)
    return folder


def rules(folder: Path, **permissions: list[str]) -> None:
    write(folder / ".claude/settings.json", {"permissions": permissions})


async def go(room: Room, place: Path) -> None:
    session = room.session or await room.open()
    reply = await room.agents[-1].prompt(session, f"/cd {place}")
    assert reply.text == f"This session works in {place} now."


def asked(room: Room) -> list[Any]:
    """The first request that the model was sent for a prompt."""
    model: Any = room.agents[-1].llm
    return model.asked[0]["messages"]


async def test_the_rules_of_the_new_place_hold_and_those_of_the_old_one_no_longer(
    room: Room, other: Path
) -> None:
    rules(room.project, deny=["Bash(touch *)"])
    rules(other, deny=["Bash(ls *)"], allow=["Bash(touch *)"])
    trust(other)
    assert "denies it" in (await room.do(TOUCH))[0]
    await go(room, other)
    touched, listed = await room.do(TOUCH, call("Bash", command="ls ."))
    assert "denies" not in touched
    assert (other / "made").exists()
    assert "the rule Bash(ls *) denies it" in listed
    await go(room, room.project)
    assert "denies it" in (await room.do(TOUCH))[0]


async def test_a_place_that_is_not_trusted_permits_nothing(room: Room, other: Path) -> None:
    rules(other, allow=["Bash(touch *)"])
    await room.open()
    await go(room, other)
    await room.do(TOUCH)
    assert len(room.person.asked) == 1
    assert not (other / "made").exists()


async def test_what_the_user_has_allowed_in_one_place_is_asked_again_in_the_other(
    room: Room, other: Path
) -> None:
    asked: list[str] = []

    async def always(session_id: str, request: PermissionRequest) -> str | None:
        asked.append(request.call.name)
        return "allow_always"

    await room.open()
    room.person.permission = always
    run = call("Bash", command="sh ./build.sh")
    for place, script in ((room.project, "touch one"), (other, "touch two")):
        write(place / "build.sh", script)
    await room.do(run)
    await room.do(run)
    assert asked == ["Bash"]
    await go(room, other)
    await room.do(run)
    assert asked == ["Bash", "Bash"]


async def test_what_is_refused_in_one_place_permits_nothing_that_was_allowed_in_the_other(
    room: Room, other: Path
) -> None:
    answers: list[str] = []

    async def said(session_id: str, request: PermissionRequest) -> str | None:
        answers.append("reject_always" if "rm " in str(request.call.args) else "allow_always")
        return answers[-1]

    await room.open()
    room.person.permission = said
    run = call("Bash", command="sh ./build.sh")
    for place in (room.project, other):
        write(place / "build.sh", "touch made")
    await room.do(run)
    await go(room, other)
    await room.do(call("Bash", command="rm a.txt"))
    await room.do(run)
    assert answers == ["allow_always", "reject_always", "allow_always"]


async def test_the_old_place_is_outside_and_relative_paths_mean_the_new_one(
    room: Room, other: Path
) -> None:
    write(room.project / "a.txt", "the old one")
    write(other / "a.txt", "the new one")
    await room.open()
    await go(room, other)
    said = await room.do(
        call("Read", file_path="a.txt"), call("Read", file_path=str(room.project / "a.txt"))
    )
    assert "the new one" in said[0]
    assert [request.call.name for request in room.person.asked] == ["Read"]


async def test_hooks_of_the_new_place_run_and_hear_that_the_session_has_begun(
    room: Room, other: Path, tmp_path: Path
) -> None:
    heard = tmp_path / "heard"
    tell: Any = [{"hooks": [{"type": "command", "command": f"cat >> {heard}"}]}]
    write(other / ".claude/settings.json", {"hooks": {"SessionStart": tell, "PreToolUse": tell}})
    trust(other)
    await room.open()
    await go(room, other)
    await room.do(TOUCH)
    events = list(map(json.loads, heard.read_text().splitlines()))
    assert [event["hook_event_name"] for event in events] == ["SessionStart", "PreToolUse"]
    assert {event["cwd"] for event in events} == {str(other)}


async def test_a_server_that_both_places_have_stays_and_its_tools_stay_callable(
    room: Room, other: Path, home: Path, tmp_path: Path
) -> None:
    server = str(Path(__file__).parents[1] / "extensions/mcp/servers/raw.py")
    trace = tmp_path / "trace"
    described = {
        "command": sys.executable,
        "args": ["-SE", server, "{}"],
        "env": {"TRACE": str(trace)},
    }
    table = {"extensions": {"mcp": {"wait": 60}}, "mcpServers": {"s": described}}
    write(home / ".crow/settings.json", {**table, "permissions": {"allow": ["mcp__s"]}})
    write(other / "AGENTS.md", "")
    trust(other)
    echo = call("mcp__s__echo", x=1)
    assert '{"x": 1}' in (await room.do(echo))[0]
    await go(room, other)
    assert '{"x": 1}' in (await room.do(echo))[0]
    assert trace.read_text().count("started") == 1


async def test_the_instructions_of_the_new_place_reach_the_model_and_the_request_keeps_its_head(
    room: Room, other: Path
) -> None:
    write(other / "AGENTS.md", "Speak softly.")
    await room.do(TOUCH)
    first = asked(room)
    await go(room, other)
    await room.do(TOUCH)
    later = asked(room)
    assert later[0] == first[0]
    assert "Speak softly." in json.dumps(later[1:])
    assert "Speak softly." not in json.dumps(first)


async def test_a_call_that_was_judged_in_one_place_runs_in_no_other(
    room: Room, other: Path
) -> None:
    refused: list[str] = []

    async def moves(ctx: Any) -> None:
        try:
            await ctx.change_directory(str(other))
        except HookError as error:
            refused.append(str(error))

    await room.open()
    room.agents[-1].hooks.register("before_tool", moves)
    await room.do(call("Bash", command="pwd > here"))
    assert refused == ["calls wait for their results, and were judged in another directory"]
    assert not (other / "here").exists()


async def test_what_was_allowed_before_places_were_kept_counts_where_it_was(
    room: Room, other: Path
) -> None:
    session = await room.open()
    session.state["permissions"] = {"allow": ["Bash(touch *)"]}
    await go(room, other)
    await room.do(call("Bash", command="touch made"))
    assert [request.call.name for request in room.person.asked] == ["Bash"]
    await go(room, room.project)
    await room.do(call("Bash", command="touch made"))
    assert len(room.person.asked) == 1
