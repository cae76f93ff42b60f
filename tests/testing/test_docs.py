"""Every test that the page about testing shows is run by pytest, as a reader would run it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

PAGE = (Path(__file__).parents[2] / "docs" / "testing.md").read_text("utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def test_every_test_of_the_page_passes(tmp_path: Path):
    for number, block in enumerate(BLOCKS):
        (tmp_path / f"test_{number}.py").write_text(block, "utf-8")
    shown = re.findall(r"^(?:async )?def test_", "\n".join(BLOCKS), re.MULTILINE)
    faces = 2 + 1  # more than one of a test
    count = len(shown) + faces
    options = "-q", "-o", "asyncio_mode=auto", "-p", "no:cacheprovider", "--basetemp=temporary"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options], cwd=tmp_path, capture_output=True, text=True
    )
    assert f"{count} passed" in done.stdout, done.stdout
