"""The site is built as `make docs` builds it, and needs no other host."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SPHINX = ROOT / ".docs/bin/sphinx-build"
ASKS = re.compile(
    r"""<(?:script|img|iframe)[^>]*\ssrc="(https?:[^"]*)|<link[^>]*\shref="(https?:[^"]*)"""
)


@pytest.mark.slow
def test_the_site_is_built_without_a_warning_and_asks_nothing_of_other_hosts(tmp_path: Path):
    if not SPHINX.exists():
        pytest.skip("make docs installs what builds it")
    options = ["-W", "-n", "--keep-going", "--quiet", "--conf-dir", str(ROOT / "docs")]
    places = ["--doctree-dir", str(tmp_path / "doctrees"), str(ROOT), str(tmp_path / "site")]
    done = subprocess.run([SPHINX, *options, *places], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    pages = {path.name: path.read_text("utf-8") for path in (tmp_path / "site").glob("**/*.html")}
    assert {"index.html", "hooks.html", "search.html"} <= pages.keys()
    assert {name: found for name, text in pages.items() if (found := ASKS.findall(text))} == {}
    assert (tmp_path / "site/searchindex.js").stat().st_size > 10_000
