"""What survives compactions by construction: the model that summarises here keeps nothing at all."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from compaction_kit.compacted import CompactedContext
from compaction_kit.corpus import build_random_session
from compaction_kit.session import Turn
from compaction_kit.testing import assert_no_flags, check_compactor
from hypothesis import given
from hypothesis import strategies as st

from crow import Agent, Message, Session, tool
from crow.core.messages import context_block, text_of
from crow.extensions import (
    CompactionHook,
    InstructionsHook,
    PlanHook,
    QuestionsHook,
    SkillsHook,
    SystemPromptHook,
)
from crow.extensions.compaction.pins import Pins, pinned
from crow.testing import Line, ScriptedModel, ScriptedUser, call

DOCS = Path(__file__).parents[2] / "docs" / "sessions.md"


def user(text: str) -> Message:
    return {"role": "user", "content": text}


def reading(path: str) -> Message:
    function: Any = {"name": "Read", "arguments": f'{{"file_path": "{path}"}}'}
    made: Any = {"id": path, "type": "function", "function": function}
    return {"role": "assistant", "content": None, "tool_calls": [made]}


def block(messages: list[Message], room: int = 100_000) -> Message:
    made = pinned(messages, [], room)
    assert made is not None
    return made


# what is told


def test_words_and_files_go_from_one_compaction_into_the_next():
    first = block([user("Fix it.\n\n  Keep the tests."), reading("a.py"), reading("b.py")])
    told = text_of(first["content"])
    assert "> Fix it.\n> \n>   Keep the tests." in told
    again = block([context_block("Nothing.", "summary"), first, reading("a.py"), user("> And?")])
    told = text_of(again["content"])
    assert told.index("> Fix it.") < told.index("> > And?")
    assert told.index("- b.py") < told.index("- a.py")
    assert text_of(block([again])["content"]) == told


def test_the_first_and_the_latest_words_come_first_and_the_rest_is_counted():
    made = block([user(f"Wish {number} " + "x" * 90) for number in range(20)], 500)
    told = text_of(made["content"])
    assert "> Wish 0 " in told
    assert "(15 more of the user's messages are left out here)" in told
    assert [number for number in range(20) if f"> Wish {number} " in told] == [0, 16, 17, 18, 19]
    assert "(17 more of" in text_of(block([made, user("y" * 120)], 500)["content"])


def test_one_long_message_leaves_room_for_others():
    made = block([user("Begin"), user("log " * 10_000), user("End")], 1000)
    told = text_of(made["content"])
    assert "> Begin" in told
    assert "> End" in told
    assert "characters ...]" in told
    assert len(told) < 1000


def test_what_is_still_there_is_not_told_twice():
    kept = [user("Here"), reading("here.py")]
    assert pinned(kept, kept, 1000) is None


@given(st.lists(st.text(min_size=1), max_size=6), st.lists(st.text(min_size=1), max_size=6))
def test_any_words_and_paths_are_read_again_as_they_were_told(words: list[str], paths: list[str]):
    words = ["\n".join(word.splitlines()) or " " for word in words]
    paths = [path for path in dict.fromkeys(paths) if path.splitlines() == [path]]
    made = Pins(words=words, left_out=3, files=paths).block(100_000)
    if not words and not paths:
        assert made is None
        return
    assert made is not None
    pins = Pins().take([made])
    assert pins.words == [*dict.fromkeys(reversed(words))][::-1]
    assert pins.files == paths
    assert pins.left_out == (3 if words else 0)


# a kit that others wrote


def forgetful(*script: Line) -> ScriptedModel:
    """A model whose summaries say nothing, and which has nothing more to say after its script."""
    return ScriptedModel(*script, *["Nothing."] * 60, leftover="allow")


class Compacting:
    """Crow's ``/compact``, round after round in one session, as the kit wants to call it."""

    name = "crow"

    def __init__(self) -> None:
        self.agent = Agent(forgetful(), hooks=[CompactionHook()], tools=[])
        self.session: Session | None = None

    def compact(
        self, turns: list[Turn], round_num: int = 1, budget_chars: int | None = None
    ) -> CompactedContext:
        del budget_chars
        return CompactedContext(asyncio.run(self.round(turns)), self.name, round_num)

    async def round(self, turns: list[Turn]) -> str:
        if self.session is None:
            self.session = await self.agent.new_session()
            given: list[Any] = [{"role": each.role, "content": each.text} for each in turns[1:]]
            self.session.restart(given)
        reply = await self.agent.run("/compact", session=self.session)
        assert reply.text.startswith("Compacted")
        await self.agent.run("Go on.", session=self.session)
        return "\n".join(text_of(message.get("content")) for message in self.session.messages)


def test_the_conformance_kit_finds_nothing_lost_in_ten_rounds():
    report = check_compactor(Compacting(), rounds=10)
    assert_no_flags(report)
    assert {finding.round1_survival for finding in report.findings} == {1.0}


@pytest.mark.parametrize("seed", range(1, 6))
def test_random_sessions_of_the_kit_lose_nothing_either(seed: int):
    session, canaries = build_random_session(seed)
    report = check_compactor(Compacting(), session=session, canaries=canaries, rounds=10)
    assert_no_flags(report)


# the table of the docs

SURVIVES = {
    "instructions (`AGENTS.md`)": "Indent by three.",
    "a skill that was loaded": "Deploy on Tuesdays alone.",
    "the user's words": "The port is 8123.",
    "the user's answers": "Only staging.",
    "the plan": "[>] Move the tables",
    "files at hand": "src/moving.py",
    "what a tool said": "moved 4711 rows",
    "what the model said": "The index is to blame.",
}
ROUNDS = (1, 3, 10)
MARKS = {True: "yes", False: "where the summary says so"}


ASKED = {
    "question": "Where?",
    "header": "Where",
    "options": [{"label": "Only staging."}, {"label": "Everywhere"}],
}


@tool
def look(file_path: str) -> str:
    """Look at a file."""
    return f"{file_path} moved 4711 rows"


async def test_the_table_of_the_docs_says_what_survives(tmp_path: Path, home: Path):
    del home
    skill = tmp_path / ".crow/skills/deploy/SKILL.md"
    skill.parent.mkdir(parents=True)
    head = "---\nname: deploy\ndescription: Deploys.\n---\n"
    skill.write_text(f"{head}Deploy on Tuesdays alone.")
    (tmp_path / "AGENTS.md").write_text("Indent by three.")
    todos = [{"content": "Move the tables", "status": "in_progress"}]
    calls = [
        call("Skill", skill="deploy"),
        call("TodoWrite", todos=todos),
        call("AskUserQuestion", questions=[ASKED]),
        call("look", file_path="src/moving.py"),
    ]
    model = forgetful(calls, "The index is to blame.")
    hooks = [
        SystemPromptHook(),
        InstructionsHook(),
        SkillsHook(),
        PlanHook(),
        QuestionsHook(always=True),
    ]
    async with Agent(model, hooks=[*hooks, CompactionHook()], tools=[look]) as agent:
        user = ScriptedUser("Only staging.")
        session = await agent.new_session(str(tmp_path), client=user)
        await agent.run("Move the tables. The port is 8123.", session=session)
        for number in range(4):  # so many turns stay as they are
            await agent.run(f"And then, {number}?", session=session)
        found: dict[str, list[bool]] = {name: [] for name in SURVIVES}
        for number in range(1, max(ROUNDS) + 1):
            assert "Compacted" in (await agent.run("/compact", session=session)).text
            await agent.run(f"Go on, for the {number}. time.", session=session)
            if number in ROUNDS:
                told = "\n".join(text_of(m.get("content")) for m in model.asked[-1]["messages"])
                for name, words in SURVIVES.items():
                    found[name].append(words in told)
    rows = [" | ".join([f"| {name}", *map(MARKS.__getitem__, row)]) for name, row in found.items()]
    assert "\n".join(f"{row} |" for row in rows) in DOCS.read_text()
