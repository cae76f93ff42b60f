"""Hanging hooks: names, aliases, arguments by name, options, disposers, typed attributes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pytest

from crow.core.agent import Agent
from crow.core.catalog import Command
from crow.core.errors import ExtensionError, HookError
from crow.core.events import Notice
from crow.core.hooks.agent_hook import AgentHook
from crow.core.hooks.context import Context
from crow.core.hooks.contexts import ToolContext
from crow.core.hooks.discovery import hook, name_of
from crow.core.hooks.points import POINTS, Point
from crow.core.hooks.registry import FIRST, LAST, HookRegistry
from crow.core.hooks.run_context import RunContext
from crow.core.ports.client import NullClient, Question
from crow.core.tools import Call
from crow.core.verdicts import Allow, Answer, Ask, Deny
from crow.entry_points import events
from crow.testing import ScriptedModel, call

CLAUDE_NAMES = [
    "PreToolUse",
    "PostToolUse",
    "PostToolUseFailure",
    "SessionStart",
    "SessionEnd",
    "Stop",
    "StopFailure",
    "Setup",
    "UserPromptSubmit",
    "Notification",
    "PermissionRequest",
    "PermissionDenied",
    "SubagentStart",
    "SubagentStop",
    "PreCompact",
    "PostCompact",
    "TeammateIdle",
    "TaskCreated",
    "TaskCompleted",
    "Elicitation",
    "ElicitationResult",
    "ConfigChange",
    "WorktreeCreate",
    "WorktreeRemove",
    "InstructionsLoaded",
    "CwdChanged",
    "FileChanged",
    "PostToolBatch",
    "UserPromptExpansion",
    "PreModelSwitch",
    "PostModelSwitch",
    "DirectoryAdded",
    "MessageDisplay",
]


def agent_with(*steps: Any, **options: Any) -> Agent:
    return Agent(ScriptedModel(*steps, leftover="allow"), **{"tools": (), **options})


@pytest.mark.parametrize("name", CLAUDE_NAMES)
def test_every_name_of_claude_codes_can_be_registered(name):
    agent = agent_with()
    dispose = agent.hooks.register(name, lambda ctx: None)
    registered = [h.event for h in agent.hooks] + [event for event, _, _ in agent.hooks.waiting]
    assert len(registered) == 1
    dispose()
    assert not [*agent.hooks, *agent.hooks.waiting]


def test_there_are_33_names_of_claude_codes():
    aliases = {name for point in POINTS for name in point.names}
    assert len(CLAUDE_NAMES) == 33
    assert set(CLAUDE_NAMES) <= aliases | {*events()}


async def test_a_hook_for_an_extensions_event_waits_until_that_extension_defines_it():
    agent = agent_with()
    heard: list[str] = []
    agent.hooks.register("TaskCreated", lambda task: heard.append(task))
    assert agent.hooks.waiting == (("TaskCreated", "function", "plan"),) or (
        agent.hooks.waiting[0][2] == "plan"
    )

    class TaskContext(Context):
        task = "write tests"

    dispose = agent.hooks.define(Point("TaskCreated", "watch", ("task",)))
    assert not agent.hooks.waiting
    session = await agent.new_session()
    fire: Any = agent.hooks["TaskCreated"]
    await fire.fire(TaskContext(agent, session))
    assert heard == ["write tests"]
    dispose()
    with pytest.raises(HookError, match="there is no event 'TaskCreate'"):
        agent.hooks.register("TaskCreate", lambda: None)


@pytest.mark.parametrize(
    "hook, answer, refused",
    [
        (lambda ctx: "on Fridays nobody deploys", True, "on Fridays nobody deploys"),
        (lambda ctx: Ask("on a Friday?"), False, "the user said no"),
        (lambda ctx: Ask("on a Friday?"), True, ""),
        (lambda ctx: None, False, ""),
    ],
)
async def test_text_denies_at_a_gate_of_ones_own_and_its_question_is_put_by_the_ui(
    hook, answer, refused
):
    class User(NullClient):
        async def ask(self, session_id: str, question: Question) -> Any:
            return answer

    agent = agent_with()
    agent.hooks.define(Point("before_deploy", "gate", (), aliases=("Deploying",)))
    agent.hooks.register("Deploying", hook)
    ctx = Context(agent, await agent.new_session(client=User()))
    ruling = await ctx.ui.agreed(await agent.hooks["before_deploy"].fire(ctx))
    assert (ruling.refused, ruling.reason) == (bool(refused), refused)
    assert not ctx.session.pending


@pytest.mark.parametrize(
    "wrong, hint",
    [
        ("no_such_event", "there is no event 'no_such_event'"),
        ("before_tols", "did you mean 'before_tool'?"),
        ("PretoolUse", "did you mean 'PreToolUse'?"),
        ("pretooluse", "there is no event"),
    ],
)
def test_an_unknown_event_fails_at_once_and_suggests_the_nearest(wrong, hint):
    with pytest.raises(HookError, match=hint.replace("?", r"\?")):
        agent_with().hooks.register(wrong, lambda: None)


async def test_arguments_come_by_name_and_an_unknown_first_one_gets_the_context(echo):
    seen: dict[str, Any] = {}

    class Everything:
        async def after_turn(self, session, usage):
            seen["after_turn"] = (session.id, usage)

        async def mid_react(self, whatever):
            seen["mid_react"] = type(whatever).__name__

        def before_tool(self, block, ctx, state, agent):
            state["calls"] = state.get("calls", 0) + 1
            seen["before_tool"] = (block.input, ctx.name, agent)

        def after_tool(self, block, output, duration, text="default"):
            seen["after_tool"] = (block.id, output, duration >= 0, text)

        def on_session_end(self):
            seen["on_session_end"] = True

        def before_run(self, session_id, cwd, query, ui, trace):
            seen["before_run"] = (session_id, query)

    agent = agent_with(call("echo", text="a"), "done", tools=[echo], hooks=[Everything()])
    async with agent:
        reply = await agent.run("go")

    session = reply.session
    assert seen == {
        "before_run": (session.id, "go"),
        "mid_react": "TurnContext",
        "before_tool": ({"text": "a"}, "echo", agent),
        "after_tool": ("call_1", "echo a", True, "default"),
        "after_turn": (session.id, None),
        "on_session_end": True,
    }
    assert session.state == {"everything": {"calls": 1}}


def test_an_argument_that_nothing_fills_is_an_error_that_says_what_there_is():
    with pytest.raises(HookError) as error:
        agent_with().hooks.register("after_turn", lambda session, tokens: None)
    assert "after_turn has no 'tokens'; it has" in str(error.value)
    assert "usage" in str(error.value)


@pytest.mark.parametrize(
    "event, options, wrong",
    [
        ("before_tool", {"background": True}, "cannot run in the background"),
        ("after_turn", {"judge": True}, "no gate"),
        ("after_turn", {"tools": {"Bash"}}, "no tool call"),
        ("before_tool", {"tools": "Bash"}, "several names"),
    ],
)
def test_an_option_that_makes_no_sense_at_a_point_is_an_error(event, options, wrong):
    with pytest.raises(HookError, match=wrong):
        agent_with().hooks.register(event, lambda ctx: None, **options)


async def test_what_takes_any_keywords_gets_all_that_a_moment_has(echo):
    heard: list[dict[str, Any]] = []

    class Open:
        def before_tool(self, **moment: Any) -> None:
            heard.append(moment)

        async def after_tool(self, call: Any, result: Any = None, **rest: Any) -> None:
            heard.append(rest)

        def after_run(self, ctx: Any, **rest: Any) -> None:
            heard.append(rest)

    model = ScriptedModel(call("echo", text="hi"), "done")
    await Agent(model, tools=[echo], hooks=[Open()]).run("go")
    common = {"agent", "session", "session_id", "cwd", "state", "ui", "trace"}
    before, after, with_context = heard
    assert {*before} == {"call", "tool", "args"} | common
    assert before["args"] == {"text": "hi"}
    assert before["session"].id == before["session_id"]
    assert {"tool", "args", "output", "outcome", "duration"} <= {*after}
    assert not {"call", "result"} & {*after}
    assert with_context == {}  # the context has all of it


async def test_what_takes_any_keywords_goes_around_and_changes_what_it_gets(echo):
    def before_tool(**moment: Any) -> None:
        moment["args"]["text"] = "other"

    async def around_tool(**moment: Any) -> Any:
        return await moment["call_next"]()

    model = ScriptedModel(call("echo", text="hi"), "done")
    agent = Agent(model, tools=[echo], hooks=[before_tool, around_tool])
    reply = await agent.run("go")
    assert reply.session.messages[2]["content"] == "echo other"


def test_what_cannot_be_called_by_name_is_an_error():
    def keyword_only(ctx: Any, *, call: Any) -> None: ...

    with pytest.raises(HookError, match="must not be keyword-only"):
        agent_with().hooks.register("before_tool", keyword_only)
    with pytest.raises(HookError, match="cannot be a hook"):
        agent_with().hooks.register("before_tool", 42)  # type: ignore[arg-type]


async def test_a_typed_attribute_registers_with_and_without_options(echo):
    agent = agent_with(call("echo", text="a"), "done", tools=[echo])
    heard: list[str] = []

    @agent.hooks.before_tool
    async def guard(ctx: ToolContext) -> None:
        heard.append("guard")

    @agent.hooks.before_tool(tools={"Echo"}, order=FIRST)
    def first(ctx: ToolContext) -> None:
        heard.append("first")

    @agent.hooks.before_tool(tools={"bash"}, order=LAST)
    def never(ctx: ToolContext) -> None:
        heard.append("never")

    await agent.run("go")
    assert heard == ["first", "guard"]
    assert guard.__name__ == "guard"
    assert bool(agent.hooks.before_tool)
    assert not agent.hooks.after_tool


async def test_register_is_a_decorator_where_it_is_given_no_hook(echo):
    agent = agent_with(call("echo", text="a"), "done", tools=[echo])
    heard: list[str] = []

    @agent.hooks.register("PreToolUse", tools={"Echo"}, order=FIRST)
    def guard(block: Any) -> None:
        heard.append(block.name)

    @agent.hooks.register_hook("PostToolUse")
    @agent.hooks.register("TaskCreated")
    async def watch(ctx: Any) -> None:
        heard.append(watch.__name__)

    await agent.run("go")
    assert heard == ["echo", "watch"]
    assert guard.__name__ == "guard"
    assert [event for event, _, _ in agent.hooks.waiting] == ["TaskCreated"]
    with pytest.raises(HookError, match="did you mean 'PreToolUse'"):
        agent.hooks.register("PreToolUs")(guard)
    with pytest.raises(HookError, match="register takes its name first"):
        agent.hooks.register(guard)  # type: ignore[call-overload]


def test_hook_wants_the_name_of_an_event_and_says_so_where_it_gets_the_function():
    with pytest.raises(HookError, match=r"which event is <function .* for\? hook takes its name"):

        @hook  # type: ignore[arg-type]
        def before_tool(ctx: Any) -> None: ...


def test_an_object_whose_call_yields_is_refused_as_a_function_is():
    class Pieces:
        def __call__(self, ctx: Any) -> Any:
            yield "nothing of it would run"

    with pytest.raises(HookError, match="yields, and nothing of it would run at before_tool"):
        agent_with().hooks.register("before_tool", Pieces())


async def test_the_points_are_attributes_by_their_canonical_names_alone():
    agent = agent_with()
    agent.hooks.define(Point("on_deploy", "gate", (), aliases=("Deploying",)))
    session = await agent.new_session()
    canonical = [*(point.name for point in POINTS), "on_deploy"]
    for hooks in (agent.hooks, agent.child().hooks, session.hooks):
        known = canonical[:-1] if hooks.parent else canonical
        assert set(known) <= set(dir(hooks))
        assert list(hooks.points) == known
        assert all(getattr(hooks, name) is hooks[name] for name in known)
        assert hooks["Stop"] is hooks.on_stop
        assert not hasattr(hooks, "Stop")
    with pytest.raises(AttributeError, match="no attribute 'befor_tool'") as error:
        _ = agent.hooks.befor_tool  # type: ignore[attr-defined]
    assert (error.value.name, error.value.obj) == ("befor_tool", agent.hooks)


async def test_an_event_that_is_gone_can_be_defined_anew_and_those_of_sub_agents_with_it():
    heard: list[str] = []
    agent = agent_with()
    child = agent.child()
    for name in ("first", "second"):
        dispose = agent.hooks.define(Point("on_deploy", "gate", ()))
        below = child.hooks.define(Point("on_deploy", "gate", ()))
        forget = agent.hooks.register("on_deploy", lambda name=name: heard.append(name))
        await child.hooks["on_deploy"].fire(Context(child, await child.new_session()))
        forget()
        below()
        dispose()
        assert not agent.hooks.knows("on_deploy")
        assert "on_deploy" not in dir(agent.hooks)
    assert heard == ["first", "second"]


async def test_what_a_session_hung_at_an_event_that_is_gone_goes_with_its_extension():
    heard: list[str] = []

    class Deploys:
        def init_session(self, session: Any) -> None:
            session.hooks.register("on_deploy", lambda: heard.append("deployed"))

    agent = agent_with()
    dispose = agent.hooks.define(Point("on_deploy", "gate", ()))
    session = await agent.new_session()
    session.use(Deploys(), name="deploys")
    await agent.hooks["on_deploy"].fire(Context(agent, session))
    dispose()
    session.remove("deploys")
    agent.hooks.define(Point("on_deploy", "gate", ()))
    await agent.hooks["on_deploy"].fire(Context(agent, session))
    assert heard == ["deployed"]


async def test_tools_at_an_event_that_a_sub_agent_does_not_know_end_no_run_of_its(echo):
    agent = agent_with("done", tools=[echo])
    agent.hooks.define(Point("on_transfer", "watch", ("call",), context=ToolContext))
    agent.hooks.register("on_transfer", lambda call: None, tools={"transfer"})
    child = agent.child()
    assert (await child.run("go")).text == "done"
    session = await agent.new_session()
    session.hooks.define(Point("on_refund", "watch", ("call",), context=ToolContext))
    session.hooks.register("on_refund", lambda call: None, tools={"refund"})
    agent.llm = ScriptedModel("done")
    assert (await agent.run("go", session=session)).text == "done"


async def test_a_registry_by_itself_is_hung_on_agents_with_all_that_it_has(echo):
    heard: list[str] = []
    registry = HookRegistry()
    registry.register("PreToolUse", lambda block: heard.append(block.name), tools={"echo"})
    registry.register("TaskCreated", lambda: None, order=3)
    agents = [
        agent_with(call("echo", text="a"), "done", tools=[echo], hooks=[registry]) for _ in "ab"
    ]
    for agent in agents:
        await agent.run("go")
        assert [event for event, _, _ in agent.hooks.waiting] == ["TaskCreated"]
        agent.remove("hook_registry")
        assert not [*agent.hooks, *agent.hooks.waiting]
    assert heard == ["echo", "echo"]
    with pytest.raises(ExtensionError, match="hangs nothing"):
        agent_with(hooks=[HookRegistry()])


@pytest.mark.parametrize(
    "kind, answer, told",
    [
        ("gate", None, None),
        ("gate", Allow(), None),
        ("gate", "not on Fridays", "not on Fridays"),
        ("gate", Deny(), "denied at on_deploy"),
        ("gate", Ask("on a Friday?"), "the user said no"),
        ("fold", None, None),
        ("fold", {"additionalContext": "x"}, None),
        ("continue", None, None),
        ("watch", "whatever", None),
    ],
)
async def test_trigger_hooks_says_why_it_must_not_go_on(kind, answer, told):
    agent = agent_with()
    agent.hooks.define(Point("on_deploy", kind, (), aliases=("Deploying",)))
    agent.hooks.register_hook("Deploying", lambda: answer)
    session = await agent.new_session()
    ctx = RunContext(agent, session, "go") if kind == "continue" else Context(agent, session)
    assert await agent.hooks.trigger_hooks("on_deploy", ctx) == told


async def test_trigger_hooks_takes_a_context_and_goes_around_nothing():
    agent = agent_with()
    with pytest.raises(HookError, match="PreToolUse takes a ToolContext or a Call, not"):
        await agent.hooks.trigger_hooks("PreToolUse", object())  # type: ignore[arg-type]
    with pytest.raises(HookError, match="around_tool takes a ToolContext"):
        await agent.hooks.trigger_hooks("around_tool", Context(agent, await agent.new_session()))


async def test_trigger_hooks_takes_a_bare_call_in_a_loop_of_ones_own(echo):
    agent = Agent(ScriptedModel(), tools=[echo])
    heard: list[Any] = []

    def guard(block):
        if "rm" in block.input["text"]:
            return "never"
        block.input["text"] += "!"
        return None

    agent.hooks.register_hook("PreToolUse", guard, tools={"echo"})
    agent.hooks.register_hook("PostToolUse", lambda block, output: heard.append((block.id, output)))
    agent.hooks.register_hook("UserPromptSubmit", lambda query: heard.append(query))
    agent.hooks.register_hook("Stop", lambda messages: "once more")
    for _ in range(2):  # with a session of its own, then with the agent's only one
        await agent.hooks.trigger_hooks("UserPromptSubmit", "go")
        assert await agent.hooks.trigger_hooks("PreToolUse", Call("1", "echo", {"text": "rm"}))
        block = Call("2", "echo", {"text": "hello"})
        assert await agent.hooks.trigger_hooks("PreToolUse", block) is None
        assert block.input == {"text": "hello!"}
        await agent.hooks.trigger_hooks("PostToolUse", block, "said")
        assert await agent.hooks.trigger_hooks("Stop", []) == "once more"
        assert await agent.hooks.trigger_hooks("Stop") == "once more"
    assert heard == ["go", ("2", "said")] * 2
    await agent.close()


async def test_trigger_hooks_is_about_the_session_in_which_a_hook_asks(echo):
    agent = Agent(ScriptedModel("done", "done"), tools=[echo])
    asked: list[Any] = []

    def guard(ctx):
        asked.append((ctx.session, ctx.run.prompt))

    async def before_run(ctx):
        await ctx.agent.hooks.trigger_hooks("PreToolUse", Call("1", "echo", {"text": "a"}))

    agent.hooks.register("PreToolUse", guard)
    agent.hooks.register("before_run", before_run)
    first, second = await agent.new_session(), await agent.new_session()
    await agent.prompt(second, "go")
    assert asked == [(second, "go")]
    with pytest.raises(HookError, match="which session"):
        await agent.hooks.trigger_hooks("PreToolUse", Call("1", "echo", {"text": "a"}))
    await first.hooks.trigger_hooks("PreToolUse", Call("1", "echo", {"text": "a"}))
    assert asked[1][0] is first
    with pytest.raises(HookError, match="no agent's"):
        await HookRegistry().trigger_hooks("PreToolUse", Call("1", "echo", {}))
    await agent.close()


@pytest.mark.parametrize(
    ("tools", "named"),
    [({"Ecko"}, "'ecko', did you mean 'echo'?"), ({"Ecko", "echo"}, ""), ({"WebFetch"}, "")],
)
async def test_a_filter_that_names_no_tool_is_named_once_with_the_nearest(
    echo, watcher, caplog, tools, named
):
    def guard(block): ...

    agent = Agent(ScriptedModel("one", "two"), tools=[echo])
    agent.hooks.register("PreToolUse", guard, tools=tools)
    session = await agent.new_session(client=watcher)
    await agent.prompt(session, "go")
    await agent.prompt(session, "again")
    told = [event.text for event in watcher.events if isinstance(event, Notice)]
    assert len(told) == bool(named)
    for text in told:
        assert text.startswith("the hook guard is for tools that there are not (")
        assert "test_registration.py:" in text
        assert text.endswith(named)
    assert caplog.text.count("did you mean") == bool(named)
    await agent.close()


async def test_a_filter_may_name_a_tool_that_a_hook_brings_and_is_not_one_for_a_sub_agent(
    echo, watcher
):
    agent = Agent(ScriptedModel("one", "two"), tools=[echo])
    agent.hooks.register("PreToolUse", lambda: None, tools={"echo"})
    child = agent.child(ScriptedModel("sub"), tools=[])
    main = await agent.new_session(client=watcher)
    await child.prompt(await child.new_session(parent=main, client=watcher), "go")
    await agent.prompt(main, "go")
    assert not [event for event in watcher.events if isinstance(event, Notice)]
    await child.close()
    await agent.close()


async def test_order_sorts_and_ties_run_as_registered_and_after_points_in_reverse():
    heard: list[str] = []
    agent = agent_with("done")
    for name, order in (("a", 0), ("b", LAST), ("c", FIRST), ("d", 0)):
        agent.hooks.register("before_run", lambda ctx, n=name: heard.append(n) or None, order=order)
        agent.hooks.register("after_loop", lambda ctx, n=name: heard.append(n), order=order)
    await agent.run("go")
    assert heard == ["c", "a", "d", "b", "b", "d", "a", "c"]


def test_a_method_registered_by_hand_and_found_by_name_runs_once():
    class Both:
        def init_agent(self, agent: Agent) -> None:
            agent.hooks.register("pre_request", self.pre_request, order=5)

        def pre_request(self, ctx: RunContext) -> None: ...

    agent = agent_with(hooks=[Both()])
    assert [(h.event, h.order) for h in agent.hooks] == [("before_run", 5)]


def test_agent_hooks_untouched_methods_are_not_registered():
    class Mine(AgentHook):
        async def after_turn(self, session: Any, usage: Any) -> None: ...

    agent = agent_with(hooks=[Mine()])
    assert [h.event for h in agent.hooks] == ["after_turn"]


def test_marked_functions_and_methods_are_hooks():
    @hook("PreToolUse", tools={"Bash"})
    @hook("Stop")
    def watch(ctx: Any) -> None: ...

    class Odd:
        @hook("after_turn", background=True)
        def anything(self, ctx: Any) -> None: ...

        @property
        def anything_else(self) -> None:
            raise AssertionError("properties are left alone")

    agent = agent_with(hooks=[watch, Odd()])
    assert [h.event for h in agent.hooks] == ["before_tool", "after_turn", "on_stop"]


def test_a_function_named_like_no_event_says_what_to_do():
    def guard(ctx: Any) -> None: ...

    with pytest.raises(HookError, match="name the function like an event, or mark it @hook"):
        agent_with(hooks=[guard])


def test_no_value_that_is_made_when_it_is_asked_for_is_made_by_looking_for_hooks():
    class Lazy:
        made = 0

        @cached_property
        def dear(self) -> int:
            self.made += 1
            return self.made

        @classmethod
        def after_turn(cls) -> None: ...

    lazy = Lazy()
    agent = agent_with(hooks=[lazy])
    assert lazy.made == 0
    assert [hook.name for hook in agent.hooks.after_turn.entries] == ["after_turn"]


@pytest.mark.parametrize("made", [property, cached_property])
def test_a_property_named_like_an_event_is_named_and_not_asked_for(made):
    def before_tool(self: Any) -> Any:
        raise AssertionError("it is not asked for")

    odd = type("Odd", (), {"before_tool": made(before_tool), "after_turn": lambda self: None})
    told = (
        r"^Odd.before_tool is a property, which hangs nothing: make it a method, or .*\.py:\d+\)$"
    )
    with pytest.raises(HookError, match=told):
        agent_with(hooks=[odd()])


def test_a_hook_in_a_slot_hangs_as_one_in_a_dict_does():
    @dataclass(slots=True)
    class Guard:
        before_tool: Any
        after_turn: Any = None

    agent = agent_with(hooks=[Guard(lambda call: Deny("no"))])
    assert [hook.event for hook in agent.hooks] == ["before_tool"]


def test_a_mark_on_something_else_is_an_error():
    class Wrong:
        class Thing:
            __crow_hooks__ = (("Stop", {}),)

        thing = Thing()

    with pytest.raises(HookError, match="cannot be called"):
        agent_with(hooks=[Wrong()])


async def test_aliases_fire_only_when_their_filter_says_so(echo, make_echo):
    heard: list[str] = []
    bad = make_echo("bad", fail=ValueError("no"))
    agent = agent_with(
        [call("echo", text="a"), call("bad", text="b"), call("echo", text="c")],
        "done",
        tools=[echo, bad],
    )
    agent.hooks.register("before_tool", lambda args: Deny("no") if args["text"] == "c" else None)
    for name in (
        "PostToolUse",
        "PostToolUseFailure",
        "PermissionDenied",
        "Stop",
        "SubagentStop",
        "SessionStart",
        "SubagentStart",
    ):
        agent.hooks.register(name, lambda ctx, name=name: heard.append(name) or None)
    await agent.run("go")

    assert sorted(heard) == [
        "PermissionDenied",
        "PostToolUse",
        "PostToolUseFailure",
        "SessionStart",
        "Stop",
    ]


async def test_model_switch_aliases_concern_the_model_alone():
    heard: list[str] = []
    agent = agent_with("a")
    for name in ("ConfigChange", "PreModelSwitch", "PostModelSwitch"):
        agent.hooks.register(name, lambda ctx, name=name: heard.append(name) or None)
    session = await agent.new_session()
    await agent.configure(session, mode="plan")
    assert heard == ["ConfigChange"]
    await agent.configure(session, model="other", temperature=1)
    assert heard[1:] == ["ConfigChange", "PreModelSwitch", "PostModelSwitch"]
    assert (session.model, session.mode, session.options) == ("other", "plan", {"temperature": 1})
    agent.hooks.register("PreModelSwitch", lambda changes: "not that one")
    assert await agent.configure(session, model="worse") == "not that one"
    assert session.model == "other"


@pytest.mark.parametrize(
    "thing, name",
    [
        (type("PersistenceHook", (), {})(), "persistence"),
        (type("WeatherSkill", (), {})(), "weather_skill"),
        (type("HTTPExtension", (), {})(), "http"),
        (type("Hook", (), {})(), "hook"),
        (type("X", (), {"name": "given"})(), "given"),
        (pytest, "pytest"),
        (name_of, "name_of"),
    ],
)
def test_a_thing_is_known_by_its_name_or_its_types(thing, name):
    assert name_of(thing) == name


@pytest.mark.parametrize("thing", [1, "x", None, print, object()])
def test_what_hangs_nothing_is_refused(thing):
    with pytest.raises(ExtensionError, match="hangs nothing on the agent"):
        agent_with(hooks=[thing])


def test_a_method_named_almost_like_an_event_is_refused():
    class Misspelt(AgentHook):
        def before_run(self, ctx: Any) -> None: ...
        def before_tols(self, ctx: Any) -> None: ...

    with pytest.raises(HookError, match="before_tols is no event; did you mean before_tool"):
        agent_with(hooks=[Misspelt()])


async def test_an_extensions_own_events_and_watchers_go_with_it_and_others_hooks_wait_again():
    class Plan:
        def init_agent(self, agent: Agent) -> None:
            agent.hooks.define(Point("TaskCreated", "watch", (), aliases=("task_made",)))
            agent.hooks.watchers.append(self.watch)
            agent.hooks.before_tool.watchers.append(self.watch)

        def watch(self, record: Any, ctx: Any) -> None: ...

    agent = agent_with()
    agent.hooks.register("TaskCreated", lambda ctx: None, order=3)
    for _ in range(2):
        agent.use(Plan())
        assert [(h.event, h.order) for h in agent.hooks] == [("TaskCreated", 3)]
        assert not agent.hooks.waiting
        agent.remove("plan")
        assert [event for event, _, _ in agent.hooks.waiting] == ["TaskCreated"]
        assert not agent.hooks.watchers
        assert not agent.hooks.before_tool.watchers
        assert "task_made" not in agent.hooks.names


async def test_hooks_of_the_parent_that_name_sub_agents_fire_in_them_and_are_watched():
    heard: list[str] = []
    watched: list[str] = []
    parent = agent_with("done")
    for name in ("SubagentStart", "SubagentStop", "Stop", "SessionStart", "on_session_start"):
        parent.hooks.register(name, lambda ctx, name=name: heard.append(name) or None)
    parent.hooks.watchers.append(lambda record, ctx: watched.append(record.event))
    session = await parent.new_session()
    heard.clear()
    watched.clear()
    child = parent.child()
    await child.prompt(await child.new_session(parent=session), "go")
    assert heard == ["SubagentStart", "SubagentStop"]
    assert watched == ["on_session_start", "on_stop"]


async def test_the_state_of_a_command_is_its_extensions():
    class Counting:
        def init_agent(self, agent: Agent) -> None:
            agent.add_command(Command("count", "", self.count))

        async def count(self, ctx: Any) -> Answer:
            ctx.state["count"] = ctx.state.get("count", 0) + 1
            return Answer(str(ctx.state["count"]))

    agent = agent_with(hooks=[Counting()])
    session = await agent.new_session()
    await agent.prompt(session, "/count")
    assert (await agent.prompt(session, "/count")).text == "2"
    assert session.state == {"counting": {"count": 2}}


# names


class Rules:
    def before_tool(self) -> None: ...


def test_a_second_one_of_its_kind_has_a_number_and_each_is_removed_by_its_name():
    first, second, third = Rules(), Rules(), Rules()
    agent = agent_with(hooks=[first, second])
    agent.use(third, name="other")
    assert agent.extensions == {"rules": first, "rules_2": second, "other": third}
    agent.remove("rules")
    assert [hook.owner.thing for hook in agent.hooks] == [second, third]
    agent.remove("rules_2")
    assert [hook.owner.thing for hook in agent.hooks] == [third]
    assert agent.extensions == {"other": third}


def test_a_name_that_somebody_gave_is_taken_once():
    agent = agent_with(hooks=[Rules()])
    with pytest.raises(ExtensionError, match="there is an extension 'rules' already"):
        agent.use(Rules(), name="rules")
    agent.use(Rules(), name="from_file", source="mine.py")
    with pytest.raises(ExtensionError, match=r"an extension 'from_file' already, from mine.py"):
        agent.use(Rules(), name="from_file")
    assert len([*agent.hooks]) == len(agent.extensions) == 2


@pytest.mark.parametrize("how", ["item", "update", "or", "before"])
def test_who_takes_the_name_of_another_by_hand_is_refused_and_leaves_nothing(how):
    class Takes:
        def init_agent(self, agent: Any) -> None:
            agent.hooks.register("before_tool", lambda: None)
            if how == "item":
                agent.extensions["rules"] = self
            elif how == "update":
                agent.extensions.update(rules=self)
            elif how == "or":
                agent.extensions |= {"rules": self}
            else:
                agent.extensions["takes"] = Rules()

    rules = Rules()
    agent = agent_with(hooks=[rules])
    with pytest.raises(ExtensionError, match=r"there is an extension '(rules|takes)' already"):
        agent.use(Takes())
    assert agent.extensions["rules"] is rules
    assert [hook.owner.thing for hook in agent.hooks] == [rules]


def test_who_was_listed_by_hand_is_not_taken_for_who_comes_later():
    agent = agent_with()
    by_hand, later = Rules(), Rules()
    agent.extensions["rules"] = by_hand
    agent.hooks.register("before_tool", by_hand.before_tool)
    agent.use(later)
    assert agent.extensions == {"rules": by_hand, "rules_2": later}
    agent.remove("rules")
    assert [hook.owner.thing for hook in agent.hooks] == [later]


@pytest.mark.parametrize(
    "option, value",
    [("timeout", "x"), ("timeout", -1), ("timeout", 0), ("order", "first"), ("thread", "yes")],
)
def test_an_option_that_is_not_what_it_must_be_is_an_error_at_once(option: str, value: Any):
    agent = Agent(ScriptedModel(leftover="allow"), tools=[])
    options: Any = {option: value}
    with pytest.raises(HookError, match=f"{option} is .*{value}"):
        agent.hooks.register("before_tool", lambda call: None, **options)
    assert not agent.hooks.before_tool


@pytest.mark.parametrize("name, near", [("beforeTool", "before_tool"), ("onStop", "on_stop")])
def test_an_event_in_the_letters_of_another_language_is_named(name: str, near: str):
    guard = type("Guard", (), {name: lambda self: "no", "before_run": lambda self: None})()
    with pytest.raises(HookError, match=f"{name} is no event; did you mean {near}?"):
        Agent(ScriptedModel(), tools=[], hooks=[guard])


def test_a_generator_is_refused_where_nothing_of_it_would_run():
    def watches(ctx: Any) -> Any:
        yield ctx

    async def guards(ctx: Any) -> Any:
        yield ctx

    agent = agent_with()
    for event, fn in (("after_turn", watches), ("before_tool", guards), ("around_tool", guards)):
        with pytest.raises(HookError, match=r"yields, and nothing of it would run at .*\.py:\d+"):
            agent.hooks.register(event, fn)


async def test_what_takes_anything_gets_the_context(echo: Any):
    given: list[Any] = []

    def noted(*args: Any, **options: Any) -> None:
        given.append(args)

    async def around(*args: Any) -> Any:
        given.append(args[0])
        return await args[1]()

    agent = agent_with(call("echo", text="a"), "done", tools=[echo])
    agent.hooks.register("before_tool", noted)
    agent.hooks.register("around_tool", around)
    await agent.run("go")
    [(ctx,), view] = given
    assert ctx.args == view.args == {"text": "a"}
