"""What a running tool has at hand, without a loop: the attributes of a `ToolEnvironment`, and no more."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from crow.core.events import Event
from crow.core.ports.client import Files, PermissionRequest, Question, Terminal, Terminals
from crow.core.ports.tool import Launcher
from crow.core.tools import Call, ToolResult
from crow.keys import MAY_READ
from crow.tools import builtin
from crow.tools.shells import Shells

TOOLS: dict[str, Any] = {tool.name: tool for tool in builtin()}


@dataclass
class Editor:
    """A client; ``files`` and ``terminals`` are there where a test gives them."""

    files: Files | None = None
    terminals: Terminals | None = None

    async def update(self, session_id: str, event: Event) -> None:
        return None

    async def permission(self, session_id: str, request: PermissionRequest) -> str | None:
        return None

    async def ask(self, session_id: str, question: Question) -> Any:
        return question.default


@dataclass
class Buffers:
    """The files of an editor: unsaved text by path, over the disk. ``saves`` says if it saves.

    ``missing`` is what it answers for a file that it does not have; None is an error. ``is_remote``:
    it sees another disk.
    """

    unsaved: dict[str, str] = field(default_factory=dict)
    saves: bool = True
    is_broken: bool = False
    refuses_to_write: bool = False
    missing: str | None = None
    is_remote: bool = False
    written: list[str] = field(default_factory=list)
    read_for: list[str] = field(default_factory=list)

    async def read(self, path: str) -> str:
        self.read_for.append(path)
        if self.is_broken:
            raise OSError("the editor does not answer")
        if path in self.unsaved:
            return self.unsaved[path]
        if self.is_remote or not Path(path).exists():
            if self.missing is None:
                raise FileNotFoundError(f"there is no file {path}")
            return self.missing
        return Path(path).read_bytes().decode("utf-8-sig").replace("\r\n", "\n")

    async def write(self, path: str, text: str) -> None:
        if self.is_broken or self.refuses_to_write:
            raise OSError("the editor does not answer")
        self.written.append(path)
        self.unsaved[path] = text
        if self.saves:
            Path(path).write_bytes(text.encode())
            del self.unsaved[path]


@dataclass
class Screen:
    """A client's terminal: a real process whose output the user would see."""

    process: asyncio.subprocess.Process
    printed: Path
    id: str = "term-1"
    is_released: bool = False

    async def output(self) -> tuple[str, bool]:
        return self.printed.read_text(), False

    async def wait(self) -> tuple[int | None, str | None]:
        code = await self.process.wait()
        return (code, None) if code >= 0 else (None, f"signal {-code}")

    async def kill(self) -> None:
        self.process.kill()
        await self.process.wait()

    async def release(self) -> None:
        self.is_released = True


@dataclass
class Screens:
    """A client's terminals."""

    folder: Path
    made: list[Screen] = field(default_factory=list)
    is_broken: bool = False

    async def create(
        self, command: str, args: Sequence[str], *, cwd: str, env: Mapping[str, str], limit: int
    ) -> Terminal:
        if self.is_broken:
            raise OSError("no terminal to be had")
        path = self.folder / f"screen-{len(self.made)}"
        with path.open("wb") as file:
            process = await asyncio.create_subprocess_exec(command, *args, cwd=cwd, stdout=file)
        self.made.append(Screen(process, path))
        return self.made[-1]


@dataclass
class Workbench:
    """A session as a tool sees it. ``use`` does what the core does with a call."""

    cwd: str
    roots: tuple[str, ...]
    client: Editor = field(default_factory=Editor)
    session_id: str = "session-1"
    call: Call = field(default_factory=lambda: Call("call-1", "tool"))
    state: dict[str, Any] = field(default_factory=dict)
    cache: dict[str, Any] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=lambda: dict(os.environ))
    secrets: tuple[str, ...] = ()
    launcher: Launcher | None = None
    shown: list[str] = field(default_factory=list)
    terminals: list[str] = field(default_factory=list)
    printed: asyncio.Event = field(default_factory=asyncio.Event)

    async def progress(self, text: str, *, terminal: str | None = None) -> None:
        self.shown.append(text)
        self.printed.set()
        if terminal:
            self.terminals.append(terminal)

    async def emit(self, event: Event) -> None:
        return None

    async def use(self, tool: str, **args: Any) -> ToolResult:
        """Prepare, check and run; arguments that are wrong are a failure."""
        made = TOOLS[tool]
        ready = made.prepare(args, self.cwd)
        if problem := made.check(ready):
            return ToolResult.failure(problem)
        return ToolResult.of(await made.run(ready, self))

    def close(self, *names: str) -> None:
        """Keep files and folders of these names from being read by tools that search."""

        def may_read(path: str) -> bool:
            return not set(names).intersection(Path(path).parts)

        self.cache[MAY_READ] = {"test": may_read}

    def path(self, name: str) -> Path:
        return Path(self.cwd, name)

    def put(self, name: str, content: str | bytes) -> Path:
        """Make a file, byte for byte."""
        path = self.path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Workbench]:
    """A session in an empty directory; what it started ends with the test."""
    folder = tmp_path / "project"
    folder.mkdir()
    made = Workbench(str(folder), (str(folder),))
    yield made
    await Shells.of(made).aclose()


@pytest.fixture
def buffers() -> Buffers:
    """An editor's files."""
    return Buffers()


@pytest.fixture
def screens(tmp_path: Path) -> Screens:
    """An editor's terminals."""
    return Screens(tmp_path)
