"""``--include-hook-events``: what hooks of settings files do, as programs are told of it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.cli.conftest import Crow, calls, crow, endpoint, forks, project

from crow.testing.endpoint import Endpoint, answer

__all__ = ["crow", "endpoint", "forks", "project"]

STREAM = ("-p", "--output-format", "stream-json", "--verbose")
HOOKS = "--include-hook-events"
READ = calls(("Read", {"file_path": "README.md"}))
Told = dict[str, Any]


def settings(**events: str | dict[str, Any]) -> tuple[str, str]:
    """Options with a hook an event: a command, or a handler."""
    table = {
        event: [{"hooks": [each if isinstance(each, dict) else command(each)]}]
        for event, each in events.items()
    }
    return "--settings", json.dumps({"hooks": table})


def command(text: str, **more: Any) -> dict[str, Any]:
    """A handler that is a program."""
    return {"type": "command", "command": text, **more}


def told(events: list[Told]) -> list[Told]:
    """What was said of hooks."""
    return [each for each in events if str(each.get("subtype")).startswith("hook_")]


def steps(events: list[Told]) -> list[tuple[str, str]]:
    """What was said of hooks, in short."""
    return [(each["subtype"], each["hook_name"]) for each in told(events)]


async def test_each_hook_is_told_of_when_it_begins_and_ends(crow: Crow, endpoint: Endpoint) -> None:
    endpoint.play(READ, answer("Things."))
    given = settings(PreToolUse="echo yes; echo but >&2", Stop="exit 1")
    ended = await crow(*STREAM, HOOKS, *given, "What?")
    assert steps(ended.events) == [
        ("hook_started", "PreToolUse:Read"),
        ("hook_response", "PreToolUse:Read"),
        ("hook_started", "Stop"),
        ("hook_response", "Stop"),
    ]
    began, done, *_, last = told(ended.events)
    assert began.keys() == {
        *("type", "subtype", "hook_id", "hook_name", "hook_event", "uuid", "session_id")
    }
    assert done["hook_id"] == began["hook_id"] != last["hook_id"]
    assert (done["stdout"], done["stderr"], done["output"]) == ("yes\n", "but\n", "yes\nbut\n")
    assert (done["exit_code"], done["outcome"], done["hook_event"]) == (0, "success", "PreToolUse")
    assert (last["exit_code"], last["outcome"]) == (1, "error")
    assert {each["session_id"] for each in ended.events} == {began["session_id"]}


async def test_only_hooks_of_the_beginning_are_told_of_unasked_and_before_all_else(
    crow: Crow, endpoint: Endpoint
) -> None:
    endpoint.play(READ, answer("Things."))
    ended = await crow(*STREAM, *settings(SessionStart="echo hi", PreToolUse="true"), "What?")
    name = "SessionStart:startup"
    assert steps(ended.events) == [("hook_started", name), ("hook_response", name)]
    kinds = [each.get("subtype") for each in ended.events]
    assert kinds[:3] == ["hook_started", "hook_response", "init"]


@pytest.mark.parametrize(
    ("hook", "ending"),
    [
        ("exit 2", {"exit_code": 2, "outcome": "error"}),
        ('echo \'{"decision": "block", "reason": "no"}\'', {"exit_code": 0, "outcome": "success"}),
        ("echo '{'", {"exit_code": 0, "outcome": "error"}),
        (command("sleep 60", timeout=0.1), {"outcome": "cancelled"}),
        (command("no-such-program-anywhere", args=[]), {"outcome": "error"}),
    ],
)
async def test_how_a_hook_ended(
    crow: Crow, endpoint: Endpoint, hook: str | dict[str, Any], ending: Told
) -> None:
    endpoint.play(READ, answer("Things."))
    ended = await crow(*STREAM, HOOKS, *settings(PostToolUse=hook), "What?")
    _, done = told(ended.events)
    assert {key: done[key] for key in ("exit_code", "outcome") if key in done} == ending


async def test_a_hook_in_the_background_ends_later(crow: Crow, endpoint: Endpoint) -> None:
    endpoint.play(READ, answer("Things."))
    later = "while [ ! -e go ]; do sleep 0.05; done; echo late"
    given = settings(PostToolUse=command(later, **{"async": True}), Stop="touch go")
    ended = await crow(*STREAM, HOOKS, *given, "What?")
    assert sorted(steps(ended.events)) == [
        ("hook_response", "PostToolUse:Read"),
        ("hook_response", "Stop"),
        ("hook_started", "PostToolUse:Read"),
        ("hook_started", "Stop"),
    ]
    (done,) = [t for t in told(ended.events)[1:] if t["hook_event"] == "PostToolUse"]
    assert (done["stdout"], done["outcome"]) == ("late\n", "success")


@pytest.mark.slow
async def test_what_a_hook_prints_is_told_while_it_runs(crow: Crow, endpoint: Endpoint) -> None:
    endpoint.play(READ, answer("Things."))
    ended = await crow(*STREAM, HOOKS, *settings(PreToolUse="echo one; sleep 2.5"), "What?")
    assert [each["subtype"] for each in told(ended.events)] == [
        *("hook_started", "hook_progress", "hook_response")
    ]
    assert told(ended.events)[1]["output"] == "one\n"
