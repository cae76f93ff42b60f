"""Stored sessions in the shapes of others, read by programs of others."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from atif import Trajectory
from tests.cli.conftest import Crow, calls

from crow.testing.endpoint import Endpoint, delta, stream

LOG = str(Path(sys.executable).with_name("claude-code-log"))
HOOKS = {
    "Stop": [{"hooks": [{"type": "command", "command": "true"}]}],
    "PreToolUse": [
        {"matcher": "Bash", "hooks": [{"type": "command", "command": "cat; echo no >&2; exit 2"}]}
    ],
}


@pytest.fixture
async def session(crow: Crow, endpoint: Endpoint) -> str:
    """The id of a session with thoughts, a call that ran and one that a hook refused."""
    thought = delta(reasoning_content="Hm.")
    endpoint.play(
        calls(("Read", {"file_path": "README.md"}), ("Bash", {"command": "ls"}), text="I look."),
        stream(thought, delta(content="It does things."), delta(finish="stop")),
    )
    hooks = json.dumps({"hooks": HOOKS})
    ended = await crow("-p", "What does it do?", "--output-format", "json", "--settings", hooks)
    return ended.events[0]["session_id"]


@pytest.mark.slow
async def test_a_trajectory_is_valid_and_says_what_hooks_decided(crow: Crow, session: str) -> None:
    ended = await crow("sessions", "export", session, "--format", "atif")
    told = Trajectory.model_validate_json(ended.out)
    assert told.session_id == session
    asked, first, *_, last = told.steps
    assert (asked.source, asked.message) == ("user", "What does it do?")
    assert (first.source, first.message, len(first.tool_calls or ())) == ("agent", "I look.", 2)
    assert first.observation is not None
    read, listed = first.observation.results
    assert "It does things." in str(read.content)
    assert "no" in str(listed.content)
    assert (last.message, last.reasoning_content) == ("It does things.", "Hm.")
    ran, refused = [(each.extra or {})["crow"] for each in first.tool_calls or ()]
    assert (ran["outcome"], refused["outcome"]) == ("ok", "denied")
    assert "PreToolUse" in {each["event"] for each in refused["hooks"]}
    assert told.final_metrics is not None
    assert told.final_metrics.total_steps == len(told.steps)


@pytest.mark.slow
async def test_commands_are_shown_and_exported_with_their_answers(
    crow: Crow, endpoint: Endpoint
) -> None:
    endpoint.play(stream(delta(content="Hello."), delta(finish="stop")))
    await crow("run", "Say hello")
    ended = await crow("run", "--continue", "/mode")
    (latest, *_) = (await crow("sessions", "--json")).events
    shown = (await crow("sessions", "show", latest["id"])).out
    assert shown.index("> Say hello") < shown.index("Hello.") < shown.index("> /mode")
    assert ended.out.strip() in shown
    atif = (await crow("sessions", "export", latest["id"], "--format", "atif")).out
    steps = Trajectory.model_validate_json(atif).steps
    assert [(step.source, step.message) for step in steps if step.source != "system"][-2:] == [
        ("user", "/mode"),
        ("agent", ended.out.strip()),
    ]
    lines = (await crow("sessions", "export", latest["id"], "--format", "claude")).events
    assert [line["type"] for line in lines][-2:] == ["user", "assistant"]
    assert lines[-1]["message"]["model"] == "<synthetic>"


@pytest.mark.slow
async def test_claudes_lines_are_read_by_a_program_for_them(
    crow: Crow, session: str, tmp_path: Path
) -> None:
    ended = await crow("sessions", "export", session, "--format", "claude")
    file, page = tmp_path / "session.jsonl", tmp_path / "page.md"
    file.write_text(ended.out)
    assert_reads(file, page)
    (kept,) = (Path.home() / ".local/state/crow/transcripts").glob("*.jsonl")
    copy = tmp_path / "transcript.jsonl"
    copy.write_bytes(kept.read_bytes())
    assert_reads(copy, tmp_path / "transcript.md")


def assert_reads(file: Path, page: Path) -> None:
    """Hold a file against claude-code-log, which says of each line what it cannot read."""
    command = [LOG, "convert", str(file), "--output", str(page)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=50)
    assert (done.returncode, "validation error" in done.stdout) == (0, False), done.stdout
    text = page.read_text()
    for said in ("What does it do?", "I look.", "README.md", "It does things."):
        assert said in text
