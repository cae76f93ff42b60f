"""A session is told as what it was: each call with its hooks, who decided, and what they changed."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.view.conftest import session_of

from crow.view.document import document
from crow.view.export import without_secrets
from crow.view.markdown import html


def calls(made: dict[str, Any]) -> list[dict[str, Any]]:
    return [entry for entry in made["entries"] if entry["kind"] == "call"]


@pytest.mark.parametrize(
    "lines", ["file", pytest.param("postgres", marks=pytest.mark.slow)], indirect=True
)
async def test_a_call_has_its_hooks_its_decision_and_what_was_asked_for(lines: str) -> None:
    made = document(lines)
    allowed, denied = calls(made)
    assert (allowed["asked"], allowed["args"]) == ({"word": "hi"}, {"word": "hello"})
    assert (allowed["outcome"], allowed["output"]) == ("ok", "HELLO")
    assert [(each["verdict"], each["reason"]) for each in allowed["decisions"]] == [
        ("allow", "a word")
    ]
    assert any(each.get("changed") == {"args": {"word": "hello"}} for each in allowed["hooks"])
    assert (denied["outcome"], denied["decisions"][0]["verdict"]) == ("denied", "deny")
    kinds = [entry["kind"] for entry in made["entries"]]
    assert [kind for kind in kinds if kind != "hooks"] == [
        "prompt", "answer", "call", "request", "call", "answer", "request",
    ]  # fmt: skip
    (first, _) = [entry for entry in made["entries"] if entry["kind"] == "request"]
    assert (first["last"]["total_tokens"], first["context"] > 0) == (100, True)


async def test_damaged_and_unknown_records_are_passed_over(lines: str) -> None:
    head, *rest = lines.splitlines()
    odd = [
        {"seq": 900, "segment": 0, "kind": "message", "at": 1.0, "data": None},
        {"seq": 901, "segment": 0, "kind": "message", "at": 1.0, "data": {"role": 3}},
        {"seq": 902, "segment": 0, "kind": "of the future", "at": 1.0, "data": {"x": 1}},
        {"seq": 903, "segment": 0, "kind": "result", "at": 1.0, "data": {"call_id": "c"}},
    ]
    more = document("\n".join([head, *map(json.dumps, odd), *rest]))
    known = document(lines)
    assert [e for e in more["entries"] if e["seq"] < 900] == known["entries"]
    assert len(more["entries"]) - len(known["entries"]) <= 2


@pytest.mark.parametrize(
    "text",
    [
        "<script>x</script>",
        "<img src=x onerror=x>",
        "![a](https://example.org/a.png)",
        "[a](javascript:x)",
        "[a](data:text/html,x)",
        "<svg/onload=x>",
    ],
)
def test_what_was_written_can_do_nothing(text: str) -> None:
    made = html(text)
    for harm in ("<script", "<img", "<svg", 'href="javascript', 'href="data'):
        assert harm not in made


def test_what_is_secret_is_taken_out_and_counted() -> None:
    text = "key sk-ant-abcdefghijklmnopqrstuvwx and AKIAABCDEFGHIJKLMNOP postgres://me:hunter2@db/x mine"
    clean, hidden = without_secrets(text, ["mine"])
    assert clean == "key (hidden) and (hidden) postgres://(hidden)@db/x (hidden)"
    assert sum(hidden.values()) == 4


def test_a_long_session_is_made_in_time_that_grows_with_it() -> None:
    assert len(calls(document(session_of(500)))) == 500
