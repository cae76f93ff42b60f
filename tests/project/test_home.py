"""Paths as people read them."""

from __future__ import annotations

from pathlib import Path

from crow.project import from_home


def test_only_what_is_in_the_home_begins_with_a_tilde(home: Path) -> None:
    assert from_home(home) == "~"
    assert from_home(f"{home}/a/b.py") == "~/a/b.py"
    assert from_home(f"/mnt{home}/a") == f"/mnt{home}/a"
    assert from_home(f"{home}-2/a") == f"{home}-2/a"
