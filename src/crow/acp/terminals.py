"""The client's terminals: commands that run where its user sees them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from crow.acp import bounds
from crow.acp.jsonrpc import Message
from crow.acp.peer import Peer

TIMEOUT = 10.0


class EditorTerminal:
    """One command in a terminal of the client's. Every method may raise ``OSError``."""

    def __init__(self, peer: Peer, session_id: str, terminal_id: str) -> None:
        self.id = terminal_id
        self._peer = peer
        self._session_id = session_id
        self._timeout = peer.abilities.patience or TIMEOUT

    async def output(self) -> tuple[str, bool]:
        """What it printed so far, and whether the beginning was cut off."""
        result = await self._ask("output", self._timeout)
        return str(result.get("output") or ""), result.get("truncated") is True

    async def wait(self) -> tuple[int | None, str | None]:
        """Wait for its end, however long: exit status and signal name, one of them None."""
        result = await self._ask("wait_for_exit", None)
        code: Any = result.get("exitCode")
        name: Any = result.get("signal")
        return code if isinstance(code, int) else None, name if isinstance(name, str) else None

    async def kill(self) -> None:
        """End the command; what it printed can still be read."""
        await self._ask("kill", self._timeout)

    async def release(self) -> None:
        """Free it."""
        await self._ask("release", self._timeout)

    async def _ask(self, what: str, timeout: float | None) -> Message:
        params = {"sessionId": self._session_id, "terminalId": self.id}
        return await self._peer.request(f"terminal/{what}", params, timeout)


class EditorTerminals:
    """Starts commands in the client, in the name of one session."""

    def __init__(self, peer: Peer, session_id: str) -> None:
        self._peer = peer
        self._session_id = session_id
        self._timeout = peer.abilities.patience or TIMEOUT

    async def create(
        self, command: str, args: Sequence[str], *, cwd: str, env: Mapping[str, str], limit: int
    ) -> EditorTerminal:
        """Start a command. Raises ``OSError`` where the client cannot."""
        params: Message = {
            "sessionId": self._session_id,
            "command": command,
            "args": list(args),
            "cwd": cwd,
            "env": [{"name": name, "value": value} for name, value in env.items()],
            "outputByteLimit": limit,
        }
        bounds.demand_carried(params)
        result = await self._peer.request("terminal/create", params, self._timeout)
        terminal_id = result.get("terminalId")
        if not isinstance(terminal_id, str):
            raise OSError("the client made a terminal without an id")
        return EditorTerminal(self._peer, self._session_id, terminal_id)
