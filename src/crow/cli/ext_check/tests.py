"""The tests of an extension: those that come with it, and lives that are made up."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from crow.cli.ext_check.checks import played
from crow.cli.ext_check.finding import Finding
from crow.cli.output import Output
from crow.cli.parser import UsageError

A_LIFE = 20
"""Seconds that a life may take, for all of them together."""


def run_tests(spec: str, out: Output) -> int:
    """Have pytest run what tests there are; 1 where one fails."""
    need("pytest")
    place = Path(os.path.expanduser(spec)).absolute()
    files = [*tests_of(place)]
    if not files:
        out.note("it has no tests of its own")
        return 0
    folder = place if place.is_dir() else place.parent
    path = [str(each) for each in (folder / "src", folder) if each.is_dir()]
    path += filter(None, [os.environ.get("PYTHONPATH")])
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(path)}
    argv = [sys.executable, "-m", "pytest", "-q", *map(str, files)]
    if place.is_file():  # what Python keeps beside it would be part of what is trusted
        env["PYTHONDONTWRITEBYTECODE"] = "1"
        argv += ["-p", "no:cacheprovider"]
    return 1 if subprocess.run(argv, cwd=folder, env=env, check=False).returncode else 0


def tests_of(place: Path) -> Iterator[Path]:
    """Where the tests of a package's folder are, or of a file: beside it, or in ``tests``."""
    if place.is_dir():
        yield from [place / "tests"] if (place / "tests").is_dir() else place.glob("test_*.py")
        return
    for folder in (place.parent, place.parent / "tests"):
        if (path := folder / f"test_{place.stem}.py").is_file():
            yield path


def lives(spec: str, plays: int, number: int) -> Iterator[Finding]:
    """What is wrong with an extension, and the shortest life that shows it."""
    need("hypothesis")
    place = Path(os.path.expanduser(spec)).absolute()
    known = str(place) if place.exists() else spec
    return played(known, "stateful", str(plays), str(number), longest=max(180, A_LIFE * plays))


def need(module: str) -> None:
    """Raise `UsageError` where a library for tests is not installed."""
    if find_spec(module) is None:
        raise UsageError(f"{module} is not installed beside Crow: pip install 'crow-acp[testing]'")
