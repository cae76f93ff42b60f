"""Whether a value is what an annotation says."""

from __future__ import annotations

from typing import Any

import pytest

from crow.core.cache import Key
from crow.core.messages import Message, ToolCall
from crow.core.ports.client import Client
from crow.core.support.frozen import kept
from crow.core.support.validation import check, fits

CALL: Any = {"id": "1", "type": "function", "function": {"name": "Read", "arguments": "{}"}}


def test_what_cannot_change_is_looked_through_once_for_each_type():
    message = kept({"role": "assistant", "content": "", "tool_calls": [CALL]})
    assert fits(Message)(message)
    assert not fits(ToolCall)(message)
    assert fits(Message)(message)
    assert fits(list[Message])([message, {"role": "user", "content": "Hi"}])


@pytest.mark.parametrize("wrong", [{"role": 1}, {"role": "assistant", "tool_calls": [{"id": 1}]}])
def test_what_does_not_fit_never_fits(wrong: Any):
    for message in (wrong, kept(wrong)):
        assert not fits(Message)(message)
        assert not fits(list[Message])([message])


def test_a_copy_that_was_changed_is_looked_through_again():
    message: Any = kept({"role": "user", "content": "Hi"})
    assert fits(Message)(message)
    assert not fits(Message)({**message, "role": 1})
    assert not fits(Message)(kept({**message, "role": 1}))


def test_a_key_may_be_more_than_a_text_and_must_be_one():
    assert fits(Message)({Key("role"): "user", Key("content"): "Hi"})
    assert not fits(Message)({"role": "user", 1: "Hi"})


def test_what_lacks_a_member_is_told_which():
    class Half:
        files = terminals = None

        async def update(self, session_id: str, event: Any) -> None: ...

    said = r"client must be Client, not an instance of .*Half, which has no permission$"
    with pytest.raises(TypeError, match=said):
        check("client", Half(), Client)
    with pytest.raises(TypeError, match=r"client must be Client, not 3$"):
        check("client", 3, Client)
