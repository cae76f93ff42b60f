"""A client of the Agent Client Protocol that does the least, so that only the agent is measured."""

from __future__ import annotations

import json
import os
import select
import subprocess
import time
from typing import Any

CAPABILITIES = {"fs": {"readTextFile": False, "writeTextFile": False}, "terminal": False}


class Client:
    """One agent's process; ``updates`` counts what it told."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self.updates = 0
        self._number = 0
        self._rest = b""

    def call(self, method: str, params: object, limit: float) -> tuple[float, Any]:
        """Seconds to the answer to a request, and the answer."""
        self._number += 1
        began = time.monotonic()
        self._write({"id": self._number, "method": method, "params": params})
        while True:
            for message in self._read(began + limit - time.monotonic()):
                if message.get("id") == self._number and "method" not in message:
                    if "error" in message:
                        raise RuntimeError(f"{method}: {message['error'].get('message')}")
                    return time.monotonic() - began, message["result"]
                self._take(message)

    def _take(self, message: dict[str, Any]) -> None:
        if "id" not in message:
            self.updates += message.get("method") == "session/update"
        elif message.get("method") == "session/request_permission":
            options = message["params"]["options"]
            chosen = next(each for each in options if each["kind"].startswith("allow"))
            outcome = {"outcome": "selected", "optionId": chosen["optionId"]}
            self._write({"id": message["id"], "result": {"outcome": outcome}})
        elif "method" in message:
            error = {"code": -32601, "message": "Method not found"}
            self._write({"id": message["id"], "error": error})

    def _write(self, message: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self.process.stdin.flush()

    def _read(self, limit: float) -> list[dict[str, Any]]:
        assert self.process.stdout is not None
        number = self.process.stdout.fileno()
        if limit <= 0 or not select.select([number], [], [], limit)[0]:
            raise TimeoutError("no answer in time")
        if not (data := os.read(number, 1 << 20)):
            raise EOFError("the agent ended")
        *lines, self._rest = (self._rest + data).split(b"\n")
        return [json.loads(line) for line in lines if line.startswith(b"{")]
