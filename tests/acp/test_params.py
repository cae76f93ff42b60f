"""Parameters of a client's messages, read as the official library reads them, and without it."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError
from tests.acp import write_schema
from tests.properties import examples

from crow.acp import schema as version_1
from crow.acp.params import MismatchError, reader
from crow.acp.v2 import schema as version_2

OURS: dict[int, ModuleType] = {1: version_1, 2: version_2}
SHAPES = [
    (version, name) for version, roots in write_schema.ROOTS.items() for name in roots.split()
]
META = {"traceparent": "00-1-2-01", "nothing": None}
SERVERS: list[Any] = [
    {"name": "a", "command": "b", "args": ["c"], "env": [{"name": "D", "value": "e"}]},
    {"type": "stdio", "name": "a", "command": "b", "args": [], "env": []},
    {"type": "http", "name": "a", "url": "http://b/", "headers": [{"name": "c", "value": "d"}]},
    {"type": "sse", "name": "a", "url": "http://b/", "headers": []},
    {"type": "acp", "name": "a", "serverId": "b"},
    {"type": "pigeon", "name": "a", "speed": 7},
    {"name": "without a type", "url": "http://b/", "headers": []},
]
BLOCKS: list[Any] = [
    {"type": "text", "text": "a", "annotations": {"audience": ["user", "nobody"], "priority": 1}},
    {"type": "image", "data": "a", "mimeType": "image/png", "uri": "file:///b"},
    {"type": "audio", "data": "a", "mimeType": "audio/wav"},
    {"type": "resource_link", "name": "a", "uri": "file:///b", "size": 3, "title": None},
    {"type": "resource", "resource": {"uri": "file:///a", "text": "b"}},
    {"type": "resource", "resource": {"uri": "file:///a", "blob": "Yg==", "mimeType": "x/y"}},
    {"type": "hologram", "depth": 3},
    {"text": "without a type"},
]
WHOLE: dict[str, Any] = {
    "methodId": "environment",
    "sessionId": "s",
    "cwd": "/tmp",
    "cursor": "c",
    "additionalDirectories": ["/a", 1, "/b"],
    "mcpServers": SERVERS,
    "prompt": BLOCKS,
    "modeId": "m",
    "configId": "o",
    "value": "v",
    "replayFrom": {"type": "start"},
    "_meta": META,
    "unknown": 1,
}
SCALARS = st.sampled_from([None, True, False, 0, 1, 0.5, "http://c/"])
"""Within all bounds and of any format: what the library says of those (in version 2) is not checked."""
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("ab"), inner),
    max_leaves=4,
)


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to every part of a value."""
    yield path
    if isinstance(value, dict):
        for key, each in value.items():
            yield from places(each, (*path, key))
    elif isinstance(value, list):
        for number, each in enumerate(value):
            yield from places(each, (*path, number))


def changed(value: Any, path: tuple[Any, ...], new: Any, *, gone: bool) -> Any:
    """A copy with something else at a place, or nothing."""
    if not path:
        return new
    whole = copy.deepcopy(value)
    *way, last = path
    part = whole
    for step in way:
        part = part[step]
    if gone:
        del part[last]
    else:
        part[last] = new
    return whole


def by_library(version: int, name: str, params: Any) -> Any:
    """What the official library makes of it; None where it refuses."""
    model: type[BaseModel] = getattr(write_schema.models(version), name)
    try:
        found = model.model_validate(params, strict=False)
    except ValidationError:
        return None
    except TypeError:  # it looks a tag up that is a list
        reject()
    return found.model_dump(mode="json", by_alias=True, exclude_none=True)


def by_crow(version: int, name: str, params: Any) -> Any:
    try:
        return reader(getattr(OURS[version], name))(params)
    except MismatchError:
        return None


def coerced(params: Any) -> Any:
    """Truths and numbers as the library takes them where others are wanted."""
    return json.loads(json.dumps(params).replace("true", "1").replace("false", "0"))


@pytest.mark.variants(1)
@pytest.mark.parametrize("version", OURS)
def test_the_schema_is_that_of_the_official_library(version: int) -> None:
    path = write_schema.WANTED[version]
    assert path.read_text("utf-8") == write_schema.source(version), (
        "run .venv/bin/python -m tests.acp.write_schema"
    )


@pytest.mark.variants(1)
@pytest.mark.parametrize("version, name", SHAPES)
def test_what_is_right_is_read_as_the_library_reads_it(version: int, name: str) -> None:
    for number in range(len(BLOCKS)):
        params = {**WHOLE, "prompt": BLOCKS[number : number + 1]}
        assert by_crow(version, name, params) == by_library(version, name, params)


@pytest.mark.slow
@settings(max_examples=examples(150))
@given(st.sampled_from(SHAPES), st.data(), JSON, st.booleans())
def test_whatever_a_client_says_is_taken_or_refused_as_the_library_does(
    shape: tuple[int, str], data: st.DataObject, new: Any, gone: bool
) -> None:
    version, name = shape
    known = {**WHOLE, "prompt": BLOCKS[:6]}
    params = changed(known, data.draw(st.sampled_from([*places(known)])), new, gone=gone)
    crow, library = by_crow(version, name, params), by_library(version, name, params)
    assert (crow is None) == (library is None), (params, crow, library)
    assert coerced(crow) == coerced(library)


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
