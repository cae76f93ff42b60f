"""A file of 4 MB is changed, shown and shown again, and no message is larger than a client takes."""

from __future__ import annotations

import json
import sqlite3
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.acp import large
from tests.npm import told_by
from tests.properties import examples

from crow import Agent, tool
from crow.acp.limits import LIMIT, bounded
from crow.core.tools import Diff, ToolResult
from crow.extensions.permissions import PermissionsHook
from crow.extensions.persistence import PersistenceHook
from crow.testing import FakeEditor, ScriptedModel, call

HERE = Path(__file__).parent
CROW = str(Path(sys.executable).with_name("crow"))
CHANGED = (f"line {large.LINE:>8} of", "another line of")


def sizes(editor: FakeEditor) -> list[int]:
    """How many bytes the messages had that an editor got."""
    return [len(json.dumps(one, ensure_ascii=False).encode()) for one in editor.wire.received]


def shows_the_change(diff: dict[str, Any]) -> bool:
    """True for a diff of the line that was changed, with lines around it, at its place."""
    old, new = diff["oldText"], diff["newText"]
    first = diff["_meta"]["crow"]["line"]
    at = old.split("\n").index(next(line for line in old.split("\n") if CHANGED[0] in line))
    return CHANGED[1] in new and first + at == large.LINE and len(old) < 1000


async def test_a_change_of_a_large_file_is_shown_in_small_messages_also_when_loaded(
    tmp_path: Path,
) -> None:
    path = large.make(tmp_path)
    first, later = FakeEditor(), FakeEditor()
    store = tmp_path / "crow.db"
    hooks = [large.around_llm_request, PermissionsHook()]
    seen: list[Any] = []

    def after_tool(ctx: Any) -> None:
        seen.append(ctx.result.data)

    agent = Agent(llm=ScriptedModel(), hooks=[*hooks, after_tool, PersistenceHook(store)])
    async with first.connected(agent):
        session = await first.new_session(tmp_path)
        await first.prompt(session, "Change it")
        (asked,) = first.asked
        edited = first.cards()[-1]
        assert max(sizes(first)) < LIMIT
    assert path.read_text().count(CHANGED[1]) == 1
    assert len(seen[-1]["originalFile"]) > large.SIZE - 100
    async with later.connected(Agent(llm=ScriptedModel(), hooks=[PersistenceHook(store)])):
        await later.connection.load_session(str(tmp_path), session)
        loaded = later.cards()[-1]
        assert max(sizes(later)) < LIMIT
    for card in (asked["toolCall"], edited, loaded):
        (diff,) = [block for block in card["content"] if block["type"] == "diff"]
        assert shows_the_change(diff)
        assert "too large to be shown here" in card["content"][-1]["content"]["text"]
    assert sum(file.stat().st_size for file in tmp_path.glob("crow.db*")) < 1_000_000


@pytest.mark.slow
async def test_a_session_that_was_stored_with_whole_files_is_loaded_in_small_messages(
    tmp_path: Path,
) -> None:
    old = "".join(f"line {n}\n" for n in range(400_000))
    new = old.replace("line 200000\n", "another\n")

    async def edit() -> ToolResult:
        return ToolResult("Edited.", diffs=(Diff("/a.txt", old, new),))

    store = tmp_path / "crow.db"
    first, later = FakeEditor(), FakeEditor()
    script = call("edit"), "done"
    agent = Agent(llm=ScriptedModel(*script), tools=[tool(edit)], hooks=[PersistenceHook(store)])
    async with first.connected(agent):
        session = await first.new_session(tmp_path)
        await first.prompt(session, "Go")
        assert max(sizes(first)) < LIMIT
    with sqlite3.connect(store) as database:
        ((key, data),) = database.execute("SELECT id, data FROM log WHERE kind = 'result'")
        data = json.dumps({**json.loads(data), "data": {"originalFile": old}})
        database.execute("UPDATE log SET data = ? WHERE id = ?", (data, key))
    database.close()
    async with later.connected(Agent(llm=ScriptedModel(), hooks=[PersistenceHook(store)])):
        await later.connection.load_session(str(tmp_path), session)
        (card,) = later.cards()
        assert max(sizes(later)) < LIMIT
    (diff,) = [block for block in card["content"] if block["type"] == "diff"]
    assert "another\n" in diff["newText"]
    assert diff["_meta"]["crow"]["line"] == 200_001 - 3
    assert "characters are left out here" in card["rawOutput"]["originalFile"]


async def test_a_question_says_how_many_places_it_does_not_show(tmp_path: Path) -> None:
    rows = ["".join(f"{n}.{m} {'x' * 400}\n" for m in range(8)) for n in range(100)]
    path = tmp_path / "a.txt"
    path.write_text("".join(f"{n}\n{row}" for n, row in enumerate(rows)))
    new = "".join(f"{n} changed\n{row}" for n, row in enumerate(rows))
    editor = FakeEditor()
    script = call("Read", file_path=str(path)), call("Write", file_path=str(path), content=new)
    agent = Agent(llm=ScriptedModel(*script, "done"), hooks=[PermissionsHook()])
    async with editor.connected(agent):
        await editor.prompt(await editor.new_session(tmp_path), "Go")
        assert max(sizes(editor)) < LIMIT
    shown = [each for each in editor.asked[0]["toolCall"]["content"] if each["type"] == "diff"]
    assert 5 < len(shown) < 100
    assert f"[... {100 - len(shown)} more places are changed ...]" in shown[-1]["newText"]
    assert [each["_meta"]["crow"]["line"] for each in shown[1:4]] == [9, 18, 27]


@pytest.mark.node
@pytest.mark.slow
async def test_the_typescript_library_lives_through_a_large_file(node: str, tmp_path: Path) -> None:
    path = large.make(tmp_path)
    told = await told_by(
        node,
        HERE / "node/large.mjs",
        tmp_path,
        CROW,
        "acp",
        "--model",
        "rehearsal",
        "--extension",
        str(HERE / "large.py"),
    )
    assert told["first"]["stopReason"] == "end_turn"
    assert path.read_text().count(CHANGED[1]) == 1
    assert max(told["first"]["longest"], told["later"]["longest"]) < LIMIT
    (asked,) = told["first"]["asked"]
    for diff in (asked, told["first"]["diffs"][-1], told["later"]["diffs"][-1]):
        assert shows_the_change(diff)


@dataclass(frozen=True)
class Many:
    """A value that is repeated; hypothesis prints what it generates, which must stay short."""

    of: Any
    times: int

    def made(self) -> Any:
        """The value itself."""
        return (
            build(self.of) * self.times
            if isinstance(self.of, str)
            else [build(self.of)] * self.times
        )


def build(value: Any) -> Any:
    """JSON of a description of it."""
    match value:
        case Many():
            return value.made()
        case dict():
            return {key: build(one) for key, one in value.items()}
        case list():
            return [build(one) for one in value]
        case _:
            return value


VALUES = st.recursive(
    st.text(max_size=20)
    | st.none()
    | st.builds(Many, st.text(min_size=1, max_size=4), st.integers(1, 100_000)),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["content", "rawOutput", "text", "data", "x"]), inner)
        | st.builds(Many, inner.filter(lambda one: not isinstance(one, str)), st.integers(1, 9))
    ),
    max_leaves=6,
)


@settings(
    max_examples=examples(60),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(VALUES, VALUES, st.sampled_from(["tool_call_update", "plan", "agent_message_chunk"]))
def test_no_update_is_larger_than_the_limit_and_all_name_the_same_call(
    content: object, raw: object, kind: str
) -> None:
    update = {"sessionUpdate": kind, "toolCallId": "c" * 300}
    params = {"sessionId": "s" * 300}
    told = {**update, "content": build(content), "rawOutput": build(raw)}
    message = {"jsonrpc": "2.0", "method": "session/update", "params": {**params, "update": told}}
    data = bounded(message)
    assert len(data) <= LIMIT
    shown = json.loads(data)["params"]
    assert shown["sessionId"] == params["sessionId"]
    assert update.items() <= shown["update"].items()


def test_a_request_that_does_something_is_never_changed() -> None:
    params = {"sessionId": "s", "path": "/a", "content": "x" * 1_000_000}
    message = {"jsonrpc": "2.0", "id": 1, "method": "fs/write_text_file", "params": params}
    assert json.loads(bounded(message)) == message


async def test_a_large_picture_is_said_to_be_one(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(3_000_000))
    editor = FakeEditor()
    script = call("Read", file_path=str(tmp_path / "a.png")), "done"
    async with editor.connected(Agent(llm=ScriptedModel(*script))):
        await editor.prompt(await editor.new_session(tmp_path), "Look")
        (card,) = editor.cards()
        assert max(sizes(editor)) < LIMIT
    assert "too large to be shown here" in json.dumps(card["content"])
