"""The page of each event says what the table says, and its example runs at that event."""

from __future__ import annotations

import inspect
import re
from typing import Any

import pytest
from tests.events.loop import drawn
from tests.events.pages import FOLDER, ROOT, head

from crow.core.hooks.points import POINTS, Point
from crow.testing import Pilot


@pytest.fixture(params=POINTS, ids=lambda point: point.name)
def point(request: pytest.FixtureRequest) -> Point:
    return request.param


def test_the_page_says_what_the_table_says(point: Point):
    assert (FOLDER / f"{point.name}.md").read_text().startswith(head(point))


def test_the_example_runs_at_the_event(point: Point, crow: Pilot):
    page = (FOLDER / f"{point.name}.md").read_text()
    [code] = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    scope: dict[str, Any] = {"__name__": "example"}
    exec(compile(code, f"{point.name}.md", "exec", flags=0, dont_inherit=True), scope)
    [test] = [thing for name, thing in scope.items() if name.startswith("test_")]
    assert inspect.isfunction(test)
    test(crow)
    crow.ran(point.name)


def test_every_event_has_a_page():
    assert {path.stem for path in FOLDER.glob("*.md")} == {point.name for point in POINTS}


def test_the_page_of_the_events_of_extensions_is_what_they_define(crow: Pilot):
    crow.configure(settings={"extensions": {"setup": {}}})
    known = {point.name for point in POINTS}
    points = [
        each.point for each in crow.agent.hooks.points.values() if each.point.name not in known
    ]
    page = (ROOT / "docs/extension-events.md").read_text()
    rows = [line.split("|")[1:-1] for line in page.splitlines() if line.startswith("| `on_")]
    told = {(row[0].strip(" `"), row[3].strip(), row[4].strip()) for row in rows}
    assert told == {(each.name, each.kind, ", ".join(each.fields)) for each in points}


def test_the_picture_of_the_loop_shows_every_event_once():
    picture = drawn()
    assert (ROOT / "docs/pictures/loop.svg").read_text("utf-8") == picture
    names = re.findall(r">([a-z]+(?:_[a-z]+)+)</text>", picture)
    assert sorted(names) == sorted(point.name for point in POINTS)
