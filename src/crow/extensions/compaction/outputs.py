"""The outputs of tools: moved to disk, and in their place a line that names the file."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from crow import Message
from crow.messages import text_of

MARK = "[output left out to make room:"
HEAD = 2000


class Outputs:
    """Long outputs of one session's tools, each in a file of its own under ``directory``.

    ``limit`` is how many characters an output may have to stay; files are the owner's alone.
    """

    def __init__(self, directory: Path, limit: int) -> None:
        self.directory = directory
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
        where = self._keep(text, f"{names.get(call_id, 'output')}-{call_id}")
        beginning = f"{text[:head].rstrip()}\n" if head else ""
        return {**message, "content": f"{beginning}{MARK} {len(text)} characters, {where}]"}

    def _is_long(self, message: Message) -> bool:
        if message["role"] != "tool":
            return False
        text = text_of(message.get("content"))
        return len(text) > self.limit and MARK not in text[-self.limit :]

    def _keep(self, text: str, stem: str) -> str:
        path = self.directory / f"{plain(stem)}.txt"
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_NOFOLLOW", 0)
        try:
            self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            with os.fdopen(os.open(path, flags, 0o600), "wb") as file:
                file.write(text.encode("utf-8", "surrogatepass"))
        except OSError as error:
            return f"and could not be kept: {error.strerror}"
        return f"all of it is in {path}"


def folder(directory: str | Path | None, session_id: str) -> Path:
    """Where a session's outputs are kept: in the user's cache, unless there is a place for them."""
    if directory is None:
        import platformdirs

        directory = Path(platformdirs.user_cache_dir("crow", appauthor=False), "outputs")
    return Path(os.path.expanduser(directory)) / plain(session_id)


def is_kept(path: str, directory: Path) -> bool:
    """True for what is really in a session's directory of outputs, and says so."""
    if not path.startswith(str(directory)):
        return False
    try:
        return Path(path).resolve().is_relative_to(directory.resolve())
    except (OSError, ValueError, RuntimeError):
        return False


def plain(name: str) -> str:
    """A name as a file may have it."""
    return re.sub(r"[^\w-]", "_", name)[:100] or "output"
