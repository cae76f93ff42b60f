"""Every page has its place on the site, and what is published leads to where it is published from."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest

from crow.core.hooks.points import POINTS

ROOT = Path(__file__).parents[2]
PLACES = re.findall(r"file: (\S+)|root: (\S+)", (ROOT / "docs" / "_toc.yml").read_text("utf-8"))


def test_every_page_has_its_place_and_the_home_page_links_to_it() -> None:
    placed = [Path("".join(place)).name for place in PLACES]
    pages = {path.stem for path in (ROOT / "docs").glob("*.md")}
    assert pages <= set(placed)
    home = (ROOT / "docs" / "index.md").read_text("utf-8")
    assert pages - set(re.findall(r"\]\((\S+)\.md\)", home)) == {"index"}


def test_every_example_is_listed() -> None:
    page = (ROOT / "docs" / "examples.md").read_text("utf-8")
    examples = [path for path in (ROOT / "examples").iterdir() if path.name[0] not in "_."]
    assert [each.name for each in examples if f"../examples/{each.name}" not in page] == []
    assert len(list((ROOT / "examples").glob("*.py"))) >= 25


def test_events_stand_in_the_order_in_which_a_run_meets_them() -> None:
    placed = ["".join(place).removeprefix("docs/events/") for place in PLACES]
    names = [point.name for point in POINTS]
    assert [name for name in placed if name in names] == names


@pytest.mark.slow
@pytest.mark.timeout(200)
def test_the_links_of_a_release_are_whole(tmp_path: Path) -> None:
    uv = shutil.which("uv", path=f"{os.environ['PATH']}:{ROOT / '.uv/bin'}")
    if uv is None:
        pytest.skip("uv is not installed: nothing is built")
    where = {"CROW_REPOSITORY": "https://github.com/ada/crow", "CROW_TAG": "v1"}
    subprocess.run(
        [uv, "build", "-q", "-o", tmp_path, ROOT], env={**os.environ, **where}, check=True
    )
    [wheel] = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as files:
        [name] = [each for each in files.namelist() if each.endswith(".dist-info/METADATA")]
        told = files.read(name).decode()
    assert "Project-URL: Source, https://github.com/ada/crow" in told
    links = re.findall(r"\]\(([^)#][^)]*)\)", told)
    assert links
    assert [link for link in links if not link.startswith("https://")] == []
    assert "(https://github.com/ada/crow/raw/v1/docs/pictures/question.svg)" in told
