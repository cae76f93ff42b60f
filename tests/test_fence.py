"""The fences hold: the direction of imports, the page that is the loop, one version, one lock."""

from __future__ import annotations

import ast
import os
import re
import shutil
import statistics
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

import crow
from crow._version import __version__

ROOT = Path(__file__).parent.parent
SRC = ROOT / "src" / "crow"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
LINT = Path(sys.executable).parent / "lint-imports"


STRANGE_TO_THE_LOOP = (
    r"(?i)permissions?\b|compact|skill|persist|sqlite|\bmcp\b|retry"
    r"|\b(?:bash|edit|glob|grep|write)\b"
)
TREES = {path: ast.parse(path.read_text("utf-8")) for path in sorted(SRC.rglob("*.py"))}


def write(project: Path, module: str, line: str) -> None:
    """Add a line to a module of the copy; a module that is not there yet is made."""
    path = project.joinpath("src", "crow", *module.split("."))
    path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    path.parent.mkdir(parents=True, exist_ok=True)
    (path.parent / "__init__.py").touch()
    with path.open("a", encoding="utf-8") as file:
        file.write(f"\n{line}\n")


@pytest.mark.parametrize(
    "module, line, edge",
    [
        ("core.loop", "import crow.extensions.compaction", "crow.extensions.compaction"),
        ("core.loop", "from crow.extensions import permissions", "crow.extensions.permissions"),
        ("core.loop", "import httpx2", "httpx2"),
        ("core.session", "from crow.core import loop", "crow.core.loop"),
        ("extensions.compaction", "from crow.extensions import limits", "crow.extensions.limits"),
        ("extensions.compaction", "from crow.tools import bash", "crow.tools.bash"),
        ("tools.bash", "import acp", "acp"),
        ("acp.server", "import crow.cli", "crow.cli"),
        ("cli.run", "import crow.testing.script", "crow.testing.script"),
        ("tools.bash", "from crow import Agent", "crow"),
    ],
)
def test_one_import_in_the_wrong_direction_breaks_the_build(
    tmp_path: Path, module: str, line: str, edge: str
) -> None:
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    shutil.copytree(SRC, tmp_path / "src/crow", ignore=shutil.ignore_patterns("__pycache__"))
    for room in ("extensions.compaction", "extensions.permissions", "extensions.limits"):
        write(tmp_path, room, "")
    for room in ("core.loop", "tools.bash", "acp.server", "cli.run", "testing.script"):
        write(tmp_path, room, "")
    write(tmp_path, module, line)

    lint = subprocess.run(
        [LINT, "--no-logo", "--no-cache"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path / "src")},
        capture_output=True,
        text=True,
    )

    assert lint.returncode == 1, lint.stdout + lint.stderr
    assert f"crow.{module} -> {edge} " in lint.stdout


def test_the_core_imports_the_standard_library_and_itself() -> None:
    strangers = [
        (path.name, name)
        for path, tree in TREES.items()
        if path.is_relative_to(SRC / "core")
        for name in imported(tree)
        if name.split(".")[0] not in sys.stdlib_module_names and not name.startswith("crow.core")
    ]
    assert strangers == []


def imported(tree: ast.Module) -> Iterator[str]:
    """The absolute names that a module imports, inside functions too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""


def test_importing_crow_imports_no_third_party() -> None:
    show = "import sys; old = set(sys.modules); import crow; print(*(set(sys.modules) - old))"
    shown = subprocess.run(
        [sys.executable, "-c", show], capture_output=True, text=True, check=True
    ).stdout
    names = {name.split(".")[0] for name in shown.split()}
    assert names - sys.stdlib_module_names == {"crow"}


def test_the_loop_is_a_page_that_knows_nothing_of_what_hangs_on_it() -> None:
    loop = SRC / "core" / "loop.py"
    text = loop.read_text("utf-8")
    functions = [
        node
        for node in ast.walk(TREES[loop])
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    assert len(text.splitlines()) <= 120
    assert max((node.end_lineno or 0) - node.lineno + 1 for node in functions) <= 25
    assert re.findall(STRANGE_TO_THE_LOOP, text) == []


def test_functions_are_short() -> None:
    lengths = [
        (node.end_lineno or 0) - node.lineno + 1
        for tree in TREES.values()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    assert statistics.median(lengths) <= 10
    assert statistics.quantiles(lengths, n=10)[-1] <= 30


def test_the_version_is_the_one_that_the_package_declares() -> None:
    assert PROJECT["version"] == __version__ == crow.__version__


def test_the_lock_holds_what_the_package_declares_and_public_addresses_only() -> None:
    text = (ROOT / "uv.lock").read_text("utf-8")
    package = next(p for p in tomllib.loads(text)["package"] if p["name"] == PROJECT["name"])
    locked = {
        dependency["name"] + dependency.get("specifier", "")
        for dependency in package["metadata"]["requires-dist"]
        if "marker" not in dependency
    }
    assert locked == set(PROJECT["dependencies"])
    assert set(re.findall(r"https?://([^/\"]+)", text)) == {"pypi.org", "files.pythonhosted.org"}
