"""The places that sessions are stored in: the same tests run on each of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.postgres import Server, postgres

__all__ = ["postgres"]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """An SQLite file that is not there yet, nor its folder."""
    return tmp_path / "state" / "crow.db"


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.slow)])
def db(request: pytest.FixtureRequest, file: Path) -> Path | str:
    """Where sessions are stored: in each kind of place in turn."""
    if request.param == "sqlite":
        return file
    server: Server = request.getfixturevalue("postgres")
    return server.database()
