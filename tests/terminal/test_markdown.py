"""What of a text is final while it comes."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.properties import examples

from crow.terminal.answer import AnswerText, Thought
from crow.terminal.markdown import Block, Code, Fence, FenceEnd, Piece, Splitter
from crow.terminal.palette import Palette, plain
from crow.terminal.rendering import lines_of

TEXT = """\
# Title
Some *text*
of two lines.

- one
- two
  - below two

  more of two
- three

Behind the list.

1. first
   ```python
   def f():
       return 1
   ```
2. second

| a | b |
|---|---|
| 1 | 2 |

Setext
======
~~~
```
~~~
The **end"""

PIECES: list[Piece] = [
    Block("# Title"),
    Block("Some *text*\nof two lines."),
    Block("- one"),
    Block("- two\n  - below two\n\n  more of two", spaced=False),
    Block("- three", spaced=False),
    Block("Behind the list."),
    Block("1. first"),
    Fence("python", 3),
    Code("def f():"),
    Code("    return 1"),
    FenceEnd(),
    Block("2. second"),
    Block("| a | b |\n|---|---|\n| 1 | 2 |"),
    Block("Setext\n======"),
    Fence(""),
    Code("```"),
    FenceEnd(),
    Block("The **end"),
]


@given(st.lists(st.integers(1, 40)))
def test_pieces_are_the_same_however_the_text_comes(sizes: list[int]) -> None:
    splitter, rest = Splitter(), TEXT
    pieces: list[Piece] = []
    for size in sizes:
        pieces += splitter.feed(rest[:size])
        rest = rest[size:]
    assert [*pieces, *splitter.feed(rest), *splitter.end()] == PIECES


FINAL: list[tuple[str, int]] = [  # a text, and how many pieces of it are final
    ("A paragraph\n", 0),
    ("A paragraph\n\n", 1),
    ("# A heading", 0),
    ("# A heading\n", 1),
    ("- an item\n\n", 0),
    ("- an item\n\n  more", 0),
    ("- an item\n- another\n", 1),
    ("- an item\n\nNo item\n", 1),
    ("Maybe setext\n", 0),
    ("```\ncode\nmore", 2),
    ("Text\n```\n", 2),
    ("| a |\n|---|\n| 1 |\n", 0),
    ("| a |\n|---|\n| 1 |\n\n", 1),
]


def test_what_may_still_change_is_not_final() -> None:
    for text, count in FINAL:
        assert len(Splitter().feed(text)) == count, text


def test_an_endless_paragraph_is_final_after_a_while() -> None:
    splitter = Splitter()
    pieces = splitter.feed("a line\n" * 1000)
    assert len(pieces) > 5
    assert sum(piece.text.count("a line") for piece in pieces if isinstance(piece, Block)) > 800


def shown(text: str, width: int = 40, size: int = 7, *, colours: bool = True) -> list[str]:
    """The lines that a text leaves, which came in pieces and was drawn at each."""
    answer = AnswerText(Palette(colours=colours))
    lines: list[str] = []
    for start in range(0, len(text), size):
        answer.take(text[start : start + size])
        lines += answer.final(width)
        answer.live(width, 0)
    answer.end()
    return [*lines, *answer.final(width)]


def test_an_answer_leaves_what_its_markdown_means() -> None:
    assert [plain(line) for line in shown(TEXT)] == [
        "Title",
        "",
        "Some text of two lines.",
        "",
        " • one",
        " • two",
        "    • below two",
        "   more of two",
        " • three",
        "",
        "Behind the list.",
        "",
        " 1 first",
        "",
        "   def f():",
        "       return 1",
        "",
        " 2 second",
        "",
        "╭──┬─╮",
        "│a │b│",
        "├──┼─┤",
        "│1 │2│",
        "╰──┴─╯",
        "",
        "Setext",
        "",
        "  ```",
        "",
        "The **end",
    ]


def test_code_keeps_its_colours_over_lines_that_belong_together() -> None:
    first, second, third = shown('```python\ns = """one\ntwo"""\nx = 1\n```\n')
    assert first.startswith("  s = \x1b[32m")
    assert second == '  \x1b[32mtwo\x1b[0m\x1b[32m"""\x1b[0m'
    assert third == "  x = \x1b[36m1\x1b[0m"
    assert shown("```nonsense\nx = 1\n```\n") == ["  x = 1"]


def test_nothing_that_a_terminal_obeys_comes_through() -> None:
    lines = shown("a \x1b[2J b\x07\n\n```\n\x1b]2;title\x07x\n```\n")
    assert lines == ["a  b", "", "  x"]


def test_without_colours_there_are_none() -> None:
    for line in shown(TEXT, colours=False):
        assert "\x1b[3" not in line.replace("\x1b[3m", "")


def test_what_means_nothing_in_markdown_is_shown_as_it_was_written() -> None:
    for text in (">" * 500 + "deep", "a list<int> of <b>tags</b>", "<div>", "[later]: http://x.y"):
        said = "".join(plain(line) for line in shown(text, 80))
        assert said.replace(" ", "") == text.replace(" ", "")


def test_wide_characters_fit() -> None:
    from crow.text import columns

    for line in shown("日本語の文章は長い。" * 9 + "\n\n| 日本 | b |\n|---|---|\n| 1 | 語 |\n", 23):
        assert columns(plain(line)) <= 23


WORDS = [
    "plain",
    "**bold**",
    "`two words`",
    "[name](http://x.y)",
    "snake_case",
    "*of two*",
    "[1]",
    "語",
]


def final_rows(text: str, width: int = 60) -> tuple[list[str], list[str], int]:
    """The rows that are final before the end, those that come then, and the most that were open."""
    answer = AnswerText(Palette())
    early: list[str] = []
    most = 0
    for start in range(0, len(text), 150):
        answer.take(text[start : start + 150])
        early += answer.final(width)
        most = max(most, len(answer.live(width, now=1e9)))
    answer.end()
    return early, answer.final(width), most


@pytest.mark.slow
@settings(max_examples=examples(40))
@given(st.lists(st.sampled_from(WORDS), min_size=200, max_size=300))
def test_a_long_paragraph_is_final_row_by_row_and_looks_as_if_it_came_at_once(
    words: list[str],
) -> None:
    text = " ".join(words)
    early, late, most = final_rows(text)
    assert [*early, *late] == lines_of(text, 60, Palette())
    assert most < 25


def test_a_mark_that_is_still_open_keeps_its_words_back_for_a_while() -> None:
    text = f"Some words, **{'and many more ' * 120}of them**, and so on."
    early, late, _ = final_rows(text)
    assert [*early, *late] == lines_of(text, 60, Palette())
    early, late, most = final_rows("**Never closed, " + "word after word " * 1000)
    assert most < 120
    assert len(early) > 200
    assert plain(early[0]).startswith("**Never closed")


def test_what_ends_a_long_paragraph_without_a_blank_line_is_drawn_behind_it() -> None:
    text = "word after word " * 100 + "\n- an item\n- another\n\nThe end."
    early, late, _ = final_rows(text)
    block, end = text.split("\n\n")
    assert [*early, *late] == [*lines_of(block, 60, Palette()), "", end]


def test_a_long_list_item_and_a_long_thought_take_no_longer_with_each_word() -> None:
    _, late, most = final_rows("- " + "word after word " * 1000)
    assert most < 60
    assert len(late) > 200
    thought = Thought(Palette())
    thought.take("word after word " * 5000)
    assert len(thought.live(60, 0)) == 4
    assert len(thought.lines(60)) > 1000
