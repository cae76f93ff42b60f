"""Handlers of type agent: a small agent with tools judges in a hook's place."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import pytest
from tests.extensions.shell_hooks.conftest import Stage, given, records
from tests.processes import is_alive, until

from crow.core.errors import ModelError
from crow.core.ports.llm import Completion, Delta, Request
from crow.extensions import PermissionsHook, PersistenceHook
from crow.testing import call, text

WRITE = call("Write", file_path="made.txt", content="x")
OK = '{"ok": true}'
NO = '{"ok": false, "reason": "tests are missing"}'
AGENT = {"type": "agent", "prompt": "Are there tests? $ARGUMENTS"}


def asked_of_agent(stage: Stage) -> list[Any]:
    """The requests of the agent that judges."""
    return [each for each in stage.model.asked if "You judge one event" in str(each["messages"][0])]


async def test_an_agent_looks_with_tools_of_its_own_and_judges(stage: Stage):
    (stage.cwd / "notes.txt").write_text("no tests here")
    stage.handle("Stop", AGENT)
    read = call("Read", file_path=str(stage.cwd / "notes.txt"))
    await stage.run("Done.", read, NO, "I added them.", OK, hooks=[PermissionsHook()])
    first, second = asked_of_agent(stage)[:2]
    names = [tool["function"]["name"] for tool in first["tools"]]
    assert names == ["Read", "Grep", "Glob", "LS", "Bash"]
    assert '"hook_event_name":"Stop"' in str(first["messages"])
    assert "no tests here" in str(second["messages"][-1])
    assert "tests are missing" in stage.told(3)
    assert "no tests here" not in stage.told(3)  # its history is its own


async def test_an_agents_denial_before_a_tool_does_not_end_the_turn(stage: Stage):
    stage.handle("PreToolUse", AGENT)
    reply = await stage.run(WRITE, NO, "Then not.")
    assert reply.stop_reason == "end_turn"
    assert stage.told().endswith("tests are missing")
    assert not (stage.cwd / "made.txt").exists()


async def test_no_hook_fires_for_what_the_agent_does(stage: Stage):
    stage.handle("PreToolUse", AGENT, matcher="Write")
    (stage.cwd / "a.txt").write_text("a")
    events = ("PreToolUse", "PostToolUse", "SubagentStart", "SubagentStop", "UserPromptSubmit")
    seen = {event: stage.on(event) for event in events}
    await stage.run(WRITE, call("Read", file_path="a.txt"), OK, "Ok.")
    assert [each["tool_name"] for each in given(seen["PreToolUse"])] == ["Write"]
    assert [each["tool_name"] for each in given(seen["PostToolUse"])] == ["Write"]
    assert given(seen["SubagentStart"]) == given(seen["SubagentStop"]) == []
    assert len(given(seen["UserPromptSubmit"])) == 1


@pytest.mark.parametrize(("allow", "runs"), [([], False), (["Bash(touch *)"], True)])
async def test_an_agent_does_only_what_rules_allow_and_nobody_is_asked(
    stage: Stage, allow: list[str], runs: bool
):
    stage.handle("Stop", AGENT)
    stage.person.answer = "allow_once"
    touch = call("Bash", command=f"touch {stage.cwd}/ran")
    await stage.run("Done.", touch, OK, hooks=[PermissionsHook(allow=allow)])
    assert (stage.cwd / "ran").exists() == runs
    assert not stage.person.asked


async def test_a_deny_rule_holds_for_an_agent_in_a_session_that_skips_permissions(stage: Stage):
    (stage.cwd / "secret.txt").write_text("hush")
    stage.handle("Stop", AGENT)
    rules = PermissionsHook(deny=["Read(secret.txt)"], mode="bypassPermissions")
    await stage.run("Done.", call("Read", file_path="secret.txt"), OK, hooks=[rules])
    assert "hush" not in str(asked_of_agent(stage))


async def test_an_agent_may_read_the_conversation_that_it_judges(stage: Stage):
    seen = stage.on("PreToolUse", matcher="Write")
    stage.handle("Stop", AGENT)
    async with stage.agent(WRITE, "All is written.", hooks=[PermissionsHook()]) as agent:
        session = await agent.new_session(stage.cwd, client=stage.person)
        path = str(stage.state / f"{session.id}.jsonl")
        stage.person.answer = "allow_once"
        stage.model.extend(call("Read", file_path=path), OK)
        await agent.prompt(session, "Go")
    assert given(seen)[0]["transcript_path"] == path
    assert "All is written." in str(asked_of_agent(stage)[-1]["messages"][-1])


async def test_an_agent_that_says_something_else_is_reminded_and_then_does_not_consent(
    stage: Stage,
):
    stage.handle("PreToolUse", AGENT)
    await stage.run(WRITE, "Hm.", "Well.", "I think so.", "Ok.")
    assert not (stage.cwd / "made.txt").exists()
    assert "the agent gave no verdict: I think so." in stage.person.notices


async def test_an_agent_that_never_judges_ends_after_fifty_turns(stage: Stage):
    stage.handle("Stop", AGENT)
    (stage.cwd / "a.txt").write_text("a")
    reply = await stage.run("Done.", *[call("Read", file_path="a.txt")] * 50)
    assert reply.stop_reason == "end_turn"
    assert "not judged within 50 turns" in stage.person.notices


async def test_an_agent_asks_the_model_of_the_session_unless_the_handler_names_one(stage: Stage):
    for model in (None, "haiku", "judge-1"):
        handler = {**AGENT, "prompt": f"Ask {model}"}
        stage.handle("Stop", {**handler, "model": model} if model else handler)
    async with stage.agent("Done.", OK, OK, OK) as agent:
        session = await agent.new_session(stage.cwd, model="big-1")
        await agent.prompt(session, "Go")
    assert sorted(each["model"] for each in asked_of_agent(stage)) == ["big-1", "big-1", "judge-1"]


async def test_the_tokens_of_an_agent_count_for_the_session(stage: Stage):
    stage.handle("Stop", AGENT)
    usage = {"prompt_tokens": 7, "completion_tokens": 1, "total_tokens": 8}
    said = text(OK, usage=usage)  # type: ignore[arg-type]
    reply = await stage.run("Done.", said)
    assert reply.usage["total_tokens"] == reply.session.usage["total_tokens"] == 8


class Slow:
    """A model that answers the first request and then starts a command that hangs."""

    model = "slow"
    context_window = None

    def __init__(self, *script: Any) -> None:
        self.script = list(script)

    async def stream(self, request: Request) -> AsyncGenerator[Delta | Completion]:
        if not self.script:
            await asyncio.Event().wait()
        yield self.script.pop(0)


@pytest.mark.slow
async def test_an_agent_that_takes_too_long_is_ended_with_what_it_runs(stage: Stage):
    pids = stage.cwd / "pid"
    stage.handle("Stop", {**AGENT, "timeout": 1})
    hang = call("Bash", command=f"echo $$ > {pids}; sleep 60")
    async with stage.agent("Done.", hang, hooks=[PermissionsHook(allow=["Bash"])]) as agent:
        reply = await agent.run("Go", cwd=stage.cwd, client=stage.person)
    assert reply.stop_reason == "end_turn"
    assert "took longer than 1 s" in stage.person.notices
    if pids.exists():  # else it was slower than the time-out
        await until(lambda: not is_alive(int(pids.read_text())))


async def test_a_model_that_hangs_is_given_up(stage: Stage):
    stage.handle("Stop", {**AGENT, "timeout": 0.1})
    async with stage.agent() as agent:
        agent.llm = Slow(Completion("Done."))
        reply = await agent.run("Go", cwd=stage.cwd, client=stage.person)
    [record] = records(reply.session, "Stop")
    assert isinstance(record.answer, dict)
    assert record.answer["outcome"] == "cancelled"


async def test_a_model_that_fails_an_agent_decides_nothing(stage: Stage):
    stage.handle("PreToolUse", AGENT)
    await stage.run(WRITE, ModelError("no such model", kind="model_not_found"), "Ok.")
    assert (stage.cwd / "made.txt").exists()
    assert "no such model" in stage.person.notices


async def test_an_agent_that_judges_is_no_session_that_is_stored(stage: Stage):
    stage.handle("Stop", AGENT)
    hook = PersistenceHook(stage.state / "crow.db")
    async with stage.agent("Done.", OK, hooks=[hook]) as agent:
        reply = await agent.run("Go", cwd=stage.cwd)
        stored, _ = await hook.store.sessions()
    assert [each.id for each in stored] == [reply.session.id]
