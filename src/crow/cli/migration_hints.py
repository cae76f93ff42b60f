"""Hints for people who type another agent's options and commands: the word that is right here.

Imported only where a command line has an option or a command that is none of Crow's.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple

TABLES = ("commands", "actions")
"""What the file has beside options: commands, and actions of commands, that Crow has not."""
PASSED = "~ "


class Flag(NamedTuple):
    """An option of another agent, by all its ``names``.

    ``takes`` says what stands behind it: nothing, ``1`` word, perhaps one (``?``), or all up to the
    next option (``+``). One that is ``passed`` over changes nothing here and stops nobody.
    """

    names: str
    takes: str
    told: str
    passed: bool = False


@cache
def _table() -> Mapping[str, list[list[str]]]:
    """The rows of the file beside this one, by what they are of."""
    found: dict[str, list[list[str]]] = {}
    rows: list[list[str]] = []
    for line in Path(__file__).with_suffix(".txt").read_text("utf-8").splitlines():
        if line.startswith("["):
            rows = found[line[1:-1]] = []
        elif line and not line.startswith("#"):
            rows.append(re.split("  +", line))
    return found


@cache
def flags() -> Mapping[str, Sequence[Flag]]:
    """The options of each agent; of one name the first agent's counts."""
    return {whose: [*map(_flag, rows)] for whose, rows in _table().items() if whose not in TABLES}


@cache
def said(of: str) -> Mapping[str, str]:
    """What is to be said of commands, or of their actions, by name."""
    return dict(_table()[of])


def _flag(row: Sequence[str]) -> Flag:
    names, takes, told = row
    return Flag(names.removeprefix(PASSED), takes.strip("-"), told, names.startswith(PASSED))


def flag(name: str) -> tuple[str, Flag] | None:
    """An option that is another agent's, and whose."""
    rows = ((whose, row) for whose, rows in flags().items() for row in rows)
    return next(((whose, row) for whose, row in rows if name in row.names.split()), None)


def drop_foreign_options(
    argv: Sequence[str], known: Mapping[str, object]
) -> tuple[list[str], list[str], str]:
    """A command line without what is passed over, and a line about each of it.

    The last is what is wrong with an option that has another name here, or that would change what
    happens. ``known`` are the options that there are.
    """
    left: list[str] = []
    notes: list[str] = []
    words = iter(range(len(argv)))
    for at in words:
        word = argv[at]
        name, given, _ = word.partition("=")
        found = None if name in known or not is_option(word) else flag(name)
        if found is None:
            left.append(word)
            continue
        whose, row = found
        if not row.passed:
            return left, notes, f"{name} is {whose}'s: {row.told}"
        notes.append(f"{name} is {whose}'s and passed over: {row.told}")
        for _ in range(0 if given else operand_count(row, argv[at + 1 :])):
            next(words)
    return left, notes, ""


def operand_count(row: Flag, rest: Sequence[str]) -> int:
    """How many of the words behind an option are its own."""
    free = len([*takewhile(lambda word: not is_option(word), rest)])
    if row.takes == "?":
        return int(free > 0 and not re.search(r"\s", rest[0]))
    return free if row.takes == "+" else min(free, len(row.takes))


def is_option(word: str) -> bool:
    """True for what argparse takes for an option."""
    return word.startswith("-") and word != "-" and " " not in word.partition("=")[0]


def command(name: str) -> str:
    """What is to be said for a command that is another agent's; empty for anything else."""
    told = said("commands").get(name, "")
    return f"crow has no command {name!r}: {told}" if told else ""


def action(of: str, name: str) -> str:
    """The same for an action of a command."""
    told = said("actions").get(f"{of} {name}", "")
    return f"crow {of} has no action {name!r}: {told}" if told else ""
