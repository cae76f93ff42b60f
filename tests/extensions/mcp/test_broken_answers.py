"""Answers that cannot be read: each fails its call at once and by name, or is mended."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.extensions.mcp.conftest import Open, Table

from crow.testing import call

Raw = Callable[..., Table]
TEXT = '"content":[{"type":"text","text":"%s"}]'


def answer(text: str) -> str:
    return '{"jsonrpc":"2.0","id":ID,"result":{' + TEXT % text + "}}"


@pytest.mark.parametrize(
    "line, told",
    [
        (answer(r"a\ud800b"), "a\ufffdb"),
        (answer(r"\udc00\ud800"), "\ufffd\ufffd"),
        (answer(r"\ud83d\ude00"), "\U0001f600"),
        ('{"result":{"structuredContent":{"a":NaN},"content":[]},"jsonrpc":"2.0","id":ID}', "null"),
        (
            '{"result":{"structuredContent":{"a":1e999},"content":[]},"jsonrpc":"2.0","id":ID}',
            "null",
        ),
    ],
)
@pytest.mark.variants(2)
async def test_what_is_nearly_json_is_mended(opened: Open, raw: Raw, line: str, told: str):
    async with opened({"s": raw(call="lines", lines=[line])}, call("mcp__s__echo"), "Done.") as it:
        await it.prompt()
        assert told in it.results[0]
        json.dumps(it.session.messages, ensure_ascii=False, allow_nan=False).encode()


@pytest.mark.parametrize(
    "line, why",
    [
        ('{"jsonrpc":"2.0","id":ID,"result":{"content":[', "no JSON"),
        ('{"result":{"content":[}],"jsonrpc":"2.0","id":ID}', "no JSON"),
        ('{"id":ID,"jsonrpc":"2.0","result":' + "[" * 3000 + "]" * 3000 + "}", "no JSON"),
        ('{"jsonrpc":"2.0","id":ID,"result":"text"}', "no JSON-RPC answer"),
        ('{"jsonrpc":"2.0","id":ID,"result":null}', "no JSON-RPC answer"),
        ('{"jsonrpc":"2.0","id":ID}', "no JSON-RPC answer"),
        ('{"jsonrpc":"2.0","id":ID,"error":"bad"}', "no JSON-RPC answer"),
        ('{"jsonrpc":"1.0","id":ID,"result":{}}', "no JSON-RPC answer"),
        ('{"jsonrpc":"2.0","id":"no","result":{}}', "a request that was not made: 'no'"),
        ('{"jsonrpc":"2.0","id":99999,"result":{}}', "a request that was not made: 99999"),
        (
            '{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Eh?"}}',
            "Eh? (error -32700)",
        ),
        ('{"jsonrpc":"2.0","id":ID,"result":{"content":"text"}}', "answer is malformed"),
        ('{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"text","text":7}]}}', "malformed"),
    ],
)
@pytest.mark.variants(5)
async def test_what_cannot_be_mended_fails_the_call_at_once_and_by_name(
    opened: Open, raw: Raw, line: str, why: str
):
    servers = {"s": raw(call="lines", lines=[line])}
    async with opened(servers, call("mcp__s__echo"), "Done.", call_timeout=3600.0) as it:
        assert await it.prompt() == "Done."
        [told] = it.results
        assert told.startswith("the MCP server 's' refused: ")
        assert why in told


async def test_an_answer_under_an_id_in_quotes_is_an_answer(opened: Open, raw: Raw):
    line = answer("here").replace("ID", '"ID"')
    async with opened({"s": raw(call="lines", lines=[line])}, call("mcp__s__echo"), "Done.") as it:
        await it.prompt()
        assert "here" in it.results[0]


async def test_an_answer_that_comes_too_late_fails_no_other_call(opened: Open, raw: Raw):
    late = answer("late").replace("ID", "1")
    servers = {"s": raw(call="lines", lines=[late, answer("mine")])}
    async with opened(servers, call("mcp__s__echo"), "Done.") as it:
        await it.prompt()
        assert "mine" in it.results[0]


@pytest.mark.slow
@settings(
    max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(cut=st.integers(1, 200), junk=st.text(st.characters(exclude_characters="\r\n"), max_size=9))
async def test_no_broken_line_makes_a_call_wait(opened: Open, raw: Raw, cut: int, junk: str):
    """However an answer is damaged behind its id, the call is over at once."""
    line = '{"jsonrpc":"2.0","id":ID,' + answer("x" * 200)[25:][:-cut] + junk
    servers = {"s": raw(call="lines", lines=[line])}
    async with opened(servers, call("mcp__s__echo"), "Done.", call_timeout=3600.0) as it:
        assert await it.prompt() == "Done."
