"""``crow run --json``: the keys that programs read, as the documentation lists them."""

from __future__ import annotations

import json
import re
from dataclasses import fields
from pathlib import Path
from typing import Any, get_args

import pytest
from tests.cli.conftest import Crow, calls

from crow.cli.jsonl import record
from crow.core import events
from crow.core.tools import Call, Diff, Location, ToolResult
from crow.testing.endpoint import Endpoint, answer

PAGE = (Path(__file__).parents[2] / "docs/json.md").read_text("utf-8")
ROWS = re.findall(r"^\| `(\w+)` \| .* \| (.*) \|$", PAGE, re.MULTILINE)
KEYS = {name: re.findall(r"`(\w+)`", re.sub(r"\(.*?\)", "", keys)) for name, keys in ROWS}

CALL = Call("c1", "Edit", {"file_path": "a"})
RESULT = ToolResult("ok", diffs=(Diff("/a", None, "x"),), locations=(Location("/a", 1),))
SAMPLES: dict[type, Any] = {
    events.ToolPending: events.ToolPending(CALL, "Edit a", "edit", (Location("/a"),)),
    events.ToolStarted: events.ToolStarted(CALL, {}, "Edit a"),
    events.ToolEnded: events.ToolEnded(CALL, "ok", RESULT, 0.5),
    events.PlanChanged: events.PlanChanged((events.PlanEntry("look"),)),
    events.UsageReported: events.UsageReported({"input_tokens": 1}, {}, 1, None),
}


def sample(kind: type) -> Any:
    """An event of a kind."""
    return SAMPLES.get(kind) or kind(*(["x"] * len(fields(kind))))


@pytest.mark.parametrize("kind", get_args(events.Event), ids=lambda kind: kind.__name__)
def test_every_event_has_the_keys_that_the_documentation_lists(kind: type) -> None:
    told = record(sample(kind))
    assert list(told)[1:] == KEYS[told["type"]]
    json.dumps(told)


async def test_what_is_told_while_a_session_opens_comes_behind_its_line(
    crow: Crow, endpoint: Endpoint
) -> None:
    endpoint.play(answer("Things."))
    ended = await crow("run", "--json", "What?", CROW_SANDBOX="none")
    first, second, *_ = ended.events
    assert first["type"] == "session"
    assert (second["type"], second["source"]) == ("notice", "sandbox")


async def test_a_run_begins_with_its_session_and_ends_with_its_result(
    crow: Crow, endpoint: Endpoint
) -> None:
    endpoint.play(calls(("Read", {"file_path": "README.md"}), text="I look."), answer("Things."))
    ended = await crow("run", "--json", "What?")
    assert (ended.status, ended.err) == (0, "")
    for event in ended.events:
        assert list(event)[1:] == KEYS[event["type"]]
    first, *_, last = ended.events
    assert first["type"] == "session"
    assert (first["version"], first["model"], first["resumed"]) == (1, "scripted", False)
    assert last["type"] == "result"
    assert (last["text"], last["stop_reason"], last["detail"]) == ("Things.", "end_turn", "")
    assert last["usage"]["total_tokens"] == 20
    order = [event["type"] for event in ended.events if event["type"].startswith("tool_")]
    assert order == ["tool_pending", "tool_started", "tool_ended"]


async def test_what_needs_a_permission_is_told_and_denied(crow: Crow, endpoint: Endpoint) -> None:
    endpoint.play(calls(("Bash", {"command": "touch made"})), answer("No."))
    ended = await crow("run", "--json", "Make it")
    told = {event["type"]: event for event in ended.events}
    assert list(told["permission_wanted"])[1:] == KEYS["permission_wanted"]
    assert told["permission_wanted"]["title"] == "touch made"
    assert told["tool_ended"]["outcome"] == "denied"


async def test_a_run_that_cannot_begin_is_one_error(crow: Crow) -> None:
    ended = await crow("run", "--json", "--model", "openai/gpt-5", "hello")
    assert ended.status == 1
    assert [event["type"] for event in ended.events] == ["error"]
    assert ended.events[0]["message"] == ended.complaint
    assert "OPENAI_API_KEY" in ended.complaint


async def test_what_an_extension_prints_stays_out_of_the_lines(
    crow: Crow, endpoint: Endpoint
) -> None:
    endpoint.play(answer("Things."))
    code = 'print("on import")\n\n\ndef before_run():\n    print("in a hook")\n'
    (crow.cwd / "chatty.py").write_text(code, "utf-8")
    ended = await crow("run", "--json", "--extension", "chatty.py", "What?")
    assert ended.events[-1]["text"] == "Things."
    assert ended.err == "on import\nin a hook\n"
