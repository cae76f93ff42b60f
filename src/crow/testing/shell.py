"""The terminals of a fake editor: commands that really run."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field


@dataclass(slots=True)
class ShellTerminal:
    """A command, what it printed so far, and how it ended."""

    command: list[str]
    process: asyncio.subprocess.Process
    printed: bytearray = field(default_factory=bytearray)
    reading: asyncio.Task[None] | None = None
    is_released: bool = False

    async def read(self) -> None:
        """Collect what the command prints."""
        assert self.process.stdout is not None
        while data := await self.process.stdout.read(4096):
            self.printed += data

    async def wait(self) -> int:
        """Wait for its end and for all that it printed; the exit status."""
        if self.reading is not None:
            await asyncio.wait([self.reading])
        return await self.process.wait()

    def kill(self) -> None:
        """End it."""
        with suppress(ProcessLookupError):
            self.process.kill()


class Shell:
    """Terminals by id, those that were released among them."""

    def __init__(self) -> None:
        self.terminals: dict[str, ShellTerminal] = {}

    async def create(
        self, command: str, args: Sequence[str], cwd: str | None, env: Mapping[str, str]
    ) -> str:
        """Start a command; the id of its terminal."""
        process = await asyncio.create_subprocess_exec(
            command,
            *args,
            cwd=cwd,
            env={**os.environ, **env},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        terminal = ShellTerminal([command, *args], process)
        terminal.reading = asyncio.create_task(terminal.read())
        terminal_id = f"terminal-{len(self.terminals) + 1}"
        self.terminals[terminal_id] = terminal
        return terminal_id

    async def close(self) -> None:
        """End every command."""
        for terminal in self.terminals.values():
            terminal.kill()
            await terminal.wait()
