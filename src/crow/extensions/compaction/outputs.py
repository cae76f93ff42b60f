"""The outputs of tools: moved to disk, and in their place a line that names the file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from crow import Message
from crow.messages import text_of
from crow.project import OutputFolder

MARK = "[output left out to make room:"
HEAD = 2000


class Outputs:
    """Long outputs of one session's tools, each in a file of its own in a ``folder``.

    ``limit`` is how many characters an output may have to stay.
    """

    def __init__(self, folder: OutputFolder, limit: int) -> None:
        self.folder = folder
        self.limit = limit

    def savings(self, messages: Iterable[Message], head: int = 0) -> int:
        """How many characters there would be less, about."""
        texts = [text_of(message.get("content")) for message in messages if self._is_long(message)]
        return sum(max(len(text) - head - len(MARK), 0) for text in texts)

    def moved(self, messages: Sequence[Message], head: int = 0) -> list[Message]:
        """The messages with long outputs on disk; the first ``head`` characters stay."""
        names = {
            call["id"]: call["function"]["name"]
            for message in messages
            for call in message.get("tool_calls", ())
        }
        return [self._moved(message, names, head) for message in messages]

    def _moved(self, message: Message, names: dict[str, str], head: int) -> Message:
        if not self._is_long(message):
            return message
        text = text_of(message.get("content"))
        call_id = message.get("tool_call_id", "")
        where = self.folder.keep(text, f"{names.get(call_id, 'output')}-{call_id}")
        beginning = f"{text[:head].rstrip()}\n" if head else ""
        return {**message, "content": f"{beginning}{MARK} {len(text)} characters, {where}]"}

    def _is_long(self, message: Message) -> bool:
        if message["role"] != "tool":
            return False
        text = text_of(message.get("content"))
        return len(text) > self.limit and MARK not in text[-self.limit :]
