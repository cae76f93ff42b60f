"""Every kind of update that version 2 knows and Crow has, on the wire."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
from acp.exceptions import RequestError

from crow import Agent, Usage, tool
from crow.core.events import Compacted, Retrying, TextDelta
from crow.core.ports.llm import Completion, Request
from crow.core.ports.tool import ToolEnvironment
from crow.extensions import PromptCacheHook
from crow.testing import ScriptedModel, call, text


@tool
async def slow(ctx: ToolEnvironment) -> str:
    """Say how far it is."""
    await ctx.progress("half\n")
    await ctx.progress("whole\n")
    return "done"


class Flaky:
    """A model that is tried again, and thinks."""

    model = "flaky"
    context_window = 1000

    async def stream(self, request: Request) -> AsyncGenerator[Any, None]:
        yield Retrying(1, 2.0, "the endpoint is busy")
        yield TextDelta("Hello.", request.message_id)
        yield Completion("Hello.", usage={"total_tokens": 7})


async def test_output_of_a_tool_comes_in_chunks_and_its_result_in_their_place(
    draft: Any, tmp_path: Path
) -> None:
    client = draft()
    async with client.connected(Agent(llm=ScriptedModel(call("slow"), "Ok."), tools=[slow])):
        await client.turn(await client.new_session(tmp_path), "Go")
        chunks = client.updates("tool_call_content_chunk")
        said = [chunk["content"]["content"]["text"] for chunk in chunks]
        assert said == ["half\n", "whole\n"]
        assert client.cards()[0]["content"][0]["content"]["text"] == "done"


async def test_a_thought_is_a_message_of_its_own(draft: Any, tmp_path: Path) -> None:
    client = draft()
    async with client.connected(Agent(llm=ScriptedModel(text("Yes.", reasoning="Hm.")))):
        await client.turn(await client.new_session(tmp_path), "Go")
        assert client.text("agent_thought") == "Hm."
        assert client.text() == "Yes."


async def test_a_retry_is_a_notice_and_tokens_are_counted(draft: Any, tmp_path: Path) -> None:
    client = draft()
    async with client.connected(Agent(llm=Flaky())):
        idle = await client.turn(await client.new_session(tmp_path), "Go")
        (notice,) = client.updates("notice")
        assert notice["severity"] == "warning"
        assert "trying again in 2 s" in notice["title"]
        assert client.updates("usage_update") == [
            {"sessionUpdate": "usage_update", "used": 7, "size": 1000}
        ]
        assert idle["usage"]["totalTokens"] == 7


async def test_a_broken_prefix_is_told_with_the_tokens(draft: Any, tmp_path: Path) -> None:
    def before_llm_request(messages: list[Any]) -> list[Any]:
        return [{"role": "system", "content": f"Request {len(messages)}"}, *messages]

    usage = Usage(input_tokens=700, total_tokens=700)
    model = ScriptedModel(text("1", usage=usage), text("2", usage=usage), context_window=1000)
    client = draft()
    async with client.connected(Agent(model, hooks=[before_llm_request, PromptCacheHook()])):
        session = await client.new_session(tmp_path)
        await client.turn(session, "Go")
        await client.turn(session, "On")
        first, second = client.updates("usage_update")
        assert "_meta" not in first
        told = second["_meta"]["crow"]["promptCache"]
        assert (told["requests"], told["breaks"], told["tokens"]) == (2, 1, 700)
        assert told["last"]["by"] == "the hook before_llm_request"
        assert told["last"]["fromMessage"] == 1


async def test_a_compaction_has_an_id_and_a_summary(draft: Any, tmp_path: Path) -> None:
    class Compacts:
        async def before_llm_request(self, ctx: Any) -> None:
            await ctx.emit(Compacted("All of it.", "auto"))

    client = draft()
    async with client.connected(Agent(llm=ScriptedModel("Ok."), hooks=[Compacts()])):
        session = await client.new_session(tmp_path)
        await client.turn(session, "Go")
        assert client.updates("compaction_update") == [
            {
                "sessionUpdate": "compaction_update",
                "compactionId": f"{session}.0.1",
                "status": "completed",
                "summary": [{"type": "text", "text": "All of it."}],
            }
        ]


async def test_everything_that_a_prompt_can_hold_reaches_the_model(
    draft: Any, tmp_path: Path
) -> None:
    (tmp_path / "a.txt").write_text("one\n")
    link = {"type": "resource_link", "uri": f"file://{tmp_path}/a.txt", "name": "a.txt"}
    page = {"uri": "https://example.org/page", "text": "A page."}
    image = {"type": "image", "mimeType": "image/png", "data": "aGk="}
    client, model = draft(), ScriptedModel("Ok.")
    async with client.connected(Agent(llm=model)):
        session = await client.new_session(tmp_path)
        embedded = {"type": "resource", "resource": page}
        await client.turn(session, "See ", link, embedded, image, {"type": "_own", "x": 1})
        (shown,) = client.updates("user_message")
        assert [block["type"] for block in shown["content"]] == [
            *("text", "resource_link", "resource", "image", "_own")
        ]
    said: Any = model.asked[0]["messages"][-1]["content"]
    assert f"See @{tmp_path}/a.txt" in said[0]["text"]
    assert "A page." in said[-1]["text"]
    assert said[1]["image_url"]["url"] == "data:image/png;base64,aGk="
    assert "_own" in said[2]["text"]


async def test_servers_that_the_client_names_reach_the_model(draft: Any, tmp_path: Path) -> None:
    seen: list[Any] = []

    def on_session_start(ctx: Any) -> None:
        seen.extend(ctx.client.mcp_servers)

    client = draft()
    async with client.connected(Agent(llm=ScriptedModel(), hooks=[on_session_start])):
        servers = [
            {"type": "stdio", "name": "one", "command": "/bin/true", "args": ["-x"]},
            {"type": "http", "name": "two", "url": "http://127.0.0.1:9/mcp"},
        ]
        params = {"cwd": str(tmp_path), "mcpServers": servers}
        await client.wire.request("session/new", params)
        assert "the MCP servers" in (await client.saw("notice"))["title"]
    assert [(each["type"], each["name"]) for each in seen] == [("stdio", "one"), ("http", "two")]
    assert seen[1]["url"] == "http://127.0.0.1:9/mcp"


async def test_a_title_that_the_client_gives_is_told(draft: Any, tmp_path: Path) -> None:
    client = draft()
    async with client.connected(Agent(llm=ScriptedModel())):
        session = await client.new_session(tmp_path)
        params = {"sessionId": session, "title": " My  title "}
        answer = await client.wire.request("session/set_title", params)
        assert answer["result"] == {"title": "My title"}
        assert (await client.saw("session_info_update"))["title"] == "My title"


async def test_an_agent_without_a_store_lists_nothing_and_resumes_nothing(
    draft: Any, tmp_path: Path
) -> None:
    client = draft()
    async with client.connected(Agent(llm=ScriptedModel())):
        assert (await client.connection.list_sessions()).sessions == []
        with pytest.raises(RequestError) as refused:
            await client.connection.resume_session("none", str(tmp_path))
        assert refused.value.code == -32002
        await client.connection.logout()
        with pytest.raises(RequestError) as unknown:
            await client.connection.login("magic")
        assert unknown.value.code == -32602
