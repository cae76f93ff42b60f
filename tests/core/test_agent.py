"""The agent: using and removing extensions, lifespans, sessions, commands, children."""

from __future__ import annotations

import asyncio
import os
import types
from typing import Any

import pytest

from crow.core.agent import Agent
from crow.core.catalog import Command, Mode, PromptSection
from crow.core.errors import ExtensionError, HookError, ModelError, SessionError
from crow.core.events import ConfigChanged, Notice, TextDelta
from crow.core.hooks.contexts import ConfigContext
from crow.core.ports.llm import Completion, Request
from crow.core.session import Session
from crow.core.verdicts import Allow, Answer, Ask, Deny, Stop
from crow.extensions import SystemPromptHook
from crow.testing import ScriptedModel, call


def bare(*steps: Any, **options: Any) -> Agent:
    return Agent(ScriptedModel(*steps, leftover="allow"), **{"tools": (), **options})


def registries(agent: Agent) -> Any:
    return (
        [(h.event, h.owner.name) for h in agent.hooks],
        agent.hooks.waiting,
        [dict(catalog) for catalog in agent.catalogs],
        dict(agent.extensions),
        agent.store,
    )


class Everything:
    """Adds one of each."""

    name = "everything"

    def __init__(self, tool: Any, level: int = 1) -> None:
        self.tool = tool
        self.level = level

    def init_agent(self, agent: Agent) -> None:
        async def say(ctx: Any) -> Answer:
            return Answer(f"said {ctx.args}")

        agent.extensions["all_of_it"] = self
        agent.hooks.register("Stop", self.stop)
        agent.hooks.register("TaskCreated", self.stop)
        agent.add_tool(self.tool)
        agent.add_command(Command("say", "Say it.", say, "WHAT"))
        agent.add_mode(Mode("plan", "Plan"))
        agent.add_section(PromptSection("more", "Be brief."))
        agent.store = self  # type: ignore[assignment]

    def stop(self, ctx: Any) -> None: ...

    def before_run(self, ctx: Any) -> None: ...


def test_use_then_remove_leaves_every_registry_as_before(echo):
    agent = bare(hooks=[type("Other", (), {"after_run": lambda self, ctx: None})()])
    before = registries(agent)
    extension = agent.use(Everything(echo))
    assert registries(agent) != before
    assert agent.extensions["all_of_it"] is extension
    assert [h.owner.name for h in agent.hooks if h.event == "on_stop"] == ["all_of_it"]
    agent.remove("all_of_it")
    assert registries(agent) == before


def test_removing_what_is_not_there_suggests_the_nearest(echo):
    agent = bare(hooks=[Everything(echo)])
    with pytest.raises(
        ExtensionError, match="there is no extension 'all_of_them'; did you mean 'all_of_it'"
    ):
        agent.remove("all_of_them")
    with pytest.raises(ExtensionError, match=r"there is no extension 'x'$"):
        agent.remove("x")


def test_an_extension_that_hangs_itself_on_can_be_removed():
    class WeatherSkill:
        def __init__(self, agent: Agent) -> None:
            agent.hooks.register("pre_request", self.pre_request)
            agent.extensions["weather_skill"] = self

        def pre_request(self, ctx: Any) -> None: ...

    agent = bare()
    before = registries(agent)
    WeatherSkill(agent)
    assert [h.owner.name for h in agent.hooks] == ["weather_skill"]
    agent.remove("weather_skill")
    assert registries(agent) == before


def test_what_fails_half_way_leaves_nothing_behind(echo):
    class Half(Everything):
        def init_agent(self, agent: Agent) -> None:
            super().init_agent(agent)
            raise ValueError("half-way")

    class Wrong:
        def init_agent(self, agent: Agent) -> None:
            agent.add_mode(Mode("plan", "Plan"))

        def after_turn(self, ctx: Any, nonsense: Any) -> None: ...

    agent = bare()
    before = registries(agent)
    with pytest.raises(ExtensionError, match="the extension everything failed: ValueError"):
        agent.use(Half(echo))
    with pytest.raises(HookError, match="nonsense"):
        agent.use(Wrong())
    assert registries(agent) == before


def test_a_class_is_made_with_its_options_which_are_checked(echo):
    agent = bare()
    made = agent.use(Everything, tool=echo, level=3)
    assert (made.level, agent.extensions["all_of_it"]) == (3, made)
    cases: list[tuple[dict[str, Any], str]] = [
        ({"tool": echo, "levle": 3}, "has no option 'levle'; did you mean 'level'?"),
        ({"tool": echo, "x": 3}, "has no option 'x'; it has tool, level"),
        ({"level": 3}, "needs the option 'tool'"),
    ]
    for options, wrong in cases:
        with pytest.raises(ExtensionError) as error:
            agent.use(Everything, **options)
        assert wrong in str(error.value)


def test_a_class_may_take_any_options():
    class Loose(dict):  # type: ignore[type-arg]
        def __init__(self, **options: int) -> None:
            super().__init__(options)

        def after_run(self, ctx: Any) -> None: ...

    agent = bare()
    assert agent.use(Loose, anything=1) == {"anything": 1}


def test_two_extensions_of_one_name_are_kept_apart():
    class Same:
        def before_run(self, ctx: Any) -> None: ...

    agent = bare(hooks=[Same(), Same(), Same])
    assert list(agent.extensions) == ["same", "same_2", "same_3"]
    agent.remove("same_2")
    assert [h.owner.name for h in agent.hooks] == ["same", "same_3"]


def test_modules_and_functions_are_extensions():
    module = types.ModuleType("package.weather")
    module.after_turn = lambda session: None  # type: ignore[attr-defined]
    module.init_agent = lambda agent: agent.add_mode(Mode("rain", "Rain"))  # type: ignore[attr-defined]

    def init_agent(agent: Agent) -> None:
        agent.add_mode(Mode("sun", "Sun"))

    def before_run(prompt: str) -> None: ...

    agent = bare(hooks=[module, init_agent, before_run])
    assert list(agent.modes) == ["rain", "sun"]
    assert [h.owner.name for h in agent.hooks] == ["before_run", "weather"]


def test_a_name_can_be_taken_once_unless_it_is_replaced(echo, make_echo):
    other = make_echo()
    agent = bare(tools=[echo])
    with pytest.raises(ExtensionError, match="there is a tool 'echo' already"):
        agent.add_tool(other)
    dispose = agent.add_tool(other, replace=True)
    assert agent.tools["echo"] is other
    dispose()
    assert agent.tools["echo"] is echo
    assert (agent.tools.owner("echo"), len(agent.tools)) == (None, 1)
    with pytest.raises(ExtensionError, match="is no tool: decorate the function with @tool"):
        agent.add_tool(lambda: None)  # type: ignore[arg-type]


# lifespans


class Lived:
    def __init__(self, name: str, log: list[str], *, enter: Any = None, leave: Any = None) -> None:
        self.name, self.log, self.enter, self.leave = name, log, enter, leave

    async def lifespan(self, agent: Agent):
        if self.enter:
            raise self.enter
        self.log.append(f"enter {self.name}")
        yield
        self.log.append(f"leave {self.name}")
        if self.leave:
            raise self.leave


async def test_lifespans_are_entered_in_order_and_left_in_reverse():
    log: list[str] = []
    agent = bare("hi", hooks=[Lived("a", log), Lived("b", log, leave=ValueError("late"))])
    assert log == []
    await agent.run("go")
    agent.use(Lived("c", log))
    await agent.start()
    await agent.stop("a")
    await agent.stop("a")
    await agent.close()
    assert log == ["enter a", "enter b", "enter c", "leave a", "leave c", "leave b"]


async def test_an_extension_that_was_removed_is_left_when_it_is_stopped_or_at_the_end():
    log: list[str] = []
    agent = bare("hi", hooks=[Lived("a", log), Lived("b", log), Lived("c", log)])
    await agent.start()
    for name in "abc":
        agent.remove(name)
    agent.use(Lived("a", log))
    await agent.stop("b")
    await agent.start()
    await agent.close()
    assert log == [
        "enter a",
        "enter b",
        "enter c",
        "leave b",
        "enter a",
        "leave a",
        "leave c",
        "leave a",
    ]


async def test_a_lifespan_that_cannot_start_fails_the_prompt_and_says_who():
    agent = bare("hi", hooks=[Lived("a", [], enter=OSError("no database"))])
    with pytest.raises(ExtensionError, match="the extension a failed to start: OSError"):
        async with agent:
            pass


@pytest.mark.parametrize("how", ["fails", "hangs"])
async def test_a_lifespan_that_did_not_start_is_begun_again_and_never_left(how: str):
    from crow.core.extensions import Lifespan

    begun: list[str] = []

    async def lifespan(host: object):
        begun.append(how)
        if len(begun) == 1:
            if how == "fails":
                raise OSError("no database")
            await asyncio.Event().wait()
        yield
        begun.append("left")

    made = Lifespan("odd", lifespan, None, enter_timeout=0.02)
    with pytest.raises(ExtensionError):
        await made.enter()
    assert not made.entered
    await made.leave()
    await made.enter()
    await made.leave()
    assert begun == [how, how, "left"]


async def test_no_prompt_is_answered_without_what_a_lifespan_was_to_bring():
    agent = bare("one", "two", hooks=[Lived("a", [], enter=OSError("no database"))])
    session = Session()
    for _ in range(2):
        with pytest.raises(ExtensionError, match="the extension a failed to start"):
            await agent.run("Hi", session=session)


async def test_a_lifespan_may_be_an_async_context_manager_and_is_bounded_in_time():
    from contextlib import asynccontextmanager

    from crow.core import extensions

    class Slow:
        name = "slow"

        @asynccontextmanager
        async def lifespan(self, agent: Agent):
            await asyncio.Event().wait()
            yield

    class Stays:
        name = "stays"

        async def lifespan(self, agent: Agent):
            yield
            await asyncio.Event().wait()

    made = extensions.Lifespan("slow", Slow().lifespan, None, enter_timeout=0.02)
    with pytest.raises(ExtensionError, match=r"the extension slow did not start within 0.02 s"):
        await made.enter()
    made = extensions.Lifespan("stays", Stays().lifespan, None, leave_timeout=0.02)
    await made.leave()
    await made.enter()
    await made.leave()


# sessions


async def test_a_session_opens_in_a_directory_made_absolute(tmp_path, home):
    sources: list[str] = []
    agent = bare()
    agent.hooks.register("on_session_start", lambda source: sources.append(source))
    session = await agent.new_session(os.path.relpath(tmp_path), directories=("/opt",))
    assert (session.cwd, session.roots) == (str(tmp_path), (str(tmp_path), "/opt"))
    assert (await agent.new_session("~")).cwd == str(home)
    assert agent._sessions[session.id] is session
    assert agent.sessions[session.id] is session
    assert sources == ["new", "new"]
    await agent.close_session(session)
    await agent.close_session(session)
    with pytest.raises(SessionError, match="is closed"):
        await agent.prompt(session, "go")


async def test_text_of_a_session_start_hook_stands_behind_the_first_prompt():
    model = ScriptedModel("hi")
    agent = Agent(model, tools=())
    agent.hooks.register("SessionStart", lambda ctx: "it is Monday")
    await agent.run("go")
    assert [m["role"] for m in model.asked[0]["messages"]] == ["user", "user"]
    assert "it is Monday" in str(model.asked[0]["messages"][1]["content"])


class Shelf:
    """A store in memory."""

    def __init__(self) -> None:
        self.saved: list[str] = []

    def init_agent(self, agent: Agent) -> None:
        agent.store = self  # type: ignore[assignment]

    def save(self, session: Session) -> None:
        self.saved.append(session.id)

    async def load(self, session_id: str) -> Session:
        if session_id == "none":
            raise SessionError("there is no session 'none'")
        return Session(session_id, messages=[{"role": "user", "content": "before"}])


async def test_a_stored_session_is_loaded_through_the_store():
    agent = bare("hi")
    with pytest.raises(SessionError, match="use an extension such as PersistenceHook"):
        await agent.load_session("a")
    shelf = agent.use(Shelf())
    sources: list[str] = []
    agent.hooks.register("on_session_start", lambda source: sources.append(source))
    session = await agent.load_session("a", source="resume", cwd="/opt")
    assert session.cwd == "/opt"
    assert await agent.load_session("a") is session
    assert (await agent.run("go", session=session)).text == "hi"
    assert session.save()
    assert not Session().save()
    assert (shelf.saved, sources) == (["a"], ["resume"])
    with pytest.raises(SessionError, match="no session 'none'"):
        await agent.load_session("none")
    agent.remove("shelf")
    assert agent.store is None


def test_a_store_that_an_extension_gave_the_agent_goes_with_it():
    class Hook:
        def __init__(self, fails: bool = False) -> None:
            self.shelf, self.fails = Shelf(), fails

        def init_agent(self, agent: Agent) -> None:
            agent.store = self.shelf  # type: ignore[assignment]
            if self.fails:
                raise ValueError("half-way")

    agent = bare()
    with pytest.raises(ExtensionError, match="half-way"):
        agent.use(Hook(fails=True))
    assert agent.store is None
    used = agent.use(Hook(), name="shelf")
    assert agent.store is used.shelf
    agent.remove("shelf")
    assert agent.store is None


# models


async def test_an_agent_without_a_model_says_so():
    from crow.core.defaults import Defaults

    agent = Agent(tools=())
    installed, Agent.defaults = Agent.defaults, Defaults()
    try:
        reply = await agent.prompt(await agent.new_session(), "go")
    finally:
        Agent.defaults = installed
    assert reply.detail == "the agent has no model: Agent(llm=...)"
    agent.llm = ScriptedModel("hi")
    assert (await agent.run("go")).text == "hi"


# commands


async def test_a_command_expands_answers_or_says_nothing(watcher):
    async def expand(ctx: Any) -> str:
        return f"please {ctx.args}"

    async def answer(ctx: Any) -> Answer:
        return Answer("there is no help")

    async def silent(ctx: Any) -> None: ...

    model = ScriptedModel("done")
    agent = Agent(model, tools=())
    for name, run in (("do", expand), ("help", answer), ("quiet", silent)):
        agent.add_command(Command(name, "", run))
    session = await agent.new_session(client=watcher)
    assert (await agent.prompt(session, "/help me")).text == "there is no help"
    assert TextDelta("there is no help", session.next_message_id) in watcher.events
    assert (await agent.prompt(session, "/quiet")).text == ""
    assert session.messages == []
    await agent.prompt(session, "/do it now")
    assert model.asked[0]["messages"] == [{"role": "user", "content": "please it now"}]
    agent.hooks.register("before_command", lambda command, args: Deny(f"no /{command} {args}"))
    assert (await agent.prompt(session, "/do it")).detail == "no /do it"


async def test_a_command_need_not_be_async():
    agent = Agent(ScriptedModel())
    agent.add_command(Command("plain", "Says so", lambda ctx: Answer(f"So: {ctx.args}")))
    assert (await agent.run("/plain it is")).text == "So: it is"


@pytest.mark.parametrize(
    ("run", "told"),
    [
        (lambda ctx: 1 / 0, "the command /odd failed: ZeroDivisionError('division by zero')"),
        (
            lambda ctx: 5,
            "the command /odd returned 5: a prompt (str), an Answer or None is expected",
        ),
    ],
)
async def test_a_command_that_is_broken_is_named_with_its_place(run, told):
    agent = Agent(ScriptedModel("Hello"))
    agent.add_command(Command("odd", "Breaks", run))
    session = await agent.new_session()
    reply = await agent.prompt(session, "/odd")
    assert reply.stop_reason == "error"
    assert reply.detail == f"{told} ({__file__}:{run.__code__.co_firstlineno})"
    assert (await agent.prompt(session, "Go on")).text == "Hello"


async def test_what_is_no_command_is_a_prompt():
    model = ScriptedModel("a", "b")
    agent = Agent(model, tools=())
    await agent.run("/unknown thing")
    await agent.run("help")
    assert model.asked[0]["messages"][0]["content"] == "/unknown thing"


@pytest.mark.parametrize("said, refused", [(True, False), (False, True)])
async def test_an_ask_at_another_gate_is_put_to_the_user(watcher, said, refused):
    agent = bare("done")
    agent.hooks.register("before_run", lambda ctx: Ask("really?"))
    watcher.replies = [said]
    reply = await agent.run("go", client=watcher)
    assert [q.text for q in watcher.questions] == ["really?"]
    assert (reply.stop_reason == "refusal") is refused


# permission


@pytest.mark.parametrize(
    "answer, said",
    [
        ("allow_once", "echo a"),
        ("reject_once", "the user rejected this call"),
        (None, "this needs the user's permission, and nobody can be asked: sure?"),
        ("other", "this needs the user's permission, and nobody can be asked: sure?"),
    ],
)
async def test_the_user_decides_what_a_hook_asks(echo, watcher, answer, said):
    heard: list[str] = []

    async def answered(option: str) -> None:
        heard.append(option)

    watcher.answer = answer
    agent = bare(call("echo", text="a"), "done", tools=[echo])
    agent.hooks.register("before_tool", lambda ctx: Ask("sure?", answered=answered))
    reply = await agent.run("go", client=watcher)
    assert reply.session.messages[2]["content"] == said
    assert [request.reason for request in watcher.asked] == ["sure?"]
    assert heard == ([answer] if answer in ("allow_once", "reject_once") else [])


async def test_permission_hooks_answer_for_the_user_but_not_against_a_rule(echo, watcher):
    for rule, asked in ((None, 0), ("Bash(rm *)", 1)):
        agent = bare(call("echo", text="a"), "done", tools=[echo])
        agent.hooks.register("before_tool", lambda ctx, rule=rule: Ask("sure?", rule=rule))
        agent.hooks.register("PermissionRequest", lambda call, options, reason: Allow())
        watcher.asked.clear()
        await agent.run("go", client=watcher)
        assert len(watcher.asked) == asked
    agent = bare(call("echo", text="a"), "done", tools=[echo])
    agent.hooks.register("before_tool", lambda ctx: Ask())
    agent.hooks.register("PermissionRequest", lambda call: "never")
    reply = await agent.run("go", client=watcher)
    assert reply.session.messages[2]["content"] == "never"


@pytest.mark.parametrize(
    ("judged", "said", "asked"),
    [
        (None, "echo b", 0),
        (Allow(), "echo b", 0),
        (Deny("not b"), "not b", 0),
        (Ask("b?", default=True), "echo b", 0),
        (Ask("b?", rule="b"), "the user rejected this call", 1),
    ],
)
async def test_arguments_that_a_permission_hook_changes_are_judged_again(
    echo, watcher, judged, said, asked
):
    def judge(args):
        return Ask("a?", default=True) if args["text"] == "a" else judged

    def change(ctx):
        ctx.args = {"text": "b"}
        return Allow()

    watcher.answer = "reject_once"
    agent = bare(call("echo", text="a"), "done", tools=[echo])
    agent.hooks.register("before_tool", judge, judge=True)
    agent.hooks.register("PermissionRequest", change)
    reply = await agent.run("go", client=watcher)
    assert reply.session.messages[2]["content"] == said
    assert [request.args for request in watcher.asked] == [{"text": "b"}] * asked


async def test_a_question_can_say_what_holds_where_nobody_answers_it(echo):
    agent = bare(call("echo", text="a"), "never", tools=[echo])
    agent.hooks.register("before_tool", lambda ctx: Ask("sure?", unanswered=Stop("later")))
    reply = await agent.run("go")
    assert (reply.stop_reason, "later" in reply.detail) == ("hook_stopped", True)
    assert reply.session.messages[2]["content"] == "later"


async def test_arguments_that_a_permission_hook_spoils_are_refused(echo, watcher):
    def spoil(ctx):
        ctx.args = {"text": 1}

    agent = bare(call("echo", text="a"), "done", tools=[echo])
    agent.hooks.register("before_tool", lambda ctx: Ask())
    agent.hooks.register("PermissionRequest", spoil)
    reply = await agent.run("go", client=watcher)
    assert "'text' must be string" in str(reply.session.messages[2]["content"])
    assert watcher.asked == []


# children


async def test_sub_agents_run_the_gates_of_their_parent(echo):
    order: list[str] = []
    parent = bare("x", tools=[echo])
    parent.hooks.register("before_tool", lambda ctx: order.append("parent") or Deny("not here"))
    parent.hooks.register("after_tool", lambda ctx: order.append("never"))
    child = parent.child(ScriptedModel(call("echo", text="a"), "done"))
    child.hooks.register("before_tool", lambda ctx: order.append("child") or None)
    grandchild = child.child(ScriptedModel(call("echo", text="a"), "done"), tools=[echo])
    session = await parent.new_session()
    for agent in (child, grandchild):
        order.clear()
        reply = await agent.prompt(await agent.new_session(parent=session), "go")
        assert reply.session.messages[2]["content"] == "not here"
        assert order == ["parent", "child"]
    assert not echo.ran


async def test_sub_agents_fire_the_sub_names():
    heard: list[str] = []
    parent = bare("a")
    session = await parent.new_session()
    child = parent.child(ScriptedModel("done"))
    for name in ("SessionStart", "SubagentStart", "Stop", "SubagentStop"):
        child.hooks.register(name, lambda ctx, name=name: heard.append(name) or None)
    await child.prompt(await child.new_session(parent=session), "go")
    assert heard == ["SubagentStart", "SubagentStop"]


# entry points


async def test_configuration_is_told_to_the_client(watcher):
    agent = bare()
    session = await agent.new_session(client=watcher)
    await agent.configure(session, mode="plan")
    assert ConfigChanged({"mode": "plan"}) in watcher.events


async def test_a_change_of_a_settings_file_says_which_and_whose_it_is():
    agent = bare()
    heard: list[Any] = []
    agent.hooks.register(
        "ConfigChange", lambda changes, source, file_path: heard.append((source, file_path))
    )
    session = await agent.new_session()
    edited = {"settings": {"model": "x"}}
    ctx = ConfigContext(agent, session, edited, source="user_settings", path="/home/settings.json")
    assert not (await agent.hooks.on_config_change.fire(ctx)).refused
    await agent.configure(session, mode="plan")
    assert heard == [("user_settings", "/home/settings.json"), ("", "")]


async def test_ui_questions_fall_back_to_their_default(watcher):
    agent = bare("done")
    got: list[Any] = []

    async def ask(ctx: Any) -> None:
        got.append(await ctx.ui.confirm("sure?", default=True))
        got.append(await ctx.ui.select("which?", ["a", "b"], default="b"))
        got.append(await ctx.ui.ask("name?", default="me"))
        await ctx.ui.notify("done asking")

    agent.hooks.register("before_run", ask)
    await agent.run("go", client=watcher)
    assert got == [True, "b", "me"]
    assert Notice("done asking", "info", "ask") in watcher.events


async def test_tools_of_a_session_are_its_own(echo, make_echo):
    model = ScriptedModel(call("own", text="a"), "done", "other")
    agent = Agent(model, tools=[echo])
    session = await agent.new_session()
    session.add_tool(make_echo("own"))
    await agent.prompt(session, "go")
    await agent.run("go")
    assert [[t["function"]["name"] for t in asked["tools"]] for asked in model.asked] == [
        ["echo", "own"],
        ["echo", "own"],
        ["echo"],
    ]


async def test_the_request_prefix_is_stable_from_turn_to_turn(echo):
    model = ScriptedModel(*[call("echo", text=str(i)) for i in range(4)], "done")
    agent = Agent(model, tools=[echo])
    await agent.run("go")
    for before, after in zip(model.asked, model.asked[1:], strict=False):
        assert after["messages"][: len(before["messages"])] == before["messages"]
        assert after["tools"] == before["tools"]


async def test_model_errors_are_raised_by_run():
    agent = bare(ModelError("the key is wrong", kind="authentication", status=401))
    with pytest.raises(ModelError, match="the key is wrong") as error:
        await agent.run("go")
    assert (error.value.kind, error.value.status) == ("authentication", 401)


async def test_a_part_of_the_prompt_that_no_request_has_is_named_once(watcher):
    class Polite:
        def init_agent(self, agent: Agent) -> None:
            agent.add_section(PromptSection("manners", "Be polite."))

    agent = Agent(ScriptedModel("a", "b", "c"), hooks=[Polite()], tools=[])
    session = await agent.new_session(client=watcher)
    for _ in range(2):
        await agent.prompt(session, "go")
    (told,) = [event.text for event in watcher.events if isinstance(event, Notice)]
    assert "no request has the prompt section manners" in told
    assert "SystemPromptHook" in told
    watcher.events.clear()
    whole = Agent(agent.llm, hooks=[SystemPromptHook(), Polite()], tools=[])
    await whole.prompt(await whole.new_session(client=watcher), "go")
    assert not [event for event in watcher.events if isinstance(event, Notice)]


async def test_a_prompt_is_refused_in_the_name_of_whoever_refused_it(watcher):
    class Sunday:
        def before_run(self, prompt: str) -> Deny | None:
            return Deny("not today") if prompt == "work" else None

    agent = bare("done", hooks=[Sunday()])
    reply = await agent.run("work", client=watcher)
    assert reply.detail == "not today"
    told = [event for event in watcher.events if isinstance(event, Notice)]
    assert told == [Notice("refused by sunday: not today", "warning", "sunday")]


async def test_what_is_no_session_mode_or_section_is_told_with_what_is() -> None:
    wrong: Any = "abc"
    async with bare("Yes.") as agent:
        with pytest.raises(SessionError, match=r"'abc' is no Session: await agent.load_session"):
            await agent.run("Go", session=wrong)
        with pytest.raises(ExtensionError, match="'abc' is no mode: Mode"):
            agent.add_mode(wrong)
        with pytest.raises(ExtensionError, match="'abc' is no section: PromptSection"):
            agent.add_section(wrong)


async def test_a_model_whose_stream_returns_is_told_to_yield() -> None:
    class Returns:
        model = "mine"

        async def stream(self, request: Request) -> Completion:
            return Completion("Yes.")

    wrong: Any = Returns()
    async with Agent(wrong, tools=()) as agent:
        with pytest.raises(ModelError, match=r"stream\(\) returns: it is to yield"):
            await agent.run("Go")


async def test_sessions_of_an_agent_that_closes_end_side_by_side() -> None:
    everyone = asyncio.Barrier(3)

    async def on_session_end() -> None:
        await everyone.wait()

    agent = Agent(ScriptedModel(), hooks=[on_session_end])
    for _ in range(everyone.parties):
        await agent.new_session()
    async with asyncio.timeout(30):
        await agent.close()
    assert not agent.sessions
