"""All checks of an extension, those that run it in a process of their own."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import Any

from crow.cli.ext_check.finding import Finding, read
from crow.cli.ext_check.static_checks import read_files

WIDTH = 240
LONGEST = 180
"""Seconds that an extension may take for everything."""

NUMBER = re.compile(r"\d+")
NO_EVENT = re.compile(r" is no event; |there is no event '")


def check(spec: str) -> Iterator[Finding]:
    """What is wrong with a file, a package's folder, or an extension that is installed."""
    place = Path(os.path.expanduser(spec)).absolute()
    yield from once(_checked(place, spec))


def _checked(place: Path, spec: str) -> Iterator[Finding]:
    seen = [*read_files(place)] if place.exists() else []
    yield from seen
    lines = {each.place for each in seen}
    for finding in played(str(place) if place.exists() else spec):
        again = finding.place in lines and "ImportError: " in finding.what
        if not (again or (seen and NO_EVENT.search(finding.what))):  # which was said with its line
            seen.append(finding)
            yield finding
    if place.exists():
        said = {(os.path.realpath(each.path), each.line) for each in seen}
        yield from (
            each for each in typed(place) if (os.path.realpath(each.path), each.line) not in said
        )


def once(findings: Iterable[Finding]) -> Iterator[Finding]:
    """Each thing that is wrong, said once; numbers in it may be others each time."""
    said: set[tuple[str, str, int]] = set()
    for finding in findings:
        what = finding.path, NUMBER.sub("0", finding.what), finding.line
        if what not in said:
            said.add(what)
            yield finding


def played(
    spec: str, how: str = "dynamic_checks", *arguments: str, longest: int = LONGEST
) -> Iterator[Finding]:
    """What is wrong with it in the whole agent, in an empty home and folder.

    ``how`` is the module that plays it.
    """
    with TemporaryDirectory(prefix="crow-check-") as folder:
        home, project, file = (Path(folder, name) for name in ("home", "project", "findings"))
        for each in (home, project):
            each.mkdir()
        argv = [sys.executable, "-P", "-m", f"{__package__}.{how}", spec, str(file), *arguments]
        env = {**os.environ, "HOME": str(home), "CROW_SANDBOX": "off"}
        env = {name: value for name, value in env.items() if not name.startswith("XDG_")}
        said = run_alone(argv, project, env, longest)
        if said is None:
            yield Finding(f"it did not end within {longest} s", "look for what never returns")
        elif file.exists():
            yield from read(file.read_text("utf-8"))
        else:
            last = f": {said[-1]}" if said else ""
            yield Finding(f"it ended the process that played it{last}", "raise, and never exit")


def run_alone(argv: list[str], cwd: Path, env: dict[str, str], longest: float) -> list[str] | None:
    """What a program writes as its errors; None where it does not end. Its children end with it."""
    with TemporaryFile() as errors:  # which nobody waits for, whoever holds it open
        process = subprocess.Popen(
            argv, cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=errors, start_new_session=True,
        )  # fmt: skip
        try:
            process.wait(longest)
        except subprocess.TimeoutExpired:
            return None
        finally:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        errors.seek(0)
        return errors.read().decode(errors="replace").strip().splitlines()


def typed(place: Path) -> Iterator[Finding]:
    """What pyright finds, where it is installed."""
    pyright = shutil.which("pyright", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    if pyright is None:
        return
    argv = [pyright, "--outputjson", "--pythonpath", sys.executable, "--project"]
    with TemporaryDirectory(prefix="crow-check-") as folder:
        argv.append(str(place) if has_config(place) else folder)
        near = os.path.relpath(os.path.realpath(place), os.path.realpath(folder))
        config = {"include": [near], "extraPaths": [near, f"{near}/src"]}
        Path(folder, "pyrightconfig.json").write_text(json.dumps(config), "utf-8")
        try:
            done = subprocess.run(argv, capture_output=True, timeout=LONGEST, check=False)
            told: dict[str, Any] = json.loads(done.stdout)
        except (OSError, ValueError, subprocess.TimeoutExpired):
            return
    for each in told.get("generalDiagnostics", ()):
        if each["severity"] == "error":
            what, *more = [" ".join(line.split()) for line in each["message"].splitlines()]
            what = f"{what}: {more[0]}"[:WIDTH] if more else what
            rule = f" ({each['rule']})" if "rule" in each else ""
            yield Finding(f"{what}{rule}", "", each["file"], each["range"]["start"]["line"] + 1)


def has_config(place: Path) -> bool:
    """True for a folder that says itself how pyright reads it; one around it says nothing."""
    project = place / "pyproject.toml"
    own = project.is_file() and "[tool.pyright]" in project.read_text("utf-8", "replace")
    return own or (place / "pyrightconfig.json").is_file()
