"""Sub-agents: their own history and tools, their caller's gates, their last words as the result."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.extensions.branching import Branching

from crow import Agent, tool
from crow.core.errors import ModelError
from crow.core.events import Event, Notice, TextDelta, ToolEnded, ToolPending, ToolProgress
from crow.core.ports.client import NullClient, PermissionRequest
from crow.core.verdicts import Allow, Ask
from crow.extensions import (
    InstructionsHook,
    PermissionsHook,
    PersistenceHook,
    PlanHook,
    SubagentsHook,
    SystemPromptHook,
)
from crow.extensions.subagents import Definition
from crow.testing import FakeEditor, ScriptedModel, call, text
from crow.testing.model import Line

TASK: dict[str, Any] = {"description": "Look around", "prompt": "Look around here."}


class Watcher(NullClient):
    """A client that keeps what it is shown and answers every question alike."""

    def __init__(self, answer: str | None = None) -> None:
        self.answer = answer
        self.events: list[tuple[str, Event]] = []
        self.asked: list[PermissionRequest] = []

    async def update(self, session_id: str, event: Event) -> None:
        self.events.append((session_id, event))

    async def permission(self, session_id: str, request: PermissionRequest) -> str | None:
        self.asked.append(request)
        return self.answer

    def progress(self, call_id: str = "call_1") -> str:
        """What was shown as output of a call."""
        shown = [event for _, event in self.events if isinstance(event, ToolProgress)]
        return "".join(event.text for event in shown if event.call_id == call_id)

    def of_type(self, kind: type) -> list[Any]:
        return [event for _, event in self.events if isinstance(event, kind)]


@tool
def look(where: str = "here") -> str:
    """Look somewhere."""
    return f"looked {where}"


@tool
def change(what: str = "it") -> str:
    """Change something."""
    return f"changed {what}"


def ask(**args: Any) -> Any:
    """A call of a sub-agent."""
    return call("Agent", **TASK | args)


def worker(*, model: Any = "worker", **fields: Any) -> Definition:
    return Definition("worker", "Works.", "You work.", model=model, **fields)


class Cast:
    """A caller and a sub-agent named ``worker``, each with a model that plays its own script."""

    def __init__(
        self,
        caller: Sequence[Line],
        *workers: Line,
        hooks: Sequence[Any] = (),
        tools: Sequence[Any] = (look, change),
        definition: Definition | None = None,
        **options: Any,
    ) -> None:
        self.caller, self.worker = ScriptedModel(*caller), ScriptedModel(*workers)
        definition = definition or worker()
        self.extension = SubagentsHook(
            options.pop("folders", ()),
            agents=[definition],
            models={"worker": self.worker},
            **options,
        )
        self.agent = Agent(llm=self.caller, hooks=[*hooks, self.extension], tools=tools)
        self.client = Watcher()

    async def run(self, **options: Any) -> Any:
        async with self.agent:
            reply = await self.agent.run("Go", client=self.client, **options)
        self.caller.verify()
        self.worker.verify()
        return reply

    def told(self, request: int = 1) -> str:
        """The last message of a request of the caller's."""
        return str(self.caller.asked[request]["messages"][-1].get("content"))


def names(asked: Any) -> list[str]:
    return [spec["function"]["name"] for spec in asked["tools"]]


# what it is given, and what comes back


async def test_its_last_words_are_the_result_and_its_history_is_its_own():
    play = Cast([ask(subagent_type="worker"), "It is fine."], ["Hm.", call("look")], "All is well.")
    reply = await play.run()
    assert play.told() == "All is well."
    assert reply.text == "It is fine."
    system, prompt = play.worker.asked[0]["messages"]
    assert (system.get("content"), prompt.get("content")) == ("You work.", "Look around here.")
    assert [m["role"] for m in reply.session.messages] == ["user", "assistant", "tool", "assistant"]


async def test_hooks_see_the_result_in_the_shape_that_claude_code_gives_it():
    usage: Any = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}
    play = Cast(
        [ask(subagent_type="worker"), "Thanks."],
        call("look", usage=usage),
        text("All is well.", usage=usage),
    )
    seen: list[Any] = []
    play.agent.hooks.register(
        "PostToolUse", lambda ctx: seen.append(ctx.result.data), tools={"Agent"}
    )
    await play.run()
    data = seen[0]
    assert data["status"] == "completed"
    assert data["agentType"] == "worker"
    assert data["content"] == [{"type": "text", "text": "All is well."}]
    assert (data["totalToolUseCount"], data["totalTokens"]) == (1, 30)
    assert data["agentId"] == play.worker.asked[0]["session_id"]


async def test_its_tokens_count_for_the_session_and_the_run_of_its_caller():
    usage: Any = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}
    play = Cast(
        [call("Agent", usage=usage, subagent_type="worker", **TASK), text("Thanks.", usage=usage)],
        call("look", usage=usage),
        text("All is well.", usage=usage),
    )
    reply = await play.run()
    assert reply.usage["total_tokens"] == reply.session.usage["total_tokens"] == 60
    assert reply.session.tokens()["total_tokens"] == 15


async def test_where_no_sub_agent_is_named_the_general_one_is_called_with_all_tools():
    caller = ScriptedModel(ask(), "I am general.", "Thanks.")
    agent = Agent(llm=caller, hooks=[SubagentsHook(())], tools=[look, change])
    seen: list[Any] = []
    agent.hooks.register("PreToolUse", lambda ctx: seen.append(ctx.args["subagent_type"]))
    await agent.run("Go")
    assert seen == ["general-purpose"]
    assert names(caller.asked[0]) == ["look", "change", "Agent"]
    assert names(caller.asked[1]) == ["look", "change"]
    assert caller.asked[1]["messages"][0]["role"] == "system"


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, ["look", "change"]),
        ({"tools": frozenset({"look", "WebSearch"})}, ["look"]),
        ({"tools": frozenset[str]()}, []),
        ({"tools": frozenset({"l*"})}, ["look"]),
        ({"without": frozenset({"look"})}, ["change"]),
        ({"without": frozenset({"*"})}, []),
        ({"tools": frozenset({"look", "change"}), "without": frozenset({"look"})}, ["change"]),
        ({"tools": frozenset({"Agent", "look"})}, ["look"]),
    ],
)
async def test_it_has_those_of_its_callers_tools_that_its_definition_names(
    fields: dict[str, Any], expected: list[str]
):
    play = Cast([ask(subagent_type="worker"), "Ok."], "Done.", definition=worker(**fields))
    await play.run()
    assert names(play.worker.asked[0]) == expected


async def test_a_tool_that_it_does_not_have_cannot_be_called():
    play = Cast(
        [ask(subagent_type="worker"), "Ok."],
        call("change"),
        "I could not.",
        definition=worker(tools=frozenset({"look"})),
    )
    await play.run()
    assert "there is no tool 'change'; there are: look" in str(play.worker.asked[1]["messages"][-1])


async def test_a_sub_agent_that_is_not_there_is_an_error_that_names_those_that_are():
    play = Cast([ask(subagent_type="wrker"), "Oh."])
    await play.run()
    assert play.told() == ("there is no sub-agent 'wrker'; there are: general-purpose, worker")


async def test_the_model_is_told_of_every_sub_agent():
    caller = ScriptedModel("Hello.")
    long = Definition("long", "Very " * 1000, "x", tools=frozenset({"b", "a"}))
    await Agent(llm=caller, hooks=[SubagentsHook((), agents=[worker(), long])], tools=[]).run("Hi")
    told = caller.asked[0]["tools"][0]["function"]["description"]
    assert "\n- worker: Works.\n" in told
    assert "\n- general-purpose: " in told
    assert "… (tools: a, b)" in told
    assert len(told) < 2500


async def test_the_model_chooses_no_sub_agent_where_there_is_only_one():
    caller = ScriptedModel(ask(), "Done.", "Ok.")
    agent = Agent(llm=caller, hooks=[SubagentsHook(())], tools=[])
    await agent.run("Hi")
    told = caller.asked[0]["tools"][0]["function"]
    assert list(told["parameters"]["properties"]) == ["description", "prompt"]
    assert "general-purpose" not in told["description"]


@pytest.mark.parametrize(
    ("model", "expected"),
    [("", "main"), ("inherit", "main"), ("sonnet", "main"), ("gpt-9", "gpt-9"), ("quick", "q-1")],
)
async def test_its_model_is_the_one_that_is_meant(model: str, expected: str):
    llm = ScriptedModel(ask(subagent_type="worker"), "Done.", "Ok.")
    extension = SubagentsHook((), agents=[worker(model=model)], models={"quick": "q-1"})
    agent = Agent(llm=llm, hooks=[extension], tools=[])
    session = await agent.new_session(model="main")
    await agent.run("Go", session=session)
    assert [asked["model"] for asked in llm.asked] == ["main", expected, "main"]


async def test_the_caller_can_choose_one_of_the_named_models():
    llm = ScriptedModel(ask(subagent_type="worker", model="quick"), "Done.", "Ok.")
    extension = SubagentsHook((), agents=[worker(model="slow")], models={"quick": "q-1"})
    await Agent(llm=llm, hooks=[extension], tools=[]).run("Go")
    assert llm.asked[1]["model"] == "q-1"


# what can go wrong


async def test_an_error_of_its_model_is_the_calls_error():
    error = ModelError("the endpoint is down", kind="server")
    play = Cast([ask(subagent_type="worker"), "Oh."], call("look"), error)
    await play.run()
    ended = play.client.of_type(ToolEnded)[0]
    assert ended.outcome == "error"
    assert play.told() == "the sub-agent worker did not finish: the endpoint is down."


async def test_one_that_is_stopped_gives_what_it_had_said():
    play = Cast([ask(subagent_type="worker"), "Oh."], ["I looked.", call("look")], hooks=[])

    def stop(ctx: Any) -> None:
        if ctx.session.parent is not None:
            ctx.stop("that is enough")

    play.agent.hooks.register("before_tool", stop)
    await play.run()
    assert play.told().endswith("that is enough. Its last words:\nI looked.")
    assert play.client.of_type(ToolEnded)[-1].result.error


async def test_an_extension_of_its_own_that_is_broken_is_the_calls_error():
    def broken(definition: Definition) -> Any:
        raise OSError("no such thing")

    play = Cast([ask(subagent_type="worker"), "Oh."])
    play.extension.hooks = broken
    await play.run()
    line = broken.__code__.co_firstlineno + 1
    assert play.told() == f"OSError: no such thing ({__file__}:{line})"


@pytest.mark.parametrize("depth", [1, 2])
async def test_sub_agents_of_sub_agents_end_at_the_depth(depth: int):
    llm = ScriptedModel(*[ask()] * depth, *["Done."] * (depth + 1))
    await Agent(llm=llm, hooks=[SubagentsHook((), depth=depth)], tools=[]).run("Go")
    offered = ["Agent" in names(asked) for asked in llm.asked]
    assert offered == [True] * depth + [False] + [True] * depth


async def test_depth_zero_is_no_sub_agents_at_all():
    play = Cast([ask(subagent_type="worker"), "Oh."], depth=0)
    await play.run()
    assert "do it yourself" in play.told()


# what its caller decides


async def test_it_runs_the_gates_of_its_caller():
    play = Cast([ask(subagent_type="worker"), "Oh."], call("change"), "I may not.")
    seen: list[tuple[str, str]] = []

    def before_tool(ctx: Any) -> str | None:
        seen.append((ctx.name, ctx.session.agent_type))
        return "not today" if ctx.name == "change" else None

    play.agent.use(before_tool)
    await play.run()
    assert seen == [("Agent", ""), ("change", "worker")]
    assert play.worker.asked[1]["messages"][-1].get("content") == "not today"
    assert "denied: change: not today" in play.client.progress()


async def test_a_rule_can_refuse_a_sub_agent_by_its_name_even_where_the_model_named_none():
    permissions = PermissionsHook(deny=["Agent(general-purpose)"])
    play = Cast([[ask(), ask(subagent_type="worker")], "Oh."], "Done.", hooks=[permissions])
    await play.run()
    outcomes = [event.outcome for event in play.client.of_type(ToolEnded)]
    assert sorted(outcomes) == ["denied", "ok"]


async def test_its_user_is_asked_through_the_client_of_its_caller_and_sees_that_call():
    play = Cast(
        [ask(subagent_type="worker"), "Ok."], call("change"), "Done.", hooks=[PermissionsHook()]
    )
    play.client.answer = "allow_once"
    await play.run()
    assert [request.call.name for request in play.client.asked] == ["change"]
    shown = [event.call.name for event in play.client.of_type(ToolPending)]
    ended = [event.call.name for event in play.client.of_type(ToolEnded)]
    assert shown == ["Agent", "change"]
    assert ended == ["change", "Agent"]
    assert play.worker.asked[1]["messages"][-1].get("content") == "changed it"


async def test_what_the_user_allows_or_refuses_for_the_session_holds_for_all_of_them():
    play = Cast(
        [ask(subagent_type="worker"), call("change"), ask(subagent_type="worker"), "Ok."],
        call("change"),
        "Done.",
        call("change"),
        "Done.",
        hooks=[PermissionsHook()],
    )
    play.client.answer = "allow_always"
    await play.run()
    assert len(play.client.asked) == 1

    play = Cast(
        [call("change"), ask(subagent_type="worker"), "Ok."],
        call("change"),
        "I may not.",
        hooks=[PermissionsHook()],
    )
    play.client.answer = "reject_always"
    await play.run()
    assert len(play.client.asked) == 1
    assert "changed" not in str(play.worker.asked[1]["messages"][-1])


async def test_the_mode_is_that_of_its_caller_and_follows_it(tmp_path: Path):
    path = tmp_path / "new.txt"
    play = Cast(
        [ask(subagent_type="worker"), "Ok."],
        call("Write", file_path=str(path), content="one"),
        call("switch"),
        call("Write", file_path=str(path), content="two"),
        "Done.",
        hooks=[PermissionsHook(allow=["switch"])],
        tools=[*Agent().tools.values(), look],
    )

    @tool
    async def switch() -> str:
        """Let the user switch the mode."""
        await play.agent.configure(session, mode="plan")
        return "switched"

    play.agent.add_tool(switch)
    session = await play.agent.new_session(tmp_path, client=play.client, mode="acceptEdits")
    await play.run(session=session)
    assert path.read_text() == "one"


async def test_questions_are_put_one_at_a_time():
    asking = asyncio.Event()
    most: list[int] = []

    class OneByOne(Watcher):
        now = 0

        async def permission(self, session_id: str, request: PermissionRequest) -> str | None:
            self.now += 1
            most.append(self.now)
            asking.set()
            await asyncio.sleep(0.01)
            self.now -= 1
            return "allow_once"

    llm = Branching(lambda prompt: [call("change", what=prompt), "Done."])
    caller = ScriptedModel([ask(prompt=f"{n}", subagent_type="worker") for n in range(4)], "Ok.")
    extension = SubagentsHook((), agents=[worker()], models={"worker": llm})
    agent = Agent(llm=caller, hooks=[extension], tools=[change])
    agent.hooks.register("before_tool", lambda ctx: Ask("sure?"), tools={"change"})
    await agent.run("Go", client=OneByOne())
    assert most == [1] * 4


# what the client sees


async def test_the_client_sees_what_it_does_but_not_what_it_says():
    play = Cast(
        [ask(subagent_type="worker"), "Thanks."],
        ["Let me see.", call("look", where="up")],
        [call("nonsense"), call("TodoWrite", todos=[{"content": "x", "status": "pending"}])],
        "All is well.",
        hooks=[PlanHook()],
    )
    reply = await play.run()
    assert play.client.progress() == (
        "look\n  error: nonsense: there is no tool 'nonsense'; there are: TodoWrite, change, look\n"
        "TodoWrite Plan\n"
    )
    assert {session_id for session_id, _ in play.client.events} == {reply.session.id}
    assert [event.text for event in play.client.of_type(TextDelta)] == ["Thanks."]
    assert [type(event).__name__ for _, event in play.client.events].count("PlanChanged") == 0


async def test_the_work_of_a_sub_agents_sub_agent_is_shown_below_its_call():
    llm = ScriptedModel(ask(), ask(description="Deeper"), call("look"), "Found.", "Done.", "Ok.")
    client = Watcher()
    agent = Agent(llm=llm, hooks=[SubagentsHook((), depth=2)], tools=[look])
    await agent.run("Go", client=client)
    assert client.progress() == "Agent Deeper\n  look\n"


async def test_what_it_changed_in_files_is_shown_with_the_result(tmp_path: Path):
    old, new = str(tmp_path / "old.txt"), str(tmp_path / "new.txt")
    Path(old).write_text("one\n")
    play = Cast(
        [ask(subagent_type="worker"), "Ok."],
        [call("Write", file_path=new, content="1\n"), call("Read", file_path=old)],
        call("Edit", file_path=old, old_string="one", new_string="two"),
        call("Write", file_path=new, content="2\n"),
        call("Edit", file_path=old, old_string="two", new_string="three"),
        "Done.",
        tools=[*Agent().tools.values()],
    )
    await play.run(cwd=tmp_path)
    ended = play.client.of_type(ToolEnded)[-1]
    assert {(diff.path, diff.old, diff.new) for diff in ended.result.diffs} == {
        (old, "one\n", "three\n"),
        (new, None, "2\n"),
    }


async def test_an_editor_shows_one_card_and_one_more_for_what_it_asks_about(tmp_path: Path):
    path = tmp_path / "new.txt"
    play = Cast(
        [ask(subagent_type="worker"), "Thanks."],
        call("Glob", pattern="*"),
        ["Secret.", call("Write", file_path=str(path), content="new")],
        "All is well.",
        hooks=[PermissionsHook()],
        tools=[*Agent().tools.values()],
    )
    editor = FakeEditor(permissions=["allow_once"])
    async with editor.connected(play.agent):
        await editor.prompt(await editor.new_session(tmp_path), "Go")
        assert editor.text() == "Thanks."
        cards = editor.cards()
    assert [(card["name"], card["status"]) for card in cards] == [
        ("Agent", "completed"),
        ("Write", "completed"),
    ]
    assert cards[0]["title"] == "Look around (worker)"
    assert cards[0]["content"][0]["path"] == str(path)
    assert editor.asked[0]["toolCall"]["toolCallId"] == cards[1]["toolCallId"]
    assert path.read_text() == "new"


async def test_notices_reach_the_user():
    play = Cast([ask(subagent_type="worker"), "Ok."], call("look"), "Done.")

    async def before_tool(ctx: Any) -> None:
        if ctx.name == "look":
            await ctx.ui.notify("careful", severity="warning")

    play.agent.use(before_tool)
    await play.run()
    assert [event.text for event in play.client.of_type(Notice)] == ["careful"]


async def test_its_beginning_and_end_are_heard_where_its_caller_listens():
    play = Cast([ask(subagent_type="worker"), "Ok."], "Done.", "Really done.")
    heard: list[tuple[str, str]] = []

    def start(ctx: Any) -> str:
        heard.append(("start", ctx.session.agent_type))
        return "Mind the step."

    def stop(ctx: Any) -> str | None:
        heard.append(("stop", ctx.session.agent_type))
        return "Are you sure?" if ctx.count == 0 else None

    play.agent.hooks.register("SubagentStart", start)
    play.agent.hooks.register("SubagentStop", stop)
    play.agent.hooks.register("Stop", lambda ctx: heard.append(("main", "")))
    await play.run()
    assert heard == [("start", "worker"), ("stop", "worker"), ("stop", "worker"), ("main", "")]
    assert "Mind the step." in str(play.worker.asked[0]["messages"])
    assert play.told() == "Really done."


# what it takes over


async def test_its_history_is_stored_under_its_caller(tmp_path: Path):
    hook = PersistenceHook(tmp_path / "crow.db")
    play = Cast([ask(subagent_type="worker"), "Ok."], call("look"), "Done.", hooks=[hook])
    async with play.agent:
        reply = await play.agent.run("Go")
        child = play.worker.asked[0]["session_id"]
        listed, _ = await hook.store.sessions()
        assert [info.id for info in listed] == [reply.session.id]
        exported = await hook.store.export(child)
        assert (
            f'"parent": "{reply.session.id}"' in exported
            or f'"parent":"{reply.session.id}"' in exported
        )
        assert len((await hook.store.segments(child))[0]) == 4
        again = await hook.store.load(child)
        assert again.agent_type == "worker"


async def test_extensions_that_look_after_a_conversation_look_after_its_own_too(tmp_path: Path):
    (tmp_path / "AGENTS.md").write_text("Be kind.")
    play = Cast(
        [ask(subagent_type="worker"), "Ok."],
        "Done.",
        hooks=[InstructionsHook(), SystemPromptHook("Crow.")],
    )
    play.extension.hooks = lambda definition: [SystemPromptHook(definition.prompt)]
    await play.run(cwd=tmp_path)
    system = str(play.worker.asked[0]["messages"][0].get("content"))
    assert system.startswith("You work.")
    assert "Be kind." in system
    assert str(tmp_path) in system


async def test_nothing_is_left_open_behind_it(tmp_path: Path):
    before = asyncio.all_tasks()
    play = Cast(
        [ask(subagent_type="worker"), "Ok."],
        call("look"),
        "Done.",
        hooks=[PersistenceHook(tmp_path / "crow.db")],
    )
    await play.run()
    assert asyncio.all_tasks() == before


async def test_taken_away_it_leaves_no_tool():
    agent = Agent(llm=ScriptedModel("Hello."), hooks=[SubagentsHook(())])
    agent.remove("subagents")
    assert "Agent" not in agent.tools
    await agent.run("Hi")


class Counting:
    """Counts calls, and brings two tools along."""

    name = "counting"

    def __init__(self) -> None:
        self.heard: list[tuple[bool, str, str]] = []
        self.states: list[str] = []

    def init_agent(self, agent: Agent) -> None:
        for name in ("first", "second"):
            agent.add_tool(tool(name=name)(look.function))

    def before_tool(self, ctx: Any) -> None:
        self.heard.append((ctx.session.parent is not None, "before", ctx.call.name))
        self._look(ctx)

    def after_tool(self, ctx: Any) -> None:
        self.heard.append((ctx.session.parent is not None, "after", ctx.call.name))
        self._look(ctx)

    def _look(self, ctx: Any) -> None:
        if ctx.session.parent is not None:
            self.states.append(ctx.owner)


class Inherited(Counting):
    """Says itself that sub-agents have it."""

    inherited = True


@pytest.mark.parametrize(
    ("thing", "options"), [(Inherited(), {}), (Counting(), {"extend_inherit": ["mine"]})]
)
async def test_an_extension_and_its_user_can_say_that_sub_agents_have_it(
    thing: Counting, options: dict[str, Any]
) -> None:
    mine = {"first", "look"}
    script = [call("look"), call("first")], "Done."
    play = Cast([ask(subagent_type="worker"), "Ok."], *script,
                definition=worker(tools=frozenset(mine)), **options)  # fmt: skip
    play.agent.use(thing, name="mine")
    await play.run()
    assert {*names(play.worker.asked[0])} == mine, "a definition's tools count for theirs, too"
    heard = [each for each in thing.heard if each[0]]
    assert sorted(heard) == sorted(
        (True, when, name) for name in mine for when in ("before", "after")
    )
    assert thing.states == ["mine"] * len(mine) * 2


async def test_who_is_not_trusted_allows_nothing_in_sub_agents_either() -> None:
    class Generous:
        inherited = True

        def init_agent(self, agent: Agent) -> None:
            agent.hooks.register("before_tool", lambda ctx: Allow("go on"))

    play = Cast([ask(subagent_type="worker"), "Ok."], call("change"), "Done.",
                hooks=[PermissionsHook()])  # fmt: skip
    play.agent.use(Generous(), trusted=False, source="somebody's package")
    play.client.answer = "allow_once"
    await play.run()
    assert [request.call.name for request in play.client.asked] == ["change"]
