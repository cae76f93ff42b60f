"""Which servers may be used: Claude Code's lists of what is allowed and denied."""

from __future__ import annotations

from typing import Any

import pytest

from crow.extensions.mcp.description import Description, described
from crow.extensions.mcp.policy import DENIED, NO_PLUGINS, NOT_ALLOWED, refusal
from crow.project import ServerPolicy

PROGRAM = {"command": "npx", "args": ["-y", "server"]}
REMOTE = {"url": "https://mcp.example.com/a/b"}
NAMED: dict[str, Any] = {"serverName": "it"}
COMMAND: dict[str, Any] = {"serverCommand": ["npx", "-y", "server"]}
OTHER_COMMAND: dict[str, Any] = {"serverCommand": ["npx", "server"]}
OTHER_URL: dict[str, Any] = {"serverUrl": "https://other.example.com/*"}


def server(told: dict[str, Any], source: str = "settings") -> Description:
    found = described("it", told, source, {"HOME": "/home/me"})
    assert found is not None
    return found


def url(pattern: str) -> dict[str, Any]:
    return {"serverUrl": pattern}


@pytest.mark.parametrize(
    ("told", "allowed", "denied", "why"),
    [
        (PROGRAM, None, [], ""),
        (PROGRAM, [], [], NOT_ALLOWED),
        (PROGRAM, [NAMED], [], ""),
        (PROGRAM, [NAMED, OTHER_COMMAND], [], NOT_ALLOWED),
        (PROGRAM, [NAMED, OTHER_URL], [], ""),
        (PROGRAM, [COMMAND], [], ""),
        (PROGRAM, [COMMAND], [NAMED], DENIED),
        (PROGRAM, None, [COMMAND], DENIED),
        (PROGRAM, None, [OTHER_COMMAND], ""),
        (PROGRAM, [{"serverName": "It"}], [], NOT_ALLOWED),
        (REMOTE, [NAMED, OTHER_COMMAND], [], ""),
        (REMOTE, [NAMED, OTHER_URL], [], NOT_ALLOWED),
        (REMOTE, None, [url("https://*.example.com/*")], DENIED),
        (REMOTE, None, [url("*://mcp.example.com/*")], DENIED),
        (REMOTE, None, [url("https://mcp.example.com")], DENIED),
        (REMOTE, None, [url("*.example.com")], DENIED),
        (REMOTE, None, [url("https://example.com/*")], ""),
        (REMOTE, None, [url("http://mcp.example.com/*")], ""),
        (REMOTE, None, [url("https://mcp.example.com/A/*")], ""),
        (REMOTE, None, [url("https://MCP.example.com./a/*")], DENIED),
        ({"url": "https://mcp.example.com:443/a"}, None, [url("https://mcp.example.com/*")], DENIED),
        ({"url": "https://MCP.EXAMPLE.COM./a"}, None, [url("https://mcp.example.com/*")], DENIED),
        ({"url": "http://localhost:8080/x"}, [url("http://localhost:*/*")], [], ""),
        ({"url": "http://localhost/x"}, [url("http://localhost:*/*")], [], ""),
        ({"url": "https://me@mcp.example.com/"}, None, [url("https://mcp.example.com/*")], DENIED),
        ({"url": "https://mcp.example.com@evil.com/"}, [url("https://mcp.example.com*")], [], NOT_ALLOWED),
        ({"url": "https://evil.com/?https://mcp.example.com/"}, [url("*mcp.example.com/*")], [], NOT_ALLOWED),
        ({"url": "https://a.com/ok/../no"}, [url("https://a.com/ok/*")], [], NOT_ALLOWED),
        ({"url": "https://a.com/ok/%2E%2e%2Fno"}, [url("https://a.com/ok/*")], [], NOT_ALLOWED),
    ],
)  # fmt: skip
def test_what_is_denied_goes_first_and_a_command_or_a_url_says_more_than_a_name(
    told: dict[str, Any],
    allowed: list[dict[str, Any]] | None,
    denied: list[dict[str, Any]],
    why: str,
) -> None:
    policy = ServerPolicy(None if allowed is None else tuple(allowed), tuple(denied))
    assert refusal(policy, server(told)) == why


def test_variables_of_the_environment_stand_in_rules_that_deny_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    monkeypatch.delenv("NOWHERE", raising=False)
    it = server({"command": "${HOME}/bin/server"})
    entry = {"serverCommand": ["${HOME}/bin/server"]}
    unknown = {"serverCommand": ["${NOWHERE}/bin/server"]}
    assert refusal(ServerPolicy(denied=(entry,)), it) == DENIED
    assert refusal(ServerPolicy((entry,)), it) == NOT_ALLOWED
    assert refusal(ServerPolicy((unknown,)), it) == NOT_ALLOWED
    assert refusal(ServerPolicy(denied=(unknown,)), it) == ""


def test_where_only_plugins_bring_servers_nobody_else_does() -> None:
    policy = ServerPolicy(only_plugins=True)
    assert refusal(policy, server(PROGRAM)) == ""  # the administrator's, and plugins'
    for source in ("client", "project", "~/.claude.json"):
        assert refusal(policy, server(PROGRAM, source)) == NO_PLUGINS
