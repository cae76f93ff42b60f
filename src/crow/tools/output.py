"""A program's output, as text that can be shown, stored and sent."""

from __future__ import annotations

import re
from collections import deque

_ESCAPES = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\x07\x1b\n]{0,512}(?:\x07|\x1b\\)?|[ -/]*[0-~])"
    r"|\x9b[0-?]*[ -/]*[@-~]"
)
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def readable(text: str) -> str:
    """The text without terminal control: no colours, no control characters.

    Of a line that was overwritten by carriage returns the last state stays.
    """
    if "\x1b" in text or "\x9b" in text:
        text = _ESCAPES.sub("", text)
    if "\r" in text:
        text = "\n".join(_last_state(line) for line in text.split("\n"))
    return _CONTROLS.sub("", text)


def _last_state(line: str) -> str:
    return line.rstrip("\r").rpartition("\r")[2]


def decoded(data: bytes) -> str:
    """UTF-8 with a mark for each byte that is none, made readable."""
    return readable(data.decode("utf-8", "replace"))


class Capture:
    """The first and the last bytes of a stream of any length, in bounded memory."""

    def __init__(self, limit: int) -> None:
        self.room = limit - limit // 2
        self.tail_limit = limit // 2
        self.head = bytearray()
        self.tail: deque[bytes] = deque()
        self.tail_size = 0
        self.size = 0

    def feed(self, data: bytes) -> None:
        """Take the next bytes."""
        self.size += len(data)
        missing = self.room - len(self.head)
        if missing > 0:
            self.head += data[:missing]
            data = data[missing:]
        if not data:
            return
        self.tail.append(data)
        self.tail_size += len(data)
        while self.tail_size - len(self.tail[0]) >= self.tail_limit:
            self.tail_size -= len(self.tail.popleft())

    @property
    def is_cut(self) -> bool:
        """True where the middle is missing."""
        return self.size > self.room + self.tail_limit

    def text(self, note: str = "") -> str:
        """What was kept; ``note`` says more about the part that is missing."""
        end = b"".join(self.tail)[-self.tail_limit :]
        if not self.is_cut:
            return decoded(bytes(self.head) + end)
        missing = self.size - self.room - self.tail_limit
        first, last = _whole_end(bytes(self.head)), _whole_start(end)
        return f"{decoded(first)}\n[... {missing} bytes left out{note} ...]\n{decoded(last)}"


def _whole_end(data: bytes) -> bytes:
    """Without a character at the end that was cut in two."""
    start = len(data) - 1
    while start > len(data) - 4 and start >= 0 and data[start] & 0xC0 == 0x80:
        start -= 1
    if start >= 0 and data[start] >= 0xC0:
        width = 2 + (data[start] >= 0xE0) + (data[start] >= 0xF0)
        if start + width > len(data):
            return data[:start]
    return data


def _whole_start(data: bytes) -> bytes:
    """Without the rest of a character at the beginning."""
    start = 0
    while start < min(3, len(data)) and data[start] & 0xC0 == 0x80:
        start += 1
    return data[start:]
