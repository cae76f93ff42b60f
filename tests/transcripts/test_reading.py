"""Conversations of other programs are read as they were, and whatever else lies in the file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.transcripts.samples import CLAUDE, CODEX, CWD, OPENCODE, PI, lines
from tests.view.conftest import lines as stored  # noqa: F401 - a fixture

from crow import Agent
from crow.cli.trajectory import claude_lines, trajectory
from crow.core.history import flaw
from crow.extensions import PersistenceHook
from crow.testing import ScriptedModel
from crow.transcripts import Transcript, UnknownTranscriptError, read
from crow.transcripts.relocation import moved
from crow.view.document import document


def told(text: str) -> list[tuple[Any, ...]]:
    """What the page shows, a short line each."""
    found: list[tuple[Any, ...]] = []
    for entry in document(text)["entries"]:
        match entry["kind"]:
            case "call":
                found.append((entry["name"], entry["title"], entry["outcome"], entry["output"]))
            case "prompt" | "answer" | "aside":
                found.append((entry["kind"], entry.get("thought", ""), entry["text"]))
            case "compacted":
                found.append(("compacted", entry["by"], entry["summary"]))
            case kind:
                found.append((kind,))
    return found


def made_of(text: str) -> Transcript:
    made = read(text)
    assert isinstance(made, Transcript)
    return made


def test_pis_sessions_are_read_by_their_last_branch():
    made = made_of(lines(PI))
    assert (made.program, made.id, made.cwd, made.model) == ("pi", "01a2-1e", CWD, "m2")
    assert made.title == "Prices"
    assert made.prompts() == ["First of all", "Raise the price"]
    assert made.usage["input_tokens"] == 100
    assert told(made.lines()) == [
        ("prompt", "", "First of all"),
        ("answer", "", "Done."),
        ("compacted", "auto", "All was done."),
        ("prompt", "", "Raise the price"),
        ("answer", "One file.", ""),
        ("edit", "a.py", "ok", "Edited."),
        ("request",),
        ("aside", "", told_by("pi", "The user ran `ls`:\na.py")),
        ("answer", "", "Raised."),
    ]


def test_opencodes_sessions_are_read_without_what_was_taken_back():
    made = made_of(json.dumps(OPENCODE))
    assert (made.program, made.id, made.cwd, made.model) == ("opencode", "ses_de24", CWD, "m2")
    assert made.usage["input_tokens"] == 100
    assert told(made.lines()) == [
        ("prompt", "", "Raise the price"),
        ("aside", "", told_by("opencode", "Plan mode.")),
        ("answer", "One file.", ""),
        ("bash", "ls", "ok", "a.py"),
        ("edit", "a.py", "error", "no such text"),
        ("request",),
        ("compacted", "auto", "All was done."),
        ("answer", "", "Raised."),
    ]


def told_by(program: str, text: str) -> str:
    return f'<crow-context source="{program}">\n{text}\n</crow-context>'


def test_claudes_transcripts_are_read_as_they_went_on():
    made = made_of(lines(CLAUDE))
    assert (made.program, made.id, made.cwd, made.model) == (
        "claude",
        "5e55",
        CWD,
        "claude-opus-4-8",
    )
    assert made.prompts() == ["/init now", "Fix the price", "Thanks"]
    assert told(made.lines()) == [
        ("prompt", "", "/init now"),
        ("aside", "", ('<crow-context source="claude">\n<local-command-stdout>Done'
                      "</local-command-stdout>\n</crow-context>")),
        ("prompt", "", "Fix the price"),
        ("answer", "Two files.", ""),
        ("answer", "", "I look."),
        ("Read", "a.py", "ok", "price = 1"),
        ("Edit", "b.py", "error", "no such file"),
        ("request",),
        ("answer", "", "Fixed."),
        ("compacted", "manual", "The price was fixed."),
        ("prompt", "", "Thanks"),
        ("answer", "", "Welcome."),
    ]  # fmt: skip
    assert made.usage == {
        "input_tokens": 100, "output_tokens": 7, "cached_tokens": 90, "cache_write_tokens": 0,
        "total_tokens": 107,
    }  # fmt: skip


def test_codex_rollouts_are_read_as_they_went_on():
    made = made_of(lines(CODEX))
    assert (made.program, made.id, made.cwd, made.model) == ("codex", "c0de", CWD, "gpt-5.3")
    assert told(made.lines()) == [
        ("prompt", "", "Run the tests"),
        ("answer", "First look.", ""),
        ("exec_command", "pytest", "error", CODEX[8]["payload"]["output"]),
        ("apply_patch", "apply_patch", "ok", "Success"),
        ("request",),
        ("answer", "", "One test fails."),
    ]


async def test_what_crow_exports_for_others_is_read_again(stored: str):  # noqa: F811
    text = stored
    rows = list(map(json.loads, text.splitlines()))
    for exported in (json.dumps(trajectory(rows)), lines(list(claude_lines(rows)))):
        again = told(made_of(exported).lines())
        spoken = ("prompt", "answer")
        assert [e for e in again if e[0] in spoken] == [e for e in told(text) if e[0] in spoken]
        calls = [(e["name"], e["output"]) for e in document(text)["entries"] if e["kind"] == "call"]
        assert [(e[0], e[-1]) for e in again if len(e) == 4] == calls
    whole = document(made_of(json.dumps(trajectory(rows))).lines())
    known = [each["hooks"] for each in document(text)["entries"] if each["kind"] == "call"]
    assert [each["hooks"] for each in whole["entries"] if each["kind"] == "call"] == known


def test_an_export_of_crow_is_itself():
    text = made_of(lines(CODEX)).lines()
    assert read(text) == text


@pytest.mark.parametrize("text", ["", "hello", "{}", "[1]", '{"type": "user"}', lines(CODEX[:1])])
def test_what_is_no_conversation_is_said_to_be_none(text: str):
    with pytest.raises(UnknownTranscriptError):
        read(text)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3)
    ),
    max_leaves=6,
)


def paths_in(value: Any, here: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Where something stands in JSON."""
    found = [here] if here else []
    items = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value if isinstance(value, list) else ())
    )
    return [*found, *(path for key, inner in items for path in paths_in(inner, (*here, key)))]


@settings(max_examples=200)
@given(st.data())
def test_no_damage_of_a_line_stops_the_reading_of_the_others(data: st.DataObject):
    known = data.draw(st.sampled_from([CLAUDE, CODEX, PI, [OPENCODE], [trajectory_of_codex()]]))
    broken: Any = json.loads(json.dumps(known))
    for _ in range(data.draw(st.integers(1, 3))):
        *where, last = data.draw(st.sampled_from(paths_in(broken)))
        place = broken
        for key in where:
            place = place[key]
        place[last] = data.draw(JSON)
    try:
        made = read(lines([e for e in broken if isinstance(e, dict)]))
    except UnknownTranscriptError:
        return
    document(made if isinstance(made, str) else made.lines())


def trajectory_of_codex() -> dict[str, Any]:
    return trajectory(map(json.loads, made_of(lines(CODEX)).lines().splitlines()))


@pytest.mark.parametrize("sample", [CLAUDE, CODEX, PI, [OPENCODE]])
async def test_a_conversation_goes_on_where_it_was_taken_in(tmp_path: Path, sample: Any):
    made = made_of(lines(sample))
    head, rows = moved(made.lines(), [(CWD, str(tmp_path))])
    model = ScriptedModel("Gone on.")
    async with Agent(model, hooks=[hook := PersistenceHook(tmp_path / "c.db")], tools=[]) as agent:
        await hook.store.add(made.session_id, head, rows)
        session = await agent.load_session(made.session_id)
        assert session.cwd == str(tmp_path)
        reply = await agent.run("Go on", session=session)
    assert reply.text == "Gone on."
    sent = model.asked[0]["messages"]
    assert flaw(sent) is None
    assert [m["content"] for m in sent if m["role"] == "user"][-1] == "Go on"


def test_paths_are_those_of_here_and_rights_are_not_taken_along():
    made = made_of(lines(CLAUDE))
    made.prompt("Look at /home/ada/shop/x.py, /home/ada/shopping and /home/ada/.env", 1.0)
    text = made.lines().replace(
        '"state": {}', '"state": {"plan": {"todos": []}, "permissions": {"allow": 1}}'
    )
    text = text.replace('"mode": "default"', '"mode": "bypassPermissions"')
    text = text.replace('"directories": []', '"directories": ["/"]')
    head, rows = moved(text, [("/home/ada", "/home/bob"), (CWD, "/src/shop")])
    assert head["cwd"] == "/src/shop"
    assert (
        rows[-1]["data"]["content"]
        == "Look at /src/shop/x.py, /home/bob/shopping and /home/bob/.env"
    )
    assert (head["mode"], head["directories"], head["state"]) == (
        "default",
        [],
        {"plan": {"todos": []}},
    )
