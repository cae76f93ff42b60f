"""A prompt's way through the editor's acp_agent: updates in order, cards, the answer last."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from acp import RequestError
from tests.acp.conftest import stored

from crow import Agent, Deny, Stop, tool
from crow.core.errors import ModelError
from crow.core.events import Compacted, Notice, PlanChanged, PlanEntry, Retrying
from crow.core.hooks.contexts import ToolContext
from crow.core.hooks.run_context import RunContext
from crow.core.messages import Usage
from crow.core.ports.tool import ToolEnvironment
from crow.core.tools import ToolResult
from crow.testing import FakeEditor, ScriptedModel, call, text
from crow.testing.model import Line


async def test_a_prompt_streams_its_answer_and_ends(tmp_path: Path) -> None:
    agent = Agent(llm=ScriptedModel(text("Hello.", reasoning="They greet me.")))
    editor = FakeEditor()
    async with editor.connected(agent):
        session = await editor.new_session(tmp_path)
        reply = await editor.prompt(session, "Hi")
        assert reply.stop_reason == "end_turn"
        assert editor.text() == "Hello."
        assert editor.text(kind="agent_thought_chunk") == "They greet me."


async def test_the_chunks_of_a_message_share_an_id_that_its_thoughts_do_not_have(
    tmp_path: Path,
) -> None:
    script: list[Line] = [[text("a", reasoning="hm"), text("b"), text("c")], "next"]
    editor = FakeEditor()
    async with editor.connected(Agent(llm=ScriptedModel(*script))):
        session = await editor.new_session(tmp_path)
        await editor.prompt(session, "Hi")
        await editor.prompt(session, "And?")
        spoken = [u["messageId"] for u in editor.updates("agent_message_chunk")]
        thought = [u["messageId"] for u in editor.updates("agent_thought_chunk")]
    assert len(set(spoken)) == 2
    assert not set(spoken) & set(thought)


@pytest.mark.rule("no update after the prompt's answer", "one ordered queue")
async def test_the_answer_comes_after_every_update_of_its_turn(tmp_path: Path) -> None:
    agent = Agent(llm=ScriptedModel(*[call("Glob", pattern="*")] * 20, "done"))
    editor = FakeEditor()
    async with editor.connected(agent):
        session = await editor.new_session(tmp_path)
        await editor.prompt(session, "Look around")
        last = editor.wire.received[-1]
    assert last["result"]["stopReason"] == "end_turn"
    assert len(editor.cards()) == 20


@pytest.mark.rule("no update after the prompt's answer")
async def test_after_run_hooks_speak_only_after_the_answer(tmp_path: Path) -> None:
    async def after_run(ctx: RunContext) -> None:
        await ctx.ui.notify("done")

    editor = FakeEditor(notices=True)
    async with editor.connected(Agent(llm=ScriptedModel("Hello."), hooks=[after_run])):
        session = await editor.new_session(tmp_path)
        await editor.prompt(session, "Hi")
        await editor.saw("notice", title="done")
        answered = [m.get("result", {}).get("stopReason") for m in editor.wire.received]
        kinds = [
            m.get("params", {}).get("update", {}).get("sessionUpdate") for m in editor.wire.received
        ]
    assert answered.index("end_turn") < kinds.index("notice")


@pytest.mark.rule("command and diff on the card", "cards that people can read")
async def test_a_tool_call_is_a_card_a_person_can_read(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text("one\n")
    script = call("Edit", file_path=str(file), old_string="one", new_string="two"), "done"
    reading = call("Read", file_path=str(file))
    editor = FakeEditor()
    async with editor.connected(Agent(llm=ScriptedModel(reading, *script))):
        session = await editor.new_session(tmp_path)
        await editor.prompt(session, "Change it")
        read, edited = editor.cards()
        states = [
            u.get("status") for u in editor.updates() if u.get("toolCallId") == read["toolCallId"]
        ]
    assert states == ["pending", "in_progress", "completed"]
    assert read["name"] == "Read"
    assert read["kind"] == "read"
    assert str(file) in read["title"] or "a.txt" in read["title"]
    assert read["locations"][0]["path"] == str(file)
    assert read["rawInput"]["file_path"] == str(file)
    assert read["content"][0]["content"]["text"].startswith("```\n")
    assert edited["kind"] == "edit"
    assert edited["content"] == [
        {"type": "diff", "path": str(file), "oldText": "one\n", "newText": "two\n"}
    ]


@pytest.mark.rule("command and diff on the card")
async def test_the_diff_is_shown_before_anything_is_changed(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text("one\n")
    script = call("Write", file_path=str(file), content="two\n"), "done"
    editor = FakeEditor()
    async with editor.connected(Agent(llm=ScriptedModel(*script))):
        session = await editor.new_session(tmp_path)
        await editor.prompt(session, "Change it")
        first = editor.updates("tool_call")[0]
    assert first["content"] == [
        {"type": "diff", "path": str(file), "oldText": "", "newText": "two\n"}
    ]


async def test_a_title_says_the_same_where_it_is_taken_for_markdown(tmp_path: Path) -> None:
    calls = (
        call("Read", file_path=str(tmp_path / "pkg/__init__.py")),
        call("Read", file_path=str(tmp_path / "snake_case_name.py")),
        call("Glob", pattern="**/*.py"),
        call("Bash", command="ls *.py"),
        call("Write", file_path=str(tmp_path / "__init__.py"), content=""),
    )
    editor = FakeEditor()
    async with editor.connected(Agent(llm=ScriptedModel(*calls, "done"))):
        await editor.prompt(await editor.new_session(tmp_path), "Look")
    assert [each["title"] for each in editor.cards()] == [
        "Read `pkg/__init__.py`",
        "Read snake_case_name.py",
        "Find `**/*.py`",
        "ls *.py",
        "Write __init__.py",
    ]


async def test_a_title_names_the_sessions_folder_by_a_dot(tmp_path: Path) -> None:
    beside = f"{tmp_path}-other"
    Path(beside).mkdir()
    model = ScriptedModel(call("LS", path=str(tmp_path)), call("LS", path=beside), "done")
    editor = FakeEditor()
    async with editor.connected(Agent(llm=model)):
        await editor.prompt(await editor.new_session(tmp_path), "Look")
    assert [each["title"] for each in editor.cards()] == ["List .", f"List {beside}"]


@pytest.mark.rule("command and diff on the card")
async def test_a_change_of_a_file_named_without_its_directory_is_one_in_the_sessions(
    tmp_path: Path,
) -> None:
    (tmp_path / "a.txt").write_text("one\n")
    script = call("Write", file_path="a.txt", content="two\n"), "done"
    editor = FakeEditor()
    async with editor.connected(Agent(llm=ScriptedModel(*script))):
        session = await editor.new_session(tmp_path)
        await editor.prompt(session, "Change it")
        first = editor.updates("tool_call")[0]
        (card,) = editor.cards()
    path = str(tmp_path / "a.txt")
    assert card["title"] == first["title"] == "Write a.txt"
    assert card["rawInput"]["file_path"] == path
    assert first["content"] == [{"type": "diff", "path": path, "oldText": "", "newText": "two\n"}]


@pytest.mark.rule("cards that people can read")
async def test_output_streams_into_the_card_of_a_running_command(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    command = f"echo first; while [ ! -e {gate} ]; do sleep 0.01; done; echo second"
    editor = FakeEditor()
    async with editor.connected(Agent(llm=ScriptedModel(call("Bash", command=command), "done"))):
        session = await editor.new_session(tmp_path)
        turn = asyncio.create_task(editor.prompt(session, "Run it"))
        shown = [{"type": "content", "content": {"type": "text", "text": "```\nfirst\n```"}}]
        await editor.saw("tool_call_update", content=shown)
        gate.touch()
        await turn
        (card,) = editor.cards()
    assert card["title"] == command
    assert card["content"][0]["content"]["text"] == "```\nfirst\nsecond\n```"


@pytest.mark.rule("cards that people can read")
async def test_a_client_that_shows_terminals_gets_the_output_as_one(tmp_path: Path) -> None:
    editor = FakeEditor(meta={"terminal_output": True})
    script = call("Bash", command="echo hello; exit 3"), "done"
    async with editor.connected(Agent(llm=ScriptedModel(*script))):
        session = await editor.new_session(tmp_path)
        await editor.prompt(session, "Run it")
        metas = [u["_meta"] for u in editor.updates() if "_meta" in u]
        call_id = editor.cards()[0]["toolCallId"]
    assert metas[0] == {"terminal_info": {"terminal_id": call_id, "cwd": str(tmp_path)}}
    shown = "".join(m["terminal_output"]["data"] for m in metas if "terminal_output" in m)
    assert "hello" in shown
    assert metas[-1]["terminal_exit"] == {"terminal_id": call_id, "exit_code": 3, "signal": None}


async def test_a_denied_call_fails_with_the_reason(tmp_path: Path) -> None:
    def before_tool(call: Any) -> Deny:
        return Deny("not on a Sunday")

    agent = Agent(llm=ScriptedModel(call("Glob", pattern="*"), "done"), hooks=[before_tool])
    editor = FakeEditor()
    async with editor.connected(agent):
        session = await editor.new_session(tmp_path)
        await editor.prompt(session, "Look")
        (card,) = editor.cards()
    assert card["status"] == "failed"
    assert card["content"][0]["content"]["text"] == "not on a Sunday"


async def test_a_hook_that_changes_arguments_changes_the_card(tmp_path: Path) -> None:
    def before_tool(ctx: ToolContext) -> None:
        ctx.args = {**ctx.args, "pattern": "*.py"}

    agent = Agent(llm=ScriptedModel(call("Glob", pattern="*"), "done"), hooks=[before_tool])
    editor = FakeEditor()
    async with editor.connected(agent):
        session = await editor.new_session(tmp_path)
        await editor.prompt(session, "Look")
        (card,) = editor.cards()
    assert card["rawInput"]["pattern"] == "*.py"


async def test_pictures_of_a_result_are_on_the_card(tmp_path: Path) -> None:
    @tool
    async def draw(ctx: ToolEnvironment) -> ToolResult:
        """Draw."""
        return ToolResult(
            [{"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}]
        )

    editor = FakeEditor()
    async with editor.connected(Agent(llm=ScriptedModel(call("draw"), "done"), tools=[draw])):
        session = await editor.new_session(tmp_path)
        await editor.prompt(session, "Draw")
        (card,) = editor.cards()
    picture = {"type": "image", "mimeType": "image/png", "data": "aGk="}
    assert card["content"] == [{"type": "content", "content": picture}]


async def test_plan_usage_and_title_reach_the_client(tmp_path: Path) -> None:
    async def after_turn(ctx: Any) -> None:
        await ctx.emit(PlanChanged((PlanEntry("Think", "completed"), PlanEntry("Write"))))

    usage: Usage = {"input_tokens": 90, "output_tokens": 10, "total_tokens": 100, "cost": 0.25}
    usage["cached_tokens"], usage["cache_write_tokens"] = 40, 30
    model = ScriptedModel(text("Hello.", usage=usage), context_window=1000)
    editor = FakeEditor()
    async with editor.connected(Agent(llm=model, hooks=[after_turn])):
        session = await editor.new_session(tmp_path)
        reply = await editor.prompt(session, "Fix the  failing test\nplease")
        (told,) = editor.updates("usage_update")
        (plan,) = editor.updates("plan")
        (title,) = editor.updates("session_info_update")
    assert told["used"] == 100
    assert told["size"] == 1000
    assert told["cost"] == {"amount": 0.25, "currency": "USD"}
    assert [(e["content"], e["status"]) for e in plan["entries"]] == [
        ("Think", "completed"),
        ("Write", "pending"),
    ]
    assert title["title"] == "Fix the failing test"
    assert reply.usage is not None
    assert reply.usage.total_tokens == 100
    assert (reply.usage.cached_read_tokens, reply.usage.cached_write_tokens) == (40, 30)


async def test_a_title_has_the_words_of_the_prompt_and_nothing_of_what_was_added(
    tmp_path: Path,
) -> None:
    editor = FakeEditor()
    gone = {"type": "resource_link", "uri": "file:///gone/none.txt", "name": "none.txt"}
    picture = {"type": "image", "mimeType": "image/png", "data": "aGk="}
    async with editor.connected(Agent(llm=ScriptedModel("a", "b", "c"))):
        await editor.prompt(await editor.new_session(tmp_path), "Look at", gone)
        await editor.prompt(await editor.new_session(tmp_path), "One", picture, "two")
        await editor.prompt(await editor.new_session(tmp_path), "a (there is no such file)")
    titles = [told["title"] for told in editor.updates("session_info_update")]
    assert titles == ["Look at @/gone/none.txt", "One two", "a (there is no such file)"]


async def test_a_stored_title_names_what_is_embedded_and_nothing_of_what_was_added(
    tmp_path: Path,
) -> None:
    editor = FakeEditor()
    shown = {"type": "resource", "resource": {"uri": "file:///n.txt", "text": "note"}}
    gone = {"type": "resource_link", "uri": "file:///gone/none.txt", "name": "none.txt"}
    async with editor.connected(stored(tmp_path, ScriptedModel("a"))):
        await editor.prompt(await editor.new_session(tmp_path), "Is", shown, "in", gone, "?")
        (told,) = editor.updates("session_info_update")
    assert told["title"] == "Is @/n.txt in @/gone/none.txt?"


async def test_retries_and_warnings_are_notices_where_the_client_shows_them(tmp_path: Path) -> None:
    async def before_llm_request(ctx: Any) -> None:
        await ctx.emit(Retrying(1, 3.0, "rate limited"))
        await ctx.emit(Notice("Careful\nThe disk is full", "warning"))

    editor = FakeEditor(notices=True)
    async with editor.connected(Agent(llm=ScriptedModel("ok"), hooks=[before_llm_request])):
        await editor.prompt(await editor.new_session(tmp_path), "Hi")
        retry, warning = editor.updates("notice")
    assert retry["title"] == "rate limited; trying again in 3 s (attempt 1)"
    assert warning["title"] == "Careful"
    assert warning["description"] == "The disk is full"
    assert editor.text() == "ok"


@pytest.mark.rule("a provider's failure is seen")
async def test_retries_and_warnings_are_text_where_it_does_not(tmp_path: Path) -> None:
    async def before_llm_request(ctx: Any) -> None:
        await ctx.emit(Retrying(1, 3.0, "rate limited"))
        await ctx.emit(Notice("The disk is full", "warning"))
        await ctx.emit(Notice("for your information"))

    editor = FakeEditor()
    async with editor.connected(Agent(llm=ScriptedModel("ok"), hooks=[before_llm_request])):
        await editor.prompt(await editor.new_session(tmp_path), "Hi")
        assert not editor.updates("notice")
    assert "rate limited" in editor.text(kind="agent_thought_chunk")
    assert "The disk is full" in editor.text()
    assert "for your information" not in editor.text()


@pytest.mark.parametrize("notices", [True, False])
async def test_the_user_is_told_why_a_hook_ended_the_run(tmp_path: Path, *, notices: bool) -> None:
    def after_llm_response(reply: Any) -> Stop:
        return Stop("enough for today")

    agent = Agent(llm=ScriptedModel("Hello."), hooks=[after_llm_response])
    editor = FakeEditor(notices=notices)
    async with editor.connected(agent):
        session = await editor.new_session(tmp_path)
        reply = await editor.prompt(session, "Hi")
        shown = editor.updates("notice")[0]["title"] if notices else editor.text()
    assert reply.stop_reason == "end_turn"
    assert "enough for today" in shown


@pytest.mark.parametrize("notices", [True, False])
@pytest.mark.rule(
    "a provider's failure is seen",
    "a failing provider is no error of the request",
    "errors that say what is wrong",
)
async def test_a_failing_provider_is_shown_and_ends_the_turn_in_the_ordinary_way(
    tmp_path: Path, *, notices: bool
) -> None:
    error = ModelError("the quota is used up", kind="rate_limit", retry_after=1.5)
    editor = FakeEditor(notices=notices)
    async with editor.connected(Agent(llm=ScriptedModel(error, "better"))):
        session = await editor.new_session(tmp_path)
        reply = await editor.prompt(session, "Hi")
        shown = editor.updates("notice")[0]["title"] if notices else editor.text()
        again = await editor.prompt(session, "And now?")
    assert reply.stop_reason == "end_turn"
    assert "the quota is used up" in shown
    assert reply.field_meta is not None
    assert reply.field_meta["crow"] == {
        "stopReason": "error",
        "detail": "the quota is used up",
        "kind": "rate_limit",
        "retryAfterMs": 1500,
    }
    assert again.stop_reason == "end_turn"


@pytest.mark.rule("a provider's failure is seen", "errors that say what is wrong")
async def test_missing_credentials_ask_for_authentication(tmp_path: Path) -> None:
    error = ModelError("no key: set CROW_API_KEY", kind="unconfigured")
    editor = FakeEditor()
    async with editor.connected(Agent(llm=ScriptedModel(error))):
        session = await editor.new_session(tmp_path)
        with pytest.raises(RequestError) as refused:
            await editor.prompt(session, "Hi")
    assert refused.value.code == -32000
    assert refused.value.data == {"details": "no key: set CROW_API_KEY"}


@pytest.mark.rule("a prompt during a turn waits or steers", "prompts wait or steer")
async def test_prompts_during_a_turn_are_answered_one_after_another(tmp_path: Path) -> None:
    started = asyncio.Event()
    gate = asyncio.Event()

    @tool
    async def wait(ctx: ToolEnvironment) -> str:
        """Wait."""
        started.set()
        await gate.wait()
        return "waited"

    model = ScriptedModel(call("wait"), "one", "two", "three")
    editor = FakeEditor()
    async with editor.connected(Agent(llm=model, tools=[wait])):
        session = await editor.new_session(tmp_path)
        turns = [asyncio.create_task(editor.prompt(session, "1"))]
        await started.wait()
        turns += [asyncio.create_task(editor.prompt(session, n)) for n in "23"]
        gate.set()
        replies = await asyncio.gather(*turns)
        assert editor.text() == "onetwothree"
    assert [reply.stop_reason for reply in replies] == ["end_turn"] * 3
    said = [m["content"] for m in model.asked[-1]["messages"] if m["role"] == "user"]
    assert said == ["1", "2", "3"]


@pytest.mark.rule("a prompt during a turn waits or steers", "prompts wait or steer")
async def test_steering_reaches_the_run_that_is_on(tmp_path: Path) -> None:
    started = asyncio.Event()
    gate = asyncio.Event()

    @tool
    async def wait(ctx: ToolEnvironment) -> str:
        """Wait."""
        started.set()
        await gate.wait()
        return "waited"

    model = ScriptedModel(call("wait"), "steered")
    editor = FakeEditor()
    async with editor.connected(Agent(llm=model, tools=[wait])):
        assert editor.greeting is not None
        assert editor.greeting.field_meta == {"steering": {"supported": True}}
        session = await editor.new_session(tmp_path)
        steer: dict[str, Any] = {
            "sessionId": session,
            "prompt": [{"type": "text", "text": "left!"}],
        }
        steer["_meta"] = {"steering": {"idleBehavior": "promptRequired"}}
        idle = await editor.wire.request("_session/steering", steer)
        turn = asyncio.create_task(editor.prompt(session, "go"))
        await started.wait()
        busy = await editor.wire.request("_session/steering", steer)
        gate.set()
        await turn
    assert idle["result"] == {"outcome": "promptRequired", "reason": "noRunningTurn"}
    assert busy["result"] == {"outcome": "injected"}
    assert model.asked[-1]["messages"][-1]["content"] == "left!"


async def test_two_sessions_work_side_by_side(tmp_path: Path) -> None:
    both = asyncio.Barrier(2)

    @tool
    async def meet(ctx: ToolEnvironment) -> str:
        """Wait for the other one."""
        await both.wait()
        return ctx.session_id

    model = ScriptedModel(call("meet"), call("meet"), "done", "done")
    editor = FakeEditor()
    async with editor.connected(Agent(llm=model, tools=[meet])):
        one = await editor.new_session(tmp_path)
        two = await editor.new_session(tmp_path)
        await asyncio.gather(editor.prompt(one, "Go"), editor.prompt(two, "Go"))
        for session in (one, two):
            (card,) = editor.cards(session)
            assert card["rawOutput"] == {"output": session}
            assert editor.text(session) == "done"


@pytest.mark.rule("links of every kind")
async def test_everything_in_a_prompt_reaches_the_model(tmp_path: Path) -> None:
    there = tmp_path / "a b.py"
    there.touch()
    model = ScriptedModel("ok")
    editor = FakeEditor()
    picture = {"type": "image", "mimeType": "image/png", "data": "aGk="}
    async with editor.connected(Agent(llm=model)):
        await editor.prompt(
            await editor.new_session(tmp_path),
            "Look at ",
            {"type": "resource_link", "uri": there.as_uri(), "name": "a b.py"},
            " and ",
            {"type": "resource_link", "uri": f"file://{tmp_path}/gone.py#L3", "name": "gone"},
            {"type": "resource_link", "uri": "https://example.org/x", "name": "page"},
            {"type": "resource", "resource": {"uri": "file:///n.txt", "text": "note"}},
            {"type": "resource", "resource": {"uri": "file:///b.bin", "blob": "AAAA"}},
            {"type": "audio", "mimeType": "audio/wav", "data": "aGk="},
            picture,
        )
    told: Any = model.asked[0]["messages"][-1]["content"]
    words, image, added = told
    assert image == {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}
    assert words["type"] == added["type"] == "text"
    links = f"@{there} and @{tmp_path}/gone.py:3 [page](https://example.org/x) @/n.txt @/b.bin"
    assert words["text"] == f"Look at {links}"
    for piece in (
        f"(there is no file {tmp_path}/gone.py)",
        '<resource uri="/n.txt">\nnote\n</resource>',
        "/b.bin was left out",
        "audio/wav was left out",
    ):
        assert piece in added["text"]


async def test_half_a_surrogate_pair_in_a_prompt_does_no_harm(tmp_path: Path) -> None:
    model = ScriptedModel("fine")
    editor = FakeEditor()
    async with editor.connected(Agent(llm=model)):
        session = await editor.new_session(tmp_path)
        prompt = {"sessionId": session, "prompt": [{"type": "text", "text": "a\ud800b"}]}
        reply = await editor.wire.request("session/prompt", prompt)
    assert reply["result"]["stopReason"] == "end_turn"
    assert model.asked[0]["messages"][-1]["content"] == "a?b"


async def test_a_call_id_that_the_model_repeats_is_a_card_of_its_own(tmp_path: Path) -> None:
    same = call("Glob", call_id="call_0", pattern="*")
    editor = FakeEditor()
    async with editor.connected(Agent(llm=ScriptedModel(same, "one", same, "two"))):
        session = await editor.new_session(tmp_path)
        await editor.prompt(session, "Look")
        await editor.prompt(session, "Again")
        cards = editor.cards()
    assert [card["toolCallId"] for card in cards] == ["call_0", "call00001"]
    assert [card["status"] for card in cards] == ["completed", "completed"]


async def test_a_sub_agents_work_is_shown_but_not_what_it_says(tmp_path: Path) -> None:
    @tool
    async def delegate(ctx: ToolContext) -> str:
        """Let another one do it."""
        child = ctx.agent.child(llm=ScriptedModel(call("Glob", call_id="c", pattern="*"), "secret"))
        session = await child.new_session(ctx.cwd, client=ctx.client, parent=ctx.session)
        return (await child.prompt(session, "Look")).text

    from crow.tools import builtin

    agent = Agent(
        llm=ScriptedModel(call("delegate", call_id="c"), "done"), tools=[delegate, *builtin()]
    )
    editor = FakeEditor()
    async with editor.connected(agent):
        await editor.prompt(await editor.new_session(tmp_path), "Go")
        assert editor.text() == "done"
        assert [card["name"] for card in editor.cards()] == ["delegate", "Glob"]
        assert all(card["status"] == "completed" for card in editor.cards())


@pytest.mark.parametrize("is_new", [True, False])
async def test_a_compaction_is_told_in_the_way_the_client_understands(
    tmp_path: Path, *, is_new: bool
) -> None:
    async def after_turn(ctx: Any) -> None:
        await ctx.emit(Compacted("We spoke.", "auto"))

    editor = FakeEditor(notices=is_new)
    async with editor.connected(Agent(llm=ScriptedModel("ok"), hooks=[after_turn])):
        await editor.prompt(await editor.new_session(tmp_path), "Hi")
        told = editor.updates("compaction_update")
    assert [update["summary"] for update in told] == (
        [[{"type": "text", "text": "We spoke."}]] if is_new else []
    )


async def test_a_warning_between_turns_waits_for_the_next_where_it_has_to_be_text(
    tmp_path: Path,
) -> None:
    told = asyncio.Event()

    async def after_run(ctx: RunContext) -> None:
        if not told.is_set():
            await ctx.ui.notify("the disk is full", severity="warning")
            told.set()

    editor = FakeEditor()
    async with editor.connected(Agent(llm=ScriptedModel("one", "two"), hooks=[after_run])):
        session = await editor.new_session(tmp_path)
        await editor.prompt(session, "1")
        await told.wait()
        assert "the disk is full" not in editor.text()
        await editor.prompt(session, "2")
        assert editor.text().index("the disk is full") < editor.text().index("two")


async def test_a_prompt_that_a_hook_queued_is_shown_with_its_answer(tmp_path: Path) -> None:
    def after_run(ctx: RunContext) -> None:
        if len(ctx.messages) == 2:
            ctx.agent.queue(ctx.session, "And the tests?")

    editor = FakeEditor()
    async with editor.connected(Agent(llm=ScriptedModel("Done.", "Green."), hooks=[after_run])):
        session = await editor.new_session(tmp_path)
        await editor.prompt(session, "Fix it")
        await editor.saw("agent_message_chunk", content={"type": "text", "text": "Green."})
        order = [update["sessionUpdate"] for update in editor.updates()][-2:]
        answered = next(i for i, m in enumerate(editor.wire.received) if m.get("id") == 2)
        later = editor.wire.received[answered + 1]["params"]["update"]
    assert order == ["user_message_chunk", "agent_message_chunk"]
    assert later["content"]["text"] == "And the tests?"


async def test_a_terminal_that_printed_nothing_yet_gets_the_result(tmp_path: Path) -> None:
    @tool(kind="execute")
    async def run(ctx: ToolEnvironment) -> ToolResult:
        """Run."""
        return ToolResult.failure("Exit code 2\nno such command")

    editor = FakeEditor(meta={"terminal_output": True})
    async with editor.connected(Agent(llm=ScriptedModel(call("run"), "done"), tools=[run])):
        await editor.prompt(await editor.new_session(tmp_path), "Go")
        meta = editor.updates("tool_call_update")[-1]["_meta"]
    assert meta["terminal_output"]["data"] == "Exit code 2\nno such command"
    assert meta["terminal_exit"]["exit_code"] == 2
