"""Settings on a disk that is really full."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.chaos.full import SETTINGS
from tests.extensions.persistence.test_scarcity import ALONE, can_mount

ROOT = Path(__file__).parents[2]
PROGRAM = (sys.executable, "-m", "tests.chaos.full")


@pytest.mark.slow
@pytest.mark.skipif(not can_mount(), reason="this machine lets nobody mount")
def test_an_answer_that_cannot_be_kept_counts_and_no_setting_is_lost(tmp_path: Path) -> None:
    ran = subprocess.run([*ALONE, *PROGRAM, tmp_path], cwd=ROOT, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    said = json.loads(ran.stdout)
    assert said["settings"] == SETTINGS
    assert said["files"] == ["filler", "settings.local.json"]
    assert said["made"]
    assert said["stop"] == "end_turn"
    notice = f"{tmp_path}/.claude/settings.local.json: the rule Bash(touch made) could not be kept"
    assert any(notice in each for each in said["notices"]), said["notices"]
