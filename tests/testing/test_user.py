"""The scripted user: what it answers, what it remembers, and what it complains of."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from crow import Agent, Ask, Context
from crow.core.ports.client import PermissionRequest, Question
from crow.testing import AgentOf, call
from crow.testing.user import ScriptedUser


class Asks:
    """Asks before each call."""

    def before_tool(self) -> Ask:
        return Ask("it is a test")


class Form:
    """Asks the user three things at the beginning."""

    async def before_run(self, ctx: Context) -> str:
        sure = await ctx.ui.confirm("Sure?")
        size = await ctx.ui.select("Which size?", ["small", "large"])
        name = await ctx.ui.ask("Which name?", default="nobody")
        return f"{sure} {size} {name}"


async def touch(agent: Agent, cwd: Path, user: ScriptedUser) -> bool:
    """Let the model make a file; True where it is there then."""
    await agent.run("Go", cwd=cwd, client=user)
    return (cwd / "made").exists()


@pytest.mark.parametrize(
    "answer, ran",
    [
        ("allow_once", True),
        ("Allow once", True),
        (True, True),
        (False, False),
        ("reject_once", False),
        (None, False),
        (lambda request: request.call.name == "Bash", True),
    ],
)
async def test_permissions_are_answered_by_option_or_by_a_function(
    agent_of: AgentOf, tmp_path: Path, answer: Any, ran: bool
):
    agent = agent_of(call("Bash", command="touch made"), "Done.", hooks=[Asks()])
    with ScriptedUser(answer) as user:
        assert await touch(agent, tmp_path, user) is ran
    (asked,) = user.asked
    assert isinstance(asked, PermissionRequest)
    assert asked.reason == "it is a test"
    assert user.text == "Done."


async def test_the_fields_of_a_form_are_answered_one_after_another(agent_of: AgentOf):
    agent = agent_of("Done.", hooks=[Form()])
    with ScriptedUser(True, "large", "Ada") as user:
        reply = await agent.run("Go", client=user)
    assert "True large Ada" in str(reply.session.messages)
    assert [each.kind for each in user.asked if isinstance(each, Question)] == [
        *("confirm", "select", "text"),
    ]


async def test_a_function_answers_whatever_is_asked_past_the_list(agent_of: AgentOf):
    async def answer(question: Question) -> Any:
        return question.choices[0] if question.choices else "Ada"

    agent = agent_of("Done.", hooks=[Form()])
    with ScriptedUser() as user:
        user.answers(True)
        user.always(answer)
        reply = await agent.run("Go", client=user)
    assert "True small Ada" in str(reply.session.messages)


async def test_a_question_without_an_answer_is_denied_and_named(agent_of: AgentOf, tmp_path: Path):
    agent = agent_of(call("Bash", command="touch made"), "Done.", hooks=[Asks()])
    user = ScriptedUser()
    assert not await touch(agent, tmp_path, user)
    with pytest.raises(AssertionError) as caught:
        user.verify()
    assert str(caught.value) == (
        "the scripted user has no answer: permission for Bash (touch made): it is a test "
        "[allow_once, reject_once]"
    )


@pytest.mark.parametrize(
    "answers, complaint",
    [
        (
            ["yes"],
            "the scripted user's answer 'yes' is none to this, it takes True, False: confirm",
        ),
        ([True, "larg"], "'larg' is none to this, did you mean 'large'?: select 'Which size?' [sm"),
        (
            [True, "large"],
            "the scripted user has no answer (it was question 3): text 'Which name?'",
        ),
    ],
)
async def test_a_wrong_answer_is_named_with_what_was_asked(
    agent_of: AgentOf, answers: list[Any], complaint: str
):
    agent = agent_of("Done.", hooks=[Form()])
    user = ScriptedUser(*answers)
    user.always(None) if len(answers) == 1 else None
    await agent.run("Go", client=user)
    with pytest.raises(AssertionError) as caught:
        user.check()
    assert complaint in str(caught.value)


async def test_an_option_that_is_not_offered_is_named_with_the_nearest(
    agent_of: AgentOf, tmp_path: Path
):
    agent = agent_of(call("Bash", command="touch made"), "Done.", hooks=[Asks()])
    user = ScriptedUser("alow_once")
    assert not await touch(agent, tmp_path, user)
    with pytest.raises(AssertionError, match=r"'alow_once' is none.*did you mean 'allow_once'\?"):
        user.verify()


async def test_answers_that_nobody_asked_for_are_named(agent_of: AgentOf):
    with pytest.raises(AssertionError, match=r"1 answers were left over: 'allow_once'; asked"):  # noqa: SIM117
        with ScriptedUser("allow_once") as user:
            await agent_of("Done.").run("Go", client=user)


async def test_it_hides_no_other_error():
    with pytest.raises(KeyError), ScriptedUser("allow_once"):
        raise KeyError
