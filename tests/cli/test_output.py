"""What reaches the terminal: never a sequence that steers it, never more than its width."""

from __future__ import annotations

import io
import os
import shlex
import subprocess
import sys
from pathlib import Path
from unicodedata import category

import pytest

from crow.cli.output import Output
from crow.text import clean, columns, one_line, shorten


@pytest.mark.parametrize(
    "text, expected",
    [
        ("plain\ttext\n", "plain\ttext\n"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07after", "after"),
        ("\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1bP+q544e\x1b\\x", "x"),
        ("\x1b[2J\x1b[Hgone", "gone"),
        ("\x1bcreset", "reset"),
        ("bell\x07 back\x08space null\x00", "bell backspace null"),
        ("\x9b31m8-bit", "8-bit"),
        ("\x85next", "next"),
        ("secure\u202etxt.exe", "securetxt.exe"),
        ("over\rwritten", "over\nwritten"),
        ("one\r\ntwo", "one\ntwo"),
        ("cut \x1b", "cut "),
        ("cut \x1b[3", "cut "),
    ],
)
def test_what_a_terminal_would_obey_is_taken_out(text: str, expected: str) -> None:
    assert clean(text) == expected


def test_no_control_character_survives_in_a_line() -> None:
    everything = "".join(map(chr, range(0x100))) + "\u2028x"
    line = one_line(everything)
    assert "\u2028" not in line
    assert [character for character in line if category(character) == "Cc"] == []


def test_a_sequence_that_is_split_over_two_pieces_loses_its_power() -> None:
    stream = io.StringIO()
    out = Output(stream, io.StringIO())
    out.write("a\x1b")
    out.write("[2Jb")
    assert stream.getvalue() == "a[2Jb"


def test_a_line_is_cut_to_the_cells_that_it_may_have() -> None:
    assert shorten("abcdef", 6) == "abcdef"
    assert shorten("abcdefg", 6) == "abcde…"
    assert shorten("日本語のテキスト", 9) == "日本語の…"
    assert columns(shorten("日本語のテキスト", 8)) <= 8


def test_lines_begin_where_a_line_begins() -> None:
    stream = io.StringIO()
    out = Output(stream, io.StringIO())
    out.write("half a")
    out.line("line")
    out.line("next")
    assert stream.getvalue() == "half a\nline\nnext\n"


def test_an_error_is_one_line_without_colours_where_nobody_watches() -> None:
    errors = io.StringIO()
    Output(io.StringIO(), errors).error("two\nlines \x1b[31mred")
    assert errors.getvalue() == "crow: two lines red\n"


def test_colours_can_be_forced_and_are_refused_by_no_color(monkeypatch: pytest.MonkeyPatch) -> None:
    out = Output(io.StringIO(), io.StringIO())
    assert out.styled("x", "red") == "x"
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert out.styled("x", "red") == "\x1b[31mx\x1b[0m"
    monkeypatch.setenv("NO_COLOR", "1")
    assert out.styled("x", "red") == "x"


def test_writing_to_a_reader_that_has_left_is_no_error() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as stream:
        out = Output(stream, io.StringIO())
        out.line("into the void")
        out.line("again")
        assert out.gone


def test_characters_that_the_encoding_lacks_are_replaced() -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii")
    Output(stream, io.StringIO()).line("● ok")
    assert raw.getvalue() == b"? ok\n"


COMMAND = "from crow.cli import main; raise SystemExit(main())"
PROMPT = ["run", "--model", "rehearsal", "hi"]


def crow(*argv: str, streams: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run the command with its standard streams as a shell sets them up."""
    line = f"exec {shlex.join([sys.executable, '-c', COMMAND, *argv])} {streams}"
    return subprocess.run(["sh", "-c", line], cwd=cwd, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("argv", [["hooks"], ["run", "--help"], PROMPT])
@pytest.mark.parametrize(
    "streams, why",
    [
        (">&-", "standard output is closed"),
        (">/dev/full", "standard output fails: No space left on device"),
    ],
)
@pytest.mark.variants(1)
def test_an_output_that_cannot_be_written_to_is_an_error_in_one_line(
    project: Path, argv: list[str], streams: str, why: str
) -> None:
    ended = crow(*argv, streams=streams, cwd=project)
    assert (ended.returncode, ended.stderr) == (1, f"crow: {why}\n")


@pytest.mark.parametrize(
    "argv, streams, status",
    [
        (PROMPT, "<&-", 0),
        (PROMPT, "2>&-", 0),
        (PROMPT, "2>/dev/full", 0),
        (["run", "--nonsense"], "2>&-", 2),
        (["run", "-"], "<&-", 2),
        (["permissions", "check"], "<&-", 0),
        (["login", "openai"], "<&-", 1),
        (["acp"], "<&-", 0),
    ],
)
@pytest.mark.variants(1)
def test_a_stream_that_is_not_needed_may_be_closed(
    project: Path, argv: list[str], streams: str, status: int
) -> None:
    ended = crow(*argv, streams=streams, cwd=project)
    assert ended.returncode == status, ended.stderr
    assert len(ended.stderr.splitlines()) == (status != 0 and streams == "<&-")


@pytest.mark.parametrize("streams", [">&-", ">/dev/full"])
def test_a_client_that_cannot_be_written_to_is_an_error_in_one_line(
    project: Path, streams: str
) -> None:
    hello = '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}'
    (project / "hello").write_text(f"{hello}\n")
    ended = crow("acp", "--model", "rehearsal", streams=f"<hello {streams}", cwd=project)
    assert ended.returncode == 1
    assert ended.stderr.startswith("crow: nothing can be written to the client: ")


def test_no_file_takes_the_place_of_a_stream_that_was_closed(project: Path) -> None:
    look = "[os.readlink(f'/proc/self/fd/{number}') for number in range(3)]"
    hold = f"from crow.cli.output import hold; hold(); print({look}, file=open('seen', 'w'))"
    hold = f"import os; {hold}"
    line = f"exec {shlex.join([sys.executable, '-c', hold])} <&- >&- 2>&-"
    subprocess.run(["sh", "-c", line], cwd=project, check=True)
    assert (project / "seen").read_text() == f"{['/dev/null'] * 3}\n"
