"""What a client can get wrong: none of it ends the connection, none of it goes unanswered (C05, C06)."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.properties import examples

from crow import Agent
from crow.acp.jsonrpc import LIMIT, Lines, Oversized, decode, encode
from crow.testing import FakeEditor, ScriptedModel

ANSWERED: list[tuple[bytes, int, Any]] = [
    (b"garbage", -32700, None),
    (b'{"jsonrpc":"2.0","id":1,"method":', -32700, None),
    (b"\xff\xfe", -32700, None),
    (b"[" * 100_000, -32700, None),
    (b"7", -32600, None),
    (b"null", -32600, None),
    (b"[]", -32600, None),
    (b'[{"jsonrpc":"2.0","id":7,"method":"session/list"}]', -32600, None),
    (b"{}", -32600, None),
    (b'{"jsonrpc":"2.0","id":7}', -32600, 7),
    (b'{"jsonrpc":"1.0","id":7,"method":"session/list"}', -32600, 7),
    (b'{"id":"seven","method":"session/list"}', -32600, "seven"),
    (b'{"jsonrpc":"2.0","id":7,"method":7}', -32600, 7),
    (b'{"jsonrpc":"2.0","id":true,"method":"session/list"}', -32600, None),
    (b'{"jsonrpc":"2.0","id":[7],"method":"session/list"}', -32600, None),
    (b'{"jsonrpc":"2.0","id":1.5,"method":"session/list"}', -32600, None),
    (b'{"jsonrpc":"2.0","id":7,"method":"session/new","params":[]}', -32602, 7),
    (b'{"jsonrpc":"2.0","id":7,"method":"session/new"}', -32602, 7),
    (b'{"jsonrpc":"2.0","id":7,"method":"session/new","params":{"cwd":7}}', -32602, 7),
    (b'{"jsonrpc":"2.0","id":7,"method":"session/prompt","params":{"sessionId":"x"}}', -32602, 7),
    (b'{"jsonrpc":"2.0","id":7,"method":"initialize"}', -32602, 7),
    (b'{"jsonrpc":"2.0","id":7,"method":"initialize","params":{"protocolVersion":{}}}', -32602, 7),
    (b'{"jsonrpc":"2.0","id":7,"method":"no/such","params":{}}', -32601, 7),
    (b'{"jsonrpc":"2.0","id":"x","method":"_vendor/thing","params":{}}', -32601, "x"),
    (b'{"jsonrpc":"2.0","id":7,"method":"session/cancel","params":{"sessionId":"x"}}', -32601, 7),
    (
        (
            b'{"jsonrpc":"2.0","id":7,"method":"session/prompt","params":'
            b'{"sessionId":"x","prompt":[{"type":"text","text":"Hi"}]}}'
        ),
        -32002,
        7,
    ),
]
IGNORED = [
    b"",
    b"  ",
    b'{"jsonrpc":"2.0","method":"no/such"}',
    b'{"jsonrpc":"2.0","method":"_vendor/thing","params":{}}',
    b'{"jsonrpc":"2.0","method":"session/cancel"}',
    b'{"jsonrpc":"2.0","method":"session/cancel","params":[]}',
    b'{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":{}}}',
    b'{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":[1]}}',
    b'{"jsonrpc":"2.0","id":999,"result":{}}',
    b'{"jsonrpc":"2.0","id":[1],"result":{}}',
    b'{"jsonrpc":"2.0","id":"0","error":"broken"}',
    b'{"jsonrpc":"2.0","id":0,"error":7}',
    b'{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}',
]


async def next_after(editor: FakeEditor, lines: bytes) -> dict[str, Any]:
    """The next message after these lines."""
    count = len(editor.wire.received)
    await editor.wire.write(lines)
    await editor.wire.until(lambda: len(editor.wire.received) > count)
    return editor.wire.received[count]


@pytest.mark.parametrize(("line", "code", "request_id"), ANSWERED, ids=lambda v: str(v)[:60])
async def test_it_is_answered_with_the_right_error(
    tmp_path: Path, line: bytes, code: int, request_id: Any
) -> None:
    editor = FakeEditor()
    async with editor.connected(Agent(llm=ScriptedModel("fine"))):
        answer = await next_after(editor, line + b"\n")
        assert (answer["error"]["code"], answer["id"]) == (code, request_id)
        assert "jsonrpc" in answer
        await editor.prompt(await editor.new_session(tmp_path), "Still there?")
        assert editor.text() == "fine"


async def test_what_wants_no_answer_gets_none(tmp_path: Path) -> None:
    probe = b'{"jsonrpc":"2.0","id":"probe","method":"no/such"}'
    editor = FakeEditor()
    async with editor.connected(Agent(llm=ScriptedModel("fine"))):
        answer = await next_after(editor, b"\n".join([*IGNORED, probe]) + b"\n")
        assert answer["id"] == "probe"
        await editor.prompt(await editor.new_session(tmp_path), "Still there?")
        assert editor.text() == "fine"


async def test_text_and_number_ids_come_back_as_they_were() -> None:
    editor = FakeEditor()
    async with editor.connected(Agent(llm=ScriptedModel())):
        for request_id in ("a", "1", 1, 0, -5, 2**60):
            request = {"jsonrpc": "2.0", "id": request_id, "method": "no/such"}
            assert (await next_after(editor, encode(request)))["id"] == request_id


async def test_meta_of_a_request_cannot_pass_for_its_parameters(tmp_path: Path) -> None:
    meta = {"cwd": "/etc", "self": 1, "traceparent": "00-x"}
    editor = FakeEditor()
    agent = Agent(llm=ScriptedModel())
    async with editor.connected(agent):
        params = {"cwd": str(tmp_path), "mcpServers": [], "_meta": meta}
        opened = await editor.wire.request("session/new", params)
        assert agent.sessions[opened["result"]["sessionId"]].cwd == str(tmp_path)


async def test_a_prompt_of_16_mebibytes_is_taken(tmp_path: Path) -> None:
    model = ScriptedModel("fine")
    editor = FakeEditor()
    async with editor.connected(Agent(llm=model)):
        session = await editor.new_session(tmp_path)
        await editor.prompt(session, "x" * 16 * 2**20)
    assert len(str(model.asked[0]["messages"][0]["content"])) == 16 * 2**20


@pytest.mark.parametrize(
    "line",
    [
        b'{"jsonrpc":"2.0","id":7,"method":"session/prompt","params":{"x":"%s"}}',
        b'{"params":{"id":5,"x":"%s"},"jsonrpc":"2.0","method":"session/prompt","id":7}',
    ],
)
async def test_a_line_that_is_too_long_is_skipped_and_answered(tmp_path: Path, line: bytes) -> None:
    editor = FakeEditor()
    async with editor.connected(Agent(llm=ScriptedModel("fine"))):
        answer = await next_after(editor, line % (b"x" * LIMIT) + b"\n")
        assert (answer["error"]["code"], answer["id"]) == (-32600, 7)
        await editor.prompt(await editor.new_session(tmp_path), "Still there?")
        assert editor.text() == "fine"


@given(
    lines=st.lists(st.binary(max_size=40).filter(lambda b: b"\n" not in b)),
    cuts=st.lists(st.integers(0, 400)),
)
def test_lines_come_out_as_they_went_in_however_the_stream_is_cut(
    lines: list[bytes], cuts: list[int]
) -> None:
    stream = b"".join(line + b"\n" for line in lines)
    edges = [0, *sorted(cut for cut in cuts if cut < len(stream)), len(stream)]
    reader = Lines(limit=30)
    pieces = [stream[a:b] for a, b in pairwise(edges)]
    found = [line for piece in pieces for line in reader.feed(piece)]
    assert [isinstance(line, Oversized) for line in found] == [len(line) > 30 for line in lines]
    kept = [line for line in found if isinstance(line, bytes)]
    assert kept == [line for line in lines if len(line) <= 30]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["jsonrpc", "id", "method", "params", "result", "error", "code"]),
            inner | st.sampled_from(["2.0", "session/prompt", "initialize"]),
            max_size=5,
        )
    ),
    max_leaves=10,
)


@given(value=JSON)
@settings(max_examples=examples(300))
def test_whatever_is_json_is_a_message_a_failure_or_nobodys_answer(value: Any) -> None:
    message, failure = decode(json.dumps(value).encode())
    assert message is None or failure is None
    if failure is not None:
        assert failure["error"]["code"] in (-32600, -32602)
    if message is not None:
        assert "method" in message or isinstance(message["id"], int)
