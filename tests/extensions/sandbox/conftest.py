"""Back ends that work on this machine, and commands that run in them."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from crow.extensions.sandbox.backend import Backend, Finding, Launch
from crow.extensions.sandbox.policy import Policy
from crow.extensions.sandbox.probe import find_backend
from crow.extensions.sandbox.protected import protected_paths
from crow.process import ChildProcess

BACKENDS = ("bubblewrap", "landlock")


def backend(name: str) -> Backend:
    """A back end, or no test."""
    try:
        return find_backend(name)
    except OSError as error:
        pytest.skip(str(error))


@pytest.fixture(params=BACKENDS)
def any_backend(request: pytest.FixtureRequest) -> Backend:
    """Each that works here."""
    return backend(request.param)


@pytest.fixture
def root() -> Iterator[Path]:
    """A workspace that no private /tmp hides, where there is such a place; gone with the test."""
    place = next((each for each in ("/var/cache", Path.cwd()) if os.access(each, os.W_OK)), None)
    with tempfile.TemporaryDirectory(prefix="crow-test-", dir=place) as folder:
        yield Path(folder).resolve()


@dataclass
class Ran:
    """What came of a command."""

    code: int | None
    output: str
    found: list[Finding]
    refused: list[str]


@dataclass
class Confined:
    """A launcher that keeps the findings of its last launch."""

    backend: Backend
    policy: Policy
    found: Sequence[Finding] = ()
    refused: Sequence[str] = ()

    def launch(
        self, argv: Sequence[str], cwd: str, env: Mapping[str, str]
    ) -> AbstractContextManager[Launch]:
        return self._launch(argv, cwd, env)

    @contextmanager
    def _launch(self, argv: Sequence[str], cwd: str, env: Mapping[str, str]) -> Iterator[Launch]:
        with self.backend.confine(argv, cwd, env, self.policy) as launch:
            self.found, self.refused = launch.found, launch.refused
            yield launch


class Command(ChildProcess):
    """A command that keeps what it prints."""

    def __init__(self, mark: str = "") -> None:
        super().__init__(mark=mark)
        self.output = b""

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        self.output += data


async def run(backend: Backend, policy: Policy, command: str, seconds: float = 20) -> Ran:
    """Run a shell command in a ring until its end."""
    policy = replace(policy, readable=(*policy.readable, sys.prefix))  # it may lie in /tmp
    launcher, process = Confined(backend, policy), Command()
    env = {"PATH": os.environ["PATH"], "HOME": os.environ["HOME"]}
    argv = ["/bin/sh", "-c", command]
    await process.start(argv, policy.roots[0], env, launcher=launcher)
    try:
        if not await process.wait(seconds):
            await process.stop(0.1)
        await process.settle(0.5)
    finally:
        process.close()
    output = process.output.decode(errors="replace")
    return Ran(process.code, output, list(launcher.found), list(launcher.refused))


@pytest.fixture
def workspace(root: Path) -> Callable[..., Policy]:
    """The workspace ring around the root."""

    def policy(**given: object) -> Policy:
        paths = {"read_only": protected_paths(str(root))} | given
        return Policy("workspace", (str(root),), **paths)  # type: ignore[arg-type]

    return policy
