"""The page for newcomers is followed to the letter: an empty home, and nothing but Python."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "first-package.md").read_text("utf-8")
FILES = iter(
    ["src/crow_no_lunch/__init__.py", "tests/test_no_lunch.py", "../home/.crow/settings.json"]
)


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_the_page_is_followed(tmp_path: Path) -> None:
    uv = shutil.which("uv", path=f"{os.environ['PATH']}:{ROOT / '.uv/bin'}")
    if uv is None:
        pytest.skip("uv is not installed: there is no wheel to install")
    wheels = tmp_path / "wheels"
    subprocess.run([uv, "build", "-q", "--wheel", "-o", wheels, ROOT], check=True, timeout=100)
    shell = Shell(tmp_path, wheels)
    for kind, block in re.findall(r"^```(\w+)\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL):
        match kind:
            case "sh":
                shell.run(block)
            case "text":
                assert block.strip() in shell.said
            case _:
                file = shell.folder / next(FILES)
                file.parent.mkdir(exist_ok=True)
                file.write_text(block)
    assert "extensions.no_lunch.begins  11" in shell.all
    assert "2 passed" in shell.all
    assert "nothing is wrong with it" in shell.all
    assert sorted(path.suffix for path in (shell.folder / "dist").iterdir()) == [".gz", ".whl"]


class Shell:
    """A shell that goes on from block to block."""

    def __init__(self, top: Path, wheels: Path) -> None:
        self.home, self.folder, self.said, self.all = top / "home", top, "", ""
        self.home.mkdir()
        self.path = f"{Path(sys.executable).resolve().parent}:/usr/bin:/bin"
        self.env = {"HOME": str(self.home), "PIP_FIND_LINKS": str(wheels)}
        self.env |= {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
        self.env["PIP_FIND_LINKS"] = f"{self.env['PIP_FIND_LINKS']} {wheels}"

    def run(self, commands: str) -> None:
        """Run a block; what it leaves of the folder and the PATH holds in the next one."""
        ended = subprocess.run(
            ["bash", "-c", f'set -e\n{commands}\necho; echo "$PWD|$PATH"'],
            cwd=self.folder,
            env={**self.env, "PATH": self.path},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        assert ended.returncode == 0, f"{commands}\n{ended.stdout}"
        self.said, _, left = ended.stdout.rstrip().rpartition("\n")
        self.all += self.said
        folder, _, self.path = left.partition("|")
        self.folder = Path(folder)
