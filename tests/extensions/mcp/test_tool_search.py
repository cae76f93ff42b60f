"""Very many tools: the model is told their names, and reads the definitions that it looks for."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mcp.server import MCPServer
from tests.extensions.mcp.conftest import Open, Table

from crow.extensions.deferred_tools import CALL_TOOL, DeferredToolsHook
from crow.extensions.deferred_tools.search import TOOL_SEARCH, found, limit_of
from crow.extensions.subagents import SubagentsHook
from crow.testing import call

ABOUT = "The weather there in the coming days, with wind, rain and sun, for planning a journey. "
CITY = "mcp__many__forecast_city042"
RESOURCES = ["ListMcpResourcesTool", "ReadMcpResourceTool"]
SEARCHED = (
    call(TOOL_SEARCH, query=f"select:{CITY}"),
    call(CALL_TOOL, name=CITY, arguments={"days": 2}),
    "Done.",
)


def many(count: int = 200) -> Table:
    """A server of the official library with so many tools."""
    server = MCPServer("many")
    for number in range(count):
        city = f"city{number:03}"

        def forecast(days: int, unit: str = "celsius", *, city: str = city) -> str:
            return f"{city}: sun for {days} days"

        server.add_tool(forecast, name=f"forecast_{city}", description=f"{ABOUT * 5}It is {city}.")
    return {"many": server}


async def test_many_tools_are_told_by_name_looked_up_and_called(opened: Open) -> None:
    async with opened(many(), *SEARCHED, "Again.", hooks=[DeferredToolsHook()]) as it:
        await it.prompt()
        await it.prompt()
        it.model.verify_prefix()
        assert it.tools(0) == it.tools(-1) == [*RESOURCES, TOOL_SEARCH, CALL_TOOL]
        told = json.dumps(it.model.asked[0]["messages"])
        assert CITY in told
        assert "in the coming days" not in told
        assert len(json.dumps(it.model.asked[0]["tools"])) < 3000
        definition, answer = it.results
        assert definition.count("It is city") == 1
        assert '"days"' in definition
        assert "city042: sun for 2 days" in answer


async def test_few_tools_are_listed(opened: Open) -> None:
    async with opened(many(5), "Done.", hooks=[DeferredToolsHook()]) as it:
        await it.prompt()
        assert len([name for name in it.tools() if name.startswith("mcp__many__")]) == 5
        assert TOOL_SEARCH not in it.tools()


async def test_the_limit_is_set_in_tokens(opened: Open) -> None:
    hooks = [DeferredToolsHook(search_above=0)]
    async with opened(many(1), "Done.", hooks=hooks) as it:
        await it.prompt()
        assert it.tools() == [*RESOURCES, TOOL_SEARCH, CALL_TOOL]


async def test_a_server_that_is_always_loaded_is_listed(
    opened: Open, raw: Callable[..., Table]
) -> None:
    servers = {"a": {**raw(), "alwaysLoad": True}, "b": raw()}
    hooks = [DeferredToolsHook(search_above=0)]
    async with opened(servers, "Done.", hooks=hooks) as it:
        await it.prompt()
        assert it.tools() == ["mcp__a__echo", TOOL_SEARCH, CALL_TOOL]


async def test_tools_that_come_late_are_told_by_name_and_the_list_stays(
    opened: Open, raw: Callable[..., Table], tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    script = ("One.", call(CALL_TOOL, name=TOOL_SEARCH, arguments={"query": "+echo"}), "Two.")
    hooks = [DeferredToolsHook(search_above=0)]
    async with opened({"s": raw(gate=str(gate))}, *script, hooks=hooks, wait=0) as it:
        await it.prompt()
        gate.touch()
        await it.client.until(lambda: any("is there now" in text for text in it.client.notices))
        await it.prompt()
        it.model.verify_prefix()
        assert it.tools(0) == it.tools(-1) == [CALL_TOOL]
        told = str(it.model.asked[1]["messages"])
        assert "call them: mcp__s__echo" in told
        assert f'"name": "{TOOL_SEARCH}"' in told
        assert '"name": "mcp__s__echo"' not in told
        assert '"name": "mcp__s__echo"' in it.results[0]


async def test_what_nothing_fits_is_said(opened: Open) -> None:
    script = (call(TOOL_SEARCH, query="earthquake"), "Done.")
    hooks = [DeferredToolsHook(search_above=0)]
    async with opened(many(3), *script, hooks=hooks) as it:
        await it.prompt()
        assert it.results == ["none of the 3 deferred tools fits: earthquake"]


def spec(name: str, about: str = "") -> Any:
    """What a model is told of a tool."""
    return {"type": "function", "function": {"name": name, "description": about, "parameters": {}}}


TOOLS = {
    name: spec(name, about)
    for name, about in {
        "mcp__github__create_issue": "Open an issue",
        "mcp__github__list_issues": "See what is open",
        "mcp__slack__send_message": "Say something in a channel",
        "mcp__mail__send": "Send a message, for instance about an issue",
    }.items()
}


@pytest.mark.parametrize(
    "query, names",
    [
        ("select:mcp__mail__send,nothing, mcp__slack__send_message", ["mail", "slack"]),
        ("mcp__mail__send", ["mail"]),
        ("send message", ["slack", "mail"]),
        ("+slack send", ["slack"]),
        ("issue", ["create", "list_issues", "mail"]),
        ("SEND", ["mail", "slack"]),
        ("+nothing send", []),
        ("", []),
    ],
)
def test_words_find_tools(query: str, names: list[str]) -> None:
    got = found(query, TOOLS, 5)
    assert len(got) == len(names)
    assert all(part in name for part, name in zip(names, got, strict=True)), got


@pytest.mark.parametrize(
    "said, limit",
    [("", 20_000), ("auto", 20_000), ("auto:5", 10_000), ("true", 0), ("false", float("inf"))],
)
def test_the_variable_of_claude_code_says_when(
    monkeypatch: pytest.MonkeyPatch, said: str, limit: float
) -> None:
    monkeypatch.setenv("ENABLE_TOOL_SEARCH", said)
    assert limit_of(None, 200_000) == limit


async def test_a_sub_agent_looks_up_tools_by_itself(opened: Open) -> None:
    task = call("Agent", description="Look", prompt="Look.")
    hooks = [DeferredToolsHook(), SubagentsHook([])]
    async with opened(many(), task, *SEARCHED, "Done.", hooks=hooks) as it:
        await it.prompt()
        assert [TOOL_SEARCH in it.tools(number) for number in range(5)] == [True] * 5
        told = json.dumps(it.model.asked[1]["messages"])
        assert (CITY in told, "in the coming days" in told) == (True, False)
        assert len(json.dumps(it.model.asked[1]["tools"])) < 4000
        definition, answer = (
            str(each.get("content"))
            for each in it.model.asked[3]["messages"]
            if each["role"] == "tool"
        )
        assert definition.count("It is city") == 1
        assert "city042: sun for 2 days" in answer


async def test_an_agent_with_few_tools_finds_those_of_its_servers(opened: Open) -> None:
    one = {"description": "One.", "prompt": "You are one.", "mcpServers": ["many"], "tools": "LS"}
    hooks = [DeferredToolsHook(), SubagentsHook([], agents={"one": one}, main="one")]
    async with opened(many(), *SEARCHED, hooks=hooks) as it:
        await it.prompt()
        assert it.tools(0) == [TOOL_SEARCH, CALL_TOOL]
        assert "city042: sun for 2 days" in it.results[-1]
