"""An empty or a relative HOME is none: the user's own home is used, never the root."""

from __future__ import annotations

import os
import pwd
import subprocess
import sys
from pathlib import Path

import pytest

ASKS = """
import os, pathlib, subprocess
print(pathlib.Path.home(), os.path.expanduser("~/x"), flush=True)
subprocess.run(["sh", "-c", "echo ~"])
"""
FACES = {
    "command": "from crow.cli import main; main(['permissions', 'check', 'Bash(ls)'])",
    "library": "from crow.app import build; build()",
}


@pytest.mark.parametrize("home", ["", ".", "a/b", "~"])
@pytest.mark.parametrize("face", FACES)
@pytest.mark.variants(2)
def test_a_home_that_is_no_absolute_path_is_none(tmp_path: Path, face: str, home: str) -> None:
    own = pwd.getpwuid(os.getuid()).pw_dir
    done = subprocess.run(
        [sys.executable, "-c", FACES[face] + "\n" + ASKS],
        env={**os.environ, "HOME": home},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines()[-2:] == [f"{own} {own}/x", own]
    assert not list(tmp_path.iterdir())


def test_an_absolute_home_is_what_it_says(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FACES["library"] + "\n" + ASKS],
        env={**os.environ, "HOME": f"{tmp_path}"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines() == [f"{tmp_path} {tmp_path}/x", f"{tmp_path}"]


@pytest.mark.slow
def test_a_folder_of_the_users_that_is_no_absolute_path_is_none(tmp_path: Path) -> None:
    """Else a repository could bring along what Crow keeps there: which projects are trusted."""
    names = [f"XDG_{each}_HOME" for each in ("CONFIG", "STATE", "CACHE", "DATA")]
    asks = f"import os, crow.project.home as h; print([os.environ.get(n) for n in {names}])"
    done = subprocess.run(
        [sys.executable, "-c", f"{FACES['command']}\n{asks}; print(h.state_directory())"],
        env={**os.environ, "HOME": f"{tmp_path}", **dict.fromkeys(names, "here")},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines()[-2:] == [f"{[None] * 4}", f"{tmp_path}/.local/state/crow"]
    assert not (tmp_path / "here").exists()
