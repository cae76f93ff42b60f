"""A large file over a network: the official Python library takes frames of 1 MiB at most."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.acp import large

from crow.testing import FakeEditor


@pytest.mark.parametrize("scheme", ["http", "ws"])
@pytest.mark.slow
async def test_a_large_file_is_changed_and_its_session_loaded_again(
    start: Callable[..., Any], scheme: str, tmp_path: Path
) -> None:
    path = large.make(tmp_path)
    source = str(Path(sys.modules[large.__name__].__file__ or ""))
    server = start("--extension", source)
    first, later = FakeEditor(files={}), FakeEditor()
    async with first.dialed(server.url(scheme)):
        session = await first.new_session(tmp_path)
        assert (await first.prompt(session, "Change it")).stop_reason == "end_turn"
        assert len([one for one in first.asked if "toolCall" in one]) == 1
    assert path.read_text().count("another line") == 1
    async with later.dialed(server.url(scheme)):
        await later.connection.load_session(str(tmp_path), session)
        assert [card["name"] for card in later.cards()] == ["Read", "Edit"]
