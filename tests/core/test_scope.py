"""What hangs on one session: it counts there alone, the nearest of a name first, and goes."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from crow.core.agent import Agent
from crow.core.catalog import Command, Mode, PromptSection
from crow.core.errors import ExtensionError, HookError, SessionError
from crow.core.hooks.discovery import hook
from crow.core.hooks.points import Point
from crow.core.hooks.registry import FIRST, LAST
from crow.core.hooks.run_context import RunContext
from crow.core.session import Session
from crow.core.verdicts import Allow, Answer, Ask, Deny
from crow.extensions import PersistenceHook
from crow.testing import ScriptedModel, call


def bare(*steps: Any, **options: Any) -> Agent:
    model = ScriptedModel(*(steps or ["ok"] * 5), leftover="allow")
    return Agent(model, **{"tools": (), **options})


def telling(heard: list[str], name: str, *events: str) -> Any:
    """An extension that says that it was called, at each of these events."""

    def method(event: str) -> Any:
        def tell(ctx: Any) -> None:
            heard.append(f"{name} {event}")

        return staticmethod(tell)

    return type(name, (), {event: method(event) for event in events or ("before_run",)})()


async def heard_in(agent: Agent, session: Session, heard: list[str]) -> list[str]:
    heard.clear()
    await agent.prompt(session, "go")
    return list(heard)


async def test_an_extension_of_a_session_counts_there_alone_and_behind_those_of_the_agent():
    heard: list[str] = []
    agent = bare(hooks=[telling(heard, "first")])
    mine, other = await agent.new_session(), await agent.new_session()
    mine.use(telling(heard, "own"))
    agent.use(telling(heard, "later"))
    assert await heard_in(agent, mine, heard) == [
        "first before_run",
        "later before_run",
        "own before_run",
    ]
    assert await heard_in(agent, other, heard) == ["first before_run", "later before_run"]
    assert list(mine.extensions) == ["own"]
    assert list(agent.extensions_of(mine)) == ["first", "later", "own"]
    mine.remove("own")
    assert await heard_in(agent, mine, heard) == ["first before_run", "later before_run"]
    assert other.hung is None


async def test_order_counts_before_where_something_hangs():
    heard: list[str] = []
    agent = bare()
    session = await agent.new_session()

    @session.hooks.before_run(order=FIRST)
    def first(ctx: Any) -> None:
        heard.append("session, first")

    agent.hooks.register("pre_request", lambda ctx: heard.append("agent") or None)
    agent.hooks.register("before_run", lambda ctx: heard.append("agent, last") or None, order=LAST)
    dispose = session.hooks.register(
        "UserPromptSubmit", lambda ctx: heard.append("session") or None
    )
    assert await heard_in(agent, session, heard) == [
        "session, first",
        "agent",
        "session",
        "agent, last",
    ]
    dispose()
    assert "session" not in await heard_in(agent, session, heard)


async def test_points_that_run_the_last_first_do_so_across_both():
    heard: list[str] = []
    agent = bare(hooks=[telling(heard, "one", "after_loop"), telling(heard, "two", "after_loop")])
    session = await agent.new_session()
    session.use(telling(heard, "own", "after_loop"))
    assert [each.split()[0] for each in await heard_in(agent, session, heard)] == [
        "own",
        "two",
        "one",
    ]


class Everything:
    """Adds one of each, wherever it is used."""

    name = "everything"

    def __init__(self, tool: Any, said: str) -> None:
        self.tool = tool
        self.said = said

    def init_agent(self, host: Any) -> None:
        async def say(ctx: Any) -> Answer:
            return Answer(self.said)

        host.add_tool(self.tool)
        host.add_command(Command("say", self.said, say))
        host.add_mode(Mode("plan", self.said))
        host.add_section(PromptSection("more", self.said))

    init_session = init_agent

    def before_run(self, ctx: Any) -> str:
        return self.said


def counting(agent: Agent, session: Session) -> Any:
    return (
        list(agent.tools_of(session)),
        {name: command.description for name, command in agent.commands_of(session).items()},
        {name: mode.name for name, mode in agent.modes_of(session).items()},
        {name: section.text for name, section in agent.sections_of(session).items()},
    )


async def test_what_an_extension_adds_to_a_session_counts_there_until_it_is_removed(make_echo):
    agent = bare("a", "b")
    mine, other = await agent.new_session(), await agent.new_session()
    nothing = counting(agent, mine)
    mine.use(Everything(make_echo("own"), "here"))
    assert counting(agent, mine) == (["own"], {"say": "here"}, {"plan": "here"}, {"more": "here"})
    assert counting(agent, other) == nothing
    assert (await agent.prompt(mine, "/say")).text == "here"
    assert [tool["function"]["name"] for tool in agent.tool_specs(mine)] == ["own"]
    assert agent.tool_specs(mine) is agent.tool_specs(mine)
    mine.remove("everything")
    assert counting(agent, mine) == nothing
    assert agent.tool_specs(mine) == []
    assert agent.tool_specs(mine) is agent.tool_specs(other)


async def test_an_extension_stands_in_the_place_of_the_agents_of_its_name(make_echo):
    heard: list[str] = []

    class Spy(Everything):
        def before_run(self, ctx: Any) -> Any:
            heard.append(self.said)

    agent = bare(hooks=[telling(heard, "before"), Spy(make_echo("theirs"), "theirs")])
    agent.use(telling(heard, "behind"))
    session, other = await agent.new_session(), await agent.new_session()
    untouched = counting(agent, session)
    session.use(Spy(make_echo("mine"), "mine"))
    assert counting(agent, session) == (
        ["mine"],
        {"say": "mine"},
        {"plan": "mine"},
        {"more": "mine"},
    )
    assert await heard_in(agent, session, heard) == [
        "before before_run",
        "mine",
        "behind before_run",
    ]
    assert await heard_in(agent, other, heard) == [
        "before before_run",
        "theirs",
        "behind before_run",
    ]
    session.remove("everything")
    assert counting(agent, session) == untouched
    assert (await heard_in(agent, session, heard))[1] == "theirs"


async def test_one_that_hangs_nothing_at_a_point_hides_the_agents_there_all_the_same():
    heard: list[str] = []
    agent = bare(hooks=[telling(heard, "rules", "before_run", "after_run")])
    session = await agent.new_session()
    session.use(telling(heard, "other", "after_run"), name="rules")
    await agent.run("go", session=session)
    assert heard == ["other after_run"]


async def test_nor_does_what_the_agents_had_hung_on_the_session_itself(echo):
    heard: list[str] = []

    class Host:
        def on_session_start(self, ctx: Any) -> None:
            ctx.session.add_tool(echo)
            ctx.session.hooks.before_run(lambda ctx: heard.append("the agent's") or None)

    agent = bare(hooks=[Host()])
    session = await agent.new_session()
    session.use(telling(heard, "own"), name="host")
    assert await heard_in(agent, session, heard) == ["own before_run"]
    assert not agent.tools_of(session)
    session.remove("host")
    assert await heard_in(agent, session, heard) == ["the agent's"]
    assert list(agent.tools_of(session)) == ["echo"]


async def test_a_tool_of_the_session_stands_before_the_agents(echo, make_echo):
    own = make_echo("echo")
    agent = bare(call("echo", text="a"), "done", tools=[echo])
    session = await agent.new_session()
    session.add_tool(own)
    with pytest.raises(ExtensionError, match="there is a tool 'echo' already"):
        session.add_tool(make_echo("echo"))
    await agent.prompt(session, "go")
    assert own.ran
    assert not echo.ran


@pytest.mark.parametrize("wrong", [None, 3, object()])
async def test_what_is_no_tool_and_no_command_is_refused(wrong):
    session = await bare().new_session()
    with pytest.raises(ExtensionError, match="is no tool"):
        session.add_tool(wrong)
    with pytest.raises(ExtensionError, match="is no command"):
        session.add_command(wrong)


async def test_an_extension_that_hangs_itself_on_agents_alone_is_refused():
    class ForAgents:
        def init_agent(self, agent: Agent) -> None:
            raise AssertionError

    agent = bare()
    session = await agent.new_session()
    with pytest.raises(ExtensionError, match="hangs on agents alone: it has no init_session"):
        session.use(ForAgents)
    with pytest.raises(ExtensionError, match="hangs nothing on the session: it has no init_sess"):
        session.use(object())
    assert not session.extensions


async def test_functions_and_marks_hang_on_a_session_as_on_an_agent():
    heard: list[str] = []
    agent = bare()
    session = await agent.new_session()

    def before_run(ctx: Any) -> None:
        heard.append("named")

    def init_session(session: Session) -> None:
        session.hooks.register("before_run", lambda ctx: heard.append("initialised"))

    @hook("pre_request")
    def marked(ctx: Any) -> None:
        heard.append("marked")

    for thing in (before_run, init_session, marked):
        session.use(thing)
    assert await heard_in(agent, session, heard) == ["named", "initialised", "marked"]
    session.remove("init_session")
    assert await heard_in(agent, session, heard) == ["named", "marked"]


async def test_what_fails_half_way_leaves_nothing_on_the_session(echo):
    class Broken:
        def init_session(self, session: Session) -> None:
            session.add_tool(echo)
            session.hooks.before_run(lambda ctx: None)
            raise RuntimeError("half-way")

    session = await bare().new_session()
    with pytest.raises(ExtensionError, match="half-way"):
        session.use(Broken)
    assert (dict(session.tools), list(session.hooks), dict(session.extensions)) == ({}, [], {})


async def test_what_an_extension_hangs_on_a_session_goes_with_it(echo):
    heard: list[str] = []

    class Guest:
        name = "guest"

        def before_run(self, ctx: Any) -> None:
            heard.append("guest")

    class Host:
        """Hangs three things on the session, each in another way."""

        name = "host"

        def on_session_start(self, ctx: Any) -> None:
            ctx.session.add_tool(echo)
            ctx.session.use(Guest(), name="guest")
            ctx.session.hooks.before_run(lambda ctx: heard.append("by hand") or None)

    agent = bare(hooks=[Host()])
    session = await agent.new_session()
    assert await heard_in(agent, session, heard) == ["guest", "by hand"]
    assert list(agent.tools_of(session)) == ["echo"]
    agent.remove("host")
    assert await heard_in(agent, session, heard) == []
    assert (dict(session.tools), list(session.hooks), dict(session.extensions)) == ({}, [], {})


async def test_so_does_what_is_hung_by_work_that_an_extension_has_spawned(echo):
    class Host:
        def on_session_start(self, ctx: Any) -> None:
            ctx.session.spawn(self.work(ctx))

        async def work(self, ctx: Any) -> None:
            ctx.session.add_tool(echo)

    agent = bare(hooks=[Host()])
    session = await agent.new_session()
    await asyncio.gather(*session.tasks)
    assert list(agent.tools_of(session)) == ["echo"]
    agent.remove("host")
    assert not agent.tools_of(session)


async def test_whoever_is_not_trusted_hangs_nothing_that_is(echo, watcher):
    class Waves:
        def before_tool(self, ctx: Any) -> Allow:
            return Allow("fine")

    class Smuggler:
        def on_session_start(self, ctx: Any) -> None:
            ctx.session.use(Waves())
            ctx.session.hooks.before_tool(lambda ctx: Allow("mine, too"))

    agent = bare(call("echo", text="a"), "done", tools=[echo])
    agent.hooks.before_tool(lambda ctx: Ask("really?", default=True))
    agent.use(Smuggler(), trusted=False)
    watcher.answer = "reject_once"
    session = await agent.new_session(client=watcher)
    await agent.prompt(session, "go")
    assert len(watcher.asked) == 1
    assert not echo.ran


async def test_a_session_that_is_not_open_has_nowhere_to_hang_anything():
    session = Session()
    with pytest.raises(SessionError, match="not open"):
        session.use(telling([], "x"))
    agent = bare()
    opened = await agent.new_session()
    assert opened.agent is agent
    for name in ("agent", "hung"):
        with pytest.raises(AttributeError):
            setattr(opened, name, 3)


async def test_a_removed_name_that_is_none_is_named():
    session = await bare().new_session()
    session.use(telling([], "x"), name="watcher")
    with pytest.raises(ExtensionError, match="there is no extension 'watchers'; did you mean"):
        session.remove("watchers")


# while a point fires


async def test_what_is_hung_in_a_hook_is_called_in_the_same_firing_if_its_place_is_to_come():
    heard: list[str] = []
    agent = bare(hooks=[telling(heard, "rules", "on_session_start", "before_run")])

    class Chooser:
        @hook("on_session_start", order=FIRST)
        def choose(self, ctx: Any) -> None:
            ctx.session.use(telling(heard, "new", "on_session_start", "before_run"), name="rules")
            ctx.session.hooks.register(
                "on_session_start", lambda ctx: heard.append("too late"), order=FIRST - 1
            )

    agent.use(Chooser())
    session = await agent.new_session()
    await agent.prompt(session, "go")
    assert heard == ["new on_session_start", "new before_run"]


async def test_a_judge_that_is_replaced_before_it_is_asked_is_not_asked(echo):
    agent = bare(call("echo", text="a"), "done", tools=[echo])

    class Rules:
        def __init__(self, verdict: Any) -> None:
            self.verdict = verdict

        @hook("before_tool", judge=True)
        def judge(self, ctx: Any) -> Any:
            return self.verdict

    def before_tool(ctx: Any) -> None:
        ctx.session.use(Rules(Deny("not since then")), name="rules")

    agent.use(Rules(Allow()), name="rules")
    agent.use(before_tool)
    reply = await agent.run("go")
    assert reply.session.messages[2]["content"] == "not since then"


async def test_a_hook_that_takes_itself_away_lets_the_others_be_called():
    heard: list[str] = []
    agent = bare()
    session = await agent.new_session()
    disposers: list[Any] = []

    def once(ctx: Any) -> None:
        heard.append("once")
        disposers.pop()()

    disposers.append(session.hooks.register("before_run", once))
    session.hooks.register("before_run", lambda ctx: heard.append("always") or None)
    assert await heard_in(agent, session, heard) == ["once", "always"]
    assert await heard_in(agent, session, heard) == ["always"]


# sub-agents


async def test_a_sub_agent_has_the_gates_alone_of_its_callers_session(echo):
    heard: list[str] = []
    parent = bare(tools=[echo])
    parent.use(telling(heard, "rules", "before_tool", "after_tool"))
    session, other = await parent.new_session(), await parent.new_session()
    session.use(telling(heard, "strict", "before_tool", "after_tool"), name="rules")
    session.use(telling(heard, "own", "before_tool", "after_tool"))
    child = parent.child(ScriptedModel(call("echo", text="a"), "done", leftover="allow"))
    child.use(telling(heard, "child", "before_tool", "after_tool"))
    grandchild = child.child(ScriptedModel(call("echo", text="a"), "done", leftover="allow"))
    for agent, caller, first in (
        (child, session, ["strict", "own", "child"]),
        (grandchild, session, ["strict", "own", "child"]),
    ):
        sub = await agent.new_session(parent=caller)
        sub.use(telling(heard, "sub", "before_tool", "after_tool"))
        await agent.prompt(sub, "go")
        gates = [each.split()[0] for each in heard if each.endswith("before_tool")]
        assert gates == [*first, "sub"]
        after = [each.split()[0] for each in heard if each.endswith("after_tool")]
        assert after == (["sub", "child"] if agent is child else ["sub"])
        heard.clear()
    again = parent.child(ScriptedModel(call("echo", text="a"), "done"))
    await again.prompt(await again.new_session(parent=other), "go")
    assert heard == ["rules before_tool"]


async def test_gates_that_change_on_the_callers_session_change_for_a_sub_agent_at_work(echo):
    parent = bare(tools=[echo])
    session = await parent.new_session()
    child = parent.child(ScriptedModel(*[call("echo", text="a")] * 2, "done"))
    child.hooks.after_turn(lambda ctx: session.use(Forbid(), name="rules") and None)
    reply = await child.prompt(await child.new_session(parent=session), "go")
    said = [m["content"] for m in reply.session.messages if m["role"] == "tool"]
    assert said == ["echo a", "no more"]


class Forbid:
    def __init__(self) -> None:
        self.heard: list[str] = []

    @hook("before_tool", judge=True)
    def judge(self, ctx: Any) -> Deny:
        return Deny("no more")

    def on_config_change(self, changes: Any) -> Deny:
        return Deny("no other")


async def test_a_choice_of_a_sub_agents_is_put_to_the_gates_of_its_callers_session():
    parent = bare()
    session = await parent.new_session()
    session.use(Forbid())
    child = parent.child()
    sub = await child.new_session(parent=session)
    assert await child.configure(sub, model="other") == "no other"


async def test_a_session_that_works_for_another_of_the_same_agent_has_what_hangs_there(make_echo):
    heard: list[str] = []
    agent = bare()
    outer = await agent.new_session()
    inner = await agent.new_session(parent=outer)
    outer.use(Everything(make_echo("outer"), "outer"))
    outer.use(telling(heard, "outer", "after_run"))
    assert counting(agent, inner)[0] == ["outer"]
    inner.use(Everything(make_echo("inner"), "inner"))
    assert counting(agent, inner)[0] == ["inner"]
    assert counting(agent, outer)[0] == ["outer"]
    inner.use(telling(heard, "inner", "after_run"))
    await agent.run("go", session=inner)
    assert heard == ["inner after_run", "outer after_run"]


# what is held


async def test_a_lifespan_is_entered_before_the_next_prompt_and_left_with_the_session():
    held: list[str] = []

    class Holds:
        async def lifespan(self, session: Session) -> Any:
            held.append(f"open {session.title}")
            yield
            held.append("closed")

    agent = bare()
    session = await agent.new_session(title="mine")
    session.use(Holds())
    assert held == []
    await agent.prompt(session, "go")
    assert held == ["open mine"]
    await agent.close_session(session)
    assert held == ["open mine", "closed"]


async def test_a_lifespan_is_left_by_hand_after_a_removal_and_one_that_fails_is_the_runs_error():
    held: list[str] = []

    class Holds:
        async def lifespan(self, session: Session) -> Any:
            yield
            held.append("closed")

    class Fails:
        async def lifespan(self, session: Session) -> Any:
            raise RuntimeError("no disk")
            yield

    agent = bare()
    session = await agent.new_session()
    session.use(Holds())
    await session.scope.start()
    session.remove("holds")
    assert held == []
    await session.scope.stop("holds")
    assert held == ["closed"]
    session.use(Fails())
    reply = await agent.prompt(session, "go")
    assert reply.stop_reason == "error"
    assert "the extension fails failed to start: RuntimeError('no disk')" in reply.detail
    await agent.close()


async def test_the_end_of_a_session_takes_what_its_extensions_hung_elsewhere(echo):
    agent = bare()
    session = await agent.new_session()

    class Spreads:
        def before_run(self, ctx: Any) -> None:
            ctx.agent.add_tool(echo)

    session.use(Spreads())
    await agent.prompt(session, "go")
    assert list(agent.tools) == ["echo"]
    await agent.close_session(session)
    assert not agent.tools
    assert not session.extensions


async def test_watchers_of_a_session_see_its_hooks_and_those_of_its_sub_agents():
    watched: list[str] = []
    agent = bare(hooks=[telling([], "x")])
    session = await agent.new_session()
    session.hooks.watchers.append(lambda record, ctx: watched.append(record.hook))
    await agent.run("elsewhere")
    assert watched == []
    await agent.prompt(session, "go")
    child = agent.child(ScriptedModel("done"))
    await child.prompt(await child.new_session(parent=session), "go")
    assert len(watched) == 2


async def test_watchers_of_a_point_see_its_hooks_alone_also_those_of_sub_agents():
    watched: list[tuple[str, str]] = []
    agent = bare(hooks=[telling([], "x")])
    for event in ("before_run", "on_stop"):
        agent.hooks.register(event, lambda ctx: None)
    session = await agent.new_session()
    for name, hooks in (("Agent", agent.hooks), ("Session", session.hooks)):
        hooks["on_stop"].watchers.append(
            lambda record, ctx, name=name: watched.append((name, record.event))
        )
    await agent.run("elsewhere")
    assert watched == [("Agent", "on_stop")]
    watched.clear()
    await agent.prompt(session, "go")
    assert sorted(watched) == [("Agent", "on_stop"), ("Session", "on_stop")]
    watched.clear()
    child = agent.child(ScriptedModel("done"))
    child.hooks.register("on_stop", lambda ctx: None)
    await child.prompt(await child.new_session(parent=session), "go")
    assert sorted(watched) == [("Agent", "on_stop"), ("Session", "on_stop")]


# points of extensions


async def test_hooks_of_a_session_wait_for_a_point_and_are_called_once_there_is_one():
    heard: list[str] = []
    agent = bare()
    session = await agent.new_session()
    session.hooks.register("TaskCreated", lambda ctx: heard.append("waited"))
    assert [event for event, _, _ in session.hooks.waiting] == ["TaskCreated"]
    point = Point("TaskCreated", "watch", ())
    for _ in range(2):
        undefine = agent.hooks.define(point)
        ctx = RunContext(agent, session, "")
        await agent.hooks["TaskCreated"].fire(ctx)
        assert "TaskCreated" in session.hooks.names
        undefine()
    assert heard == ["waited", "waited"]
    agent.hooks.define(Point("on_deploy", "watch", ()))
    session.hooks["on_deploy"](lambda ctx: heard.append("deployed"))
    await agent.hooks["on_deploy"].fire(RunContext(agent, session, ""))
    assert heard[-1] == "deployed"


async def test_an_event_that_is_none_is_named_on_a_session_too():
    session = await bare().new_session()
    with pytest.raises(HookError, match="did you mean 'before_tool'"):
        session.hooks.register("befor_tool", lambda ctx: None)
    with pytest.raises(AttributeError, match="befor_tool"):
        _ = session.hooks.befor_tool  # type: ignore[attr-defined]


async def test_hooks_that_hang_on_a_session_meanwhile_hang_on_it_alone_while_others_run():
    heard: list[str] = []
    agent = bare("a", "b")
    one, two = await agent.new_session(), await agent.new_session()

    async def slow(ctx: Any) -> None:
        ctx.session.use(telling(heard, "own", "after_run"))
        await asyncio.sleep(0.01)

    agent.hooks.register("before_run", slow)
    await asyncio.gather(agent.prompt(one, "go"), agent.prompt(two, "go"))
    await asyncio.gather(*one.tasks, *two.tasks)
    assert heard == ["own after_run", "own after_run"]
    assert not agent.extensions


async def test_nothing_hangs_on_a_session_that_is_closed_and_whoever_tries_is_told(echo):
    agent = bare()
    session = await agent.new_session()
    hooks = session.hooks
    await agent.close_session(session)
    tries = [
        lambda: session.add_tool(echo),
        lambda: session.add_command(Command("x", "x", lambda ctx: None)),
        lambda: session.add_mode(Mode("x", "x")),
        lambda: session.add_section(PromptSection("x", "x")),
        lambda: session.use(telling([], "late")),
        lambda: session.hooks.register("before_run", lambda ctx: None),
        lambda: hooks.before_run(lambda ctx: None),
    ]
    for late in tries:
        with pytest.raises(
            SessionError, match=rf"the session {session.id} is closed: load_session"
        ):
            late()
    assert [*session.tools, *session.commands, *session.extensions] == []


async def test_a_session_that_is_loaded_again_takes_what_its_closed_one_does_not(tmp_path, echo):
    agent = bare(hooks=[PersistenceHook(tmp_path / "crow.db")])
    async with agent:
        closed = (await agent.run("go")).session
        await agent.close_session(closed)
        loaded = await agent.load_session(closed.id)
        loaded.add_tool(echo)
        assert list(agent.tools_of(loaded)) == ["echo"]


NAMES = {
    "": "a name such as 'review' or 'git:review'",
    " ": "a name such as 'review' or 'git:review'",
    "/review": "'review'",
    "git review": "'git-review'",
    "git/review": "'git-review'",
    " review\n": "'review'",
    "git/": "'git'",
    None: "a name such as 'review' or 'git:review'",
}


@pytest.mark.parametrize("name", NAMES)
async def test_a_command_that_cannot_be_typed_is_refused_with_a_name_that_can(name):
    agent = bare()
    for host in (agent, await agent.new_session()):
        with pytest.raises(ExtensionError) as refused:
            host.add_command(Command(name, "x", lambda ctx: None))
        told = f"{name!r} is no name of a command, which is one word without a slash: {NAMES[name]}"
        assert str(refused.value) == told
        assert not host.commands


@pytest.mark.parametrize("name", ["review", "git:review", "a.b_c-d", "mcp__a__b", "プロンプト"])
async def test_a_command_is_called_by_the_name_that_it_has_with_namespaces_too(name):
    agent = bare()
    agent.add_command(Command(name, "x", lambda ctx: Answer(f"said {ctx.args}")))
    assert (await agent.run(f"/{name} it all")).text == "said it all"
