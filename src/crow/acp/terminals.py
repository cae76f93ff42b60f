"""The client's terminals: commands that run where its user sees them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from crow.acp.bounds import demand_carried
from crow.acp.jsonrpc import Message
from crow.acp.lending import Lender

TIMEOUT = 10.0
RELEASE = 0.5


class ClientTerminal:
    """One command in a terminal of the client's. All but `release` may raise ``OSError``."""

    def __init__(self, lender: Lender, terminal_id: str) -> None:
        self.id = terminal_id
        self._lender = lender

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
        return await self._lender.request(f"terminal/{what}", {"terminalId": self.id}, timeout)


class ClientTerminals:
    """Starts commands in the client, in the name of one session."""

    def __init__(self, lender: Lender) -> None:
        self._lender = lender

    async def create(
        self, command: str, args: Sequence[str], *, cwd: str, env: Mapping[str, str], limit: int
    ) -> ClientTerminal:
        """Start a command. Raises ``OSError`` where the client cannot."""
        params: Message = {
            "command": command,
            "args": list(args),
            "cwd": cwd,
            "env": [{"name": name, "value": value} for name, value in env.items()],
            "outputByteLimit": limit,
        }
        demand_carried(params)
        result = await self._lender.request("terminal/create", params, TIMEOUT)
        terminal_id = result.get("terminalId")
        if not isinstance(terminal_id, str):
            raise OSError("the client made a terminal without an id")
        return ClientTerminal(self._lender, terminal_id)
