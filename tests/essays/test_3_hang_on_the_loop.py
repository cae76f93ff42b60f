"""The third essay: four events cover the cycle, and the loop only fires them.

Hooks are registered with ``register_hook`` and take ``query``, ``block`` and ``output``. A hook at
`PreToolUse` that returns something blocks the call; one at `Stop` makes the loop go on.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from crow import Agent, Allow, tool
from crow.core import loop
from crow.extensions import LimitsHook
from crow.testing import ScriptedModel, call


def harness(*script: Any, tools: Any = None) -> tuple[Any, Agent, ScriptedModel]:
    """``register_hook``, the agent that it registers at, and the model."""
    model = ScriptedModel(*script)
    agent = Agent(llm=model, tools=tools)
    return agent.hooks.register, agent, model


# "Try It": the three prompts, with the essay's hooks and the real tools


class Hooks:
    """The hooks that the essay describes: a log, permissions, a reminder, a summary."""

    def __init__(self, register_hook: Any) -> None:
        self.lines: list[str] = []
        register_hook("UserPromptSubmit", self.user_prompt)
        register_hook("PreToolUse", self.log)
        register_hook("PreToolUse", self.permission, tools={"bash"})
        register_hook("PostToolUse", self.large_output)
        register_hook("Stop", self.summary)

    def user_prompt(self, query):
        self.lines.append(f"[HOOK] UserPromptSubmit: {query}")

    def log(self, block):
        self.lines.append(f"[HOOK] PreToolUse: {block.name}")

    def permission(self, block):
        if "rm " in block.input["command"]:
            return f"Permission denied: {block.input['command']}"
        return None

    def large_output(self, block, output):
        self.lines.append(f"[HOOK] PostToolUse: {block.name}")
        if len(output) > 1000:
            self.lines.append(f"[HOOK] large output of {block.name}: {len(output)} characters")

    def summary(self, messages):
        tools = sum(message["role"] == "tool" for message in messages)
        self.lines.append(f"[HOOK] Stop: {tools} tool calls")


async def test_try_it(tmp_path: Path):
    (tmp_path / "README.md").write_text("hello\n" * 500)
    (tmp_path / "keep.tmp").write_text("temporary")
    register_hook, agent, model = harness(
        call("Read", file_path="README.md"),
        "It says hello.",
        call("Write", file_path="test.txt", content="a test"),
        "Created.",
        call("Bash", command=f"rm -f {tmp_path}/*.tmp"),
        "I may not.",
    )
    hooks = Hooks(register_hook)
    async with agent:
        session = await agent.new_session(tmp_path)
        for prompt in (
            "Read the file README.md",
            "Create a file called test.txt",
            f"Delete all temporary files in {tmp_path}",
        ):
            await agent.run(prompt, session=session)
    large = hooks.lines.pop(3)
    assert large.startswith("[HOOK] large output of Read: ")
    assert hooks.lines == [
        "[HOOK] UserPromptSubmit: Read the file README.md",
        "[HOOK] PreToolUse: Read",
        "[HOOK] PostToolUse: Read",
        "[HOOK] Stop: 1 tool calls",
        "[HOOK] UserPromptSubmit: Create a file called test.txt",
        "[HOOK] PreToolUse: Write",
        "[HOOK] PostToolUse: Write",
        "[HOOK] Stop: 2 tool calls",
        f"[HOOK] UserPromptSubmit: Delete all temporary files in {tmp_path}",
        "[HOOK] PreToolUse: Bash",
        "[HOOK] Stop: 3 tool calls",
    ]
    assert (tmp_path / "test.txt").read_text() == "a test"
    assert (tmp_path / "keep.tmp").exists()
    denied = model.asked[5]["messages"][-1].get("content")
    assert denied == f"Permission denied: rm -f {tmp_path}/*.tmp"


async def test_it_was_a_hook_and_not_the_loop_that_denied(tmp_path: Path):
    (tmp_path / "keep.tmp").write_text("temporary")
    script = [call("Bash", command=f"rm {tmp_path}/keep.tmp"), "Done."]
    register_hook, agent, _ = harness(*script)
    hooks = Hooks(register_hook)
    async with agent:
        reply = await agent.run("Delete it", cwd=tmp_path)
    records = reply.session.trace.of_call("call_1")
    [denied] = [record for record in records if record.answer is not None]
    assert (denied.event, denied.hook) == ("before_tool", "permission")
    assert "Permission denied" in str(denied.answer)
    assert (tmp_path / "keep.tmp").exists()

    _, agent, _ = harness(*script)
    async with agent:
        await agent.run("Delete it", cwd=tmp_path)
    assert not (tmp_path / "keep.tmp").exists()
    assert "rm " not in (Path(loop.__file__)).read_text()
    assert hooks.lines


# the return values of the four events


@tool
def bash(command: str) -> str:
    """Run a command."""
    return f"ran {command}"


@tool
def other() -> str:
    """Do something else."""
    return "other"


def results(model: ScriptedModel) -> list[Any]:
    last = model.asked[-1]["messages"]
    return [message.get("content") for message in last if message["role"] == "tool"]


@pytest.mark.parametrize("answer", ["no", True, 1, ["no"], object()])
async def test_pre_tool_use_blocks_whatever_it_returns_that_is_not_none(answer: Any):
    register_hook, agent, model = harness(call("bash", command="ls"), "Done.", tools=[bash])
    register_hook("PreToolUse", lambda block: answer)
    await agent.run("Go")
    [result] = results(model)
    assert result != "ran ls"
    assert answer != "no" or result == "no"


async def test_pre_tool_use_that_returns_none_lets_it_pass():
    register_hook, agent, model = harness(call("bash", command="ls"), "Done.", tools=[bash])
    register_hook("PreToolUse", lambda block: None)
    await agent.run("Go")
    assert results(model) == ["ran ls"]


async def test_every_hook_of_an_event_runs_and_one_that_blocks_is_enough():
    seen: list[str] = []
    register_hook, agent, model = harness(call("bash", command="ls"), "Done.", tools=[bash])
    register_hook("PreToolUse", lambda block: seen.append("first"))
    register_hook("PreToolUse", lambda block: "blocked")
    register_hook("PreToolUse", lambda block: seen.append("last"))
    await agent.run("Go")
    assert results(model) == ["blocked"]
    assert seen == ["first", "last"]


async def test_tools_limits_a_hook_to_tools_of_these_names_in_any_case():
    register_hook, agent, model = harness(
        [call("bash", command="ls"), call("other")], "Done.", tools=[bash, other]
    )
    dispose = register_hook("PreToolUse", lambda block: "blocked", tools={"BASH"})
    await agent.run("Go")
    assert results(model) == ["blocked", "other"]
    dispose()
    model.extend(call("bash", command="ls"), "Done.")
    await agent.run("Go")
    assert results(model) == ["ran ls"]


async def test_user_prompt_submit_only_looks_on_when_it_returns_nothing():
    seen: list[str] = []
    register_hook, agent, model = harness("Hello.", tools=[])
    register_hook("UserPromptSubmit", lambda query: seen.append(query))
    await agent.run("Hi")
    assert seen == ["Hi"]
    assert len(model.asked[0]["messages"]) == 1


async def test_user_prompt_submit_can_modify_the_input():
    register_hook, agent, model = harness("Hello.", tools=[])

    def shout(ctx):
        ctx.prompt = ctx.prompt.upper()

    register_hook("UserPromptSubmit", shout)
    await agent.run("Hi")
    assert model.asked[0]["messages"][0].get("content") == "HI"


async def test_post_tool_use_sees_the_output_and_comes_only_after_success():
    seen: list[tuple[str, str]] = []
    register_hook, agent, _ = harness(
        call("bash", command="ls"), call("bash", command=["no", "text"]), call("gone"), "Done.",
        tools=[bash],
    )  # fmt: skip
    register_hook("PostToolUse", lambda block, output: seen.append((block.name, output)))
    await agent.run("Go")
    assert seen == [("bash", "ran ls")]


async def test_stop_that_returns_something_makes_the_loop_go_on_and_none_ends_it():
    register_hook, agent, model = harness("Done.", "Really done.", tools=[])
    answers = iter(["Check it once more.", None])
    register_hook("Stop", lambda messages: next(answers))
    reply = await agent.run("Go")
    assert reply.text == "Really done."
    assert "Check it once more." in str(model.asked[1]["messages"][-1].get("content"))


async def test_the_four_events_in_their_order():
    seen: list[str] = []
    register_hook, agent, _ = harness(call("bash", command="ls"), "Done.", tools=[bash])
    for event in ("Stop", "PostToolUse", "PreToolUse", "UserPromptSubmit"):
        register_hook(event, lambda ctx, event=event: seen.append(event))
    await agent.run("Go")
    assert seen == ["UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop"]


# "Dive into CC Source Code": what the teaching version leaves out


async def test_a_hooks_allow_does_not_bypass_a_deny_of_another():
    register_hook, agent, model = harness(call("bash", command="ls"), "Done.", tools=[bash])
    register_hook("PreToolUse", lambda block: "denied by a rule")
    register_hook("PreToolUse", lambda block: Allow())
    await agent.run("Go")
    assert results(model) == ["denied by a rule"]


async def test_a_stop_hook_that_never_has_enough_does_not_keep_the_loop_for_ever():
    """The essay's ``stop_hook_active``: the hook is told how often it kept the run going."""
    counts: list[int] = []
    model = ScriptedModel(*["Done."] * 50, leftover="allow")
    agent = Agent(llm=model, tools=[])

    def never(count, cap):
        counts.append(count)
        return "Again."

    agent.hooks.register("Stop", never)
    reply = await agent.run("Go")
    assert counts == list(range(9))
    assert len(model.asked) == 9
    assert reply.stop_reason == "end_turn"


async def test_stop_hook_active_says_that_a_hook_kept_the_run_going():
    register_hook, agent, model = harness("Done.", "Really done.", tools=[])
    seen: list[bool] = []

    def check(stop_hook_active, ctx):
        seen.append(stop_hook_active)
        assert ctx.stop_hook_active is stop_hook_active
        return None if stop_hook_active else {"decision": "block", "reason": "Check it."}

    register_hook("Stop", check)
    await agent.run("Go")
    assert seen == [False, True]
    assert "Check it." in str(model.asked[1]["messages"])


async def test_a_broken_stop_hook_keeps_nothing_going():
    register_hook, agent, _ = harness("Done.", tools=[])

    def broken(messages):
        raise RuntimeError("broken")

    register_hook("Stop", broken)
    assert (await agent.run("Go")).text == "Done."


async def test_a_post_tool_use_hook_can_end_the_loop_gracefully():
    """The essay's ``hook_stopped_continuation``: a completion, not a crash."""
    register_hook, agent, model = harness(
        [call("bash", command="ls"), call("other")], tools=[bash, other]
    )

    def enough(ctx):
        ctx.stop("that was enough")

    register_hook("PostToolUse", enough, tools={"bash"})
    reply = await agent.run("Go")
    assert reply.stop_reason == "hook_stopped"
    assert "that was enough" in reply.detail
    assert reply.session.unanswered() == []
    assert len(model.asked) == 1


async def test_extensions_and_hooks_of_the_essay_share_one_registry():
    register_hook, agent, model = harness(call("bash", command="ls"), "Done.", tools=[bash])
    agent.use(LimitsHook(turns=1))
    register_hook("PreToolUse", lambda block: "blocked")
    reply = await agent.run("Go")
    assert reply.stop_reason == "max_turn_requests"
    assert len(model.asked) == 1
    assert [m["role"] for m in reply.session.messages] == ["user", "assistant", "tool"]
