"""The model asks the user: questions with options, and whether a plan is to be carried out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from crow import Agent
from crow.core.catalog import Mode
from crow.extensions import PermissionsHook, PersistenceHook, QuestionsHook
from crow.testing import FakeEditor, ScriptedModel, call

ASKED = {
    "question": "Which database?",
    "header": "Database",
    "options": [
        {"label": "SQLite", "description": "one file"},
        {"label": "Postgres", "description": "a server"},
    ],
}
OTHER = {**ASKED, "question": "Which host?", "header": "Host"}
PLAN = "1. Look\n2. Do"
UNANSWERED = "Nobody has answered: decide yourself, and say what you took for granted."


def agent_of(*script: Any, always: bool = True, **rules: Any) -> Agent:
    """An agent that asks, with modes."""
    agent = Agent(
        llm=ScriptedModel(*script), hooks=[PermissionsHook(**rules), QuestionsHook(always=always)]
    )
    for mode in ("default", "acceptEdits", "plan"):
        agent.add_mode(Mode(mode, mode))
    return agent


def results(agent: Agent) -> list[str]:
    """What the model was told last of its calls."""
    model: Any = agent.llm
    return [str(m["content"]) for m in model.asked[-1]["messages"] if m["role"] == "tool"]


def names(agent: Agent) -> list[str]:
    """The tools of the last request."""
    model: Any = agent.llm
    return [tool["function"]["name"] for tool in model.asked[-1]["tools"]]


async def asked(editor: FakeEditor, agent: Agent, cwd: Path, mode: str = "") -> str:
    """One prompt; the mode in the end."""
    async with editor.connected(agent):
        session = await editor.new_session(cwd)
        if mode:
            await editor.connection.set_session_mode(session, mode)
        await editor.prompt(session, "Go")
        (held,) = agent.sessions.values()
        return held.mode


async def test_a_question_is_put_as_options_and_the_answer_goes_to_the_model(
    tmp_path: Path,
) -> None:
    editor = FakeEditor(permissions=[lambda request: request["options"][1]["optionId"]])
    agent = agent_of(call("AskUserQuestion", questions=[ASKED, OTHER]), "Postgres, then.")
    await asked(editor, agent, tmp_path)
    assert [len(request["options"]) for request in editor.asked] == [3, 3]
    assert [option["name"] for option in editor.asked[0]["options"]] == [
        *("SQLite: one file", "Postgres: a server", "Something else"),
    ]
    (told,) = results(agent)
    assert told == "The user's answers:\n\nWhich database?\nPostgres\n\nWhich host?\nPostgres"


async def test_with_forms_all_questions_are_one_form_and_other_answers_can_be_typed(
    tmp_path: Path,
) -> None:
    many = {**OTHER, "multiSelect": True}
    said = {
        "question_0": "",
        "question_0_custom": " DuckDB ",
        "question_1": ["SQLite", "Postgres"],
        "question_1_custom": "both",
    }
    editor = FakeEditor(answers=[said])
    agent = agent_of(call("AskUserQuestion", questions=[ASKED, many]), "DuckDB.")
    await asked(editor, agent, tmp_path)
    options = [
        {"const": "SQLite", "title": "SQLite", "description": "one file"},
        {"const": "Postgres", "title": "Postgres", "description": "a server"},
    ]
    (form,) = editor.asked
    assert form["message"] == "2 questions"
    assert form["toolCallId"] == editor.cards()[0]["toolCallId"]
    assert form["schema"]["properties"] == {
        "question_0": {
            "type": "string",
            "title": "Database",
            "description": "Which database?",
            "oneOf": options,
        },
        "question_0_custom": {"type": "string", "title": "Something else"},
        "question_1": {
            "type": "array",
            "title": "Host",
            "description": "Which host?",
            "items": {"anyOf": options},
        },
        "question_1_custom": {"type": "string", "title": "Something else"},
    }
    told = "Which database?\nDuckDB\n\nWhich host?\nSQLite, Postgres, both"
    assert results(agent) == [f"The user's answers:\n\n{told}"]


async def test_one_question_is_the_forms_own_and_words_stand_beside_the_choice(
    tmp_path: Path,
) -> None:
    said = {"question_0": "SQLite", "question_0_custom": "in memory"}
    editor = FakeEditor(answers=[said])
    agent = agent_of(call("AskUserQuestion", questions=[ASKED]), "SQLite.")
    await asked(editor, agent, tmp_path)
    (form,) = editor.asked
    assert form["message"] == "Which database?"
    assert "description" not in form["schema"]["properties"]["question_0"]
    assert results(agent) == ["The user's answers:\n\nWhich database?\nSQLite, in memory"]


async def test_without_forms_several_options_are_chosen_one_after_another(tmp_path: Path) -> None:
    names = ["SQLite: one file", "Postgres: a server", "That is all"]

    def choose(request: Any) -> str:
        name = names.pop(0)
        return next(o["optionId"] for o in request["options"] if o["name"] == name)

    editor = FakeEditor(permissions=[choose])
    many = {**ASKED, "multiSelect": True}
    agent = agent_of(call("AskUserQuestion", questions=[many]), "Both.")
    await asked(editor, agent, tmp_path)
    assert results(agent) == ["The user's answers:\n\nWhich database?\nSQLite, Postgres"]


async def test_a_question_that_is_declined_is_no_failure(tmp_path: Path) -> None:
    editor = FakeEditor(answers=[None])
    agent = agent_of(call("AskUserQuestion", questions=[ASKED]), "SQLite, I assume.")
    await asked(editor, agent, tmp_path)
    assert results(agent) == [UNANSWERED]


@pytest.mark.parametrize(
    "questions",
    [
        [],
        [ASKED] * 5,
        ["Which?"],
        [{**ASKED, "question": " "}],
        [{**ASKED, "options": ASKED["options"][:1]}],
        [{**ASKED, "options": [{"label": "same"}, {"label": "same"}]}],
        [{**ASKED, "options": ["SQLite", "Postgres"]}],
    ],
)
async def test_a_question_that_cannot_be_put_is_not(tmp_path: Path, questions: Any) -> None:
    editor = FakeEditor()
    agent = agent_of(call("AskUserQuestion", questions=questions), "Well.")
    await asked(editor, agent, tmp_path)
    assert editor.asked == []
    assert "question" in results(agent)[0]


async def test_nobody_is_offered_questions_where_nobody_answers(tmp_path: Path) -> None:
    agent = agent_of("Hello.")
    async with agent:
        await agent.run("Hi", cwd=tmp_path)
    assert "AskUserQuestion" not in names(agent)
    assert "ExitPlanMode" not in names(agent)


@pytest.mark.parametrize(
    ("answer", "mode", "told"),
    [
        ("Yes, and accept edits", "acceptEdits", "the mode is acceptEdits now"),
        ("Yes, and ask as before", "default", "the mode is default now"),
    ],
)
async def test_a_plan_that_is_agreed_on_ends_the_planning(
    tmp_path: Path, answer: str, mode: str, told: str
) -> None:
    editor = FakeEditor(answers=[answer])
    agent = agent_of(call("ExitPlanMode", plan=PLAN), "I begin.")
    assert await asked(editor, agent, tmp_path, "plan") == mode
    assert told in results(agent)[0]
    assert "2. Do" in str(editor.asked)


async def test_the_mode_before_planning_is_not_one_of_an_earlier_starts_settings(
    tmp_path: Path,
) -> None:
    script: tuple[Any, ...] = ("Hello.",)
    session = mode = ""
    for settled in ("acceptEdits", "default"):
        editor = FakeEditor(answers=["Yes, and ask as before"])
        agent = agent_of(*script, mode=settled)
        agent.use(PersistenceHook(tmp_path / "db"))
        async with editor.connected(agent):
            if settled == "acceptEdits":
                session = await editor.new_session(tmp_path)
                await editor.connection.set_session_mode(session, "plan")
            else:
                await editor.connection.load_session(str(tmp_path), session)
            await editor.prompt(session, "Go")
            mode = agent.sessions[session].mode
        script = (call("ExitPlanMode", plan=PLAN), "I begin.")
    assert mode == "default"


async def test_a_plan_that_is_refused_goes_on_with_the_reason(tmp_path: Path) -> None:
    editor = FakeEditor(answers=["No, go on planning", "Test first."])
    agent = agent_of(call("ExitPlanMode", plan=PLAN), "I plan on.")
    assert await asked(editor, agent, tmp_path, "plan") == "plan"
    assert results(agent) == ["the user does not agree to this plan: Test first."]


@pytest.mark.parametrize("agreed", [True, False])
async def test_planning_begins_only_if_the_user_agrees(tmp_path: Path, *, agreed: bool) -> None:
    editor = FakeEditor(answers=[agreed])
    agent = agent_of(call("EnterPlanMode"), "Well.")
    assert await asked(editor, agent, tmp_path) == ("plan" if agreed else "default")


async def test_outside_of_planning_there_is_no_plan_to_agree_on(tmp_path: Path) -> None:
    editor = FakeEditor()
    agent = agent_of(call("ExitPlanMode", plan=PLAN), "I begin.")
    assert await asked(editor, agent, tmp_path) == "default"
    assert editor.asked == []
    assert results(agent) == ["the mode is not plan: go on with the work"]


async def test_without_a_mode_to_plan_in_there_are_questions_only(tmp_path: Path) -> None:
    editor = FakeEditor()
    agent = Agent(llm=ScriptedModel("Hello."), hooks=[QuestionsHook(always=True)])
    agent.add_mode(Mode("default", "Default"))
    await asked(editor, agent, tmp_path)
    assert "AskUserQuestion" in names(agent)
    assert "ExitPlanMode" not in names(agent)


async def test_planning_brings_the_tools_and_they_stay(tmp_path: Path) -> None:
    editor = FakeEditor()
    agent = agent_of("one", "two", "three", always=False)
    offered: list[bool] = []
    async with editor.connected(agent):
        session = await editor.new_session(tmp_path)
        for mode in ("default", "plan", "default"):
            await editor.connection.set_session_mode(session, mode)
            await editor.prompt(session, "Go")
            offered.append({"AskUserQuestion", "ExitPlanMode"} <= set(names(agent)))
    assert offered == [False, True, True]
