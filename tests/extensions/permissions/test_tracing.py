"""A trace, read as the kernel's answers: a call that others interrupted counts once, as it ended."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.tracing import MARK, read_trace

LOST = 'openat(AT_FDCWD</folder>, "gone", O_RDONLY'
FOUND = 'openat(AT_FDCWD</folder>, "here", O_RDONLY'


def deeds(tmp_path: Path, *lines: str):
    trace = tmp_path / "trace"
    begin = f'1 openat(AT_FDCWD</>, "{MARK}0", O_RDONLY) = -1 ENOENT (No such file or directory)'
    trace.write_text("\n".join([begin, *lines, ""]))
    [found] = read_trace(trace, ["/folder"])
    return found


@pytest.mark.parametrize(
    ("lines", "opened"),
    [
        ([f"1 {LOST}) = -1 ENOENT (No such file or directory)"], set()),
        ([f"1 {FOUND}) = 3</folder/here>"], {"/folder/here"}),
        (
            [
                f"1 {LOST} <unfinished ...>",
                f"2 {FOUND} <unfinished ...>",
                "1 <... openat resumed>) = -1 ENOENT (No such file or directory)",
                "2 <... openat resumed>) = 3</folder/here>",
            ],
            {"/folder/here"},
        ),
        ([f"1 {LOST} <unfinished ...>"], {"/folder/gone"}),
    ],
    ids=["failed", "opened", "interrupted", "cut off"],
)
def test_a_call_counts_as_it_ended(tmp_path, lines, opened):
    assert deeds(tmp_path, *lines).opened == opened


def test_an_interrupted_start_of_a_program_is_one_start(tmp_path):
    found = deeds(
        tmp_path,
        '1 execve("/bin/evil", ["evil"], 0x1 /* 3 vars */ <unfinished ...>',
        '2 openat(AT_FDCWD</folder>, "w", O_WRONLY|O_CREAT, 0666) = 3</folder/w>',
        "1 <... execve resumed>) = 0",
    )
    assert found.ran == ["/bin/evil"]
    assert len(found.changed) == 1


def test_a_mark_ends_what_came_before_even_if_it_was_interrupted(tmp_path):
    found = deeds(
        tmp_path,
        f'1 openat(AT_FDCWD</>, "{MARK}end", O_RDONLY <unfinished ...>',
        "1 <... openat resumed>) = -1 ENOENT (No such file or directory)",
        f"1 {FOUND}) = 3</folder/here>",
    )
    assert found.opened == set()
