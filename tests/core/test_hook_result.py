"""`HookResult`, dicts of its shape and Claude Code's JSON: answers in their words, at every event."""

from __future__ import annotations

from typing import Any

import pytest

from crow import Agent, Ask, Context, Deny, tool
from crow.core.hooks.output.effects import understood
from crow.core.hooks.points import POINTS
from crow.events import Notice, TextDelta, TitleChanged
from crow.hooks import HookResult, Point
from crow.keys import FIRST_PROMPT
from crow.messages import text_of
from crow.testing import ScriptedModel, call


@tool(name="Bash")
def bash(command: str) -> str:
    """Run a command."""
    return f"ran {command}"


class Run:
    """What came of a prompt in whose run a hook has given an answer."""

    def __init__(self, agent: Agent, model: ScriptedModel, client: Any) -> None:
        self.agent, self.model, self.client = agent, model, client
        self.reply: Any = None

    @property
    def told(self) -> str:
        """What the model was told by its last request, beside its own words."""
        messages = self.model.asked[-1]["messages"]
        return "\n".join(text_of(m.get("content")) for m in messages if m["role"] != "assistant")

    @property
    def result(self) -> str:
        """The result of the call."""
        [text] = [m["content"] for m in self.reply.session.messages if m["role"] == "tool"]
        return text

    @property
    def notices(self) -> list[str]:
        return [event.text for event in self.client.events if isinstance(event, Notice)]

    @property
    def errors(self) -> list[str]:
        return [record.error for record in self.reply.session.trace if record.error]


@pytest.fixture
def run(watcher: Any) -> Any:
    """Runs a prompt with a call of Bash, and a hook that answers something at its first event."""

    async def run(event: str, answer: Any, **options: Any) -> Run:
        script = options.pop("script", [call("Bash", command="ls"), "Done.", "Really done."])
        model = ScriptedModel(*script, leftover="allow")
        agent = Agent(model, tools=[bash])
        answers = [answer]
        agent.hooks.register(event, lambda: answers.pop() if answers else None, **options)
        done = Run(agent, model, watcher)
        async with agent:
            done.reply = await agent.run("Go", client=watcher)
        return done

    return run


SHAPES = {
    "class": lambda **words: HookResult(**words),
    "dict": lambda **words: words,
}


@pytest.fixture(params=SHAPES)
def shaped(request: pytest.FixtureRequest) -> Any:
    """A `HookResult`, once as the class and once as a dict."""
    return SHAPES[request.param]


# verdicts


@pytest.mark.parametrize(
    "words, result",
    [
        ({"permissionBehavior": "deny", "hookPermissionDecisionReason": "not now"}, "not now"),
        ({"permissionBehavior": "deny"}, "denied by a hook"),
        ({"blockingError": "not so"}, "not so"),
        ({"blockingError": {"blockingError": "not so", "command": "x"}}, "not so"),
        ({"outcome": "blocking"}, "blocked by a hook"),
        ({"permissionBehavior": "allow", "blockingError": "not so"}, "not so"),
        ({"permissionBehavior": "passthrough"}, "ran ls"),
        ({"permissionBehavior": "allow"}, "ran ls"),
        ({"outcome": "success"}, "ran ls"),
        ({"outcome": "non_blocking_error"}, "ran ls"),
        ({"preventContinuation": False, "retry": False}, "ran ls"),
        ({"updatedInput": {"command": "pwd"}}, "ran pwd"),
        ({"permissionBehavior": "allow", "updatedInput": {"command": "pwd"}}, "ran pwd"),
    ],
)
async def test_at_a_gate_it_is_a_verdict_and_a_rewrite(run, shaped, words, result):
    done = await run("PreToolUse", shaped(**words))
    assert (done.result, done.errors) == (result, [])


CLAUDES: list[tuple[dict[str, Any], str]] = [
    ({"decision": "block", "reason": "not now"}, "not now"),
    ({"decision": "approve"}, "ran ls"),
    ({"decision": "block"}, "blocked by a hook"),
    ({"continue": True, "suppressOutput": True}, "ran ls"),
    ({"hookSpecificOutput": {"hookEventName": "PreToolUse"}}, "ran ls"),
    (
        {
            "hookSpecificOutput": {
                "hookEventName": "PreToolUse",
                "permissionDecision": "deny",
                "permissionDecisionReason": "not now",
            }
        },
        "not now",
    ),
    ({"hookSpecificOutput": {"updatedInput": {"command": "pwd"}}}, "ran pwd"),
    ({"hookSpecificOutput": None, "reason": None}, "ran ls"),
]


@pytest.mark.parametrize("answer, result", CLAUDES)
async def test_claude_codes_json_is_read_from_python_too(run, answer, result):
    done = await run("PreToolUse", answer)
    assert (done.result, done.errors) == (result, [])


@pytest.mark.parametrize(
    "answer",
    [
        {"continue": False, "stopReason": "enough"},
        {"continue_": False, "stopReason": "enough"},
        {"preventContinuation": True, "stopReason": "enough"},
        HookResult(preventContinuation=True, stopReason="enough"),
    ],
)
@pytest.mark.parametrize(
    "event", ["PreToolUse", "PostToolUse", "mid_react", "before_llm_request", "PostToolBatch"]
)
async def test_wherever_it_says_so_the_run_ends_gracefully(run, event, answer):
    done = await run(event, answer)
    assert (done.reply.stop_reason, "enough" in done.reply.detail) == ("hook_stopped", True)
    assert done.reply.session.unanswered() == []
    assert len(done.model.asked) == (0 if event == "before_llm_request" else 1)


async def test_a_question_is_put_to_the_user_and_an_allow_answers_one_that_is_only_usual(
    run, watcher
):
    watcher.answer = "reject_once"
    asked = await run("PreToolUse", {"permissionBehavior": "ask"})
    assert [request.reason for request in watcher.asked] == ["a hook wants you asked"]
    assert asked.result == "the user rejected this call"


@pytest.mark.parametrize(
    "question, asked", [(Ask(default=True), 0), (Ask(rule="Bash"), 1), (Deny("by a rule"), 0)]
)
async def test_its_allow_beats_no_rule(watcher, question, asked):
    agent = Agent(ScriptedModel(call("Bash", command="ls"), "Done."), tools=[bash])
    agent.hooks.register("PreToolUse", lambda: HookResult(permissionBehavior="allow"))
    agent.hooks.register("PreToolUse", lambda: question, judge=True)
    async with agent:
        reply = await agent.run("Go", client=watcher)
    assert len(watcher.asked) == asked
    ran = reply.session.messages[2]["content"] == "ran ls"
    assert ran == (isinstance(question, Ask) and question.default)


async def test_the_allow_of_who_was_only_discovered_is_no_opinion(watcher):
    class Found:
        def before_tool(self):
            return {"permissionBehavior": "allow", "additionalContext": "seen"}

    model = ScriptedModel(call("Bash", command="ls"), "Done.")
    agent = Agent(model, tools=[bash])
    agent.use(Found(), trusted=False)
    agent.hooks.register("before_tool", lambda: Ask(default=True), judge=True)
    async with agent:
        await agent.run("Go", client=watcher)
    assert len(watcher.asked) == 1
    assert "seen" in str(model.asked[1]["messages"])


async def test_what_it_has_rewritten_is_held_against_the_schema_and_judged(run):
    seen: list[Any] = []
    done = await run("PreToolUse", {"updatedInput": {"cmd": "pwd"}})
    assert "command: missing" in done.result
    agent = Agent(ScriptedModel(call("Bash", command="ls"), "Done."), tools=[bash])
    agent.hooks.register("PreToolUse", lambda: HookResult(updatedInput={"command": "rm"}))
    agent.hooks.register("PreToolUse", lambda args: seen.append(dict(args)), judge=True)
    await agent.run("Go")
    assert seen == [{"command": "rm"}]
    refused = await run("PreToolUse", HookResult(updatedInput={"command": "rm"}), judge=True)
    assert "could not decide" in refused.result


async def test_a_call_that_is_put_off_ends_the_run_where_nobody_can_be_asked(run):
    answer = {"hookSpecificOutput": {"permissionDecision": "defer"}}
    done = await run("PreToolUse", answer)
    assert done.reply.stop_reason == "hook_stopped"
    assert "tool_deferred: Bash" in done.reply.detail


@pytest.mark.parametrize(
    "decision, result",
    [
        ({"behavior": "allow"}, "ran ls"),
        ({"behavior": "allow", "updatedInput": {"command": "pwd"}}, "ran pwd"),
        ({"behavior": "deny", "message": "not now"}, "not now"),
        ({"behavior": "deny", "message": "not now", "interrupt": True}, "not now"),
    ],
)
@pytest.mark.parametrize("is_json", [True, False])
async def test_a_permission_request_is_answered_in_the_users_place(
    watcher, decision, result, is_json
):
    agent = Agent(ScriptedModel(call("Bash", command="ls"), "Done."), tools=[bash])
    agent.hooks.register("before_tool", lambda: Ask())
    said = {"hookEventName": "PermissionRequest", "decision": decision}
    answer = {"hookSpecificOutput": said} if is_json else {"permissionRequestResult": decision}
    agent.hooks.register("PermissionRequest", lambda: answer)
    reply = await agent.run("Go", client=watcher)
    assert watcher.asked == []
    assert reply.session.messages[2]["content"] == result
    assert (reply.stop_reason == "hook_stopped") == ("interrupt" in decision)


# what else it says


@pytest.mark.parametrize(
    "event",
    ["SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "mid_react", "PostToolBatch"],
)
async def test_context_is_the_models_and_messages_are_the_users(run, shaped, event):
    answer = shaped(
        additionalContext="the moon is full",
        message={"role": "system", "content": "look up"},
        systemMessage="look out",
    )
    done = await run(event, answer)
    assert "the moon is full" in done.told
    assert done.notices == ["look up", "look out"]
    assert "look" not in done.told


@pytest.mark.parametrize(
    "answer, text",
    [
        (HookResult(blockingError="Check it."), "Check it."),
        ({"decision": "block", "reason": "Check it."}, "Check it."),
        ({"hookSpecificOutput": {"additionalContext": "Check it."}}, "Check it."),
        ({"decision": "approve"}, None),
        (HookResult(), None),
        ({"continue": False, "stopReason": "enough"}, None),
    ],
)
async def test_at_the_end_of_a_run_it_says_whether_it_goes_on(run, answer, text):
    done = await run("Stop", answer, script=["Done.", "Really done."])
    assert len(done.model.asked) == (1 if text is None else 2)
    assert text is None or text in done.told
    assert done.errors == []


@pytest.mark.parametrize("key", ["updatedToolOutput", "updatedMCPToolOutput"])
async def test_a_tools_output_is_replaced(watcher, key):
    @tool(name="mcp__files__list")
    def listed() -> dict[str, Any]:
        """List the files."""
        return {"files": ["secret.txt"]}

    model = ScriptedModel(call("mcp__files__list"), "Done.")
    agent = Agent(model, tools=[listed])
    agent.hooks.register("PostToolUse", lambda: {"hookSpecificOutput": {key: {"files": []}}})
    reply = await agent.run("Go")
    assert reply.session.messages[2]["content"] == '{"files": []}'


async def test_an_output_of_another_shape_is_refused_and_text_always_fits():
    @tool
    def listed() -> dict[str, Any]:
        """List the files."""
        return {"files": ["a"]}

    for output, told in (({"paths": []}, '{"files": ["a"]}'), ("nothing", "nothing")):
        agent = Agent(ScriptedModel(call("listed"), "Done."), tools=[listed])
        agent.hooks.register("PostToolUse", lambda o=output: HookResult(updatedToolOutput=o))
        reply = await agent.run("Go")
        assert reply.session.messages[2]["content"] == told
    agent = Agent(ScriptedModel(call("listed"), "Done."), tools=[listed])
    agent.hooks.register("PostToolUse", lambda: HookResult(updatedMCPToolOutput="nothing"))
    reply = await agent.run("Go")
    assert "use 'updatedToolOutput'" in str([record.error for record in reply.session.trace])


async def test_why_a_result_is_not_as_it_should_be_is_told_next_to_it(run):
    done = await run("PostToolUse", {"decision": "block", "reason": "no tests ran"})
    assert done.result == "ran ls"
    assert "blocking error: no tests ran" in done.told


async def test_a_denied_call_may_be_tried_again(watcher):
    model = ScriptedModel(call("Bash", command="ls"), "Done.")
    agent = Agent(model, tools=[bash])
    agent.hooks.register("before_tool", lambda: Deny("no"))
    agent.hooks.register("PermissionDenied", lambda: HookResult(retry=True))
    await agent.run("Go")
    assert "it may be tried again" in str(model.asked[1]["messages"])


async def test_a_session_gets_a_title_and_its_first_prompt(run, watcher):
    said = {"sessionTitle": "Moonlight", "initialUserMessage": "Begin"}
    done = await run("SessionStart", {"hookSpecificOutput": said})
    assert done.reply.session.title == "Moonlight"
    assert TitleChanged("Moonlight") in watcher.events
    assert FIRST_PROMPT.get(done.reply.session) == "Begin"


async def test_what_is_displayed_is_another_text_and_the_history_keeps_its_own(run, watcher):
    done = await run(
        "MessageDisplay", {"hookSpecificOutput": {"displayContent": "***"}}, script=["Done."]
    )
    shown = "".join(event.text for event in watcher.events if isinstance(event, TextDelta))
    assert "***" in shown
    assert done.reply.text == "Done."


@pytest.mark.parametrize("answer", [HookResult(blockingError="not now"), {"decision": "block"}])
async def test_a_compaction_is_put_off(answer):
    agent = Agent(ScriptedModel("Done."), tools=[])
    agent.hooks.register("PreCompact", lambda: answer)
    reply = await agent.run("Go")
    before = list(reply.session.messages)
    assert not await Context(agent, reply.session).compact([], "all of it")
    assert reply.session.messages == before


async def test_a_change_of_the_model_is_refused():
    agent = Agent(ScriptedModel("Done."), tools=[])
    agent.hooks.register(
        "PreModelSwitch",
        lambda: {
            "hookSpecificOutput": {"permissionDecision": "deny", "permissionDecisionReason": "no"}
        },
    )
    session = await agent.new_session()
    assert await agent.configure(session, model="other") == "no"


# what nobody understands


@pytest.mark.parametrize(
    "answer, hint",
    [
        ({"permisionBehavior": "deny"}, "has no 'permisionBehavior'; did you mean 'permissionBehavior'?"),
        ({"permission_behavior": "deny"}, "did you mean 'permissionBehavior'?"),
        ({"permissionDecision": "deny"}, "'permissionDecision' belongs inside 'hookSpecificOutput'"),
        ({"hookSpecificOutput": {"systemMessage": "x"}}, "belongs beside 'hookSpecificOutput'"),
        ({"hookSpecificOutput": {"updatedinput": {}}}, "did you mean 'updatedInput'?"),
        ({"permissionBehavior": "alow"}, "must be one of allow, deny, ask, defer, passthrough, not 'alow'"),
        ({"decision": "deny"}, "'decision' must be one of approve, block"),
        ({"updatedInput": "ls"}, "'updatedInput' has the wrong type: an object is wanted, not 'ls'"),
        ({"updatedInput": {1: 2}}, "ctx.args must be an object of JSON"),
        ({"continue": "no"}, "'continue' has the wrong type: true or false is wanted"),
        ({"blockingError": {"error": "x"}}, "'blockingError' has no 'blockingError'"),
        ({"hookSpecificOutput": {"hookEventName": "Stop"}}, "must be 'before_tool' or 'PreToolUse'"),
        ({"updatedToolOutput": "x"}, "'updatedToolOutput', which means nothing at before_tool"),
        ({"terminalSequence": "x"}, "'terminalSequence', which means nothing at before_tool"),
        ({1: 2}, "has no 1"),
    ],
)  # fmt: skip
async def test_a_gate_denies_and_says_which_word_is_wrong(run, answer, hint):
    done = await run("PreToolUse", answer)
    assert "could not decide" in done.result
    assert hint in done.result


@pytest.mark.parametrize(
    "event", ["PostToolUse", "mid_react", "SessionStart", "PostToolBatch", "Stop", "SessionEnd"]
)
async def test_elsewhere_it_is_the_error_of_its_hook_and_nothing_changes(run, event, caplog):
    done = await run(event, {"additionalContxt": "x", "continue": False})
    assert done.reply.text == "Done."
    assert [error for error in done.errors if "did you mean 'additionalContext'?" in error]


@pytest.mark.parametrize(
    "answer, wrong",
    [
        ({"input_tokens": 3, "output_tokens": 4, "total_tokens": 7}, False),
        ({"role": "user", "content": "x"}, False),
        ({3: 4}, False),
        ({"aditionalContext": "x"}, True),
        ({"systemMessage": 3}, True),
    ],
)
async def test_who_only_looks_on_may_return_any_dict_that_is_not_meant(run, answer, wrong):
    done = await run("after_turn", answer)
    assert bool(done.errors) == wrong


async def test_in_the_background_it_informs_and_stops_nothing(run):
    answer = {"continue": False, "systemMessage": "done"}
    done = await run("PostToolUse", answer, background=True)
    assert (done.reply.stop_reason, done.notices) == ("end_turn", ["done"])


@pytest.mark.parametrize(
    "answer, event, hint",
    [
        (HookResult(permissionBehavior="deny"), "PostToolUse", "nothing to permit here"),
        ({"continue": False}, "SessionStart", "there is no run to end at on_session_start"),
        ({"continue": False}, "post_react_loop", "has ended by itself before after_loop"),
        ({"continue": False}, "post_request", "has ended by itself before after_run"),
        ({"additionalContext": "x"}, "SessionEnd", "no model will be told"),
        ({"updatedInput": {}}, "UserPromptSubmit", "'updatedInput', which means nothing"),
        ({"retry": True}, "PostToolUse", "'retry' is for calls that were denied"),
    ],
)
async def test_a_word_that_comes_too_late_is_an_error(run, answer, event, hint):
    done = await run(event, answer)
    assert hint in "\n".join(done.errors)


@pytest.mark.parametrize("event", ["SessionStart", "SessionEnd", "on_message", "after_run"])
@pytest.mark.parametrize(
    "answer",
    [
        {"decision": "block", "reason": "no tests ran"},
        HookResult(blockingError="no tests ran"),
        {"outcome": "blocking", "blockingError": "no tests ran"},
    ],
)
async def test_where_nothing_can_be_blocked_the_user_is_told_what_is_wrong(run, event, answer):
    done = await run(event, answer)
    assert done.reply.text == "Done."
    assert done.notices == ["blocking error: no tests ran"]
    assert done.errors == []


@pytest.mark.parametrize("event", ["after_loop", "after_run"])
async def test_context_behind_a_run_is_told_with_the_next_prompt(event):
    model = ScriptedModel("Done.", "Yes.")
    async with Agent(model, tools=[]) as agent:
        agent.hooks.register(event, lambda: {"additionalContext": "the build is red"})
        session = (await agent.run("Go")).session
        await agent.prompt(session, "And now?")
    assert "the build is red" in str(model.asked[1]["messages"])


@pytest.mark.parametrize("answer", [{"async": True}, {"async_": True, "asyncTimeout": 15000}])
async def test_who_says_that_nobody_need_wait_has_no_opinion(run, answer):
    done = await run("PreToolUse", answer)
    assert (done.result, done.errors) == ("ran ls", [])


async def test_a_wrap_returns_what_it_goes_around_and_no_hook_result(watcher):
    agent = Agent(ScriptedModel(call("Bash", command="ls"), "Done."), tools=[bash])
    agent.hooks.register("around_tool", forgetful)
    reply = await agent.run("Go", client=watcher)
    assert "HookResult" in str(reply.session.messages[2]["content"])
    assert "forgetful" in str(reply.session.messages[2]["content"])


async def forgetful(call_next: Any) -> Any:
    await call_next()
    return HookResult(message="done")


@pytest.mark.parametrize("point", [p for p in POINTS if p.kind != "wrap"], ids=lambda p: p.name)
def test_every_point_takes_the_class_and_its_shape(point):
    for answer in (HookResult(systemMessage="x"), {"systemMessage": "x"}, {"continue": True}):
        assert understood(point, None, answer).verdict is None


async def test_what_a_point_of_ones_own_takes_for_a_plain_answer_stays_that():
    agent = Agent(ScriptedModel(), tools=[])
    taken: list[Any] = []

    def plain(ctx: Any, answer: Any) -> None:
        taken.append(answer)

    agent.hooks.define(Point("on_weather", "fold", (), plain=plain))
    agent.hooks.register("on_weather", lambda: {"degrees": 20})
    session = await agent.new_session()
    await agent.hooks["on_weather"].fire(Context(agent, session))
    assert taken == [{"degrees": 20}]


@pytest.mark.parametrize("event", ["PreToolUse", "UserPromptSubmit", "Stop", "PostToolUse"])
@pytest.mark.parametrize(
    "words, missing",
    [
        ({"reason": "never"}, "decision"),
        ({"stopReason": "never"}, "preventContinuation"),
        ({"hookPermissionDecisionReason": "never"}, "permissionBehavior"),
        ({"hookSpecificOutput": {"permissionDecisionReason": "never"}}, "permissionDecision"),
    ],
)
async def test_a_reason_for_nothing_is_the_hooks_error(run, event, words, missing):
    done = await run(event, words)
    (error,) = done.errors
    assert f"is a reason for nothing: {missing!r} is missing" in error


@pytest.mark.parametrize(
    "words, wrong",
    [
        ({"permissionBehavior": "maybe"}, "'permissionBehavior' must be one of allow, deny"),
        ({"updatedInput": "ls"}, "'updatedInput' has the wrong type: an object is wanted"),
        ({"outcome": "fine"}, "'outcome' must be one of success"),
        ({"preventContinuation": "no"}, "'preventContinuation' has the wrong type"),
    ],
)
def test_what_nobody_understands_cannot_even_be_made(words: Any, wrong: str):
    with pytest.raises(TypeError, match=f"HookResult: {wrong}"):
        HookResult(**words)
