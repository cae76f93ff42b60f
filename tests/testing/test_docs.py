"""Every test that a page shows is run by pytest, as a reader would run it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
FACES = {"testing.md": 2 + 1}
"""More than one run of a test."""


DEAR = [pytest.param(page, marks=pytest.mark.slow) for page in ("testing.md", "tools.md")]


@pytest.mark.slow
@pytest.mark.parametrize("page", [*DEAR, "recipes.md", "extension-events.md"])
def test_every_test_of_the_page_passes(tmp_path: Path, page: str):
    text = (DOCS / page).read_text("utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    for number, block in enumerate(blocks):
        (tmp_path / f"test_{number}.py").write_text(block, "utf-8")
    shown = re.findall(r"^(?:async )?def test_", "\n".join(blocks), re.MULTILINE)
    count = len(shown) + FACES.get(page, 0)
    options = "-q", "-o", "asyncio_mode=auto", "-p", "no:cacheprovider", "--basetemp=temporary"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options], cwd=tmp_path, capture_output=True, text=True
    )
    assert f"{count} passed" in done.stdout, done.stdout
