"""``sed``, as far as it prints, deletes and substitutes lines; its other commands write or run."""

from __future__ import annotations

import re
from collections.abc import Sequence

from crow.extensions.permissions.programs.table import Use
from crow.extensions.permissions.shell.script import Word


def _expression(mark: str, end: str) -> str:
    """Text up to a delimiter, its brackets closed: seds differ in what a delimiter in them is."""
    return rf"(?:[^\\\n\[{mark}]|\\[^\n]|\[\^?\]?[^\]\\\n{mark}]*\]){end}"


ADDRESS = rf"(?:\d+|\$|/{_expression('/', '+')}/I?)"
SUBSTITUTION = "|".join(
    f"s{mark}{_expression(mark, '+')}{mark}{_expression(mark, '*')}{mark}[gpIiMm0-9]*"
    for mark in ("/", r"\|", "#", ",", ":", "@", "!")
)
COMMAND = rf"(?:{ADDRESS}(?:,(?:{ADDRESS}|[+~]\d+))?\s*!?\s*)?(?:[pdq=]|{SUBSTITUTION})"
SCRIPT = re.compile(rf"\s*{COMMAND}\s*(?:[;\n]\s*{COMMAND}\s*)*;?\s*")
FLAGS = re.compile(r"-[nErszu]*(e?)|--(?:quiet|silent|regexp-extended|null-data|separate|posix)")
EXPRESSION = re.compile(r"-[nErszu]*e|--expression")
IN_PLACE = re.compile(r"-[nErsz]*i|--in-place")
PLAIN_IN_PLACE = re.compile(r"-[nErsz]*i(?:\.bak)?")


def is_plain(script: str | None) -> bool:
    """Whether a script neither writes files nor runs anything."""
    return script is not None and SCRIPT.fullmatch(script) is not None


def split(words: Sequence[Word]) -> tuple[list[str | None], list[str | None], list[Word]]:
    """The options, the scripts and the files of a ``sed`` command; None stands for the unknown."""
    options: list[str | None] = []
    scripts: list[str | None] = []
    paths: list[Word] = []
    waiting = list(words[1:])
    while waiting:
        word = waiting.pop(0)
        text = word.text
        flags = FLAGS.fullmatch(text or "")
        if paths and text is not None and EXPRESSION.match(text):
            options.append(None)  # another sed takes the first operand for its script then
        elif text == "--expression" or (flags is not None and flags[1]):
            options.append("-e")
            scripts.append(waiting.pop(0).text if waiting else None)
        elif text is not None and text.startswith("--expression="):
            options.append("-e")
            scripts.append(text.partition("=")[2])
        elif text is None or text.startswith("-"):
            options.append(text)
        else:
            paths.append(word)
    if not scripts and paths:
        scripts.append(paths.pop(0).text)
    return options, scripts, paths


def read_sed(words: Sequence[Word]) -> Use | None:
    """What it reads; None where it may do more than to read and print."""
    options, scripts, paths = split(words)
    if any(word.globbed for word in words[1:]) or not scripts:
        return None
    fine = all(option and FLAGS.fullmatch(option) for option in options)
    return Use(tuple(paths)) if fine and all(is_plain(script) for script in scripts) else None


def edited(words: Sequence[Word]) -> tuple[list[Word], bool] | None:
    """The files that it edits in place, and whether that is all it does; None where it does not."""
    options, scripts, paths = split(words)
    if not any(option and IN_PLACE.match(option) for option in options):
        return None
    plain = all(
        option and (FLAGS.fullmatch(option) or PLAIN_IN_PLACE.fullmatch(option))
        for option in options
    )
    sure = plain and bool(scripts) and all(is_plain(script) for script in scripts)
    return paths, sure and bool(paths) and not any(path.globbed for path in paths)
