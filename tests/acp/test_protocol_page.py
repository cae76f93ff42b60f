"""The page that says which words of the protocol there are: as the official schema has them."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

PAGE = Path(__file__).parents[2] / "docs/protocol.md"
ROW = re.compile(r"\| `([^`]+)` \| (stable|draft|-) \| (stable|draft|-) \| (.+) \|")
OLDER = {"session/set_model"}
VERSIONS = ("v1", "v2")
Table = dict[str, tuple[str, str]]


def tables() -> dict[str, list[tuple[str, ...]]]:
    """The rows of the page, by its headlines."""
    parts = PAGE.read_text("utf-8").split("\n## ")
    return {part.splitlines()[0]: ROW.findall(part) for part in parts}


def said(title: str) -> Table:
    """What the page says of the words below a headline."""
    return {name: (first, second) for name, first, second, _ in tables()[title]}


def defined(file: str, version: str) -> dict[str, Any]:
    """What one file of the official schema defines."""
    folder = os.environ.get("CROW_ACP_SCHEMA")
    if not folder:
        pytest.skip("the official schema is not installed: make test ARGS='-m node'")
    path = Path(folder).with_name(version) / file
    return json.loads(path.read_text("utf-8"))["$defs"]


def methods(definitions: dict[str, Any], side: str) -> Iterator[str]:
    """The methods of one side."""
    for each in definitions.values():
        if each.get("x-side") == side:
            yield each["x-method"]


def updates(definitions: dict[str, Any], _: str) -> Iterator[str]:
    """The kinds of updates."""
    kinds = definitions["SessionUpdate"]
    for each in kinds.get("oneOf", kinds.get("anyOf")):
        kind = each.get("properties", {}).get("sessionUpdate", {}).get("const")
        if kind:
            yield kind


def capabilities(definitions: dict[str, Any], name: str, above: str = "") -> Iterator[str]:
    """The capabilities of one side, and those inside of them that can be left out by themselves."""
    for key, node in definitions[name].get("properties", {}).items():
        parts = [node, *node.get("allOf", ()), *node.get("anyOf", ())]
        inner = [
            found
            for part in parts
            if "$ref" in part
            for found in capabilities(definitions, part["$ref"].split("/")[-1], f"{above}{key}.")
        ]
        if key != "_meta":
            yield from [] if inner and {"type": "null"} not in parts else [f"{above}{key}"]
            yield from inner


@pytest.mark.parametrize(
    ("title", "side"),
    [
        ("Methods of the agent", "agent"),
        ("Methods of the client", "client"),
        ("Both ways", "protocol"),
        ("Updates", ""),
        ("Capabilities of the agent", "AgentCapabilities"),
        ("Capabilities of the client", "ClientCapabilities"),
    ],
)
def test_the_page_has_every_word_of_the_official_schema(title: str, side: str) -> None:
    found = {"Updates": updates}.get(title, capabilities if "Capa" in title else methods)
    columns: list[dict[str, str]] = []
    for version in VERSIONS:
        drafts = dict.fromkeys(found(defined("schema.unstable.json", version), side), "draft")
        stable = dict.fromkeys(found(defined("schema.json", version), side), "stable")
        columns.append({**drafts, **stable})
    names = {**columns[0], **columns[1]}
    assert said(title) == {
        name: (columns[0].get(name, "-"), columns[1].get(name, "-")) for name in names
    }


def test_the_page_says_which_methods_are_answered(routes: frozenset[str]) -> None:
    rows = tables()["Methods of the agent"]
    answered = {name for name, first, _, crow in rows if first != "-" and crow.startswith("yes")}
    own = {route for route in routes if route.startswith("_")} | OLDER
    assert answered == routes - own | {"initialize", "mcp/message"}
    text = PAGE.read_text("utf-8")
    assert [name for name in own if f"| `{name}` |" not in text] == []
