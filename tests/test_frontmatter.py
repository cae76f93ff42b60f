"""Front matter: read as YAML where it is, as text where it only looks like it, named where broken."""

from __future__ import annotations

from typing import Any

import pytest

from crow.frontmatter import FrontMatterError, parse


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        (
            "name: review\ndescription: Look at it\n",
            {"name": "review", "description": "Look at it"},
        ),
        ("tools: [Read, Grep]\n", {"tools": ["Read", "Grep"]}),
        ("a: |\n  one\n  two\nb: 3\n", {"a": "one\ntwo\n", "b": 3}),
        ("", {}),
        ("# nothing but a comment\n", {}),
        ("argument-hint: [file] [line]\n", {"argument-hint": "[file] [line]"}),
        (
            "description: Fix: the thing\nmodel: x\n",
            {"description": "Fix: the thing", "model": "x"},
        ),
        ("description: @file and `code`\n", {"description": "@file and `code`"}),
        ("allowed-tools: Bash(git add:*), Read\n", {"allowed-tools": "Bash(git add:*), Read"}),
    ],
)
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_front_matter_is_a_table(head: str, expected: dict[str, Any], newline: str):
    text = f"---\n{head}---\nThe text.\n".replace("\n", newline)
    table, below = parse(text)
    assert {
        k: v.replace("\r", "") if isinstance(v, str) else v for k, v in table.items()
    } == expected
    assert below == f"The text.{newline}"


@pytest.mark.parametrize(
    "text", ["", "No front matter", "# Title\n---\nnot: this\n---\n", "----\n"]
)
def test_a_file_without_front_matter_is_all_text(text: str):
    assert parse(text) == ({}, text)


def test_a_byte_order_mark_does_not_count():
    assert parse("\ufeff---\na: 1\n---\nText") == ({"a": 1}, "Text")
    assert parse("\ufeffText") == ({}, "Text")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("---\na: 1\n", "is not closed by ---"),
        ("---\n- one\n- two\n---\n", "no table of names and values"),
        ("---\nok: 1\nbad:\n  - [1\n---\n", "line 5: no YAML"),
        ("---\na: 1\n\tb: 2\n---\n", "line 3: no YAML"),
    ],
)
def test_what_is_wrong_with_it_is_said_in_one_line(text: str, expected: str):
    with pytest.raises(FrontMatterError, match=expected) as caught:
        parse(text)
    assert "\n" not in str(caught.value)
