"""Tools, prompts, resources and questions of a real server on each transport."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.extensions.mcp.conftest import FULL, Open, Table, Watcher
from tests.extensions.mcp.test_faults import until_traced

from crow.core.events import CommandsChanged
from crow.core.messages import text_of
from crow.extensions import PermissionsHook
from crow.testing import call


@pytest.fixture(scope="module")
def web_trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the servers on ports leave their traces."""
    return tmp_path_factory.mktemp("web") / "trace"


@pytest.fixture(scope="module")
def on_the_web(web_trace: Path) -> Iterator[dict[str, Table]]:
    """The servers that run on ports for all tests of this module, by transport."""
    kinds = ("http", "sse", "http new")
    process = start("each", *kinds, trace=web_trace)
    yield {kind: described(kind, process) for kind in kinds}
    os.killpg(process.pid, signal.SIGKILL)  # its forks with it
    end(process)


def start(*argv: str, trace: Path | None = None) -> subprocess.Popen[str]:
    env = {"PYTHONWARNINGS": "ignore", "TRACE": str(trace or ""), "ERA": "old"}
    return subprocess.Popen(
        [sys.executable, FULL, *argv],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **env},
        start_new_session=True,
    )


def described(kind: str, process: subprocess.Popen[str]) -> Table:
    """The server that the next line of the process tells the port of."""
    assert process.stdout is not None
    path = "sse" if kind == "sse" else "mcp"
    return {
        "type": kind.split(maxsplit=1)[0],
        "url": f"http://127.0.0.1:{process.stdout.readline().strip()}/{path}",
    }


def end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.wait()
    if process.stdout is not None:
        process.stdout.close()


@pytest.fixture(
    params=["stdio", "http", "sse", pytest.param("stdio new", marks=pytest.mark.slow), "http new"]
)
def server(request: pytest.FixtureRequest, full: Table, on_the_web: dict[str, Table]) -> Table:
    if request.param.startswith("stdio"):
        full["env"]["ERA"] = request.param.partition(" ")[2] or "old"
        return full
    return on_the_web[request.param]


@pytest.mark.slow
async def test_all_that_a_server_offers_can_be_used(opened: Open, server: Table, tmp_path: Path):
    script = [
        call("mcp__full__add", a=19, b=23),
        call("mcp__full__fail"),
        call("mcp__full__picture"),
        call("mcp__full__sound"),
        call("mcp__full__structured"),
        call("mcp__full__roots"),
        call("mcp__full__steps"),
        call("ListMcpResourcesTool"),
        call("ReadMcpResourceTool", server="full", uri="notes://today"),
        call("ReadMcpResourceTool", server="full", uri="notes://raw"),
        call("ReadMcpResourceTool", server="full", uri="notes://day/monday"),
        call("ReadMcpResourceTool", server="full", uri="notes://nowhere"),
        call("ReadMcpResourceTool", server="empty", uri="notes://today"),
        "Done.",
        "Reviewed.",
    ]
    async with opened({"full": server}, *script, call_timeout=30.0) as it:
        assert await it.prompt() == "Done."
        inner = [told.removeprefix('<mcp-data server="full">\n') for told in it.results]
        inner = [told.removesuffix("\n</mcp-data>") for told in inner]
        assert inner[0] == "42"
        assert inner[1] == "Error executing tool fail: it went wrong"
        assert inner[3] == "[audio audio/wav, 300 bytes, not shown]"
        assert json.loads(inner[4]) == {"answer": 42}
        assert inner[5] == tmp_path.as_uri()
        assert inner[6] == "all steps"
        steps = [f"{n} of 4: step {n}\n" for n in (1, 2, 3, 4)]
        shown = it.client.progress  # of those that come at once the latest
        assert shown
        assert shown == [step for step in steps if step in shown]
        listed = [json.loads(line) for line in inner[7].splitlines()[1:]]
        assert [each.get("uri") or each["uriTemplate"] for each in listed] == [
            "notes://today",
            "notes://raw",
            "notes://day/{day}",
        ]
        assert inner[8] == "[resource notes://today]\nBuy bread."
        assert inner[9] == "[notes://raw application/zip, 100 bytes, not shown]"
        assert inner[10].endswith("Notes of monday.")
        assert inner[11].startswith("the MCP server 'full' refused: ")
        assert inner[12] == "there is no MCP server 'empty' with resources; there are: full"
        ended = [record for record in it.client.events if type(record).__name__ == "ToolEnded"]
        assert [record.outcome for record in ended[:3]] == ["ok", "error", "ok"]
        pictures = [m for m in it.session.messages if isinstance(m.get("content"), list)]
        assert [part["type"] for part in pictures[0]["content"]] == [
            *("text", "text", "image_url", "text")
        ]
        assert it.session.tools["mcp__full__add"].title({}) == "full: Add numbers (add)"
        assert await it.prompt("/mcp__full__review src/main.py speed and size") == "Reviewed."
        assert it.session.latest_prompt() == (
            "The user chose the prompt 'review' of the MCP server 'full':\n\n"
            "Review src/main.py with an eye on speed and size."
        )
        assert await it.prompt("/mcp__full__review") == "the prompt review needs path"


@pytest.mark.slow
async def test_a_server_that_is_not_there_is_named_without_a_question(opened: Open, full: Table):
    client = Watcher("nobody is asked", permission="allow_once")
    script = [
        call("ListMcpResourcesTool", server="empty"),
        call("ReadMcpResourceTool", server="empty", uri="notes://today"),
        "Done.",
    ]
    asking = PermissionsHook(ask=["ListMcpResourcesTool", "ReadMcpResourceTool"])
    async with opened({"full": full}, *script, client=client, hooks=[asking]) as it:
        await it.prompt()
        assert client.permissions == []
        assert ["there is no MCP server 'empty'" in told for told in it.results] == [True, True]


@pytest.mark.parametrize("kind", ["http", "sse"])
async def test_questions_of_a_server_are_put_to_the_user(
    opened: Open, on_the_web: dict[str, Table], kind: str
):
    client = Watcher("Answer", "soup", "many", "2", "Ann", "Accept")
    script = [call("mcp__full__order"), call("mcp__full__visit"), "Done."]
    async with opened({"full": on_the_web[kind]}, *script, client=client) as it:
        await it.prompt()
        asked = [question.text for question in client.questions]
        assert asked == [
            'The MCP server "full" asks: What shall it be?',
            "Dish",
            "Plates (at least 1)",
            'Plates (at least 1): "many" is not of type "integer"',
            "Name (default: nobody)",
            (
                'The MCP server "full" asks: Please log in\n'
                "Visit https://example.org/login and say when it is done."
            ),
        ]
        assert "accept: {'dish': 'soup', 'plates': 2, 'name': 'Ann'}" in it.results[0]
        assert it.results[1] == '<mcp-data server="full">\naccept\n</mcp-data>'


@pytest.mark.parametrize("kind", [pytest.param("stdio", marks=pytest.mark.slow), "http"])
async def test_questions_in_the_newest_protocol_are_put_to_the_user_too(
    opened: Open, full: Table, on_the_web: dict[str, Table], kind: str
):
    full["env"]["ERA"] = "new"
    client = Watcher("Answer", "soup", "2", "Ann", "Decline")
    script = [call("mcp__full__order"), call("mcp__full__order"), call("mcp__full__order"), "Done."]
    servers = {"full": full if kind == "stdio" else on_the_web["http new"]}
    async with opened(servers, *script, client=client) as it:
        await it.prompt()
        assert "accept: {'dish': 'soup', 'plates': 2, 'name': 'Ann'}" in it.results[0]
        assert "decline: None" in it.results[1]
        assert "cancel: None" in it.results[2]


@pytest.mark.parametrize("kind", [pytest.param("stdio", marks=pytest.mark.slow), "http"])
async def test_changes_in_the_newest_protocol_are_listened_for(
    opened: Open, full: Table, on_the_web: dict[str, Table], kind: str
):
    full["env"]["ERA"] = "new"
    servers = {"full": full if kind == "stdio" else on_the_web["http new"]}
    changed = [call("mcp__full__change"), "Changed.", call("mcp__full__change", back=True), "Back."]
    async with opened(servers, *changed) as it:
        await it.prompt()
        assert "mcp__full__say" in it.tools(0)
        await it.prompt()
        async with asyncio.timeout(30):
            while "mcp__full__later" not in it.agent.commands_of(
                it.session
            ):  # it may be told a moment later
                it.model.extend("Hello.")
                await it.prompt()
        assert "mcp__full__say" in it.tools()
        assert "mcp__full__fresh" not in it.tools()


@pytest.mark.parametrize("kind", ["http", "sse"])
async def test_tools_and_prompts_that_come_and_go_reach_model_and_user(
    opened: Open, on_the_web: dict[str, Table], kind: str
):
    script = [
        call("mcp__full__change"),
        call("mcp__full__fresh"),
        call("mcp__full__say", text="?"),
        call("mcp__full__change", back=True),
        "Done.",
    ]
    async with opened({"full": on_the_web[kind]}, *script) as it:
        await it.prompt()
        assert "mcp__full__say" in it.tools(0)
        assert "mcp__full__say" not in it.tools(1)
        assert "new" in it.results[1]
        assert it.results[2].startswith("there is no tool 'mcp__full__say'")
        assert "mcp__full__say" in it.tools(-1)
        assert {"mcp__full__review", "mcp__full__later"} <= set(it.agent.commands_of(it.session))
        changes = [event for event in it.client.events if type(event).__name__ == "CommandsChanged"]
        assert changes
        await it.agent.close_session(it.session)
        assert [name for name in it.agent.commands_of(it.session) if name.startswith("mcp__")] == []
        assert it.session.tools == {}


async def test_prompts_are_commands_before_the_model_is_asked_for_anything(
    opened: Open, on_the_web: dict[str, Table]
):
    async with opened({"full": on_the_web["http"]}) as it:
        await it.client.until(lambda: any(isinstance(e, CommandsChanged) for e in it.client.events))
        assert "mcp__full__review" in it.agent.commands_of(it.session)
        assert it.model.asked == []


async def test_a_prompt_that_is_typed_before_its_server_is_there_is_waited_for(
    opened: Open, on_the_web: dict[str, Table]
):
    async with opened({"full": on_the_web["http"]}, "Reviewed.") as it:
        assert await it.prompt("/mcp__full__review a.py") == "Reviewed."
        assert it.session.latest_prompt().endswith("Review a.py with an eye on everything.")


@pytest.mark.parametrize("kind", ["http", "sse", "http new"])
async def test_a_call_that_takes_too_long_is_cancelled_on_the_web_as_well(
    opened: Open, on_the_web: dict[str, Table], web_trace: Path, kind: str
):
    web_trace.unlink(missing_ok=True)
    script = [call("mcp__full__slow"), call("mcp__full__add", a=1, b=1), "Done."]
    async with opened({"full": on_the_web[kind]}, *script, call_timeout=1.0) as it:
        await it.prompt()
        assert "gave no sign of life for 1 s" in it.results[0]
        assert it.results[1] == '<mcp-data server="full">\n2\n</mcp-data>'
        await until_traced(web_trace, "cancelled")


@pytest.mark.slow
async def test_a_web_server_that_goes_away_fails_its_calls_and_is_found_again(opened: Open):
    process = start("http")
    server = described("http", process)
    port = int(server["url"].split(":")[2].split("/")[0])

    def bring_back() -> None:
        end(process)
        again.append(start("http", str(port)))
        described("http", again[0])

    again: list[subprocess.Popen[str]] = []
    die, add = call("mcp__full__die"), call("mcp__full__add", a=1, b=1)
    try:
        async with opened({"full": server}, [die, add], "Gone.", add, "Back.") as it:
            assert await it.prompt() == "Gone."
            assert "went away during the call" in it.results[0]
            bring_back()
            assert await it.prompt() == "Back."
            assert it.results[2] == '<mcp-data server="full">\n2\n</mcp-data>'
            assert "the MCP server 'full' was lost" in it.client.notices[0]
    finally:
        for each in (process, *again):
            end(each)


async def test_an_answer_of_the_web_that_is_too_long_fails_the_call_alone(
    opened: Open, on_the_web: dict[str, Table]
):
    script = [
        call("mcp__full__say", text="x" * 1024, times=9 * 1024),
        call("mcp__full__add", a=1, b=1),
        "Done.",
    ]
    async with opened({"full": on_the_web["http"]}, *script) as it:
        await it.prompt()
        assert "8388608" in it.results[0] or "8 MiB" in it.results[0]
        assert it.results[1] == '<mcp-data server="full">\n2\n</mcp-data>'


@pytest.mark.parametrize("kind", ["http", "sse"])
@pytest.mark.variants(1)
async def test_what_the_web_answers_instead_is_named_without_secrets(opened: Open, kind: str):
    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
        await writer.drain()
        writer.close()

    listening = await asyncio.start_server(refuse, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    server = {
        "type": kind,
        "url": f"http://ann:secret@127.0.0.1:{port}/x?key=secret",
        "headers": {"Authorization": "Bearer secret"},
    }
    async with listening, opened({"locked": server}, "Hello.") as it:
        await it.prompt()
        [notice] = it.client.notices
        shown = await it.prompt("/mcp")
    assert notice.startswith("the MCP server 'locked' could not be connected: ")
    assert notice.endswith("; it answered HTTP 401 (Unauthorized)")
    assert f"locked ({kind}, http://127.0.0.1:{port}/x, from settings): failed" in shown
    assert "secret" not in notice + shown + text_of(it.session.messages[-1].get("content"))
