"""Lines of JSON to and from a program, and the requests that either side answers."""

from __future__ import annotations

import asyncio
import json
import os
import uuid
from collections.abc import AsyncGenerator, Callable
from threading import Thread
from typing import Any, cast

from crow.core.errors import CrowError

Message = dict[str, Any]
PIECE = 65536


def as_object(value: object) -> Message:
    """A value where it is an object; else an empty one."""
    return cast(Message, value) if isinstance(value, dict) else {}


class ControlError(CrowError):
    """A request of either side that the other one refuses; the text says why."""


class Lines:
    """Writes messages, asks the program, and gives its answers to who waits for them.

    ``write`` takes a line without its end.
    """

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write
        self._asked: dict[str, asyncio.Future[Message]] = {}
        self._is_over = False

    def put(self, message: Message) -> None:
        """Write a message; whatever is no JSON in it as text."""
        self._write(json.dumps(message, ensure_ascii=True, default=str))

    async def ask(self, subtype: str, **fields: Any) -> Message:
        """The program's answer to a request.

        Raises `ControlError` where it refuses, or has no more to say.
        """
        if self._is_over:
            raise ControlError("the program's input has ended: it answers nothing any more")
        request_id = str(uuid.uuid4())
        answer = self._asked[request_id] = asyncio.get_running_loop().create_future()
        request = {"subtype": subtype, **fields}
        self.put({"type": "control_request", "request_id": request_id, "request": request})
        try:
            return await answer
        except asyncio.CancelledError:
            self.put({"type": "control_cancel_request", "request_id": request_id})
            raise
        finally:
            del self._asked[request_id]

    def answered(self, response: Message) -> None:
        """Take the program's answer; one that nobody waits for any more counts for nothing."""
        answer = self._asked.get(str(response.get("request_id")))
        if answer is None or answer.done():
            return
        if response.get("subtype") == "success":
            answer.set_result(as_object(response.get("response")))
        else:
            answer.set_exception(ControlError(str(response.get("error") or "refused")))

    def end(self) -> None:
        """Let nobody wait for an answer any more."""
        self._is_over = True
        for answer in self._asked.values():
            if not answer.done():
                answer.set_exception(ControlError("the program's input has ended"))


async def lines_of(source: int) -> AsyncGenerator[str]:
    """The lines of a descriptor, which a thread reads that nobody has to wait for."""
    loop, came = asyncio.get_running_loop(), asyncio.Queue[bytes]()

    def pump() -> None:
        piece = b"\n"
        while piece:
            try:
                piece = os.read(source, PIECE)
            except OSError:
                piece = b""
            try:
                loop.call_soon_threadsafe(came.put_nowait, piece)
            except RuntimeError:  # the loop is gone
                return

    Thread(target=pump, name="standard input", daemon=True).start()
    rest = b""
    while piece := await came.get():
        *whole, rest = (rest + piece).split(b"\n")
        for line in whole:
            yield line.decode("utf-8", "replace")
    yield rest.decode("utf-8", "replace")
