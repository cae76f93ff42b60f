from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from crow.core.agent import Agent
from crow.core.messages import context_block, user
from crow.core.ports.llm import Completion, Request
from crow.core.verdicts import Deny
from crow.llm import Rehearsal
from crow.llm.rehearsal.model import INTRODUCTION
from crow.llm.rehearsal.phrases import PHRASES, Misunderstanding, steps_of
from crow.tools import builtin


def calls(request: str) -> list[tuple[str, dict[str, Any]]]:
    return [(step.tool, step.args) for step in steps_of(request)]


@pytest.mark.parametrize(
    "request_, made",
    [
        ("Read the file README.md", [("Read", {"file_path": "README.md"})]),
        ("please read README.md.", [("Read", {"file_path": "README.md"})]),
        ("Read the file a.txt @/p/a.txt @./b", [("Read", {"file_path": "a.txt"})]),
        ("Read @/p/a.txt", [("Read", {"file_path": "/p/a.txt"})]),
        ("Find @todo", [("Grep", {"pattern": "@todo"})]),
        ("Show me `a b.txt`", [("Read", {"file_path": "a b.txt"})]),
        ("Create a file called test.txt", [("Write", {"file_path": "test.txt", "content": ""})]),
        (
            "Create a file called a.txt with the text “hello”, world",
            [("Write", {"file_path": "a.txt", "content": "“hello”, world"})],
        ),
        ("Delete all temporary files in /tmp", [("Bash", {"command": "rm -f /tmp/*.tmp"})]),
        ("Delete all temporary files in 'a b/'", [("Bash", {"command": "rm -f 'a b'/*.tmp"})]),
        ("Delete all temporary files in /", [("Bash", {"command": "rm -f /*.tmp"})]),
        ("Delete the file `a;b`", [("Bash", {"command": "rm 'a;b'"})]),
        ('Call weather {"city": "Rome"}', [("weather", {"city": "Rome"})]),
        ("Call the tool weather.", [("weather", {})]),
        (
            'Call mcp__a__b-c with {"days": [1, {"x": "y, then z"}]}, then call weather',
            [("mcp__a__b-c", {"days": [1, {"x": "y, then z"}]}), ("weather", {})],
        ),
        ("Write the file new.py", [("Write", {"file_path": "new.py", "content": ""})]),
        ("Run `pytest -q`", [("Bash", {"command": "pytest -q"})]),
        ("Run the command ls -l | wc -l", [("Bash", {"command": "ls -l | wc -l"})]),
        ("Find TODO in src", [("Grep", {"pattern": "TODO", "path": "src"})]),
        ("Find TODO", [("Grep", {"pattern": "TODO"})]),
        ("Search for 'a in b' in src", [("Grep", {"pattern": "a in b", "path": "src"})]),
        ("Find files matching *.py in src", [("Glob", {"pattern": "*.py", "path": "src"})]),
        ("List the files in ..", [("LS", {"path": ".."})]),
        ("List the files", [("LS", {"path": "."})]),
        ("list src/.", [("LS", {"path": "src/"})]),
        (
            "Replace red by blue in the file c.txt",
            [
                ("Read", {"file_path": "c.txt"}),
                ("Edit", {"file_path": "c.txt", "old_string": "red", "new_string": "blue"}),
            ],
        ),
        (
            'Create a file called a with "x, then y", then read a. Then run `echo then` and then list',
            [
                ("Write", {"file_path": "a", "content": "x, then y"}),
                ("Read", {"file_path": "a"}),
                ("Bash", {"command": "echo then"}),
                ("LS", {"path": "."}),
            ],
        ),
    ],
)
def test_plain_sentences_become_calls(request_: str, made: Any):
    assert calls(request_) == made


@pytest.mark.parametrize("phrase", PHRASES, ids=lambda phrase: phrase.example)
def test_every_example_is_understood(phrase: Any):
    assert phrase.pattern.fullmatch(phrase.example)
    assert steps_of(phrase.example)


@pytest.mark.parametrize("odd", ["Fly to the moon", "Read", "Read a then fly"])
def test_anything_else_is_not_understood(odd: str):
    with pytest.raises(Misunderstanding):
        steps_of(odd)


async def test_a_request_runs_through_the_real_loop_step_by_step(tmp_path: Path):
    agent = Agent(Rehearsal(), tools=builtin())
    prompt = (
        "Create a file called colour.txt with red, then replace red by blue in colour.txt, "
        "then find blue, then list the files"
    )
    reply = await agent.run(prompt, cwd=tmp_path)
    assert (tmp_path / "colour.txt").read_text() == "blue"
    said = [message for message in reply.session.messages if message["role"] == "assistant"]
    assert [len(message.get("tool_calls", ())) for message in said] == [1, 1, 1, 1, 1, 0]
    assert str(said[0].get("content")).startswith(INTRODUCTION)
    assert INTRODUCTION not in "".join(str(message.get("content")) for message in said[1:])
    assert 'I call Edit(file_path="colour.txt"' in str(said[2].get("content"))
    assert reply.text.startswith("LS answered:\n\n")
    assert "    colour.txt" in reply.text
    assert reply.usage.get("total_tokens", 0) > 0
    again = await agent.run("Read colour.txt", session=reply.session)
    assert INTRODUCTION not in again.text
    assert "blue" in again.text


async def test_a_denial_is_reported_as_it_is(tmp_path: Path):
    keep = tmp_path / "keep.tmp"
    keep.write_text("x")

    class NoRemoving:
        def before_tool(self, call: Any) -> Deny | None:
            return Deny("removing files is not allowed") if "rm " in str(call.args) else None

    agent = Agent(Rehearsal(), tools=builtin(), hooks=[NoRemoving()])
    reply = await agent.run(f"Delete all temporary files in {tmp_path}", cwd=tmp_path)
    assert keep.exists()
    assert reply.text.startswith("Bash answered:")
    assert "removing files is not allowed" in reply.text


async def test_a_missing_file_is_reported_as_it_is(tmp_path: Path):
    agent = Agent(Rehearsal(), tools=builtin())
    reply = await agent.run("Read the file nothing.txt", cwd=tmp_path)
    assert "nothing.txt" in reply.text
    assert "not" in reply.text


async def test_what_it_does_not_understand_makes_it_say_what_it_does(tmp_path: Path):
    agent = Agent(Rehearsal(), tools=builtin())
    reply = await agent.run("Read a.txt, then write me a novel", cwd=tmp_path)
    assert "I do not understand “write me a novel”" in reply.text
    assert all(phrase.example in reply.text for phrase in PHRASES)
    assert not any(message["role"] == "tool" for message in reply.session.messages)


async def ask(request: Request) -> tuple[str, Completion]:
    *deltas, completion = [item async for item in Rehearsal().stream(request)]
    assert isinstance(completion, Completion)
    return "".join(getattr(delta, "text", "") for delta in deltas), completion


TOOLS: list[Any] = [
    {"type": "function", "function": {"name": name}} for name in ("Read", "Grep", "Glob")
]


async def test_it_streams_word_by_word_and_names_how_to_get_a_real_model():
    items = [item async for item in Rehearsal().stream(Request([user("Read a")], TOOLS))]
    assert len(items) > 30
    text, completion = await ask(Request([user("Read a")], TOOLS))
    assert text == completion.text + completion.calls[0].raw
    assert text.splitlines()[0] == INTRODUCTION
    assert "rehearsal" in INTRODUCTION
    assert "--model" in INTRODUCTION


async def test_tools_that_are_not_on_offer_are_not_called():
    _, completion = await ask(Request([user("Run `ls`")], TOOLS))
    assert completion.calls == ()
    assert "no tool Bash is on offer" in completion.text
    _, completion = await ask(Request([user("List src")], TOOLS))
    assert completion.calls[0].name == "Glob"
    assert completion.calls[0].args == {"path": "src", "pattern": "*"}


async def test_injected_context_is_no_prompt():
    messages = [user("Read a"), context_block("It rains.", "weather")]
    _, completion = await ask(Request(messages, TOOLS))
    assert completion.calls[0].args == {"file_path": "a"}
    _, completion = await ask(Request(messages[1:], TOOLS))
    assert "There is no prompt." in completion.text


async def test_a_long_result_is_clipped_with_a_word_about_it():
    messages: list[Any] = [
        user("Read a"),
        {"role": "assistant", "content": "x"},
        {"role": "tool", "tool_call_id": "call00001", "content": "line\n" * 50 + "y" * 1000},
    ]
    text, _ = await ask(Request(messages, TOOLS))
    assert text.count("    line\n") == 12
    assert "… and 39 more lines" in text


def test_the_page_has_every_sentence():
    page = (Path(__file__).parents[2] / "docs/first-run.md").read_text("utf-8")
    assert [phrase.example for phrase in PHRASES if f"\n- {phrase.example}" not in page] == []
