"""`crow run` and its MCP servers: it waits for them, says so, and goes on without those that fail."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Crow, calls

from crow.testing.endpoint import Endpoint, answer

RAW = Path(__file__).parents[1] / "extensions/mcp/servers/raw.py"


def configure(crow: Crow, timeout: float = 50.0, **servers: dict[str, Any]) -> None:
    """Put servers by hand into the user's settings."""
    table = {
        name: {"command": sys.executable, "args": ["-SE", str(RAW), json.dumps(spec)]}
        for name, spec in servers.items()
    }
    path = crow.cwd / "settings.json"
    extensions = {"mcp": {"connect_timeout": timeout}}
    path.write_text(json.dumps({"mcpServers": table, "extensions": extensions}))


def settings(crow: Crow) -> tuple[str, str]:
    return "--settings", str(crow.cwd / "settings.json")


@pytest.mark.parametrize("as_json", [False, pytest.param(True, marks=pytest.mark.slow)])
async def test_the_first_request_waits_for_a_slow_server_and_says_so(
    crow: Crow, endpoint: Endpoint, tmp_path: Path, as_json: bool
) -> None:
    gate = tmp_path / "gate"
    configure(crow, slow={"gate": str(gate)}, good={})
    endpoint.play(calls(("mcp__slow__echo", {"x": 1})), answer("Done."))
    more = ["--json"] if as_json else []
    argv = ["run", *settings(crow), "--allow", "mcp__slow", *more, "Use it."]
    process = await crow.start(*argv)
    assert process.stderr is not None
    assert process.stdout is not None
    said = process.stdout if as_json else process.stderr
    line = ""
    while "waiting" not in line:
        line = (await said.readline()).decode()
        assert line
    assert "waiting for the MCP server" in line
    assert "'slow'" in line
    assert ", for up to 50 s" in line
    assert endpoint.requests == []
    gate.touch()
    await process.communicate()
    assert process.returncode == 0
    names = [tool["function"]["name"] for tool in endpoint.requests[0].body["tools"]]
    assert {"mcp__slow__echo", "mcp__good__echo"} <= set(names)
    assert '{"x": 1}' in endpoint.requests[1].body["messages"][-1]["content"]


@pytest.mark.slow
async def test_a_server_that_does_not_come_is_named_and_the_run_goes_on(
    crow: Crow, endpoint: Endpoint
) -> None:
    configure(crow, 5.0, mute={"init": "silent"}, bad={"exit": 3}, good={})
    endpoint.play(answer("Hello."))
    ended = await crow("run", *settings(crow), "Hi.")
    assert (ended.status, ended.out) == (0, "Hello.\n")
    lines = ended.err.splitlines()
    assert any(line.startswith("waiting for the MCP server") and "'mute'" in line for line in lines)
    [mute] = [line for line in lines if "'mute' could" in line]
    assert mute.endswith("could not be connected: it did not answer within 5 s")
    [bad] = [line for line in lines if "'bad' could" in line]
    assert "it exited with status 3" in bad


@pytest.mark.slow
async def test_ctrl_c_works_while_it_waits(crow: Crow, endpoint: Endpoint) -> None:
    configure(crow, 3600.0, mute={"init": "silent"})
    process = await crow.start("run", *settings(crow), "Hi.")
    assert process.stderr is not None
    assert "waiting for the MCP server" in (await process.stderr.readline()).decode()
    process.send_signal(signal.SIGINT)
    async with asyncio.timeout(50):
        _, err = await process.communicate()
    assert process.returncode == 130
    assert "interrupted" in err.decode()
    assert endpoint.requests == []


async def test_a_server_whose_description_is_wrong_is_listed_with_the_reason(crow: Crow) -> None:
    told = {"command": "true", "env": {"KEY": "${NOT_SET_ANYWHERE}"}}
    path = crow.cwd / "settings.json"
    path.write_text(json.dumps({"mcpServers": {"lame": told}}))
    listed = await crow("mcp", "list", *settings(crow))
    assert listed.out.split(maxsplit=2) == [
        "lame",
        "invalid",
        "the environment has no NOT_SET_ANYWHERE\n",
    ]
    tried = await crow("mcp", "test", "lame", *settings(crow))
    assert tried.status == 1
    why = "crow: the MCP server lame is not there: the environment has no NOT_SET_ANYWHERE\n"
    assert tried.err == why


async def test_a_server_that_the_settings_deny_is_not_started_and_shown_with_the_reason(
    crow: Crow, endpoint: Endpoint, tmp_path: Path
) -> None:
    table = {"command": "touch", "args": [str(tmp_path / "started")]}
    denied = {"deniedMcpServers": [{"serverCommand": ["touch", str(tmp_path / "started")]}]}
    told = {"mcpServers": {"bad": table}, "extensions": {"mcp": {"wait": 0}}, **denied}
    (crow.cwd / "settings.json").write_text(json.dumps(told))
    endpoint.play(answer("Hello."))
    ended = await crow("run", *settings(crow), "Hi.")
    assert (ended.out, ended.err) == ("Hello.\n", "")
    listed = await crow("mcp", "list", "--json", *settings(crow))
    assert [(row["name"], row["state"]) for row in listed.events] == [("bad", "refused")]
    assert "deniedMcpServers" in listed.events[0]["why"]
    assert not (tmp_path / "started").exists()


async def test_a_server_that_an_administrator_does_not_allow_cannot_be_added(
    crow: Crow, tmp_path: Path
) -> None:
    managed = tmp_path / "managed"
    managed.mkdir()
    told = {"allowedMcpServers": [{"serverUrl": "https://*.example.com/*"}]}
    (managed / "managed-settings.json").write_text(json.dumps(told))
    crow.env["CROW_MANAGED"] = str(managed)
    refused = await crow("mcp", "add", "it", "https://example.org/mcp")
    assert refused.status == 1
    assert "may not be used: allowedMcpServers has it not" in refused.err
    assert not (Path.home() / ".crow/settings.json").exists()
    assert (await crow("mcp", "add", "it", "https://a.example.com/mcp")).status == 0
