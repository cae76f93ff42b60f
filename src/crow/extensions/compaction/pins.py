"""Pins that no summary can lose: the user's own words, and the files at hand."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import field
from typing import Any, cast

from crow import Message
from crow.dataclasses import mutable
from crow.extensions.compaction.summary import shortened
from crow.messages import context_block, is_prompt, text_of

SOURCE = "compaction"
WORDS = "The user's own words so far, the oldest first; where they differ the later ones count:"
FILES = "Files at hand, the latest last; read one again where its text is needed:"
LEFT_OUT = "({} more of the user's messages are left out here)"
HEAD = context_block(WORDS, SOURCE)["content"]
OPEN = str(HEAD).partition(WORDS)[0]
LINES = re.compile(re.escape(LEFT_OUT).replace(r"\{\}", r"(\d+)") + r"|> ?(.*)|- (.+)")
MOST_FILES = 20
PATHS = ("file_path", "notebook_path")
ASKING = ("AskUserQuestion",)
"""Tools whose results are the user's words, too."""
SHARE = 4
"""No message has more than this part of the room."""


@mutable
class Pins:
    """The part of a history that stays where it is replaced.

    ``words`` are the messages of the user, the oldest first; ``left_out`` counts those that there
    was no room for. ``files`` are the paths that tools were given, the latest last.
    """

    words: list[str] = field(default_factory=list[str])
    left_out: int = 0
    files: list[str] = field(default_factory=list[str])

    def take(self, messages: Iterable[Message]) -> Pins:
        """Add what these messages hold; what an earlier history left behind is among that."""
        asked: set[str] = set()
        for message in messages:
            text = text_of(message.get("content"))
            if is_prompt(message) or message.get("tool_call_id") in asked:
                self.words.append(text)
            elif message["role"] == "user" and text.startswith(OPEN):
                self._take_block(text)
            for call in message.get("tool_calls", ()):
                self._take_file(call["function"]["arguments"])
                if call["function"]["name"] in ASKING:
                    asked.add(call["id"])
        return self

    def _take_block(self, text: str) -> None:
        lines: list[str] | None = None
        for line in text.splitlines():
            found = LINES.fullmatch(line)
            left_out, word, path = found.groups() if found else (None, None, None)
            if word is None:
                lines = None
            elif lines is None:
                lines = [word]
                self.words.append(word)
            else:
                lines.append(word)
                self.words[-1] = "\n".join(lines)
            self.left_out += int(left_out or 0)
            if path is not None:
                self._add_file(path)

    def _take_file(self, arguments: str) -> None:
        try:
            args = json.loads(arguments)
        except ValueError:
            return
        given = cast("dict[str, Any]", args) if isinstance(args, dict) else {}
        for path in (given.get(name) for name in PATHS):
            if isinstance(path, str) and path.splitlines() == [path]:
                self._add_file(path)

    def _add_file(self, path: str) -> None:
        if path in self.files:
            self.files.remove(path)
        self.files.append(path)

    def block(self, room: int) -> Message | None:
        """What is told to the model in about ``room`` characters; None where there is nothing.

        The first of the user's messages, which mostly says what it is all about, and the latest
        are there before others.
        """
        every = [*dict.fromkeys(reversed(self.words))][::-1]
        words = _fitting(every, room)
        left_out = self.left_out + len(every) - len(words)
        told = [LEFT_OUT.format(left_out)] if left_out else []
        quotes = ["\n".join(f"> {line}" for line in word.split("\n")) for word in words]
        parts = [WORDS, *quotes[:1], *told, *quotes[1:]] if quotes else []
        if self.files:
            parts.append("\n".join([FILES, *(f"- {each}" for each in self.files[-MOST_FILES:])]))
        return context_block("\n\n".join(parts), SOURCE) if parts else None


def _fitting(words: list[str], room: int) -> list[str]:
    found: list[str] = []
    most = max(room // SHARE, 1)
    for word in [*words[:1], *reversed(words[1:])]:
        cut = _in_lines(shortened(word, most))
        room -= len(cut)
        if room < 0 and found:
            break
        found.append(cut)
    return [*found[:1], *reversed(found[1:])]


def _in_lines(text: str) -> str:
    """A text whose lines end as all others do, and which is not empty."""
    return "\n".join(text.splitlines()) or " "


def pinned(history: Sequence[Message], kept: Iterable[Message], room: int) -> Message | None:
    """What is left behind by those messages of a history that are not kept."""
    here = set(map(id, kept))
    return Pins().take(each for each in history if id(each) not in here).block(room)
