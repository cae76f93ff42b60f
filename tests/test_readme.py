"""What the README shows is run as it stands."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
SMALL_PARTS = {"annotations", "defaults", "events", "keys", "messages", "text"}
GUIDE = ROOT / "src/crow/extensions/authoring/guide/crow-extensions/SKILL.md"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), GUIDE]


def blocks(page: Path) -> list[Any]:
    """Every Python block of a page."""
    if page.name == "first-package.md":  # followed from beginning to end, in tests/guides
        return []
    found = re.finditer(r"^```python\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)
    return [
        pytest.param(
            page, match[1], id=f"{page.name}:{page.read_text()[: match.start()].count(chr(10)) + 2}"
        )
        for match in found
    ]


@pytest.mark.parametrize("page, code", [block for page in PAGES for block in blocks(page)])
async def test_every_python_block_runs(page, code, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    scope: dict[str, Any] = {"__name__": "block"}
    flags = __import__("ast").PyCF_ALLOW_TOP_LEVEL_AWAIT
    compiled = compile(code, str(page), "exec", flags=flags, dont_inherit=True)
    result = eval(compiled, scope)
    if inspect.isawaitable(result):
        await result
    main = scope.get("main")
    if inspect.iscoroutinefunction(main):  # a `main(options, out)` is a command
        await main()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_inside_the_repository_leads_somewhere(page):
    for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text()):
        assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_the_picture_of_the_house_is_the_layout_of_the_folders():
    picture = (ROOT / "README.md").read_text().split("src/crow/\n")[1].split("```")[0]
    drawn = set(re.findall(r"\b([a-z_]+)(?:/|\.py)", picture))
    rooms = {
        path.stem
        for path in (ROOT / "src/crow").iterdir()
        if not path.name.startswith("_") and path.suffix in ("", ".py")
    }
    inside = {path.name for path in (ROOT / "src/crow").glob("*/*/")}
    assert drawn <= rooms | inside
    assert rooms - drawn <= SMALL_PARTS


def test_the_table_of_hooks_is_the_table_of_points():
    from crow.core.hooks.points import POINTS

    rows = {
        line.split("|")[1].strip(" `"): line
        for line in (ROOT / "docs/hooks.md").read_text().splitlines()
        if line.startswith("| `") and line.count("|") == 7
    }
    assert list(rows) == [point.name for point in POINTS]
    for point in POINTS:
        cells = [cell.strip() for cell in rows[point.name].split("|")]
        named = {name.strip(" *"): "*" in name for name in cells[3].split(",")}
        assert named == {field: field in point.changes for field in point.fields}
        assert cells[5] == point.kind + (", reversed" if point.reverse else "")
        assert cells[6] == ", ".join(f"`{name}`" for name in [*point.names][1:])
