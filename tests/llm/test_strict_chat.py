"""The strict double of chat completions refuses what endpoints refuse."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest

from crow.testing import StrictChat
from crow.testing.chat import RULES, THOUGHT, use

HELLO: Any = {"role": "user", "content": "hello"}
CALL: Any = {"role": "assistant", "content": None, "tool_calls": [use("ls", "c1")]}
RESULT: Any = {"role": "tool", "tool_call_id": "c1", "content": "a b"}
LONG: Any = {**CALL, "tool_calls": [use("ls", "c" * 41)]}
SIGNED: Any = {**CALL, "tool_calls": [use("ls", "c1", "c2ln")]}
SAID: Any = {"role": "assistant", "content": "Hi.", THOUGHT: "Hm."}
PICTURE: Any = [{"type": "image_url", "image_url": {"url": "data:image/png;base64,YQ=="}}]

WRONG = (
    ("C00", [{**HELLO, "written": []}], "written: Extra inputs"),
    ("C00", [{**SAID, "origin": "here"}], "origin: Extra inputs"),
    ("C03", [HELLO, CALL], "did not have response messages: c1"),
    ("C03", [HELLO, CALL, HELLO, RESULT], "did not have response messages: c1"),
    ("C04", [LONG, {**RESULT, "tool_call_id": "c" * 41}], "one of 41"),
    ("C05", [HELLO, {**SAID, THOUGHT: "Ha."}], "must be passed back"),
    ("C05", [HELLO, {"role": "assistant", "content": "Hi."}], "must be passed back"),
    ("C11", [HELLO, CALL, {**RESULT, "content": PICTURE}], "unknown variant"),
    ("C17", [HELLO, RESULT], "must follow a message"),
    ("C18", [HELLO, {**SAID, "content": "Ho."}], "another model"),
    ("C18", [HELLO, SIGNED, RESULT], "another model"),
)


@pytest.mark.parametrize(("rule", "messages", "words"), WRONG)
async def test_a_wrong_request_is_refused(rule: str, messages: list[Any], words: str) -> None:
    async with StrictChat() as endpoint, httpx2.AsyncClient() as client:
        endpoint.say("Hi.", thought="Hm.")
        url = f"{endpoint.url}/chat/completions"
        answered = await client.post(url, json={"model": "m", "messages": messages})
        assert answered.status_code == 400
        assert words in answered.json()["error"]["message"]
        assert endpoint.refused == [rule]
        right = await client.post(url, json={"model": "m", "messages": [HELLO, SAID, HELLO]})
        assert "Hm." in right.text


def test_every_rule_has_a_wrong_request() -> None:
    assert {rule.id for rule in RULES} == {row[0] for row in WRONG}
