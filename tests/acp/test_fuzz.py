"""Whatever a client writes: the connection lives, and each request has exactly one answer."""

from __future__ import annotations

import asyncio
import json
import sys
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from tests.properties import examples

from crow import Agent
from crow.core.events import TextDelta
from crow.core.ports.llm import Completion, Request
from crow.extensions.persistence import PersistenceHook
from crow.testing import FakeEditor
from crow.testing.wire import Wire

CROW = str(Path(sys.executable).with_name("crow"))
PATIENCE = 10
KNOWN = "<a session>"
"""Stands for the id of an open session."""
PLACE: dict[str, Any] = {"cwd": "/", "mcpServers": []}
TEXT = {"type": "text", "text": "Hi"}
BLOCKS = [
    TEXT,
    {"type": "image", "mimeType": "image/png", "data": "aGk="},
    {"type": "audio", "mimeType": "audio/wav", "data": "aGk="},
    {"type": "resource_link", "uri": "file:///a.txt", "name": "a.txt"},
    {"type": "resource", "resource": {"uri": "file:///a.txt", "text": "x"}},
]
SERVER = {"name": "s", "command": "/no/such/program", "args": [], "env": []}
VALID: dict[str, dict[str, Any]] = {
    "initialize": {"protocolVersion": 1, "clientCapabilities": {"fs": {}, "_meta": {}}},
    "authenticate": {"methodId": "environment"},
    "logout": {},
    "session/new": {**PLACE, "additionalDirectories": ["/"], "_meta": {"x": 1}},
    "session/load": {**PLACE, "sessionId": KNOWN},
    "session/resume": {**PLACE, "sessionId": KNOWN, "mcpServers": [SERVER]},
    "session/fork": {**PLACE, "sessionId": KNOWN},
    "session/list": {"cwd": "/", "cursor": None},
    "session/close": {"sessionId": KNOWN},
    "session/delete": {"sessionId": KNOWN},
    "session/set_title": {"sessionId": KNOWN, "title": "A title"},
    "session/set_mode": {"sessionId": KNOWN, "modeId": "plan"},
    "session/set_config_option": {"sessionId": KNOWN, "configId": "model", "value": "parrot"},
    "session/prompt": {"sessionId": KNOWN, "prompt": BLOCKS},
    "session/cancel": {"sessionId": KNOWN},
    "_session/steering": {"sessionId": KNOWN, "prompt": [TEXT]},
    "_session/take_pen": {"sessionId": KNOWN},
    "$/cancel_request": {"requestId": 1},
}

IDS = st.one_of(
    st.integers(-3, 3),
    st.integers(-(2**70), 2**70),
    st.sampled_from(["", "1", "a", "ä", "\x00", "x" * 300]),
    st.none(),
    st.floats(),
    st.booleans(),
    st.lists(st.integers(0, 1), max_size=1),
)
LEAVES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8), st.just(KNOWN),
    st.sampled_from(["\x00", "\ud800", "file://", "/", "../..", "9" * 400]),
)  # fmt: skip
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip
MEMBERS = st.sampled_from(["jsonrpc", "id", "method", "params", "result", "error"])


class Parrot:
    """A model that answers everything."""

    model = "parrot"
    context_window: int | None = None

    async def stream(self, request: Request) -> AsyncGenerator[TextDelta | Completion, None]:
        yield TextDelta("Hi", request.message_id)
        yield Completion("Hi")


@st.composite
def bent(draw: st.DrawFn, value: Any) -> Any:
    """A value in which something, at any depth, is another or is gone."""
    if not isinstance(value, dict | list) or not value or draw(st.integers(0, 3)) == 0:
        return draw(VALUES)
    key = draw(st.sampled_from(sorted(value) if isinstance(value, dict) else range(len(value))))
    changed = value.copy()
    if draw(st.integers(0, 4)) == 0:
        del changed[key]
    else:
        changed[key] = draw(bent(value[key]))
    return changed


@st.composite
def messages(draw: st.DrawFn) -> dict[str, Any]:
    """A message that is right or nearly right."""
    method = draw(st.sampled_from(sorted(VALID)) | st.sampled_from(["no/such", "_x", ""]))
    params = VALID.get(method, {})
    whole = {"jsonrpc": "2.0", "id": draw(IDS), "method": method, "params": params}
    if draw(st.booleans()):
        whole["params"] = draw(bent(params))
    if draw(st.integers(0, 4)) == 0:
        del whole["id"]
    if draw(st.integers(0, 4)) == 0:
        whole[draw(MEMBERS)] = draw(VALUES)
    return whole


@st.composite
def lines(draw: st.DrawFn) -> bytes:
    """A line: a message, a batch, one of which a byte is wrong, nesting, or noise."""
    written = json.dumps(draw(messages())).encode()
    at = draw(st.integers(0, len(written)))
    kinds: list[bytes] = [
        written,
        written,
        written,
        json.dumps(draw(VALUES)).encode(),
        b"[" + written + b"," + written + b"]",
        written[:at],
        written[:at] + draw(st.sampled_from([b"\x00", b"\xff", b"\xc3", b'"', b"}"])) + written[at:],
        b"[" * draw(st.sampled_from([2, 900, 100_000])),
        b'{"a":' * 2000 + b"1" + b"}" * 2000,
        draw(st.binary(max_size=30)).replace(b"\n", b"").replace(b"\r", b""),
    ]  # fmt: skip
    return draw(st.sampled_from(kinds))


def answered(line: bytes) -> list[str]:
    """The id that the answer to a line has, as JSON; nothing for one that wants none."""
    if not line.strip():
        return []
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return ["null"]
    if not isinstance(value, dict):
        return ["null"]
    if "method" not in value and ("result" in value or "error" in value):
        return []
    is_request = value.get("jsonrpc") == "2.0" and isinstance(value.get("method"), str)
    if is_request and "id" not in value:
        return []
    named = value.get("id")
    is_usable = isinstance(named, str | int) and not isinstance(named, bool)
    return [key(named) if is_usable else "null"]


def key(value: Any) -> str:
    """An id as the wire gives it back: half a surrogate pair cannot be written."""
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace").decode()


class Line:
    """A connection that is written to as it comes, and the answers that it owes."""

    def __init__(self, wire: Wire, cwd: Path) -> None:
        self.wire = wire
        self.cwd = cwd
        wire._methods.clear()  # its own ids are free for others now

    async def take(self, written: list[bytes]) -> None:
        """Write lines; each must be answered once, and a prompt after them as well."""
        wire = self.wire
        opened = await wire.request("session/new", {"cwd": str(self.cwd)})
        session = opened["result"]["sessionId"]
        named = [line.replace(KNOWN.encode(), session.encode()) for line in written]
        begin = len(wire.received)
        owed = Counter(name for line in named for name in answered(line))
        await wire.write(b"".join(line + b"\n" for line in named))
        with suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE):
                await wire.until(lambda: not owed - self._answers(begin))
        await self._fence()
        assert self._answers(begin) - Counter(self._own(begin)) == owed, named
        wire.received[:begin] = []

    def _answers(self, begin: int) -> Counter[str]:
        responses = [m for m in self.wire.received[begin:] if "method" not in m]
        return Counter(key(message["id"]) for message in responses)

    def _own(self, begin: int) -> list[str]:
        """The answers to what the fence asked."""
        ids = [m["id"] for m in self.wire.received[begin:] if "method" not in m]
        return [key(each) for each in ids if str(each).startswith("raw-")]

    async def _fence(self) -> None:
        """A whole conversation, after which nothing can be on its way."""
        wire = self.wire
        opened = await wire.request("session/new", {"cwd": str(self.cwd)})
        params = {"sessionId": opened["result"]["sessionId"], "prompt": [TEXT]}
        answer = await wire.request("session/prompt", params)
        assert answer["result"]["stopReason"] == "end_turn"


@pytest.fixture
async def connection(tmp_path: Path) -> AsyncIterator[Line]:
    """An agent in this process."""
    editor = FakeEditor()
    agent = Agent(llm=Parrot(), hooks=[PersistenceHook(tmp_path / "crow.db")])
    async with editor.connected(agent):
        yield Line(editor.wire, tmp_path)


@pytest.fixture
async def process(tmp_path: Path) -> AsyncIterator[Line]:
    """The command."""
    editor = FakeEditor()
    async with editor.spawned(CROW, "acp", cwd=tmp_path):
        yield Line(editor.wire, tmp_path)


FUZZ: dict[str, Any] = {
    "deadline": None,
    "suppress_health_check": [HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    "phases": [Phase.explicit, Phase.reuse, Phase.generate],  # an answer that is missing takes long
}


@settings(max_examples=examples(40), **FUZZ)
@given(written=st.lists(lines(), min_size=1, max_size=5))
async def test_every_request_has_one_answer_and_the_connection_lives(
    connection: Line, written: list[bytes]
) -> None:
    await connection.take(written)


@pytest.mark.slow
@pytest.mark.timeout(600)
@settings(max_examples=800, **FUZZ)
@given(written=st.lists(lines(), min_size=1, max_size=8))
async def test_every_request_has_one_answer_for_a_long_time(
    connection: Line, written: list[bytes]
) -> None:
    await connection.take(written)


@pytest.mark.slow
@pytest.mark.timeout(600)
@settings(max_examples=200, **FUZZ)
@given(written=st.lists(lines(), min_size=1, max_size=8))
async def test_every_request_to_the_command_has_one_answer(
    process: Line, written: list[bytes]
) -> None:
    await process.take(written)


@pytest.mark.slow
@settings(max_examples=15, **FUZZ)
@given(written=lines(), data=st.data())
async def test_half_a_line_and_the_end_of_input_is_the_end(
    tmp_path: Path, written: bytes, data: st.DataObject
) -> None:
    half = written[: data.draw(st.integers(0, len(written)))]
    pipe = asyncio.subprocess.PIPE
    ended = await asyncio.create_subprocess_exec(CROW, "acp", cwd=tmp_path, stdin=pipe, stdout=pipe)
    out, _ = await ended.communicate(half)
    assert ended.returncode == 0
    assert [key(json.loads(line)["id"]) for line in out.splitlines()] == answered(half)
