"""The git patches of version 2 are ones that git itself applies."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from crow.acp.diffs import diff, git_patch
from crow.core.tools import Diff

LONG = "".join(f"line {number}\n" for number in range(3000))
CHANGES = [
    ("one\ntwo\n", "one\nthree\n"),
    ("one\ntwo", "one\ntwo\n"),
    ("one\ntwo\n", "one\ntwo"),
    ("one\ntwo", "one\nthree"),
    ("one\n", ""),
    ("", "one\n"),
    (None, "one\ntwo\n"),
    (None, "one"),
    (None, ""),
    ("a\r\nb\r\n", "a\r\nc\r\n"),
    ("a\n\n\n", "a\n\n"),
    (LONG, LONG.replace("line 1500\n", "line 1500 and a half\n")),
    (LONG, LONG.replace("line", "row")),
    ("héllo\x0cx\n", "hello\x0cx\n"),
]


@pytest.mark.parametrize("old, new", CHANGES)
def test_git_applies_a_patch(tmp_path: Path, old: str | None, new: str) -> None:
    file = tmp_path / "a.txt"
    if old is not None:
        file.write_bytes(old.encode())
    patch = git_patch([Diff("/a.txt", old, new)])
    subprocess.run(
        ["git", "apply", "--whitespace=nowarn", "-"],
        cwd=tmp_path,
        input=patch.encode(),
        check=True,
        env={"GIT_CEILING_DIRECTORIES": str(tmp_path.parent), "PATH": "/usr/bin:/bin"},
    )
    assert file.read_bytes() == new.encode()


def test_changes_come_with_one_patch_for_all_and_none_where_nothing_changed() -> None:
    told = diff([Diff("/a", "x\n", "y\n"), Diff("/b", None, "z\n")])
    assert [each["operation"] for each in told["changes"]] == ["modify", "add"]
    assert str(told["patch"]).count("diff --git") == 2
    assert "patch" not in diff([Diff("/a", "x\n", "x\n")])
