"""Front matter: read as YAML where it is, as what was meant where it is not, and never refused."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from crow.project import FrontMatter
from crow.project.frontmatter import KNOWN

EXAMPLES = """\
Use this agent for reviews. Examples:

<example>
Context: The user wrote code.
user: "Look: is it [good]?"
assistant: 'I look.'
</example>"""


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
        (
            "name: no\nmodel: 2024-13-45\ncolor: on\n",
            {"name": "no", "model": "2024-13-45", "color": "on"},
        ),
        (
            "background: true\nmaxTurns: 12\nversion: 1.5\n",
            {"background": True, "maxTurns": 12, "version": 1.5},
        ),
        ("model:\n", {"model": None}),
        (
            "description: a: b\ntools: [Read, Grep]\nbackground: true\n",
            {"description": "a: b", "tools": ["Read", "Grep"], "background": True},
        ),
        ("description: a: \\n b\nname: 'x'\n", {"description": "a: \\n b", "name": "x"}),
        (
            "description: a: b\nhooks:\n\tStop: [1]\n",
            {"description": "a: b", "hooks": {"Stop": [1]}},
        ),
        ("allowed-tools: - Read\n", {"allowed-tools": ["Read"]}),
        (
            "allowed-tools: - Read\n- Grep\nmodel: x\n",
            {"allowed-tools": ["Read", "Grep"], "model": "x"},
        ),
        (
            f"name: a\ndescription: {EXAMPLES}\nmodel: x\ntools:\n  - Read\n",
            {"name": "a", "description": EXAMPLES, "model": "x", "tools": ["Read"]},
        ),
        (
            "description: >\n  one:\n  two: [\nname: a: b\n",
            {"description": "one: two: [\n", "name": "a: b"},
        ),
    ],
)
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_front_matter_is_a_table(head: str, expected: dict[str, Any], newline: str):
    written = f"---\n{head}---\nThe text.\n".replace("\n", newline)
    found = FrontMatter.parse(written)
    assert found.fault == ""
    assert {
        k: v.replace("\r", "") if isinstance(v, str) else v for k, v in found.table.items()
    } == expected
    assert found.body == f"The text.{newline}"


@pytest.mark.parametrize(
    "written", ["", "No front matter", "# Title\n---\nnot: this\n---\n", "----\n"]
)
def test_a_file_without_front_matter_is_all_text(written: str):
    assert FrontMatter.parse(written) == ({}, written, "")


def test_a_byte_order_mark_does_not_count():
    assert FrontMatter.parse("\ufeff---\na: 1\n---\nText") == ({"a": 1}, "Text", "")
    assert FrontMatter.parse("\ufeffText") == ({}, "Text", "")


@pytest.mark.parametrize(
    ("written", "body", "expected"),
    [
        ("---\na: 1\n", "---\na: 1\n", "is not closed by ---"),
        ("---\n- one\n- two\n---\nText", "Text", "no table of names and values"),
        ("---\njust words\n---\nText", "Text", "no table of names and values"),
        ("---\n{[\n---\nText", "Text", "line 3: no YAML"),
    ],
)
def test_what_counts_for_nothing_leaves_the_text_and_is_said_in_a_line(
    written: str, body: str, expected: str
):
    found = FrontMatter.parse(written)
    assert (found.table, found.body) == ({}, body)
    assert expected in found.fault
    assert "\n" not in found.fault


LOOKS = (
    "Context|:|: | |\\n|\\n  |\\t|- |[|]|{|}|'|\"|>|&a|*a|!!|!x|%|@|`|#|? |---|<<|true|no|12|1.5"
)
MORE = ("|", "2024-13-45", "~", "Read", "Bash(git:*)", ",", "\\", "é", "\0", "\x85", "\u2028", "\r")
PIECES = st.sampled_from([*sorted(KNOWN), *LOOKS.split("|"), *MORE, "9" * 5000])


@given(st.lists(PIECES, max_size=30).map("".join))
def test_whatever_stands_there_is_read_and_what_it_means_can_be_asked(written: str):
    found = FrontMatter.parse(f"---\n{written}\n---\nText")
    assert all(isinstance(name, str) for name in found.table)
    assert found.body.endswith("Text")
    for name in found.table:
        assert isinstance(found.text(name), str)
        assert isinstance(found.flag(name), bool)
        assert all(isinstance(each, str) and each for each in found.names(name) or ())


VALUES = st.text(
    st.characters(codec="utf-8", exclude_categories=["C", "Z"]) | st.just(" "), min_size=1
)


@given(st.dictionaries(st.sampled_from(sorted(KNOWN)), VALUES.map(str.strip).filter(bool)))
def test_what_a_yaml_writer_wrote_is_read_back_as_text(table: dict[str, str]):
    written = yaml.safe_dump(table, allow_unicode=True)
    found = FrontMatter.parse(f"---\n{written}---\nText")
    assert {name: found.text(name) for name in table} == table


@given(VALUES.map(str.strip).filter(lambda value: value[:1].isalpha()), VALUES)
def test_a_plain_value_is_the_text_that_stands_there(description: str, more: str):
    written = f"name: a\ndescription: {description}: {more.strip()}.\nmodel: x"
    found = FrontMatter.parse(f"---\n{written}\n---\nText")
    assert found.text("description") == f"{description}: {more.strip()}.".strip()
    assert found.text("model") == "x"


def test_many_names_for_one_thing_do_not_grow_without_bounds():
    bomb = "a: &a [x, x]\n" + "".join(
        f"{new}: &{new} [*{old}, *{old}, *{old}, *{old}, *{old}, *{old}, *{old}, *{old}]\n"
        for old, new in zip("abcdefghijk", "bcdefghijkl", strict=True)
    )
    found = FrontMatter.parse(f"---\n{bomb}---\nText")
    assert found.text("l") == ""
    assert found.names("l") == []


def test_brackets_nested_without_end_are_no_table():
    assert FrontMatter.parse(f"---\na: {'[' * 50_000}\n---\nText").body == "Text"


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("Read, Grep", ["Read", "Grep"]),
        ("Read Grep", ["Read", "Grep"]),
        ("Bash(git add:*, x), Read", ["Bash(git add:*, x)", "Read"]),
        ("[Read, 'Grep']", ["Read", "Grep"]),
        ('"Read", "Grep"', ["Read", "Grep"]),
        (["Read", 3, ["nested"], None], ["Read", "3"]),
        ("Bash(git", ["Bash(git"]),
        ("", []),
        (None, None),
    ],
)
def test_names_are_a_list_or_text_with_commas_or_blanks(written: Any, expected: list[str] | None):
    assert FrontMatter({"tools": written}, "").names("allowedTools", "tools") == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [(True, True), ("true", True), ("yes", True), ("no", False), (False, False), ("x", False)],
)
def test_yes_and_no_may_be_words(value: Any, expected: bool):
    assert FrontMatter({"background": value}, "").flag("background") is expected
    assert FrontMatter({}, "").flag("background", default=True) is True


def test_a_list_in_a_hint_is_shown_as_it_was_written():
    assert FrontMatter({"argument-hint": ["file"]}, "").text("argument-hint") == "[file]"
    assert FrontMatter({"argument-hint": ["a", "b"]}, "").text("argument-hint") == "[a, b]"
    assert FrontMatter({"argument-hint": {"a": None}}, "").text("argument-hint") == ""
