"""What the essays' tests share: packages that are installed into a folder, and run from there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest


class Environment:
    """A folder that packages are installed into, as an installer does it, and a Python that sees it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def install(
        self, distribution: str, files: Mapping[str, str], entry_points: Mapping[str, str]
    ) -> None:
        """Write a distribution's modules and its metadata."""
        for name, source in files.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(textwrap.dedent(source))
        info = self.folder / f"{distribution.replace('-', '_')}-1.0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\nRequires-Dist: crow-acp\n"
        )
        points = "".join(f"{name} = {value}\n" for name, value in entry_points.items())
        (info / "entry_points.txt").write_text(f"[crow.extensions]\n{points}")

    def run(self, source: str) -> Any:
        """Run a program; what it prints, read as JSON."""
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(source)],
            env={**os.environ, "PYTHONPATH": str(self.folder)},
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=30,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


@pytest.fixture
def environment(tmp_path: Path) -> Environment:
    """A temporary environment that packages can be installed into."""
    return Environment(tmp_path / "site")


@pytest.fixture
def contents() -> Callable[[Any], list[str]]:
    """The texts of messages."""

    def texts(messages: Any) -> list[str]:
        return [str(message.get("content")) for message in messages]

    return texts
