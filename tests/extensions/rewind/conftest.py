"""What is kept lies in a file, or in the database that machines share: the same tests for both."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.postgres import Server, postgres

from crow.extensions import PersistenceHook

__all__ = ["postgres"]


@pytest.fixture(params=["file", pytest.param("postgres", marks=pytest.mark.slow)])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> PersistenceHook:
    """The store of the sessions; where machines share it, it has what they changed, too."""
    if request.param == "file":
        return PersistenceHook(tmp_path / "crow.db")
    server: Server = request.getfixturevalue("postgres")
    return PersistenceHook(server.database())
