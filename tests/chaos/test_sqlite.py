"""The database library that Crow stores with."""

from __future__ import annotations

import apsw


def test_the_library_has_the_mended_checkpoint() -> None:
    """Two writers with checkpoints could damage a database from 3.7.0 to 3.51.2."""
    version = tuple(int(part) for part in apsw.sqlite_lib_version().split("."))
    assert version >= (3, 51, 3)
