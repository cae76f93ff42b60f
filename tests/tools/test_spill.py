"""Long outputs: what is shown is bounded, what is kept is whole, no grapheme is split."""

from __future__ import annotations

import stat
import tempfile
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crow.tools import clip
from crow.tools.output import Capture, readable
from crow.tools.spill import outputs
from crow.tools.text import boundary

GRAPHEMES = ["a", "\n", "\r\n", "é", "e\u0301", "👩‍👩‍👧", "🇩🇪", "👍🏽", "❤\ufe0f", "→"]


def test_a_short_text_is_left_alone(tmp_path: Path) -> None:
    assert clip("short", 10, tmp_path / "never") == ("short", None)
    assert not (tmp_path / "never").exists()


def test_a_long_text_is_kept_where_only_its_owner_reads_it(tmp_path: Path) -> None:
    text = "".join(f"line {n}\n" for n in range(1000))
    shown, path = clip(text, 600, tmp_path / "out")
    assert path is not None
    assert path.read_text() == text
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert len(shown) <= 600
    assert shown.startswith("line 0\nline 1\n")
    assert shown.endswith("\nline 998\nline 999\n")
    assert f"of {len(text)} characters the middle is left out; all of it: {path}" in shown


def test_a_lone_surrogate_is_kept_too(tmp_path: Path) -> None:
    _, path = clip("\ud800" * 100, 50, tmp_path)
    assert path is not None
    assert path.read_bytes().decode("utf-8", "surrogatepass") == "\ud800" * 100


def test_every_session_has_a_folder_of_its_own(home: Path) -> None:
    assert outputs("abc") == home / ".cache/crow/outputs/abc"
    assert outputs("../../etc").parent == outputs("abc").parent
    assert outputs("..").name == "session"


@given(st.lists(st.sampled_from(GRAPHEMES), max_size=60), st.integers(0, 300))
def test_a_cut_is_bounded_and_splits_no_grapheme(pieces: list[str], limit: int) -> None:
    text = "".join(pieces)
    with tempfile.TemporaryDirectory() as folder:
        shown, path = clip(text, limit, Path(folder))
        assert len(shown) <= max(limit, len(text) if path is None else 0)
        if path is None:
            assert shown == text
            return
        assert path.read_bytes() == text.encode()
    for part in shown.split("\n[...")[0], shown.rpartition("...]\n")[2]:
        assert whole(part, text)


def whole(part: str, text: str) -> bool:
    """True where a piece of the text begins and ends between two graphemes."""
    if not part:
        return True
    bounds = {n for n in range(len(text) + 1) if boundary(text, n) == n}
    starts = [n for n in range(len(text)) if text.startswith(part, n)]
    return any(n in bounds and n + len(part) in bounds for n in starts)


@given(st.lists(st.sampled_from(GRAPHEMES), min_size=1, max_size=12), st.data())
def test_a_boundary_stands_between_graphemes(pieces: list[str], data: st.DataObject) -> None:
    text = "".join(pieces)
    index = data.draw(st.integers(0, len(text)))
    found = boundary(text, index)
    assert found <= index
    if 0 < found < len(text):
        assert not unicodedata.combining(text[found])
        assert text[found] not in "\ufe0f\u200d\U0001f3fd"
        assert text[found - 1] != "\u200d"
        assert text[found - 1 : found + 1] != "\r\n"


@given(st.lists(st.binary(max_size=30), max_size=30), st.integers(2, 60))
def test_a_capture_keeps_both_ends(pieces: list[bytes], limit: int) -> None:
    capture = Capture(limit)
    for piece in pieces:
        capture.feed(piece)
    data = b"".join(pieces)
    assert capture.size == len(data)
    assert capture.is_cut == (len(data) > limit)
    assert len(capture.head) + capture.tail_size <= limit + 30
    assert data.startswith(bytes(capture.head))
    assert data.endswith(b"".join(capture.tail))
    if not capture.is_cut:
        assert capture.text() == readable(data.decode("utf-8", "replace"))


@pytest.mark.parametrize(
    "raw,text",
    [
        ("plain\ttext\n", "plain\ttext\n"),
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b(B\x1b=done", "done"),
        ("\x1b]never ended\nnext", "\nnext"),
        ("10%\r20%\r", "20%"),
        ("a\x00b\x07c\x9b31md\x85", "abcd"),
    ],
)
def test_terminal_control_is_taken_out(raw: str, text: str) -> None:
    assert readable(raw) == text
