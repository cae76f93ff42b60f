"""Prompts in version 2: answered when they stand in the conversation, and told of until the end."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from crow import Agent
from crow.testing import ScriptedModel, call


async def test_a_prompt_is_acknowledged_and_its_end_is_a_state(draft: Any, tmp_path: Path) -> None:
    client = draft()
    async with client.connected(Agent(llm=ScriptedModel("Hello."))):
        session = await client.new_session(tmp_path)
        message_id = await client.prompt(session, "Hi")
        idle = await client.saw("state_update", state="idle")
        assert client.updates("user_message") == [
            {
                "sessionUpdate": "user_message",
                "messageId": message_id,
                "content": [{"type": "text", "text": "Hi"}],
            }
        ]
        assert client.states() == ["running", "idle"]
        assert idle["stopReason"] == "end_turn"
        assert client.text() == "Hello."
        assert client.updates()[-1] == idle


async def test_a_call_goes_from_pending_to_completed_by_upserts(draft: Any, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n")
    client = draft()
    script = ScriptedModel(call("Read", file_path=str(tmp_path / "a.txt")), "Done.")
    async with client.connected(Agent(llm=script)):
        await client.turn(await client.new_session(tmp_path), "Read it")
        (card,) = client.cards()
        states = [update.get("status") for update in client.updates("tool_call_update")]
        assert states == ["pending", "in_progress", "completed"]
        assert card["name"] == "Read"
        assert "one" in card["content"][0]["content"]["text"]
        assert card["capabilities"] is None


async def test_a_command_runs_in_a_terminal_of_the_agents(draft: Any, tmp_path: Path) -> None:
    client = draft()
    script = ScriptedModel(call("Bash", command="echo hello; exit 3"), "Done.")
    async with client.connected(Agent(llm=script)):
        await client.turn(await client.new_session(tmp_path), "Run it")
        (card,) = client.cards()
        terminal = client.terminals()[card["content"][0]["terminalId"]]
        assert terminal["command"] == "echo hello; exit 3"
        assert terminal["cwd"] == str(tmp_path)
        assert terminal["text"] == "hello\n"
        assert terminal["exitStatus"] == {"exitCode": 3}
        assert terminal["capabilities"] is None


async def test_prompts_wait_for_each_other_and_the_work_ends_once(
    draft: Any, tmp_path: Path
) -> None:
    client = draft()
    script = ScriptedModel(call("Bash", command="until [ -e go ]; do sleep 0.01; done"), "A.", "B.")
    async with client.connected(Agent(llm=script)):
        session = await client.new_session(tmp_path)
        await client.prompt(session, "first")
        second = asyncio.create_task(client.prompt(session, "second"))
        await client.saw("tool_call_update", status="in_progress")
        await asyncio.sleep(0)  # the second one is sent, and taken before what comes behind it
        await client.wire.request("auth/status")
        assert not second.done()
        (tmp_path / "go").touch()
        await second
        await client.saw("state_update", state="idle")
        said = [update["content"][0]["text"] for update in client.updates("user_message")]
        assert said == ["first", "second"]
        assert client.states() == ["running", "idle"]
        assert client.text() == "A.B."
