"""The files and terminals of a client, lent to tools: files as its user sees them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from crow.acp.connection import Connection
from crow.acp.errors import ClientError
from crow.acp.jsonrpc import Message, Sent
from crow.acp.limits import demand_carried

if TYPE_CHECKING:
    import crow.acp.outgoing as v1

Tell = Callable[[str], Awaitable[None]]
RELUCTANT = 1.0
"""Seconds for a client that has left a request of this kind unanswered."""
INSTEAD = {
    "fs/read_text_file": "what is on the disk counts until it does",
    "fs/write_text_file": "files without unsaved changes are written to the disk until it does",
    "terminal/create": "commands run outside of its terminals until it does",
}
"""What the user is told of the methods that something else stands in for."""


class ClientRequests:
    """Asks the client in the name of one session; ``tell`` says something to its user.

    ``session_id`` is what the client knows the session by.
    """

    def __init__(self, connection: Connection, session_id: str, tell: Tell) -> None:
        self._connection = connection
        self.session_id = session_id
        self._tell = tell
        self._silent: set[str] = set()

    async def request(self, method: str, params: Sent, patience: float | None) -> Message:
        """Ask, and wait ``patience`` seconds or as long as the client said. Raises ``OSError``."""
        kind = method.partition("/")[0]
        try:
            answer = await self._connection.request(method, params, self._limit(kind, patience))
        except TimeoutError as error:
            if kind not in self._silent and method in INSTEAD:
                await self._tell(f"{error}: {INSTEAD[method]}")
            self._silent.add(kind)
            raise
        self._silent.discard(kind)
        return answer

    def _limit(self, kind: str, patience: float | None) -> float | None:
        if patience is None:
            return None
        patience = self._connection.capabilities.patience or patience
        return min(patience, RELUCTANT) if kind in self._silent else patience


READING, WRITING = 10.0, 30.0
"""Seconds; some clients let their user look at what is to be written."""


class ClientFiles:
    """Reads and writes through the client, in the name of one session."""

    def __init__(self, requests: ClientRequests) -> None:
        self._requests = requests

    async def read(self, path: str) -> str:
        """The text of a file. Raises ``FileNotFoundError``, ``PermissionError`` or ``OSError``."""
        asked: v1.ReadTextFileRequest = {"sessionId": self._requests.session_id, "path": path}
        try:
            result = await self._requests.request("fs/read_text_file", asked, READING)
        except ClientError as error:
            if error.is_not_found:
                raise FileNotFoundError(f"there is no file {path}") from None
            raise _told(error) from None
        content = result.get("content")
        if not isinstance(content, str):
            raise OSError(f"the client gave no text for {path}")
        return content

    async def write(self, path: str, text: str) -> None:
        """Replace a file's text. Raises ``PermissionError`` or ``OSError``, also for long texts."""
        params: v1.WriteTextFileRequest = {
            "sessionId": self._requests.session_id,
            "path": path,
            "content": text,
        }
        demand_carried(params)
        try:
            await self._requests.request("fs/write_text_file", params, WRITING)
        except ClientError as error:
            raise _told(error) from None


def _told(error: ClientError) -> OSError:
    """A refusal is one; any other error says only that the client cannot."""
    return PermissionError(str(error)) if error.is_refusal else error


TIMEOUT = 10.0
RELEASE = 0.5


class ClientTerminal:
    """One command in a terminal of the client's. All but `release` may raise ``OSError``."""

    def __init__(self, requests: ClientRequests, terminal_id: str) -> None:
        self.id = terminal_id
        self._requests = requests

    async def output(self) -> tuple[str, bool]:
        """What it printed so far, and whether the beginning was cut off."""
        result = await self._ask("output")
        return str(result.get("output") or ""), result.get("truncated") is True

    async def wait(self) -> tuple[int | None, str | None]:
        """Wait for its end, however long: exit status and signal name, one of them None."""
        result = await self._ask("wait_for_exit", None)
        code: Any = result.get("exitCode")
        name: Any = result.get("signal")
        return code if isinstance(code, int) else None, name if isinstance(name, str) else None

    async def kill(self) -> None:
        """End the command; what it printed can still be read."""
        await self._ask("kill")

    async def release(self) -> None:
        """Free it; a client that fails to keeps it."""
        with suppress(OSError):
            async with asyncio.timeout(RELEASE):
                await self._ask("release", None)

    async def _ask(self, what: str, timeout: float | None = TIMEOUT) -> Message:
        asked: v1.TerminalOutputRequest = {
            "sessionId": self._requests.session_id,
            "terminalId": self.id,
        }
        return await self._requests.request(f"terminal/{what}", asked, timeout)


class ClientTerminals:
    """Starts commands in the client, in the name of one session."""

    def __init__(self, requests: ClientRequests) -> None:
        self._requests = requests

    async def create(
        self, command: str, args: Sequence[str], *, cwd: str, env: Mapping[str, str], limit: int
    ) -> ClientTerminal:
        """Start a command. Raises ``OSError`` where the client cannot."""
        params: v1.CreateTerminalRequest = {
            "sessionId": self._requests.session_id,
            "command": command,
            "args": list(args),
            "cwd": cwd,
            "env": [{"name": name, "value": value} for name, value in env.items()],
            "outputByteLimit": limit,
        }
        demand_carried(params)
        result = await self._requests.request("terminal/create", params, TIMEOUT)
        terminal_id = result.get("terminalId")
        if not isinstance(terminal_id, str):
            raise OSError("the client made a terminal without an id")
        return ClientTerminal(self._requests, terminal_id)
