"""Parameters of a client's messages, read as the official libraries read them, and without them."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError
from tests.acp import write_types
from tests.npm import told_by

from crow.acp import schema as version_1
from crow.acp.params import MismatchError, reader
from crow.acp.v2 import schema as version_2

SCRIPT = Path(__file__).with_name("node") / "params.mjs"
OURS: dict[int, ModuleType] = {1: version_1, 2: version_2}
LIBRARY = {1: "acp.schema", 2: "acp.experimental.v2.schema"}
SHAPES = [
    (version, name)
    for version, module in OURS.items()
    for name in vars(module)
    if name.endswith(("Request", "Notification"))
]
META = {"traceparent": "00-1-2-01", "nothing": None}
SERVERS: list[Any] = [
    {
        "type": "stdio",
        "name": "a",
        "command": "/b",
        "args": ["c"],
        "env": [{"name": "D", "value": "e"}],
    },
    {"type": "http", "name": "a", "url": "http://b/", "headers": [{"name": "c", "value": "d"}]},
    {"type": "sse", "name": "a", "url": "http://b/", "headers": []},
    {"type": "acp", "name": "a", "serverId": "b"},
]
BLOCKS: list[Any] = [
    {"type": "text", "text": "a", "annotations": {"audience": ["user"], "priority": 1}},
    {"type": "image", "data": "YQ==", "mimeType": "image/png", "uri": "file:///b"},
    {"type": "audio", "data": "YQ==", "mimeType": "audio/wav"},
    {"type": "resource_link", "name": "a", "uri": "file:///b", "size": 3, "title": None},
    {"type": "resource", "resource": {"uri": "file:///a", "text": "b"}},
    {"type": "resource", "resource": {"uri": "file:///a", "blob": "Yg==", "mimeType": "x/y"}},
]
UNKNOWN = {"type": "hologram", "depth": 3}
"""A server and a block of a later day, which version 2 takes."""
WHOLE: dict[str, Any] = {
    "methodId": "environment",
    "sessionId": "s",
    "toolCallId": "t",
    "terminalId": "t",
    "cwd": "/tmp",
    "cursor": "c",
    "archived": "only",
    "title": "t",
    "additionalDirectories": ["/a", "/b"],
    "mcpServers": SERVERS,
    "systemPrompt": {"mode": "append", "content": BLOCKS[:1]},
    "prompt": BLOCKS,
    "modeId": "m",
    "configId": "o",
    "type": "id",
    "value": "v",
    "replayFrom": {"type": "start"},
    "providerId": "p",
    "apiType": "openai",
    "baseUrl": "http://b/",
    "headers": {"a": "b"},
    "serverId": "s",
    "requestId": "r",
    "method": "ping",
    "params": {"a": 1},
    "_meta": META,
    "unknown": 1,
}
GONE = object()
MAY_BE_MISSING = (("mcpServers",), ("headers",), ("args",), ("env",))
"""What clients leave out though version 1 wants it there, if empty: null is allowed."""
OTHERS: list[Any] = [True, False, 0, 1, 0.5, "http://c/", [], {}, [1], {"type": "text"}]
"""What is put in the place of each part."""


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to every part of a value."""
    yield path
    if isinstance(value, dict):
        for key, each in value.items():
            yield from places(each, (*path, key))
    elif isinstance(value, list):
        for number, each in enumerate(value):
            yield from places(each, (*path, number))


def changed(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    """A copy with something else at a place, or nothing."""
    if not path:
        return {} if new is GONE else new
    whole = copy.deepcopy(value)
    *way, last = path
    part = whole
    for step in way:
        part = part[step]
    if new is GONE:
        del part[last]
    else:
        part[last] = new
    return whole


def by_library(version: int, name: str, params: Any) -> Any:
    """What the official Python library makes of it; None where it refuses."""
    model: type[BaseModel] | None = getattr(import_module(LIBRARY[version]), name, None)
    if model is None:
        return None
    try:
        return model.model_validate(params, strict=False).model_dump(mode="json", by_alias=True)
    except ValidationError:
        return None


def by_crow(version: int, name: str, params: Any) -> Any:
    try:
        return reader(getattr(OURS[version], name))(params)
    except MismatchError:
        return None


def without_nothing(params: Any) -> Any:
    """Parameters without what is null or empty, which is all the same to Crow."""
    match params:
        case dict():
            told = {key: without_nothing(each) for key, each in params.items() if key != "_meta"}
            return {key: each for key, each in told.items() if each not in (None, [], {})}
        case list():
            return [without_nothing(each) for each in params]
        case _:
            return params


@pytest.mark.parametrize("version", OURS)
def test_what_is_right_is_read_as_the_python_library_reads_it(version: int) -> None:
    compared: list[str] = []
    for name in (name for number, name in SHAPES if number == version):
        told = by_library(version, name, WHOLE)
        if told is None:  # this release does not know it yet, or as it was in an older draft
            continue
        crow = {key: each for key, each in by_crow(version, name, WHOLE).items() if key in told}
        assert without_nothing(crow) == without_nothing(told)
        compared.append(name)
    assert compared


@pytest.mark.node
async def test_whatever_a_client_says_is_taken_or_refused_as_the_typescript_library_does(
    node: str, tmp_path: Path
) -> None:
    late = {**WHOLE, "prompt": [UNKNOWN], "mcpServers": [UNKNOWN], "replayFrom": UNKNOWN}
    cases = [
        (version, name, changed(whole, path, new))
        for version, name in SHAPES
        for whole in (WHOLE, late)
        for path in places({key: whole[key] for key in read_of(version, name)})
        for new in (GONE, *OTHERS)
        if path[-1:] not in MAY_BE_MISSING or new is not GONE
    ]
    (tmp_path / "params.json").write_text(json.dumps(cases))
    library = await told_by(node, SCRIPT, tmp_path)
    for case, told in zip(cases, library, strict=True):
        crow = by_crow(*case)
        if crow and crow.get("prompt") == []:  # refused where prompts are taken
            continue
        assert (crow is None) == (told is None), (case, crow, told)
        assert without_nothing(crow) == without_nothing(told), case


def read_of(version: int, name: str) -> set[str]:
    """The fields of a request that anybody looks at."""
    node = write_types.definitions(version)[name]
    told = {key for each in (node, *node.get("anyOf", ())) for key in each.get("properties", ())}
    return told - {"_meta"}


@pytest.mark.parametrize(
    "name, params, complaint",
    [
        ("NewSessionRequest", {"mcpServers": []}, "cwd: is missing"),
        ("NewSessionRequest", {"cwd": 5, "mcpServers": []}, "cwd: must be text"),
        ("NewSessionRequest", ["cwd"], "must be an object"),
        ("PromptRequest", {"sessionId": "s", "prompt": "hi"}, "prompt: must be a list"),
        (
            "PromptRequest",
            {"sessionId": "s", "prompt": [{"type": "text"}]},
            "prompt[0].text: is missing",
        ),
        (
            "PromptRequest",
            {"sessionId": "s", "prompt": [{"type": "smell"}]},
            "prompt[0]: must have a 'type': text, image, audio, resource_link, resource",
        ),
    ],
)
def test_a_refusal_says_where_and_what_and_not_the_value(
    name: str, params: Any, complaint: str
) -> None:
    with pytest.raises(MismatchError) as caught:
        reader(getattr(version_1, name))(params)
    assert str(caught.value) == complaint
