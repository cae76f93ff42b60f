"""Pictures: found by their paths, sent beside the text, drawn where the terminal can."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from crow.core.messages import ImagePart
from crow.terminal.palette import Palette, plain
from crow.terminal.pictures import (
    drawn,
    paths_in,
    picture_lines,
    pictures_of,
    protocol_of,
    with_pictures,
)

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAIAAAADCAIAAAA2iEnWAAAAEElEQVR4nGP8zwACTGCSAQANHQEDqtPptQAAAABJRU5ErkJggg=="
)
DATA = base64.b64encode(PNG).decode()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with pictures."""
    for name in ("a.png", "b c.PNG"):
        (tmp_path / name).write_bytes(PNG)
    (tmp_path / "no.png").write_text("text", "utf-8")
    return tmp_path


@pytest.mark.parametrize(
    "text, names",
    [
        ("look at a.png, please", ["a.png"]),
        ("what is @a.png?", ["a.png"]),
        ("'{}/b c.PNG' and {}/a.png", ["b c.PNG", "a.png"]),
        ("{}/b\\ c.PNG", ["b c.PNG"]),
        ("file://{}/b%20c.PNG", ["b c.PNG"]),
        ("a.png a.png", ["a.png"]),
        ("gone.png, b, png", []),
    ],
)
def test_pictures_are_found_as_they_are_typed_pasted_or_dragged(
    folder: Path, text: str, names: list[str]
) -> None:
    found = paths_in(text.replace("{}", str(folder)), str(folder))
    assert [path.name for path in found] == names


def test_pictures_go_beside_the_text_and_what_is_none_stays_a_path(folder: Path) -> None:
    content, wrong = with_pictures("look", [folder / "a.png", folder / "no.png"])
    assert isinstance(content, list)
    assert content[0] == {"type": "text", "text": "look"}
    assert [part["image_url"]["url"] for part in pictures_of(content)] == [
        f"data:image/png;base64,{DATA}"
    ]
    assert wrong == ["no.png stays a path: it is no picture"]
    assert with_pictures("look", [])[0] == "look"


def test_a_picture_is_a_line_where_the_terminal_shows_none(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TERM_PROGRAM", "KITTY_WINDOW_ID", "TMUX"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    part: ImagePart = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{DATA}"}}
    lines = picture_lines(part, 80, Palette())
    assert [plain(line) for line in lines] == ["  ▣ PNG · 2×3 · 0 kB"]
    monkeypatch.setenv("TERM", "xterm-kitty")
    assert "\x1b_Ga=T,f=100,r=8,C=1,q=2,m=0;" in picture_lines(part, 80, Palette())[0]


def test_what_looks_like_somebodys_home_is_a_word() -> None:
    assert paths_in("~nobody-here/a.png and ~nobody-here", "/tmp") == []


def test_terminals_are_known_by_their_names() -> None:
    assert protocol_of({"TERM": "xterm-kitty"}) == "kitty"
    assert protocol_of({"TERM_PROGRAM": "ghostty"}) == "kitty"
    assert protocol_of({"TERM_PROGRAM": "iTerm.app"}) == "iterm"
    assert protocol_of({"TERM_PROGRAM": "iTerm.app", "TMUX": "x"}) == ""
    assert protocol_of({"TERM": "xterm"}) == ""


def test_nothing_but_base64_gets_into_a_sequence_and_a_large_picture_goes_in_pieces() -> None:
    assert list(drawn("image/png", "x\x1b\\y", "kitty")) == []
    assert list(drawn("image/jpeg", DATA, "kitty")) == []
    (told,) = drawn("image/png", "A" * 9000, "kitty")
    assert [told.count(f"m={n};") for n in (1, 0)] == [2, 1]
    assert told.startswith("\r\n" * 7 + "\x1b[7A")
    assert list(drawn("image/gif", "AA", "iterm")) == [
        "\x1b]1337;File=inline=1;height=8;preserveAspectRatio=1:AA\x07"
    ]
