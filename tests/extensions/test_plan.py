"""The plan: kept with the session, shown to the client, judged by gates, brought to mind when stale."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from tests.extensions.tools import step
from tests.watching import Watching

from crow import Agent
from crow.core.events import PlanChanged, PlanEntry
from crow.core.verdicts import Stop
from crow.extensions import PersistenceHook, PlanHook
from crow.testing import ScriptedModel, call
from crow.testing.plugin import AgentOf


def todos(**steps: str) -> list[dict[str, str]]:
    """A list of steps: their contents with their status."""
    return [
        {"content": content, "status": status, "activeForm": f"Doing {content}"}
        for content, status in steps.items()
    ]


def write(**steps: str) -> Any:
    return call("TodoWrite", todos=todos(**steps))


def told(agent: Agent, request: int) -> str:
    """The last message of a request."""
    assert isinstance(agent.llm, ScriptedModel)
    return str(agent.llm.asked[request]["messages"][-1].get("content"))


async def test_a_plan_is_shown_and_the_model_is_told_that_it_is_noted(agent_of: AgentOf):
    client = Watching()
    agent = agent_of(write(dig="in_progress", plant="pending"), "On it.", hooks=[PlanHook()])
    reply = await agent.run("Go", client=client)
    expected = (PlanEntry("dig", "in_progress"), PlanEntry("plant", "pending"))
    assert client.of(PlanChanged) == [PlanChanged(expected)]
    assert told(agent, 1) == "The plan is noted; open steps: 2."
    assert reply.session.state["plan"]["todos"][1]["content"] == "plant"


async def test_hooks_see_the_old_and_the_new_list(agent_of: AgentOf):
    seen: list[Any] = []
    agent = agent_of(write(dig="pending"), write(dig="completed"), "Done.", hooks=[PlanHook()])

    def after_tool(result: Any) -> None:
        seen.append(result.data)

    agent.use(after_tool)
    await agent.run("Go")
    assert [data["oldTodos"] for data in seen] == [[], todos(dig="pending")]
    assert [data["newTodos"] for data in seen] == [todos(dig="pending"), todos(dig="completed")]


@pytest.mark.parametrize(
    ("wrong", "expected"),
    [
        ("dig", "todos must be a list"),
        ([{"status": "pending"}], "step 1 has no content"),
        ([*todos(dig="pending"), {"content": "x", "status": "soon"}], "the status of step 2"),
        (["dig"], "step 1 has no content"),
        ([{"content": "x", "status": "pending", "activeForm": 3}], "activeForm of step 1"),
    ],
)
async def test_what_is_no_plan_is_refused_in_a_line(agent_of: AgentOf, wrong: Any, expected: str):
    client = Watching()
    agent = agent_of(call("TodoWrite", todos=wrong), "Sorry.", hooks=[PlanHook()])
    await agent.run("Go", client=client)
    assert expected in told(agent, 1)
    assert client.of(PlanChanged) == []


async def test_every_new_step_and_every_step_that_is_done_fires_its_event_once(agent_of: AgentOf):
    fired: list[tuple[str, str, str, str]] = []
    agent = agent_of(
        write(dig="in_progress", plant="pending"),
        write(dig="completed", plant="in_progress", water="pending"),
        write(dig="completed", plant="completed", rest="completed"),
        "Done.",
        hooks=[PlanHook()],
    )

    def created(task_id: str, task_subject: str, task_description: str) -> None:
        fired.append(("created", task_id, task_subject, task_description))

    def completed(task_id: str, task_subject: str, task_description: str) -> None:
        fired.append(("completed", task_id, task_subject, task_description))

    agent.hooks.register("TaskCreated", created)
    agent.hooks.register("TaskCompleted", completed)
    await agent.run("Go")
    assert fired == [
        ("created", "1", "dig", "Doing dig"),
        ("created", "2", "plant", "Doing plant"),
        ("completed", "1", "dig", "Doing dig"),
        ("created", "3", "water", "Doing water"),
        ("completed", "2", "plant", "Doing plant"),
        ("created", "4", "rest", "Doing rest"),
        ("completed", "4", "rest", "Doing rest"),
    ]


async def test_hooks_that_were_there_before_the_plan_are_heard(agent_of: AgentOf):
    subjects: list[str] = []
    agent = agent_of(write(dig="pending"), "Done.")
    agent.hooks.register("TaskCreated", lambda ctx: subjects.append(ctx.task_subject))
    agent.use(PlanHook())
    await agent.run("Go")
    assert subjects == ["dig"]


@pytest.mark.parametrize(
    ("event", "expected"), [("TaskCreated", "must not be added"), ("TaskCompleted", "completed")]
)
async def test_a_step_that_a_hook_refuses_leaves_the_plan_as_it_was(
    agent_of: AgentOf, event: str, expected: str
):
    client = Watching()
    agent = agent_of(
        write(dig="pending"), write(dig="pending", sow="completed"), "Well.", hooks=[PlanHook()]
    )

    def refuse(task_subject: str) -> str | None:
        return "it is winter" if task_subject == "sow" else None

    agent.hooks.register(event, refuse)
    reply = await agent.run("Go", client=client)
    assert len(client.of(PlanChanged)) == 1
    assert [todo["content"] for todo in reply.session.state["plan"]["todos"]] == ["dig"]
    answer = told(agent, 2)
    assert answer.startswith("the plan stays as it was: 'sow'")
    assert expected in answer
    assert answer.endswith("it is winter")


async def test_a_hook_that_cannot_decide_refuses_and_one_that_stops_ends_the_run(
    agent_of: AgentOf,
):
    agent = agent_of(write(dig="pending"), "Well.", hooks=[PlanHook()])
    agent.hooks.register("TaskCreated", lambda ctx: ctx.nonsense)
    await agent.run("Go")
    assert "could not decide" in told(agent, 1)

    agent = agent_of(write(dig="pending"), hooks=[PlanHook()])
    agent.hooks.register("TaskCreated", lambda ctx: Stop("enough planned"))
    reply = await agent.run("Go")
    assert (reply.stop_reason, "enough planned" in reply.detail) == ("hook_stopped", True)


async def test_a_plan_that_lies_idle_is_brought_to_mind_at_the_tail(agent_of: AgentOf):
    script = [write(dig="completed", plant="pending"), *[call("step")] * 8, "Done."]
    agent = agent_of(*script, hooks=[PlanHook(stale=3)], tools=[step])
    await agent.run("Go")
    reminded = [n for n in range(10) if "The plan was not touched" in told(agent, n)]
    assert reminded == [4, 7]
    assert "[x] dig\n[ ] plant" in told(agent, 4)
    assert isinstance(agent.llm, ScriptedModel)
    requests = [asked["messages"] for asked in agent.llm.asked]
    for before, after in pairwise(requests):
        assert after[: len(before)] == before


@pytest.mark.parametrize("first", [write(dig="completed"), call("step")])
async def test_nothing_is_brought_to_mind_where_nothing_is_open(agent_of: AgentOf, first: Any):
    agent = agent_of(first, *[call("step")] * 5, "Done.", hooks=[PlanHook(stale=1)], tools=[step])
    reply = await agent.run("Go")
    assert not [m for m in reply.session.messages if "<crow-context" in str(m.get("content"))]


async def test_a_plan_survives_a_reload(tmp_path: Any, agent_of: AgentOf):
    path = tmp_path / "crow.db"
    first = agent_of(write(dig="pending"), "Later.", hooks=[PersistenceHook(path), PlanHook()])
    async with first:
        session_id = (await first.run("Go")).session.id
    again = agent_of(
        call("step"),
        call("step"),
        write(dig="completed"),
        "Done.",
        hooks=[PersistenceHook(path), PlanHook(stale=1)],
        tools=[step],
    )
    done: list[str] = []
    again.hooks.register("TaskCompleted", lambda ctx: done.append(ctx.task_id))
    async with again:
        session = await again.load_session(session_id)
        await again.run("On", session=session)
    assert "[ ] dig" in told(again, 1)
    assert done == ["1"]


async def test_a_plan_survives_a_compaction(agent_of: AgentOf):
    agent = agent_of(write(dig="pending"), call("step"), "Done.", hooks=[PlanHook()], tools=[step])

    async def after_turn(ctx: Any) -> None:
        if ctx.session.segment == 0 and len(ctx.session.messages) > 3:
            await ctx.compact([], "They dig.")

    agent.use(after_turn)
    reply = await agent.run("Go")
    assert "[ ] dig" in told(agent, 2)
    assert [message["role"] for message in reply.session.messages] == ["user", "user", "assistant"]


async def test_a_sub_agents_plan_runs_the_gates_of_its_caller(agent_of: AgentOf):
    parent = agent_of("Hello.", hooks=[PlanHook()], tools=[])
    parent.hooks.register("TaskCreated", lambda ctx: "not you")
    session = (await parent.run("Hi")).session
    model = ScriptedModel(write(dig="pending"), "Well.")
    child = parent.child(model)
    inner = await child.new_session(parent=session)
    await child.prompt(inner, "Go")
    assert told(child, 1).endswith("not you")
    assert "todos" not in session.state.get("plan", {})
    model.verify()


async def test_taken_away_it_leaves_no_tool(agent_of: AgentOf):
    agent = agent_of("Hello.", hooks=[PlanHook()])
    assert "TodoWrite" in agent.tools
    agent.remove("plan")
    assert "TodoWrite" not in agent.tools
    await agent.run("Hi")
