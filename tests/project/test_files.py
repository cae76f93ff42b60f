"""Files that are written whole keep what they were."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from crow.project import write_atomically


@pytest.mark.parametrize("mode", [0o755, 0o640, 0o600])
def test_who_may_read_and_run_a_file_stays_as_it_was(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "script.sh"
    path.write_text("old")
    path.chmod(mode)
    write_atomically(path, "new")
    assert (path.read_text(), stat.S_IMODE(path.stat().st_mode)) == ("new", mode)


def test_a_private_file_is_private_whatever_it_was(tmp_path: Path) -> None:
    path = tmp_path / "key"
    path.write_text("old")
    path.chmod(0o755)
    write_atomically(path, "new", private=True)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_new_file_is_made_as_any_other(tmp_path: Path) -> None:
    write_atomically(tmp_path / "new", "text")
    (tmp_path / "other").touch()
    assert os.stat(tmp_path / "new").st_mode == os.stat(tmp_path / "other").st_mode  # noqa: PTH116
