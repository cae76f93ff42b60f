"""Whether the terminal is dark or light, and that its answers are no text that somebody types."""

from __future__ import annotations

import pytest

from crow.terminal.background import Replies, Theme, can_be_asked, theme_of, theme_of_environment
from crow.terminal.palette import Palette
from crow.terminal.rendering import lines_of


class Typed:
    """Pieces as they come from a terminal."""

    closed = False

    def __init__(self, *pieces: str) -> None:
        self.pieces = list(pieces)

    def read(self, count: int = 1024) -> str:
        return self.pieces.pop(0) if self.pieces else ""


WHITE = "\x1b]11;rgb:ffff/ffff/ffff\x1b\\"
BLACK = "\x1b]11;rgb:1e1e/1e1e/2e2e\x07"
DEVICE = "\x1b[?62;22c"


@pytest.mark.parametrize(
    "pieces, typed, heard",
    [
        ([f"a{WHITE}{DEVICE}b"], "ab", [WHITE, DEVICE]),
        (["a\x1b]11;rgb:1e1e/", "1e1e/2e2e\x07", "b"], "ab", [BLACK]),
        (["a\x1b]", "11;rgb:1e1e/1e1e/2e2e\x07b"], "ab", [BLACK]),
        ([f"a{WHITE[:-1]}", "\\b"], "ab", [WHITE]),
        (["a\x1b[?62;", "22cb"], "ab", [DEVICE]),
        (["\x1b", "x\x1b[A\x1b[13;2u"], "\x1bx\x1b[A\x1b[13;2u", []),
        (["\x1b]", "hello"], "\x1b]hello", []),
        (["\x1b]11;" + "x" * 80], "\x1b]11;" + "x" * 80, []),
        (["\x1b[200~ ]11;rgb:ffff\x1b[201~"], "\x1b[200~ ]11;rgb:ffff\x1b[201~", []),
    ],
)
def test_what_the_terminal_says_is_not_typed(
    pieces: list[str], typed: str, heard: list[str]
) -> None:
    told: list[str] = []
    replies = Replies(Typed(*pieces), told.append)
    assert "".join(replies.read() for _ in pieces) == typed
    assert told == heard


@pytest.mark.parametrize(
    "reply, theme",
    [(WHITE, "light"), (BLACK, "dark"), ("\x1b]11;rgb:f/f/f\x07", "light"), (DEVICE, "")],
)
def test_the_background_is_dark_or_light(reply: str, theme: Theme) -> None:
    assert theme_of(reply) == theme


def test_the_environment_knows_it_or_says_that_nobody_can_be_asked() -> None:
    assert theme_of_environment({"COLORFGBG": "15;0"}) == "dark"
    assert theme_of_environment({"COLORFGBG": "0;default;15"}) == "light"
    assert theme_of_environment({}) == ""
    assert can_be_asked({"TERM": "xterm"})
    for name in ("SSH_TTY", "SSH_CONNECTION", "NO_COLOR"):
        assert not can_be_asked({"TERM": "xterm", name: "1"})


def test_a_theme_has_colours_of_its_own_in_text_and_in_markdown() -> None:
    light = Palette(colours=True, theme="light")
    assert light("x", "bold", "yellow") == "\x1b[1;38;5;130mx\x1b[0m"
    assert "38;5;30" in lines_of("some `code`", 40, light)[0]
    assert "\x1b[36m" in lines_of("some `code`", 40, Palette(colours=True))[0]
    assert Palette(colours=False, theme="light")("x", "yellow") == "x"
