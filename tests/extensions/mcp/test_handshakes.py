"""The newest handshake first, then the older ones; what a server is known for is remembered."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.extensions.mcp.conftest import SERVERS, Open, Table, pids
from tests.extensions.mcp.test_transports import described, end, start

from crow.testing import call

Raw = Callable[..., Table]
CALL = [call("mcp__s__echo", x=1), "Done."]
LIFE = {"ttlMs": 0, "cacheScope": "private"}
DISCOVERED = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}
ECHO = {"name": "echo", "description": "A tool.", "inputSchema": {"type": "object"}}
OLD = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}}
TEXT = {"content": [{"type": "text", "text": "here"}]}
NEW_ONLY = {"code": -32022, "message": "No", "data": {"supported": ["2026-07-28"]}}


def asked(trace: Path) -> list[str]:
    """The methods that a process was asked for."""
    lines = trace.read_text().splitlines()
    return [line.removeprefix("asked ") for line in lines if line.startswith("asked ")]


@pytest.mark.parametrize("spec", [{}, {"modern": True}, {"discover": "exit"}, {"noise": "Hello!"}])
async def test_a_process_of_either_protocol_gives_its_tools(
    opened: Open, raw: Raw, trace: Path, spec: Table
):
    async with opened({"s": raw(**spec)}, *CALL) as it:
        await it.prompt()
        assert '{"x": 1}' in it.results[0]
        assert it.client.notices == []
        assert asked(trace)[0] == "server/discover"


async def test_a_process_that_is_silent_to_the_newest_handshake_gets_the_older_one(
    opened: Open, raw: Raw
):
    server = raw(discover="silent")
    async with opened({"s": server}, *CALL, connect_timeout=3.0) as it:
        await it.prompt()
        assert '{"x": 1}' in it.results[0]


@pytest.mark.parametrize("modern", [True, False])
async def test_the_older_handshake_can_be_wanted_first(
    opened: Open, raw: Raw, trace: Path, modern: bool, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("MCP_PROTOCOL_NEGOTIATION", "legacy")
    async with opened({"s": raw(modern=modern)}, *CALL) as it:
        await it.prompt()
        assert '{"x": 1}' in it.results[0]
        assert asked(trace)[0] == "initialize"


@pytest.mark.slow
@pytest.mark.parametrize("modern", [True, False])
async def test_a_process_that_starts_slowly_is_understood_in_the_end(
    opened: Open, raw: Raw, trace: Path, modern: bool
):
    async with opened({"s": raw(delay=4, modern=modern)}, *CALL) as it:
        await it.prompt()
        assert '{"x": 1}' in it.results[0]
        assert asked(trace)[:2] == ["server/discover", "initialize"]
        assert len(pids(trace)) == 1


async def test_what_a_server_speaks_is_remembered_for_the_next_session(
    opened: Open, raw: Raw, trace: Path, tmp_path: Path
):
    async with opened({"s": raw()}, *CALL, *CALL) as it:
        await it.prompt()
        later = await it.agent.new_session(tmp_path)
        await it.agent.prompt(later, "Go on.")
        assert asked(trace).count("server/discover") == 1
        assert asked(trace).count("initialize") == 2


async def test_a_server_that_was_replaced_by_a_newer_one_is_asked_anew(
    opened: Open, raw: Raw, tmp_path: Path
):
    spec = tmp_path / "spec.json"
    spec.write_text("{}")
    program = f'exec {sys.executable} -SE {SERVERS / "raw.py"} "$(cat {spec})"'
    server = {"command": "sh", "args": ["-c", program]}
    async with opened({"s": server}, *CALL, *CALL) as it:
        await it.prompt()
        spec.write_text('{"modern": true}')
        later = await it.agent.new_session(tmp_path)
        await it.agent.prompt(later, "Go on.")
        assert list(later.tools) == ["mcp__s__echo"]


class Web:
    """A web server by hand, and what it was asked."""

    def __init__(self, **spec: Any) -> None:
        command = [sys.executable, str(SERVERS / "web.py"), json.dumps(spec)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        url = f"http://127.0.0.1:{self.process.stdout.readline().strip()}/mcp"
        self.described = {"type": "http", "url": url}

    def requests(self) -> list[dict[str, Any]]:
        """All requests; the server ends."""
        self.process.terminate()
        assert self.process.stdout is not None
        return [json.loads(line) for line in self.process.stdout]


@pytest.fixture
def web() -> Iterator[Callable[..., Web]]:
    running: list[Web] = []

    def serve(**spec: Any) -> Web:
        running.append(Web(**{key.replace("_", "/"): answers for key, answers in spec.items()}))
        return running[-1]

    yield serve
    for each in running:
        end(each.process)


def modern(*tools: Table, **more: Any) -> dict[str, Any]:
    """What a server of the newest protocol answers."""
    listed = {"tools": list(tools) or [ECHO], "resultType": "complete", **LIFE}
    found = {**DISCOVERED, "resultType": "complete", **LIFE}
    return {
        "initialize": [{"status": 400, "error": NEW_ONLY}],
        "server_discover": [{"result": found}],
        "tools_list": [{"result": listed}],
        "tools_call": [{"result": {**TEXT, "resultType": "complete"}}],
        **more,
    }


def old(**more: Any) -> dict[str, Any]:
    """What a server of an older protocol answers."""
    about = {"serverInfo": {"name": "old", "version": "1"}}
    return {
        "initialize": [{"result": {**OLD, **about}}],
        "tools_list": [{"result": {"tools": [ECHO]}}],
        "tools_call": [{"result": TEXT}],
        **more,
    }


@pytest.mark.parametrize(
    "spec",
    [
        modern(),
        modern(
            server_discover=[{"result": DISCOVERED}], tools_list=[{"result": {"tools": [ECHO]}}]
        ),
        modern(tools_call=[{"result": TEXT}]),
        modern(tools_call=[{"body": f'{{"jsonrpc":"2.0","id":ID,"result":{json.dumps(TEXT)}}}'}]),
        old(),
        old(server_discover=[{"status": 400, "type": "text/plain", "body": "No session"}]),
        old(server_discover=[{"status": 405}]),
        old(server_discover=[{"status": 500}]),
        old(server_discover=[{"error": {"code": -32601, "message": "Method not found"}}]),
        old(
            server_discover=[
                {"result": {**DISCOVERED, "supportedVersions": ["2025-06-18"], **LIFE}}
            ]
        ),
        old(server_discover=[{"result": {"what": "is this"}}]),
        old(server_discover=[{"status": 202}]),
    ],
)
@pytest.mark.variants(6)
async def test_a_web_server_of_either_protocol_gives_its_tools(
    opened: Open, web: Callable[..., Web], spec: dict[str, Any]
):
    server = web(**spec)
    async with opened({"s": server.described}, *CALL) as it:
        await it.prompt()
        assert it.results == ['<mcp-data server="s">\nhere\n</mcp-data>']
        assert it.client.notices == []
    first, *rest = server.requests()
    assert first["method"] == "server/discover"
    assert first["headers"]["mcp-protocol-version"] == "2026-07-28"
    called = next(each for each in rest if each["method"] == "tools/call")
    if "initialize" in spec and "status" not in spec["initialize"][0]:
        assert called["headers"]["mcp-protocol-version"] == "2025-06-18"
    else:
        assert "initialize" not in [each["method"] for each in rest]
        assert called["headers"]["mcp-name"] == "echo"
        assert called["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] == "2026-07-28"


@pytest.mark.slow
async def test_a_server_of_the_oldest_transport_is_found_behind_the_type_http(opened: Open):
    process = start("sse")
    try:
        server = {**described("sse", process), "type": "http"}
        async with opened({"full": server}, call("mcp__full__add", a=1, b=1), "Done.") as it:
            await it.prompt()
            assert it.results == ['<mcp-data server="full">\n2\n</mcp-data>']
    finally:
        end(process)


async def test_of_several_ways_that_fail_the_first_is_told(opened: Open, web: Callable[..., Web]):
    server = web(GET=[{"status": 418}])
    async with opened({"s": server.described}, "Hello.") as it:
        await it.prompt()
        [notice] = it.client.notices
        assert "could not be connected" in notice
        assert "404" in notice


async def test_arguments_go_into_headers_and_tools_that_want_it_wrongly_are_left_out(
    opened: Open, web: Callable[..., Web]
):
    def tool(name: str, **told: Any) -> Table:
        return {"name": name, "inputSchema": {"type": "object", "properties": {"x": told}}}

    bad = tool("bad", **{"type": "number", "x-mcp-header": "X"})
    good = tool("echo", **{"type": "integer", "x-mcp-header": "X"})
    server = web(**modern(bad, good))
    async with opened({"s": server.described}, *CALL) as it:
        await it.prompt()
        assert it.tools() == ["mcp__s__echo"]
        [notice] = it.client.notices
        assert notice.startswith("the tool 'bad' of the MCP server 's' is left out: ")
    called = next(each for each in server.requests() if each["method"] == "tools/call")
    assert called["headers"]["mcp-param-x"] == "1"


async def test_what_is_wanted_before_an_answer_goes_back_with_the_state_as_it_came(
    opened: Open, web: Callable[..., Web]
):
    wanted = {
        "resultType": "input_required",
        "requestState": "\u00fc==",
        "inputRequests": {"folders": {"method": "roots/list"}},
    }
    done = {**TEXT, "resultType": "complete"}
    server = web(**modern(tools_call=[{"result": wanted}, {"result": done}]))
    async with opened({"s": server.described}, *CALL) as it:
        await it.prompt()
        assert "here" in it.results[0]
    first, second = [each for each in server.requests() if each["method"] == "tools/call"]
    assert first["id"] != second["id"]
    assert second["params"]["requestState"] == "\u00fc=="
    assert list(second["params"]["inputResponses"]) == ["folders"]


@pytest.mark.parametrize(
    "answer, why",
    [
        ({"body": "{", "status": 200}, "JSON"),
        (
            {
                "body": '{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"text","text":"\\ud800"}]}}'
            },
            "",
        ),
        ({"body": '{"jsonrpc":"2.0","id":4711,"result":{}}'}, "a request that was not made: 4711"),
        ({"body": "hello", "type": "text/plain"}, "content type"),
        ({"status": 202}, "202"),
        ({"body": "event: message\ndata: {\n\n", "type": "text/event-stream"}, "parse"),
        ({"body": "", "type": "text/event-stream"}, "went away during the call"),
        ({"status": 500}, "error response"),
    ],
)
@pytest.mark.variants(3)
async def test_a_broken_answer_of_the_web_fails_the_call_at_once(
    opened: Open, web: Callable[..., Web], answer: dict[str, Any], why: str
):
    server = web(**modern(tools_call=[answer]))
    async with opened({"s": server.described}, *CALL, call_timeout=3600.0) as it:
        assert await it.prompt() == "Done."
        assert it.results[0].startswith("the MCP server 's' ")
        assert why in it.results[0]
