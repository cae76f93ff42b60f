"""The real command, as a process of its own in an empty home."""

from __future__ import annotations

import asyncio
import io
import json
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, TYPE_CHECKING, Any

import pytest
from tests.cli.forks import Forks

from crow.cli import main
from crow.testing.endpoint import USAGE, Endpoint, Response, delta, stream

if TYPE_CHECKING:
    from tests.cli.screens import Tmux

Here = Callable[..., Awaitable["Ended"]]


def feed(pipe: int, text: str) -> None:
    """Write to a pipe whose reader may leave."""
    with suppress(BrokenPipeError), os.fdopen(pipe, "w", encoding="utf-8") as stream:
        stream.write(text)


def written(file: IO[bytes]) -> str:
    """All that was written to a file."""
    file.seek(0)
    return file.read().decode()


@dataclass(frozen=True, slots=True)
class Ended:
    """What a command left: its exit status and what it wrote."""

    status: int | None
    out: str
    err: str

    @property
    def events(self) -> list[dict[str, Any]]:
        """The lines of ``--json``."""
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def complaint(self) -> str:
        """The one line on standard error."""
        (line,) = self.err.splitlines()
        assert line.startswith("crow: ")
        return line.removeprefix("crow: ")


class Crow:
    """``await crow("run", "PROMPT")`` in a project's directory: a process, made by a fork.

    ``await crow.alone(...)`` starts an interpreter for it, as `start` does, which leaves it running;
    so does a ``PYTHONPATH``, which is read where one starts.
    """

    def __init__(self, cwd: Path, forks: Forks) -> None:
        self.cwd = cwd
        self.forks = forks
        self.env: dict[str, str] = {}

    def use(self, endpoint: Endpoint) -> None:
        """Ask this endpoint."""
        self.env |= {"CROW_BASE_URL": endpoint.url, "CROW_MODEL": "scripted", "CROW_API_KEY": "k"}

    def command(self, *argv: str) -> list[str]:
        """The program and its arguments."""
        return [sys.executable, "-m", "crow", *argv]

    async def start(
        self, *argv: str, stdin: int = asyncio.subprocess.DEVNULL, **env: str
    ) -> asyncio.subprocess.Process:
        """Start a command and leave it running."""
        return await asyncio.create_subprocess_exec(
            *self.command(*argv),
            cwd=self.cwd,
            env={**os.environ, **self.env, **env},
            stdin=stdin,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )

    async def __call__(self, *argv: str, stdin: str = "", **env: str) -> Ended:
        if "PYTHONPATH" in self.env:
            return await self.alone(*argv, stdin=stdin, **env)
        reading, writing = os.pipe()
        feeding = asyncio.create_task(asyncio.to_thread(feed, writing, stdin))
        ended = await self.reading(reading, *argv, **env)
        await feeding
        return ended

    async def reading(self, stdin: int, *argv: str, **env: str) -> Ended:
        """Run a command on an open file, which is closed here."""
        whole = {**os.environ, **self.env, **env}
        with TemporaryFile() as out, TemporaryFile() as err:
            with os.fdopen(stdin, "rb"):
                streams = stdin, out.fileno(), err.fileno()
                fork = await self.forks.start(argv, self.cwd, whole, streams)
            return Ended(await fork.wait(), written(out), written(err))

    async def alone(self, *argv: str, stdin: str = "", **env: str) -> Ended:
        """Run a command in an interpreter of its own, to its end."""
        process = await self.start(*argv, stdin=asyncio.subprocess.PIPE, **env)
        out, err = await process.communicate(stdin.encode())
        return Ended(process.returncode, out.decode(), err.decode())


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with one file."""
    folder = tmp_path / "project"
    (folder / ".git").mkdir(parents=True)
    (folder / "README.md").write_text("# Thing\n\nIt does things.\n", "utf-8")
    return folder


@pytest.fixture(scope="session")
def forks() -> Iterator[Forks]:
    """Who makes the processes of these tests."""
    with closing(Forks()) as forks:
        yield forks


@pytest.fixture
def crow(project: Path, forks: Forks) -> Crow:
    """The command, in the project."""
    return Crow(project, forks)


@pytest.fixture
def here(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Here:
    """The command without a process of its own, for what only lists, judges or complains."""
    monkeypatch.chdir(project)

    async def command(*argv: str, stdin: str = "") -> Ended:
        monkeypatch.setattr("sys.stdin", io.StringIO(stdin))
        before = dict(os.environ)
        try:
            status = await asyncio.to_thread(main, list(argv))
        finally:  # a process of its own would take what settings export along
            for name in os.environ.keys() - before.keys():
                del os.environ[name]
            os.environ.update(before)
        told = capsys.readouterr()
        return Ended(status, told.out, told.err)

    return command


@pytest.fixture
async def tmux(tmp_path: Path) -> AsyncIterator[Tmux]:
    """A terminal."""
    from tests.cli.screens import Tmux

    tmux = Tmux(tmp_path)
    yield tmux
    await tmux.close()


@pytest.fixture
async def narrow(tmp_path: Path) -> AsyncIterator[Tmux]:
    """A terminal with 40 columns."""
    from tests.cli.screens import Tmux

    (tmp_path / "narrow").mkdir()
    tmux = Tmux(tmp_path / "narrow", 40, 20)
    yield tmux
    await tmux.close()


@pytest.fixture
async def endpoint(crow: Crow) -> AsyncIterator[Endpoint]:
    """A model's endpoint that the command asks."""
    async with Endpoint() as endpoint:
        crow.use(endpoint)
        yield endpoint


def calls(*wanted: tuple[str, dict[str, Any]], text: str = "") -> Response:
    """The response of a model that calls tools."""
    parts = [
        {
            "index": index,
            "id": f"call_{index}_{name}",
            "type": "function",
            "function": {"name": name, "arguments": json.dumps(args)},
        }
        for index, (name, args) in enumerate(wanted)
    ]
    said = [delta(content=text)] if text else []
    return stream(*said, delta(tool_calls=parts), delta(finish="tool_calls"), USAGE)
