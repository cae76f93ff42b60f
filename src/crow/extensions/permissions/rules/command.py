"""Command rules: ``npm run *``, ``git log:*``, ``* --version``, matched over lists of words.

A ``*`` spans words. A trailing `` *`` (also written ``:*``) begins at a word's boundary and
matches the bare command too.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

from crow.dataclasses import frozen
from crow.extensions.permissions.shell.script import GAP, HOLE

SPANS_OPTIONS = 4


@frozen
class CommandPattern:
    """A command rule's specifier.

    ``head`` are the words before the first ``*``; an ``exact`` pattern has none.
    """

    text: str
    words: tuple[str, ...]
    head: tuple[str, ...]
    exact: bool
    expression: re.Pattern[str]
    source: re.Pattern[str]

    @classmethod
    def of(cls, text: str) -> CommandPattern:
        """Parse a specifier. Raises ValueError for one that has no meaning."""
        text = text.strip()
        spelled = text[:-2] + " *" if text.endswith(":*") else text
        words = _split(spelled)
        if not words or not any(word.strip("*") for word in words):
            raise ValueError("it names no command")
        stars = [index for index, word in enumerate(words) if "*" in word]
        head = tuple(words[: stars[0]] if stars else words)
        expression = re.compile(_expression(words, GAP), re.DOTALL)
        source = re.compile(_expression(spelled.split(), r"\s+") + r"\s*", re.DOTALL)
        return cls(text, tuple(words), head, not stars, expression, source)

    def matches(self, words: Sequence[str]) -> bool:
        """Whether a command's words are ones that the rule means."""
        return self.expression.fullmatch(GAP.join(words)) is not None

    def matches_source(self, source: str) -> bool:
        """Whether a command's text, quotes and all, is one that the rule means."""
        return self.source.fullmatch(source.strip()) is not None

    def may_match(self, words: Sequence[str]) -> bool:
        """Whether words with holes in them could turn out to be ones that the rule means."""
        for index, wanted in enumerate(self.words):
            if "*" in wanted or index >= len(words):
                return any(HOLE in word for word in words)
            if HOLE in words[index]:
                return True
            if words[index] != wanted:
                return False
        return False

    def resembles(self, words: Sequence[str]) -> bool:
        """Whether words differ from the rule's only in how options are written or where."""
        if not words or not self.head or words[0] != self.head[0]:
            return False
        if len(words) > 1 and words[1][:1] in {"-", "+"}:
            for skipped in range(2, min(len(words), SPANS_OPTIONS) + 1):
                if self.matches((words[0], *words[skipped:])):
                    return True
        wanted, options = _without_options(self.head[1:])
        given, others = _without_options(words[1:])
        others |= {"-r"} if words[0] == "rm" and "-R" in others else set()
        return bool(options) and options <= others and given[: len(wanted)] == wanted


def _split(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()


def _expression(words: Sequence[str], gap: str) -> str:
    expression = ""
    for index, word in enumerate(words):
        if word == "*" and index == len(words) - 1 and index:
            return f"{expression}(?:{gap}.*)?"
        one = ".*".join(re.escape(piece) for piece in word.split("*"))
        expression += (gap if index else "") + one
    return expression


def _without_options(words: Sequence[str]) -> tuple[list[str], set[str]]:
    plain: list[str] = []
    options: set[str] = set()
    for word in words:
        if re.fullmatch(r"-[A-Za-z]+", word):
            options.update("-" + letter for letter in word[1:])
        elif word.startswith("-") and len(word) > 1:
            options.update(LONG.get(word, {word.split("=")[0]}))
        else:
            plain.append(word)
    return plain, options


LONG = {"--recursive": {"-r"}, "--force": {"-f"}}
