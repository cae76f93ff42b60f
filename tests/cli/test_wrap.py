"""Streamed text in lines that are broken between words, however it comes in."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crow.cli.output import Wrap
from crow.text import columns

texts = st.text(alphabet=st.sampled_from("ab漢 \n`"), max_size=60)


def wrapped(pieces: list[str], width: int) -> str:
    """What a terminal shows in the end."""
    wrap = Wrap()
    shown: list[str] = []
    for char in "".join(wrap.feed(piece, width) for piece in pieces).replace("\x1b[K", ""):
        if char == "\b":
            shown.pop()
        else:
            shown += [char, ""] if columns(char) == 2 else [char]
    return "\n".join(line.rstrip() for line in "".join(shown).split("\n"))


@pytest.mark.parametrize(
    "text, shown",
    [
        ("one two three", "one two\nthree"),
        ("onetwothreefour", "onetwothreefour"),
        ("a onetwothree b", "a\nonetwothree\nb"),
        ("one\n  two three", "one\n  two\nthree"),
        ("one two \nx", "one two\nx"),
        ("漢字 漢字 漢字", "漢字\n漢字\n漢字"),
        ("```\nlet x = one + two\n```\nof two lines", "```\nlet x = one + two\n```\nof two\nlines"),
        ("", ""),
    ],
)
def test_lines_are_broken_between_words_and_not_in_code(text: str, shown: str) -> None:
    assert wrapped([text], 8) == shown


@given(st.lists(texts, max_size=8), st.integers(3, 20))
def test_pieces_come_out_as_the_whole_would_and_nothing_is_lost(
    pieces: list[str], width: int
) -> None:
    text = "".join(pieces)
    shown = wrapped(pieces, width)
    assert shown == wrapped([text], width)
    assert shown.split() == text.split()
    if "```" not in text:
        for line in shown.split("\n"):
            assert columns(line.rstrip()) <= width or len(line.split()) == 1


def test_a_word_is_shown_as_it_comes_and_taken_back_where_it_is_too_long() -> None:
    wrap = Wrap()
    assert wrap.feed("one tw", 8) == "one tw"
    assert wrap.feed("othree", 8) == "\b\b\x1b[K\ntwothree"
