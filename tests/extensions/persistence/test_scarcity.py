"""A disk that is really full, and a folder that really cannot be written to."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PROGRAM = Path(__file__).with_name("scarce.py")
ALONE = ("unshare", "--map-root-user", "--mount")


def can_mount() -> bool:
    if shutil.which("unshare") is None:
        return False
    tried = subprocess.run([*ALONE, "mount", "-t", "tmpfs", "x", "/mnt"], capture_output=True)
    return tried.returncode == 0


pytestmark = pytest.mark.skipif(not can_mount(), reason="this machine lets nobody mount")


def work(folder: Path, how: str) -> dict[str, Any]:
    ran = subprocess.run(
        [*ALONE, sys.executable, PROGRAM, folder, how], capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


def test_a_full_disk_fails_one_prompt_and_loses_nothing(tmp_path: Path) -> None:
    said = work(tmp_path, "full")
    assert said["stops"] == ["error", "end_turn", "end_turn"]
    first, second, last = said["notices"]
    assert first.endswith("crow.db: the disk is full: free some space")
    assert second.startswith("this session is not stored for now: ")
    assert last == "the session is stored again"
    assert said["readable"] == 2
    assert said["same"]


def test_in_a_folder_that_cannot_be_written_sessions_are_read_and_not_stored(
    tmp_path: Path,
) -> None:
    said = work(tmp_path, "closed")
    assert said["stops"] == ["end_turn", "end_turn"]
    assert all("use another db_path" in notice for notice in said["notices"])
    assert len(said["notices"]) == 3
    assert said["readable"]
    assert said["same"]
