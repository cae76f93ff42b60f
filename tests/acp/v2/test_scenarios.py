"""What a client of version 2 goes through: permission, cancellation, plan, diff, replay, questions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
from acp.exceptions import RequestError

from crow import Agent, Ask, Deny
from crow.core.catalog import Command
from crow.core.errors import ModelError
from crow.core.events import TextDelta
from crow.core.ports.llm import Request
from crow.core.verdicts import Answer
from crow.extensions.persistence import PersistenceHook
from crow.extensions.plan import PlanHook
from crow.testing import ScriptedModel, call

CREATE = call("Write", file_path="a.txt", content="one\n")


def asking(ctx: Any) -> Ask:
    """Every call needs permission."""
    return Ask("it changes something")


class Judged:
    """An extension that asks before every call."""

    def before_tool(self, ctx: Any) -> Ask:
        return asking(ctx)


async def test_permission_is_asked_with_a_title_a_reason_and_the_call(
    draft: Any, tmp_path: Path
) -> None:
    client = draft()
    agent = Agent(llm=ScriptedModel(CREATE, "Done."), hooks=[Judged()])
    async with client.connected(agent):
        idle = await client.turn(await client.new_session(tmp_path), "Create it")
        (asked,) = client.asked
        assert asked["title"] == str(tmp_path / "a.txt") or asked["title"].endswith("a.txt")
        assert asked["description"] == "it changes something"
        subject = asked["subject"]
        assert subject["type"] == "tool_call"
        assert subject["toolCall"]["toolCallId"] == client.cards()[0]["toolCallId"]
        assert subject["toolCall"]["content"][0]["changes"][0]["operation"] == "add"
        assert client.states() == ["running", "requires_action", "running", "idle"]
        assert idle["stopReason"] == "end_turn"
        assert (tmp_path / "a.txt").read_text() == "one\n"


async def test_permission_for_a_command_names_the_command(draft: Any, tmp_path: Path) -> None:
    client = draft(permission="reject_once")
    script = ScriptedModel(call("Bash", command="echo hi"), "Well.")
    async with client.connected(Agent(llm=script, hooks=[Judged()])):
        await client.turn(await client.new_session(tmp_path), "Run it")
        (card,) = client.cards()
        assert client.asked[0]["subject"] == {
            "type": "command",
            "command": "echo hi",
            "cwd": str(tmp_path),
            "toolCallId": card["toolCallId"],
        }
        assert card["status"] == "failed"
        assert client.terminals() == {}


async def test_cancelling_while_permission_is_asked(draft: Any, tmp_path: Path) -> None:
    client = draft(permission=lambda _: asyncio.Event().wait())
    agent = Agent(llm=ScriptedModel(CREATE, "Again."), hooks=[Judged()])
    async with client.connected(agent):
        session = await client.new_session(tmp_path)
        await client.prompt(session, "Create it")
        await client.saw("state_update", state="requires_action")
        await client.connection.cancel_session(session)
        idle = await client.saw("state_update", state="idle")
        assert idle["stopReason"] == "cancelled"
        assert client.states() == ["running", "requires_action", "idle"]
        assert [card["status"] for card in client.cards()] == ["cancelled"]
        assert not (tmp_path / "a.txt").exists()
        assert (await client.turn(session, "Go on"))["stopReason"] == "end_turn"


async def test_a_prompt_that_waits_is_taken_back_by_a_cancellation(
    draft: Any, tmp_path: Path
) -> None:
    client = draft()
    async with client.connected(Agent(llm=ScriptedModel(call("Bash", command="sleep 60")))):
        session = await client.new_session(tmp_path)
        await client.prompt(session, "first")
        second = asyncio.create_task(client.prompt(session, "second"))
        await client.sent(2, "session/prompt")
        await client.connection.cancel_session(session)
        with pytest.raises(RequestError) as refused:
            await second
        assert refused.value.code == -32800
        idle = await client.saw("state_update", state="idle")
        assert idle["stopReason"] == "cancelled"
        assert len(client.updates("user_message")) == 1


async def test_cancelling_the_request_takes_back_a_prompt_that_waits_and_no_other(
    draft: Any, tmp_path: Path
) -> None:
    client = draft()
    wait = call("Bash", command="until [ -e go ]; do sleep 0.01; done")
    async with client.connected(Agent(llm=ScriptedModel(wait, "Done."))):
        session = await client.new_session(tmp_path)
        await client.prompt(session, "first")
        second = asyncio.create_task(client.prompt(session, "second"))
        await client.sent(2, "session/prompt")
        second.cancel()
        await asyncio.wait([second])
        await client.wire.until(lambda: any("error" in m for m in client.wire.received))
        (tmp_path / "go").touch()
        assert (await client.saw("state_update", state="idle"))["stopReason"] == "end_turn"
        assert client.text() == "Done."
        assert len(client.updates("user_message")) == 1


async def test_what_was_worked_on_last_is_told_when_the_prompt_behind_it_is_taken_back(
    draft: Any, tmp_path: Path
) -> None:
    client, reached = draft(), asyncio.Event()

    async def before_run(prompt: str) -> None:
        if prompt == "second":
            reached.set()
            await asyncio.Event().wait()

    wait = call("Bash", command="until [ -e go ]; do sleep 0.01; done")
    async with client.connected(Agent(ScriptedModel(wait, "Done."), hooks=[before_run])):
        session = await client.new_session(tmp_path)
        await client.prompt(session, "first")
        second = asyncio.create_task(client.prompt(session, "second"))
        await client.sent(2, "session/prompt")
        (tmp_path / "go").touch()
        await reached.wait()
        second.cancel()
        await asyncio.wait([second])
        assert (await client.saw("state_update", state="idle"))["stopReason"] == "end_turn"


async def test_a_call_is_cancelled_by_itself_and_the_work_goes_on(
    draft: Any, tmp_path: Path
) -> None:
    client = draft()
    script = ScriptedModel(call("Bash", command="sleep 60"), "Then not.")
    async with client.connected(Agent(llm=script)):
        session = await client.new_session(tmp_path)
        await client.prompt(session, "Run it")
        update = await client.saw("tool_call_update", status="in_progress")
        assert update["capabilities"] == {"cancel": {}}
        params = {"sessionId": session, "toolCallId": update["toolCallId"]}
        assert (await client.wire.request("tool_call/cancel", params))["result"] == {}
        assert (await client.saw("state_update", state="idle"))["stopReason"] == "end_turn"
        (card,) = client.cards()
        assert card["status"] == "cancelled"
        assert client.terminals()[card["toolCallId"]]["exitStatus"] == {"signal": "SIGTERM"}
        assert "ended by the user" in str(script.asked[-1]["messages"][-1]["content"])
        late = await client.wire.request("tool_call/cancel", params)
        assert late["error"]["code"] == -32602


async def test_a_call_that_hooks_hold_up_is_cancelled_before_it_begins(
    draft: Any, tmp_path: Path
) -> None:
    client, go, told = draft(), asyncio.Event(), []

    async def around_tool(ctx: Any, call_next: Any) -> Any:
        await go.wait()
        result = await call_next()
        told.append(result.text)
        return result

    script = ScriptedModel(call("Bash", command="touch made"), "Then not.")
    async with client.connected(Agent(llm=script, hooks=[around_tool])):
        session = await client.new_session(tmp_path)
        await client.prompt(session, "Run it")
        update = await client.saw("tool_call_update", status="in_progress")
        params = {"sessionId": session, "toolCallId": update["toolCallId"]}
        assert (await client.wire.request("tool_call/cancel", params))["result"] == {}
        go.set()
        await client.saw("state_update", state="idle")
        assert [card["status"] for card in client.cards()] == ["cancelled"]
    assert told == ["ended by the user before it began"]
    assert not (tmp_path / "made").exists()


async def test_a_terminal_is_cancelled_and_its_call_fails(draft: Any, tmp_path: Path) -> None:
    client = draft()
    script = ScriptedModel(call("Bash", command="echo on; sleep 60"), "Then not.")
    async with client.connected(Agent(llm=script)):
        session = await client.new_session(tmp_path)
        await client.prompt(session, "Run it")
        chunk = await client.saw("terminal_output_chunk")
        params = {"sessionId": session, "terminalId": chunk["terminalId"]}
        assert (await client.wire.request("terminal/cancel", params))["result"] == {}
        await client.saw("state_update", state="idle")
        (card,) = client.cards()
        assert card["status"] == "failed"
        assert "exitStatus" in client.terminals()[chunk["terminalId"]]
        unknown = {"sessionId": session, "terminalId": "none"}
        assert (await client.wire.request("terminal/cancel", unknown))["error"]["code"] == -32602


async def test_a_change_is_told_with_its_operation_and_a_patch(draft: Any, tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text("one\ntwo\n")
    client = draft()
    script = ScriptedModel(
        call("Read", file_path=str(file)),
        call("Edit", file_path=str(file), old_string="two", new_string="three"),
        "Done.",
    )
    async with client.connected(Agent(llm=script)):
        await client.turn(await client.new_session(tmp_path), "Change it")
        (change,) = client.cards()[-1]["content"]
        assert change["changes"] == [{"operation": "modify", "path": str(file), "fileType": "text"}]
        path = str(file).lstrip("/")
        assert change["patch"] == {
            "format": "git_patch",
            "text": f"diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n"
            "@@ -1,2 +1,2 @@\n one\n-two\n+three\n",
        }


async def test_a_plan_has_an_id_and_is_told_whole(draft: Any, tmp_path: Path) -> None:
    client = draft()
    steps = [{"content": "Think", "status": "in_progress"}, {"content": "Do", "status": "pending"}]
    agent = Agent(llm=ScriptedModel(call("TodoWrite", todos=steps), "Done."), hooks=[PlanHook()])
    async with client.connected(agent):
        await client.turn(await client.new_session(tmp_path), "Plan it")
        plan = client.updates("plan_update")[0]["plan"]
        assert (plan["type"], plan["planId"]) == ("items", "plan")
        assert [entry["content"] for entry in plan["entries"]] == ["Think", "Do"]


async def test_a_resumed_session_is_replayed_message_by_message_with_the_same_ids(
    draft: Any, tmp_path: Path
) -> None:
    first, later = draft(), draft()

    def agent(*script: Any) -> Agent:
        return Agent(llm=ScriptedModel(*script), hooks=[PersistenceHook(tmp_path / "db")])

    async with first.connected(agent(call("Bash", command=r"printf 'hi\n\n'"), "Said.")):
        session = await first.new_session(tmp_path)
        await first.turn(session, "Run it")
    async with later.connected(agent("More.")):
        from acp.experimental.v2 import schema

        start = schema.ReplayFromStartVariant()
        await later.connection.resume_session(session, str(tmp_path), replay_from=start)
        assert later.updates("user_message") == first.updates("user_message")
        (message,) = later.updates("agent_message")
        assert message["content"] == [{"type": "text", "text": "Said."}]
        assert message["messageId"] == first.updates("agent_message_chunk")[0]["messageId"]
        (terminal,) = later.terminals().values()
        assert terminal["text"] == "hi\n\n"
        assert terminal["exitStatus"] == {"exitCode": 0}
        assert later.cards()[0]["status"] == "completed"
        assert [m.get("id") for m in later.wire.received[-2:]][-1] == 1
        assert later.states() == ["idle"]
        await later.turn(session, "More")
        assert later.text() == "Said.More."


async def test_attachments_are_replayed_as_they_were_sent(draft: Any, tmp_path: Path) -> None:
    link = {"type": "resource_link", "uri": "file:///nowhere/a.txt", "name": "a.txt"}
    blocks = [{"type": "text", "text": "Read "}, link, {"type": "text", "text": " for me."}]
    first, later = draft(), draft()
    hooks = [PersistenceHook(tmp_path / "db")]
    async with first.connected(Agent(llm=ScriptedModel("Done."), hooks=hooks)):
        session = await first.new_session(tmp_path)
        await first.wire.request("session/prompt", {"sessionId": session, "prompt": blocks})
        await first.saw("state_update", state="idle")
    hooks = [PersistenceHook(tmp_path / "db")]
    async with later.connected(Agent(llm=ScriptedModel(), hooks=hooks)):
        from acp.experimental.v2 import schema

        start = schema.ReplayFromStartVariant()
        await later.connection.resume_session(session, str(tmp_path), replay_from=start)
        assert later.updates("user_message") == first.updates("user_message")
        assert [update["content"] for update in later.updates("user_message")] == [blocks]


async def test_a_session_is_resumed_without_replay_and_tells_its_state(
    draft: Any, tmp_path: Path
) -> None:
    client = draft()
    agent = Agent(llm=ScriptedModel("Hello."), hooks=[PersistenceHook(tmp_path / "db")])
    async with client.connected(agent):
        session = await client.new_session(tmp_path)
        await client.turn(session, "Hi")
        await client.connection.close_session(session)
        await client.connection.close_session(session)
        seen = len(client.updates())
        await client.connection.resume_session(session, str(tmp_path))
        assert client.updates()[seen:] == [{"sessionUpdate": "state_update", "state": "idle"}]
        (info,) = (await client.connection.list_sessions()).sessions
        assert (info.session_id, info.title) == (session, "Hi")
        unknown = {"type": "message", "messageId": "x"}
        params = {"sessionId": session, "cwd": str(tmp_path), "replayFrom": unknown}
        answer = await client.wire.request("session/resume", params)
        assert answer["error"]["code"] == -32602


async def test_closing_ends_the_work_before_it_is_answered(draft: Any, tmp_path: Path) -> None:
    client = draft()
    async with client.connected(Agent(llm=ScriptedModel(call("Bash", command="sleep 60")))):
        session = await client.new_session(tmp_path)
        await client.prompt(session, "Run it")
        await client.saw("terminal_update")
        await client.connection.close_session(session)
        assert client.idles()[-1]["stopReason"] == "cancelled"
        assert client.cards()[0]["status"] == "cancelled"


async def test_a_failure_of_the_model_ends_the_work_with_what_went_wrong(
    draft: Any, tmp_path: Path
) -> None:
    client = draft()
    error = ModelError("the quota is used up", kind="billing", retry_after=2.0)
    async with client.connected(Agent(llm=ScriptedModel(error, "Again."))):
        session = await client.new_session(tmp_path)
        idle = await client.turn(session, "Hi")
        assert idle["stopReason"] == "error"
        said = "the quota is used up"
        data = {"code": "billing", "reason": said, "retryAfterMs": 2000}
        assert idle["error"] == {"code": -32603, "message": said, "data": data}
        assert (await client.turn(session, "Hi"))["stopReason"] == "end_turn"


async def test_without_credentials_the_work_ends_with_the_code_for_it(
    draft: Any, tmp_path: Path
) -> None:
    class Unknown:
        model = "none"
        context_window = None

        async def stream(self, request: Request) -> AsyncGenerator[Any, None]:
            raise ModelError("set a key", kind="unconfigured")
            yield TextDelta("")

    client = draft()
    async with client.connected(Agent(llm=Unknown())):
        idle = await client.turn(await client.new_session(tmp_path), "Hi")
        assert idle["error"]["code"] == -32000
        assert idle["stopReason"] == "error"


class Commands:
    """An extension with a command that needs no model, and a word that it does not want."""

    def init_agent(self, agent: Agent) -> None:
        async def run(ctx: Any) -> Answer:
            return Answer("It is noon.")

        agent.add_command(Command("time", "Tell the time", run))

    def before_run(self, ctx: Any) -> Deny | None:
        return Deny("not that word") if ctx.prompt == "bad" else None


async def test_what_never_enters_the_history_has_ids_of_its_own(draft: Any, tmp_path: Path) -> None:
    client = draft()
    agent = Agent(llm=ScriptedModel("Hello."), hooks=[Commands()])
    async with client.connected(agent):
        session = await client.new_session(tmp_path)
        assert (await client.turn(session, "/time"))["stopReason"] == "end_turn"
        assert (await client.turn(session, "/time"))["stopReason"] == "end_turn"
        assert (await client.turn(session, "bad"))["stopReason"] == "refusal"
        assert (await client.turn(session, "Hi"))["stopReason"] == "end_turn"
        assert client.text() == "It is noon.It is noon.Hello."
        for kind in ("user_message", "agent_message_chunk"):
            ids = [update["messageId"] for update in client.updates(kind)]
            assert len(ids) == len(set(ids)), kind
        assert client.updates("notice")[0]["title"] == "refused by commands: not that word"
        assert client.states() == ["running", "idle"] * 4


async def test_what_hooks_prompt_is_told_with_its_state(draft: Any, tmp_path: Path) -> None:
    class Once:
        done = False

        def after_run(self, ctx: Any) -> None:
            if not self.done:
                self.done = True
                ctx.agent.queue(ctx.session, "And then?")

    client = draft()
    async with client.connected(Agent(llm=ScriptedModel("One.", "Two."), hooks=[Once()])):
        session = await client.new_session(tmp_path)
        await client.prompt(session, "Hi")
        await client.wire.until(lambda: len(client.idles()) == 2)
        said = [update["content"][0]["text"] for update in client.updates("user_message")]
        assert said == ["Hi", "And then?"]
        assert client.states() == ["running", "idle"] * 2


@pytest.mark.parametrize("answer", [None, True])
async def test_a_question_of_a_hooks_is_a_form_or_a_permission_without_a_subject(
    draft: Any, tmp_path: Path, answer: bool | None
) -> None:
    class Curious:
        answered: Any = None

        async def before_run(self, ctx: Any) -> None:
            Curious.answered = await ctx.ui.confirm("Really?")

    client = draft(answer=answer)
    async with client.connected(Agent(llm=ScriptedModel("Hello."), hooks=[Curious()])):
        await client.turn(await client.new_session(tmp_path), "Hi")
        assert Curious.answered is True
        assert client.states() == ["running", "requires_action", "running", "idle"]
        if answer is None:
            assert client.asked[0]["title"] == "Really?"
            assert "subject" not in client.asked[0]
        else:
            assert [each["message"] for each in client.asked] == ["Really?"]


async def test_what_is_said_to_a_run_that_is_on_is_shown_where_it_stands(
    draft: Any, tmp_path: Path
) -> None:
    client, later = draft(), draft()
    wait = call("Bash", command="until [ -e go ]; do sleep 0.01; done")
    agent = Agent(llm=ScriptedModel(wait, "Done."), hooks=[PersistenceHook(tmp_path / "db")])
    async with client.connected(agent):
        session = await client.new_session(tmp_path)
        await client.prompt(session, "one")
        await client.saw("terminal_update")
        steering = {"sessionId": session, "prompt": [{"type": "text", "text": "two"}]}
        answer = await client.wire.request("_session/steering", steering)
        assert answer["result"] == {"outcome": "injected"}
        (tmp_path / "go").touch()
        await client.saw("state_update", state="idle")
        said = client.updates("user_message")
        assert [update["content"][0]["text"] for update in said] == ["one", "two"]
        kinds = [update["sessionUpdate"] for update in client.updates()]
        assert kinds.index("agent_message_chunk") > kinds.index("user_message", 2)
    async with later.connected(
        Agent(llm=ScriptedModel(), hooks=[PersistenceHook(tmp_path / "db")])
    ):
        await later.connection.resume_session(session, str(tmp_path), replay_from={"type": "start"})
        assert later.updates("user_message") == said
