"""Words that no schema of the protocol has: each is in the table of the page, with an example."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.acp.test_protocol_page import PAGE

import crow.acp
from crow.acp.turn import details
from crow.core.errors import ModelError
from crow.core.hooks.run_context import Reply
from crow.core.session import Session
from crow.testing import FakeEditor

ROOM = Path(crow.acp.__file__).parent
ROW = re.compile(r"^\| `([^`]+)` \| ([^|]+) \| ([^|]+) \| (\d\.\d) \|$", re.MULTILINE)
METHOD = re.compile(r"_[a-z]+/[a-z_]+")
OWN = ("crow", "claudeCode", "steering")
"""The names in ``_meta`` that hold several words."""


def rows() -> list[tuple[str, ...]]:
    """The table: word, where, shape, since."""
    return ROW.findall(PAGE.read_text("utf-8").split("\n## Extensions\n")[1])


def trees() -> Iterator[ast.AST]:
    for path in sorted(ROOM.rglob("*.py")):
        if path.name not in ("outgoing.py", "schema.py"):
            yield from ast.walk(ast.parse(path.read_text("utf-8")))


def texts(nodes: Any) -> list[str]:
    """The constant texts among nodes."""
    constants = [node.value for node in nodes if isinstance(node, ast.Constant)]
    return [value for value in constants if isinstance(value, str)]


def written() -> Iterator[str]:
    """The words that the code writes: what stands below the names in literals of dictionaries."""
    for node in trees():
        if not isinstance(node, ast.Dict):
            continue
        for key, value in zip(node.keys, node.values, strict=True):
            (name,) = texts([key]) or [""]
            if name in OWN and isinstance(value, ast.Dict):
                yield from (f"_meta.{name}.{each}" for each in texts(value.keys))
            elif name.startswith("terminal_") and isinstance(value, ast.Dict | ast.Call):
                yield f"_meta.{name}"
            elif name == "_meta" and isinstance(value, ast.Dict):
                yield from (f"_meta.{each}" for each in texts(value.keys) if each not in OWN)


def said() -> set[str]:
    """The words of the table, as far as they are of ``_meta``."""
    return {word for word, *_ in rows() if word.startswith("_meta.")}


def test_every_method_of_ours_is_in_the_table() -> None:
    named = {node.value for node in trees() if isinstance(node, ast.Constant)}
    methods = {each for each in named if isinstance(each, str) and METHOD.fullmatch(each)}
    assert methods == {word for word, *_ in rows() if METHOD.fullmatch(word)}


def test_every_word_that_is_written_is_in_the_table() -> None:
    error = ModelError("no", kind="rate_limit", retry_after=1.0)
    why = details(Reply("", "error", {}, Session(), "no", error=error))
    found = {*written(), *(f"_meta.crow.{name}" for name in why)}
    assert len(found) > 10
    known = {word.replace("_meta.steering", "_meta.steering.supported", 1) for word in said()}
    assert found - known - said() == set()


@pytest.mark.parametrize(
    ("name", "read"),
    [
        ("capabilities", r'own\.get\("(\w+)"\)'),
        ("agent", r'wishes\.get\(name\).+\("(pen)", "(goOn)"\)'),
        ("trace_context", r'meta\.get\("(\w+)"\)'),
    ],
)
def test_every_word_that_is_read_is_in_the_table(name: str, read: str) -> None:
    found = re.findall(read, (ROOM / f"{name}.py").read_text("utf-8"))
    words = [word for each in found for word in ([each] if isinstance(each, str) else each)]
    assert words
    assert {
        word for word in words if not any(each.endswith(f".{word}") for each in said())
    } == set()


def test_every_word_of_the_recorded_conversations_is_in_the_table() -> None:
    found: set[str] = set()
    for path in Path(__file__).with_name("transcripts").glob("*.txt"):
        above: list[tuple[int, str]] = []
        for line in path.read_text("utf-8").splitlines():
            key = re.match(r"( *)(?:- )?([\w-]+):(.*)", line)
            if key is None:
                continue
            depth = len(key[1])
            above = [each for each in above if each[0] < depth]
            path_of = [name for _, name in above]
            above.append((depth, key[2]))
            if "_meta" in path_of:
                found.add(".".join([*path_of[path_of.index("_meta") :], key[2]]))
            elif key[2] == "_meta" and key[3].strip().startswith("{"):
                found |= {f"_meta.{name}" for name in json.loads(key[3])}
    assert {"_meta.crow.hooks", "_meta.crow.sandbox"} <= found
    known = said()
    above_words = {each for each in found for word in known if word.startswith(f"{each}.")}
    inside = {each for each in found for word in known if f"{each}.".startswith(f"{word}.")}
    assert found - above_words - inside == set()


def test_the_examples_are_json_and_show_their_word() -> None:
    for word, where, shape, _since in rows():
        examples = [json.loads(each) for each in re.findall(r"`(\{.*?\})`(?=[,;. |]|$)", shape)]
        if word.startswith("_meta.") and "beside" not in where and "idleBehavior" not in word:
            assert examples, word
            value: Any = examples[0]
            for name in word.split(".")[1:]:
                value = value[name]


async def test_what_crow_has_not_is_refused_as_the_page_says(tmp_path: Path) -> None:
    from crow import Agent
    from crow.testing import ScriptedModel

    editor = FakeEditor()
    absent = ("proxy/initialize", "nes/start", "nes/suggest", "document/open", "_crow/let_go")
    async with editor.connected(Agent(llm=ScriptedModel())):
        for method in absent:
            answered = await editor.wire.request(method, {})
            assert answered["error"]["code"] == -32601, method
        told = {"jsonrpc": "2.0", "method": "document/didChange", "params": {}}
        await editor.wire.send(told)
        await editor.new_session(tmp_path)
