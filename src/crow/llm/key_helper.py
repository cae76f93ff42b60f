"""A key helper: a command of the user's that prints a key."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Mapping

from crow.core.errors import ModelError
from crow.process import ChildProcess

TTL_NAME = "CLAUDE_CODE_API_KEY_HELPER_TTL_MS"
TTL = 300.0
LIMIT = 60.0
MOST = 64 * 1024


class KeyHelper:
    """Runs a command for a key, again when the key is ``ttl`` seconds old or was refused.

    The command is a shell's. Requests that come while it runs wait for the same key.
    """

    def __init__(self, command: str, ttl: float = TTL) -> None:
        self.command = command
        self._ttl = ttl
        self._key = ""
        self._until = 0.0
        self._lock = asyncio.Lock()

    async def key(self, refused: str = "") -> str:
        """A key other than the one that was ``refused``, if the command has another.

        Raises `ModelError` (authentication) where it fails or prints nothing.
        """
        async with self._lock:
            if not self._key or self._key == refused or time.monotonic() >= self._until:
                self._key = await self._run()
                self._until = time.monotonic() + self._ttl
            return self._key

    async def _run(self) -> str:
        child = _Output()
        try:
            await child.start(_shell(self.command), os.getcwd(), os.environ)  # noqa: PTH109
            if not await child.wait(LIMIT):
                raise _failed(f"gave no key in {LIMIT:g} s")
            await child.settle(1.0)
        except (OSError, ValueError) as error:
            raise _failed(f"cannot be run: {error}") from error
        finally:
            await child.end()
        key = child.said[1].decode("utf-8", "replace").strip()
        if child.code:
            last = child.said[2].decode("utf-8", "replace").strip().rpartition("\n")[2]
            raise _failed(f"ended with status {child.code}" + (f": {last}" if last else ""))
        if not key:
            raise _failed("printed no key")
        if not (key.isascii() and key.isprintable()):
            raise _failed("printed what is no key")
        return key


class _Output(ChildProcess):
    """Keeps what the command writes."""

    def __init__(self) -> None:
        super().__init__()
        self.said = {1: bytearray(), 2: bytearray()}

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """More of it."""
        self.said[fd] += data[: MOST - len(self.said[fd])]


def helper_of(command: str, env: Mapping[str, str]) -> KeyHelper:
    """The helper with the lifetime of keys that the environment says."""
    try:
        ttl = float(env.get(TTL_NAME) or TTL * 1000) / 1000
    except ValueError:
        ttl = TTL
    return KeyHelper(command, ttl)


def _shell(command: str) -> list[str]:
    return (
        [os.environ.get("COMSPEC", "cmd.exe"), "/c", command]
        if os.name == "nt"
        else [
            "/bin/sh",
            "-c",
            command,
        ]
    )


def _failed(what: str) -> ModelError:
    return ModelError(f"the apiKeyHelper {what}", kind="authentication")
