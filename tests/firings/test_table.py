"""The table of docs/hooks.md says of every event on which paths it fires, and of the rest why not.

``.venv/bin/python -m tests.firings`` drives all paths and writes it anew.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.firings.doors import DOORS, Fired, Room, drive
from tests.firings.table import PATHS, documented, in_document, lapses, points, rows, written

from crow.testing import BuildAgent

HERE = ("main", "sub", "compact", "command", "cancel", "fail")


def against_the_reasons(fired: Fired) -> list[str]:
    """What is wrong with the reasons, and what fires in other places than the table says."""
    heard, told = rows(fired), documented()
    assert heard.keys() == told.keys()
    others = [
        f"{name} at {column}: {cell or 'silent'}, but the table says {told[name][column]}"
        for name, cells in heard.items()
        for column, cell in cells.items()
        if bool(cell) is told[name][column].isdecimal()
    ]
    return [*lapses(heard), *others]


async def test_every_event_of_an_agent_fires_where_the_table_says(tmp_path: Path) -> None:
    fired = await drive(tmp_path, Room.embedded)
    assert set(fired) == {PATHS[column] for column in HERE}
    assert against_the_reasons(fired) == []


@pytest.mark.slow
@pytest.mark.timeout(400)
async def test_the_table_is_what_every_path_makes_of_it(tmp_path: Path) -> None:
    fired = await drive(tmp_path, *DOORS)
    assert set(fired) == set(PATHS.values())
    assert against_the_reasons(fired) == []
    assert written(fired) == in_document()


def test_no_event_is_left_out_of_the_table(build_agent: BuildAgent) -> None:
    names = build_agent().hooks.points
    assert names.keys() <= {point.name for point in points()}
