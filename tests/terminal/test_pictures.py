"""Pictures: found by their paths, sent beside the text, drawn where the terminal can."""

from __future__ import annotations

import base64
import io
import shutil
import subprocess
from pathlib import Path

import pytest
from PIL import Image, ImageChops

from crow.core.messages import ImagePart
from crow.terminal.background import knows_sixels
from crow.terminal.palette import Palette, plain
from crow.terminal.pictures import (
    drawn,
    paths_in,
    picture_lines,
    pictures_of,
    protocol_of,
    with_pictures,
)
from crow.terminal.raster import as_sixels

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


def test_a_picture_is_a_line_where_the_terminal_shows_none() -> None:
    part: ImagePart = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{DATA}"}}
    lines = picture_lines(part, 80, Palette())
    assert [plain(line) for line in lines] == ["  ▣ PNG · 2×3 · 0 kB"]
    shown, line = picture_lines(part, 80, Palette(pictures="kitty"))
    assert "\x1b_Ga=T,f=100,r=8,C=1,q=2,m=0;" in shown
    assert plain(line) == plain(lines[0])


def test_what_looks_like_somebodys_home_is_a_word() -> None:
    assert paths_in("~nobody-here/a.png and ~nobody-here", "/tmp") == []


def test_terminals_are_known_by_their_names() -> None:
    assert protocol_of({"TERM": "xterm-kitty"}) == "kitty"
    assert protocol_of({"TERM_PROGRAM": "ghostty"}) == "kitty"
    assert protocol_of({"TERM_PROGRAM": "iTerm.app"}) == "iterm"
    assert protocol_of({"TERM_PROGRAM": "iTerm.app", "TMUX": "x"}) == ""
    assert protocol_of({"TERM": "xterm"}) == ""


def test_nothing_but_base64_gets_into_a_sequence_and_a_large_picture_goes_in_pieces() -> None:
    assert list(drawn("image/png", "x\x1b\\y", "kitty", 80)) == []
    (told,) = drawn("image/png", "A" * 9000, "kitty", 80)
    assert [told.count(f"m={n};") for n in (1, 0)] == [2, 1]
    assert told.startswith("\r\n" * 7 + "\x1b[7A")
    assert list(drawn("image/gif", "AA", "iterm", 80)) == [
        "\x1b]1337;File=inline=1;size=1;height=8;preserveAspectRatio=1:AA\x07"
    ]


def picture(size: tuple[int, int], form: str = "PNG") -> str:
    """A picture with a red left half, a blue right one, and nothing at the bottom."""
    width, height = size
    image = Image.new("RGBA", size, (255, 0, 0, 255))
    image.paste((0, 0, 255, 255), (width // 2, 0, width, height))
    image.paste((0, 0, 0, 0), (0, height - 1, width, height))
    file = io.BytesIO()
    (image if form == "PNG" else image.convert("RGB")).save(file, form)
    return base64.b64encode(file.getvalue()).decode()


def test_sixels_are_six_rows_at_once_by_colours() -> None:
    assert as_sixels(picture((8, 8)), 80, 8) == (
        '\x1bP0;1;0q"1;1;8;8#0;2;100;0;0#1;2;0;0;100#2;2;0;0;0'
        "#0!4~$#1!4?!4~-"  # six rows
        "#0!4@$#1!4?!4@-"  # one, and one in which nothing is seen
        "\x1b\\"
    )


def test_a_terminal_of_sixels_has_a_picture_in_its_own_rows() -> None:
    (told,) = drawn("image/jpeg", picture((900, 300), "JPEG"), "sixel", 40)
    room, _, rest = told.partition("\x1b[7A")
    assert room == "\r\n" * 7
    assert rest.startswith('\x1b7\x1bP0;1;0q"1;1;320;107#')  # 40 cells, as wide as cells are
    assert rest.endswith("\x1b\\\x1b8\x1b[7B")
    assert list(drawn("image/png", "AAAA", "sixel", 80)) == []


def test_kitty_has_other_pictures_as_pngs() -> None:
    (told,) = drawn("image/jpeg", picture((9, 9), "JPEG"), "kitty", 80)
    data = told.partition("m=0;")[2].partition("\x1b")[0]
    assert base64.b64decode(data).startswith(b"\x89PNG")


def test_a_terminal_says_whether_it_knows_sixels() -> None:
    assert knows_sixels("\x1b[?62;4;22c")
    assert not knows_sixels("\x1b[?62;22c")
    assert not knows_sixels("\x1b[?4;6c")
    assert not knows_sixels("\x1b]11;rgb:4/4/4\x07")


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("sixel2png") is None, reason="sixel2png is not installed")
def test_libsixel_reads_the_picture_as_it_was(tmp_path: Path) -> None:
    noise = Image.effect_noise((90, 70), 80).convert("RGBA").quantize(64).convert("RGBA")
    file = io.BytesIO()
    noise.save(file, "PNG")
    told = as_sixels(base64.b64encode(file.getvalue()).decode(), 80, 8)
    subprocess.run(["sixel2png", "-o", tmp_path / "a.png"], input=told.encode(), check=True)
    seen = Image.open(tmp_path / "a.png").convert("RGB")
    assert seen.size == (90, 70)
    off = max(ImageChops.difference(seen, noise.convert("RGB")).tobytes())
    assert off <= 3  # a colour is told in percent
