"""Content blocks, both ways; what a model cannot take is left out and said."""

from __future__ import annotations

from typing import Any

import pytest

from crow.acp.content import from_blocks, to_blocks
from crow.core.messages import Content

PNG = "data:image/png;base64,aGk="


@pytest.mark.parametrize(
    ("block", "part"),
    [
        (
            {"type": "image", "mimeType": "image/png", "data": "aGk="},
            {"type": "image_url", "image_url": {"url": PNG}},
        ),
        (
            {"type": "audio", "mimeType": "audio/mpeg", "data": "aGk="},
            {"type": "input_audio", "input_audio": {"data": "aGk=", "format": "mp3"}},
        ),
        (
            {
                "type": "resource",
                "resource": {"uri": "file:///x.png", "mimeType": "image/png", "blob": "aGk="},
            },
            {"type": "image_url", "image_url": {"url": PNG}},
        ),
    ],
)
def test_media_become_parts(block: Any, part: Any) -> None:
    assert from_blocks([block], frozenset({"image", "audio"})) == [part]


@pytest.mark.parametrize(
    ("block", "said"),
    [
        ({"type": "image", "mimeType": "image/png", "data": "no base64!"}, "not valid base64"),
        ({"type": "image", "mimeType": "image/png", "data": "aGk="}, "takes none"),
        ({"type": "image", "mimeType": "text/html", "data": "aGk="}, "takes none"),
        ({"type": "hologram"}, "is not known here"),
        ({"type": "resource", "resource": {"uri": "zed:///x", "blob": "aa"}}, "zed:///x was left"),
        ({"type": "resource_link", "uri": "zed:///x", "name": ""}, "[zed:///x](zed:///x)"),
        (
            {"type": "resource_link", "uri": "file:///" + "x" * 5000, "name": "x"},
            "there is no file /xxx",
        ),
    ],
)
@pytest.mark.rule("links of every kind")
def test_what_cannot_be_taken_is_said(block: Any, said: str) -> None:
    taken = frozenset({"image"} if block["type"] == "image" and block["data"] != "aGk=" else ())
    content = from_blocks([{"type": "text", "text": "See "}, block], taken)
    assert isinstance(content, str)
    assert content.startswith("See ")
    assert said in content


@pytest.mark.parametrize(
    ("content", "blocks"),
    [
        (None, []),
        ("", []),
        ("hi", [{"type": "text", "text": "hi"}]),
        (
            [
                {"type": "image_url", "image_url": {"url": PNG}},
                {"type": "image_url", "image_url": {"url": "https://example.org/x.png"}},
                {"type": "input_audio", "input_audio": {"data": "aGk=", "format": "wav"}},
            ],
            [
                {"type": "image", "mimeType": "image/png", "data": "aGk="},
                {"type": "resource_link", "uri": "https://example.org/x.png", "name": "image"},
                {"type": "audio", "mimeType": "audio/wav", "data": "aGk="},
            ],
        ),
    ],
)
def test_a_messages_content_becomes_blocks(content: Content | None, blocks: Any) -> None:
    assert to_blocks(content) == blocks


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("See", "and tell", "See [a](x:a) and tell"),
        ("See ", " and tell", "See [a](x:a) and tell"),
        ("See (", "), and tell", "See ([a](x:a)), and tell"),
    ],
)
def test_a_link_does_not_run_into_the_words_beside_it(before: str, after: str, said: str) -> None:
    link = {"type": "resource_link", "uri": "x:a", "name": "a"}
    blocks = [{"type": "text", "text": before}, link, {"type": "text", "text": after}]
    assert from_blocks(blocks, frozenset()) == said


def test_what_is_embedded_is_named_once_and_follows() -> None:
    block = {"type": "resource", "resource": {"uri": "file:///src/a.py", "text": "pass"}}
    added = '\n<resource uri="/src/a.py">\npass\n</resource>\n'
    for said, told in (("Explain", "Explain @/src/a.py"), ("Explain @a.py", "Explain @a.py")):
        assert from_blocks([{"type": "text", "text": said}, block], frozenset()) == told + added
