"""Sessions as an editor handles them: new, load, resume, list, fork, close, delete, choices."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from acp import RequestError
from tests.acp.conftest import stored

from crow import Agent, Answer, Ask, tool
from crow.core.catalog import Command, Mode
from crow.core.events import PlanChanged, PlanEntry
from crow.core.hooks.contexts import ConfigContext, SessionContext
from crow.core.messages import Usage
from crow.core.ports.tool import ToolEnvironment
from crow.testing import FakeEditor, ScriptedModel, call, text


class Modes:
    """Two modes and a command."""

    def init_agent(self, agent: Agent) -> None:
        agent.add_mode(Mode("default", "Default"))
        agent.add_mode(Mode("plan", "Plan", "think first"))
        agent.add_command(Command("greet", "Say hello", self.greet, hint="whom"))

    async def greet(self, ctx: Any) -> Answer:
        return Answer(f"Hello {ctx.args}!")


@pytest.mark.rule("no update before the session is known")
async def test_what_is_said_before_the_client_knows_the_session_follows_its_answer(
    tmp_path: Path,
) -> None:
    async def on_session_start(ctx: SessionContext) -> None:
        await ctx.ui.notify("welcome")

    editor = FakeEditor(notices=True)
    async with editor.connected(Agent(llm=ScriptedModel(), hooks=[on_session_start, Modes()])):
        session = await editor.new_session(tmp_path)
        await editor.saw("available_commands_update")
        order = [m.get("method") or m["result"].get("sessionId") for m in editor.wire.received[1:]]
        kinds = [update["sessionUpdate"] for update in editor.updates()]
        (command,) = editor.updates("available_commands_update")[0]["availableCommands"]
    assert order == [session, "session/update", "session/update"]
    assert kinds == ["notice", "available_commands_update"]
    assert command == {"name": "greet", "description": "Say hello", "input": {"hint": "whom"}}


async def test_a_prompt_right_after_the_answer_finds_everything_said_before_it(
    tmp_path: Path,
) -> None:
    async def on_session_start(ctx: SessionContext) -> None:
        await ctx.ui.notify("welcome")

    editor = FakeEditor(notices=True)
    hooks = [on_session_start, Modes()]
    async with editor.connected(Agent(llm=ScriptedModel("ok"), hooks=hooks)):
        await editor.prompt(await editor.new_session(tmp_path), "Hi")
        kinds = [update["sessionUpdate"] for update in editor.updates()]
    assert kinds[:3] == ["notice", "available_commands_update", "agent_message_chunk"]


async def test_a_command_is_answered(tmp_path: Path) -> None:
    editor = FakeEditor()
    async with editor.connected(Agent(llm=ScriptedModel(), hooks=[Modes()])):
        await editor.prompt(await editor.new_session(tmp_path), "/greet Ada")
        assert editor.text() == "Hello Ada!"


@pytest.mark.rule("the whole history after a reload")
async def test_a_loaded_session_shows_all_that_was_said_thought_and_done(tmp_path: Path) -> None:
    async def after_turn(ctx: Any) -> None:
        if not ctx.results:
            await ctx.emit(PlanChanged((PlanEntry("Ship", "completed"),)))

    file = tmp_path / "a.txt"
    file.write_text("one\n")
    read, glob = call("Read", file_path=str(file)), call("Glob", pattern="[")
    edit = call("Edit", file_path=str(file), old_string="one", new_string="two")
    usage: Usage = {"input_tokens": 90, "output_tokens": 10, "total_tokens": 100}
    ended = text("Done.", reasoning="All good.", usage=usage)
    model = ScriptedModel(["Reading.", read], [edit, glob], ended, context_window=1000)
    first, later = FakeEditor(), FakeEditor()
    async with first.connected(stored(tmp_path, model, after_turn)):
        session = await first.new_session(tmp_path)
        await first.prompt(session, "Change it")
    model = ScriptedModel("Anytime.", context_window=1000)
    async with later.connected(stored(tmp_path, model)):
        await later.connection.load_session(str(tmp_path), session)
        answered = next(m for m in later.wire.received if m.get("id") == 1)
        position = later.wire.received.index(answered)
        assert all(m.get("method") != "session/update" for m in later.wire.received[position:])
        await later.prompt(session, "Thanks")
        assert later.text(kind="user_message_chunk") == "Change it"
        assert later.text() == "Reading.Done.Anytime."
        assert later.text(kind="agent_thought_chunk") == "All good."
        assert later.updates("plan")[0]["entries"][0]["content"] == "Ship"
        assert later.updates("usage_update")[0]["used"] == 100
        assert later.updates("session_info_update")[0]["title"] == "Change it"
        shown = [(c["name"], c["status"], c["content"]) for c in later.cards()]
        assert shown == [(c["name"], c["status"], c["content"]) for c in first.cards()]
        ids = [u["messageId"] for u in first.updates("agent_message_chunk")]
        assert [u["messageId"] for u in later.updates("agent_message_chunk")][:2] == ids
        before = model.asked[0]["messages"]
        assert [m["role"] for m in before] == [
            *("user", "assistant", "tool", "assistant", "tool", "tool", "assistant", "user"),
        ]


async def test_a_session_in_which_nothing_was_said_is_listed_while_it_is_open(
    tmp_path: Path,
) -> None:
    async def listed(editor: FakeEditor) -> list[str]:
        return [each.session_id for each in (await editor.connection.list_sessions()).sessions]

    first, later = FakeEditor(), FakeEditor()
    async with first.connected(stored(tmp_path, ScriptedModel("Hello."))):
        said, silent = await first.new_session(tmp_path), await first.new_session(tmp_path)
        await first.prompt(said, "Hi")
        assert {*await listed(first)} == {said, silent}
    async with later.connected(stored(tmp_path, ScriptedModel())):
        assert await listed(later) == [said]


async def test_a_resumed_session_goes_on_without_showing_anything(tmp_path: Path) -> None:
    first, later = FakeEditor(), FakeEditor()
    async with first.connected(stored(tmp_path, ScriptedModel("Noted."))):
        session = await first.new_session(tmp_path)
        await first.prompt(session, "Remember 7")
    model = ScriptedModel("7")
    async with later.connected(stored(tmp_path, model)):
        await later.connection.resume_session(session, str(tmp_path))
        assert later.updates() == []
        await later.prompt(session, "What was it?")
        assert later.text() == "7"
    assert model.asked[0]["messages"][0]["content"] == "Remember 7"


@pytest.mark.rule("a session that is still empty is resumed", "durable from the first moment")
async def test_an_empty_session_can_be_resumed_by_the_next_process(tmp_path: Path) -> None:
    first, later = FakeEditor(), FakeEditor()
    async with first.connected(stored(tmp_path, ScriptedModel())):
        session = await first.new_session(tmp_path)
    async with later.connected(stored(tmp_path, ScriptedModel("ok"))):
        await later.connection.resume_session(session, str(tmp_path))
        assert (await later.prompt(session, "Hi")).stop_reason == "end_turn"


async def test_the_list_has_every_session_of_a_directory_page_by_page(tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    editor = FakeEditor()
    async with editor.connected(stored(tmp_path, ScriptedModel("ok"))):
        opened = {await editor.new_session(here) for _ in range(60)}
        await editor.prompt(await editor.new_session(there), "Over there")
        found: list[Any] = []
        cursor = None
        while cursor is not None or not found:
            page = await editor.connection.list_sessions(str(here), cursor)
            found += page.sessions
            cursor = page.next_cursor
        assert {info.session_id for info in found} == opened
        (other,) = (await editor.connection.list_sessions(str(there))).sessions
        assert (await editor.connection.list_sessions("/nowhere")).sessions == []
    assert other.title == "Over there"
    assert other.updated_at


async def test_a_deleted_session_is_gone_and_can_be_deleted_again(tmp_path: Path) -> None:
    editor = FakeEditor()
    async with editor.connected(stored(tmp_path, ScriptedModel())):
        session = await editor.new_session(tmp_path)
        for _ in range(2):
            await editor.connection.delete_session(session)
        assert (await editor.connection.list_sessions()).sessions == []
        with pytest.raises(RequestError) as lost:
            await editor.connection.load_session(str(tmp_path), session)
    assert lost.value.code == -32002


async def test_closing_a_session_cancels_its_turn_and_frees_it(tmp_path: Path) -> None:
    started = asyncio.Event()

    @tool
    async def hang(ctx: ToolEnvironment) -> str:
        """Wait for ever."""
        started.set()
        await asyncio.Event().wait()
        return ""

    editor = FakeEditor()
    agent = stored(tmp_path, ScriptedModel(call("hang"), "again"), tools=[hang])
    async with editor.connected(agent):
        session = await editor.new_session(tmp_path)
        turn = asyncio.create_task(editor.prompt(session, "Go"))
        await started.wait()
        await editor.connection.close_session(session)
        assert (await turn).stop_reason == "cancelled"
        assert session not in agent.sessions
        with pytest.raises(RequestError) as closed:
            await editor.prompt(session, "Hello?")
        assert closed.value.code == -32002
        await editor.connection.resume_session(session, str(tmp_path))
        assert (await editor.prompt(session, "Once more")).stop_reason == "end_turn"


@pytest.mark.parametrize("is_stored", [True, False])
async def test_a_fork_goes_its_own_way(tmp_path: Path, *, is_stored: bool) -> None:
    model = ScriptedModel("Noted.", "7", "8")
    agent = stored(tmp_path, model) if is_stored else Agent(llm=model)
    editor = FakeEditor()
    async with editor.connected(agent):
        one = await editor.new_session(tmp_path)
        await editor.prompt(one, "Remember 7")
        two = (await editor.connection.fork_session(one, str(tmp_path))).session_id
        await editor.prompt(one, "What was it?")
        await editor.prompt(two, "Make it 8")
    assert one != two
    assert [m["content"] for m in model.asked[2]["messages"]] == [
        "Remember 7",
        "Noted.",
        "Make it 8",
    ]


async def test_what_cannot_be_done_is_not_announced(tmp_path: Path) -> None:
    editor = FakeEditor()
    async with editor.connected(Agent(llm=ScriptedModel())):
        greeting = editor.greeting
        assert greeting is not None
        assert greeting.agent_capabilities is not None
        assert not greeting.agent_capabilities.load_session
        assert greeting.agent_capabilities.session_capabilities is not None
        assert greeting.agent_capabilities.session_capabilities.list is None
        with pytest.raises(RequestError) as unknown:
            await editor.connection.list_sessions()
    assert unknown.value.code == -32601


@pytest.mark.rule("all of stable version 1")
async def test_what_can_be_done_is_announced(tmp_path: Path) -> None:
    editor = FakeEditor()
    async with editor.connected(stored(tmp_path, ScriptedModel())):
        greeting = editor.wire.received[0]["result"]
    assert greeting["agentInfo"]["name"] == "crow"
    assert greeting["agentCapabilities"]["loadSession"] is True
    offered = greeting["agentCapabilities"]["sessionCapabilities"]
    beyond = {"fork", "title", "status", "archive"}
    assert set(offered) - beyond == {
        *("list", "resume", "delete", "close", "additionalDirectories"),
    }
    assert [method["type"] for method in greeting["authMethods"]] == ["agent"]


@pytest.mark.rule("modes and options in step", "options: mode, model, thought level")
async def test_mode_and_model_are_chosen_either_way_and_stay_in_step(tmp_path: Path) -> None:
    editor = FakeEditor()
    async with editor.connected(Agent(llm=ScriptedModel(), hooks=[Modes()])):
        opened = await editor.connection.new_session(str(tmp_path))
        session = opened.session_id
        assert opened.modes is not None
        assert opened.modes.current_mode_id == "default"
        assert [o.id for o in opened.config_options or ()] == ["mode", "model"]
        await editor.connection.set_session_mode(session, "plan")
        (listed,) = editor.updates("config_option_update")
        assert [o["currentValue"] for o in listed["configOptions"]] == ["plan", "scripted"]
        back = await editor.connection.set_config_option("mode", session, "default")
        assert [option.current_value for option in back.config_options] == ["default", "scripted"]
        told = [update["currentModeId"] for update in editor.updates("current_mode_update")]
    assert told == ["plan", "default"]


@pytest.mark.parametrize(("name", "value"), [("mode", "nap"), ("model", "x"), ("colour", "red")])
async def test_what_is_not_on_offer_cannot_be_chosen(tmp_path: Path, name: str, value: str) -> None:
    editor = FakeEditor()
    async with editor.connected(Agent(llm=ScriptedModel(), hooks=[Modes()])):
        session = await editor.new_session(tmp_path)
        with pytest.raises(RequestError) as refused:
            await editor.connection.set_config_option(name, session, value)
    assert refused.value.code == -32602


async def test_a_hook_can_refuse_a_choice(tmp_path: Path) -> None:
    def on_config_change(ctx: ConfigContext) -> str:
        return "not today"

    editor = FakeEditor()
    async with editor.connected(Agent(llm=ScriptedModel(), hooks=[Modes(), on_config_change])):
        session = await editor.new_session(tmp_path)
        with pytest.raises(RequestError, match="not today"):
            await editor.connection.set_session_mode(session, "plan")


async def test_authentication_says_whether_there_are_credentials() -> None:
    editor = FakeEditor()
    async with editor.connected(Agent(llm=ScriptedModel())):
        await editor.connection.authenticate("environment")
        with pytest.raises(RequestError) as unknown:
            await editor.connection.authenticate("magic")
    assert unknown.value.code == -32602


async def test_directories_and_servers_of_the_client_reach_hooks(tmp_path: Path) -> None:
    seen: list[Any] = []

    def on_session_start(ctx: SessionContext) -> None:
        seen.extend([ctx.roots, getattr(ctx.client, "mcp_servers", None)])

    server = {"name": "s", "command": "/bin/s", "args": ["x"], "env": []}
    params = {"cwd": str(tmp_path), "additionalDirectories": ["/srv"], "mcpServers": [server]}
    editor = FakeEditor(notices=True)
    async with editor.connected(Agent(llm=ScriptedModel(), hooks=[on_session_start])):
        await editor.wire.request("session/new", params)
        await editor.saw("notice", severity="warning")
        nowhere = {"cwd": str(tmp_path / "gone"), "mcpServers": []}
        missing = await editor.wire.request("session/new", nowhere)
        relative = await editor.wire.request("session/new", {"cwd": "here"})
    assert seen == [(str(tmp_path), "/srv"), [server]]
    assert relative["error"]["code"] == -32602
    assert missing["error"]["code"] == -32602
    assert "there is no directory" in missing["error"]["data"]["details"]


async def test_a_question_that_nobody_answered_is_asked_again_on_another_day(
    tmp_path: Path,
) -> None:
    """C11: the client died while it was open; the call did not run."""
    asked = asyncio.Event()

    def before_tool(call: Any) -> Ask:
        return Ask("sure?")

    async def never(request: Any) -> str:
        asked.set()
        await asyncio.Event().wait()
        return ""

    file = tmp_path / "a.txt"
    writing = call("Write", file_path=str(file), content="x")
    first, later = FakeEditor(permissions=[never]), FakeEditor()
    async with first.connected(stored(tmp_path, ScriptedModel(writing), before_tool)):
        session = await first.new_session(tmp_path)
        turn = asyncio.create_task(first.prompt(session, "Write"))
        await asked.wait()
    with pytest.raises(ConnectionError):
        await turn
    assert not file.exists()
    async with later.connected(stored(tmp_path, ScriptedModel(writing, "done"), before_tool)):
        await later.connection.load_session(str(tmp_path), session)
        (void,) = later.cards()
        await later.prompt(session, "Go on")
        assert [card["status"] for card in later.cards()] == ["failed", "completed"]
    assert void["status"] == "failed"
    assert len(later.asked) == 1
    assert file.read_text() == "x"


@pytest.mark.parametrize("params", [{"cwd": "here"}, {}, {"cwd": 7}, {"cwd": "/", "mcpServers": 7}])
async def test_the_first_request_is_judged_like_every_other(tmp_path: Path, params: Any) -> None:
    editor = FakeEditor()
    async with editor.connected(Agent(llm=ScriptedModel())):
        answers = [await editor.wire.request("session/new", params) for _ in range(2)]
    assert [answer["error"]["code"] for answer in answers] == [-32602, -32602]


async def test_a_client_gives_a_session_its_title_open_or_stored(tmp_path: Path) -> None:
    editor = FakeEditor()
    async with editor.connected(stored(tmp_path, ScriptedModel("ok", "ok"))):
        open_one, other = [await editor.new_session(tmp_path) for _ in range(2)]
        await editor.connection.close_session(other)
        for session in (open_one, other):
            request = {"sessionId": session, "title": "  My \n title "}
            answered = await editor.wire.request("session/set_title", request)
            assert answered["result"] == {"title": "My title"}
        await editor.prompt(open_one, "Another beginning")
        listed = (await editor.connection.list_sessions(str(tmp_path))).sessions
        told = [update["title"] for update in editor.updates("session_info_update")]
        greeting = editor.wire.received[0]["result"]
    assert {info.title for info in listed} == {"My title"}
    assert told == ["My title"]
    assert greeting["agentCapabilities"]["sessionCapabilities"]["title"] == {}


@pytest.mark.parametrize(
    ("params", "code"),
    [
        ({"sessionId": "gone", "title": "x"}, -32002),
        ({"sessionId": "gone", "title": " "}, -32602),
        ({"sessionId": "gone", "title": None}, -32602),
        ({"sessionId": "gone"}, -32602),
    ],
)
async def test_a_title_that_cannot_be_given_is_refused(
    tmp_path: Path, params: Any, code: int
) -> None:
    for agent in (stored(tmp_path, ScriptedModel()), Agent(llm=ScriptedModel())):
        editor = FakeEditor()
        async with editor.connected(agent):
            refused = await editor.wire.request("session/set_title", params)
        assert refused["error"]["code"] == code


@pytest.mark.parametrize(
    "path", ["/" + "a" * 5000, "/a\0b", "/\ud800"], ids=["long", "nul", "half"]
)
async def test_a_path_that_cannot_be_is_refused_wherever_a_session_is_opened(
    tmp_path: Path, path: str
) -> None:
    editor = FakeEditor()
    async with editor.connected(stored(tmp_path, ScriptedModel("ok"))):
        session = await editor.new_session(tmp_path)
        await editor.prompt(session, "Hello")
        for method in ("session/new", "session/load", "session/resume", "session/fork"):
            for place in ({"cwd": path}, {"cwd": str(tmp_path), "additionalDirectories": [path]}):
                params = {"sessionId": session, "mcpServers": [], **place}
                answer = await editor.wire.request(method, params)
                assert answer["error"]["code"] == -32602, method
        asked = await editor.wire.request("session/status", {"sessionId": path})
        assert asked["error"]["code"] == -32002
