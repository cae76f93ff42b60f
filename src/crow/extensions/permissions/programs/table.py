"""The programs that only read, and the git commands that do: two tables, read when first asked.

A line of ``programs.txt`` (or ``git.txt``) says what a program is called, how it reads its options,
what its operands are, and every option that it may be given; the files explain their form.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from crow.dataclasses import frozen
from crow.extensions.permissions.shell.script import Word

SHORT = re.compile(r"(\w|\.)(::|:|@)?")
LONG = re.compile(r"(--[a-z0-9-]+)(::|:\?|:|@)?")
NUMBER = "-NUM"


@frozen
class Use:
    """The reads of a command: these paths, and whether all that is below them.

    ``follows`` where it goes through links on its way down. ``globs`` are among its words, and
    whatever they stand for must not begin with a dash.
    """

    paths: tuple[Word, ...] = ()
    deep: bool = False
    follows: bool = False
    globs: tuple[Word, ...] = ()


@frozen
class Program:
    """One line of a table.

    ``takes`` has the options (``n``, ``--lines``), each with what it takes: nothing, ``:`` a value,
    ``:?`` one that may be missing at the end, ``::`` one that is joined to it, ``@`` a path.
    ``given``, ``deep`` and ``follows`` are some of them (or ``*``: always so).
    """

    reader: str
    operands: str
    harm: str
    takes: Mapping[str, str]
    given: frozenset[str] = frozenset()
    deep: frozenset[str] = frozenset()
    follows: frozenset[str] = frozenset()

    @classmethod
    def of(cls, reader: str, operands: str, harm: str, *tokens: str) -> Program:
        """A program from the words of its line."""
        takes: dict[str, str] = {}
        marks: dict[str, frozenset[str]] = {}
        for token in tokens:
            if token == NUMBER:
                takes[NUMBER] = ""
            elif token.startswith("-"):
                pattern = LONG if token.startswith("--") else SHORT
                takes.update(pattern.findall(token))
            else:
                name, _, options = token.partition("=")
                marks[name] = frozenset(options.split(","))
        if reader in {"getopt_long", "clap"}:
            takes |= {"--help": "", "--version": ""}
        return cls(reader, operands, harm, takes, **marks)


@frozen
class Option:
    """One word of options as its program reads it.

    ``waits`` where the value of the last one is the next word; ``path`` is a joined value that is
    read.
    """

    names: tuple[str, ...]
    waits: bool = False
    path: str | None = None


def program_of(name: str | None) -> Program | None:
    """The program with this name, where it is on the list."""
    return _of_line("programs.txt", name) if name else None


def git_command(name: str | None) -> Program | None:
    """The git command with this name, where it is on the list."""
    return _of_line("git.txt", name) if name and not name.startswith("%") else None


def git_commands() -> list[str]:
    """The names of the git commands on the list."""
    return [name for name in _lines("git.txt") if not name.startswith("%")]


def programs() -> dict[str, Program]:
    """All programs of the list."""
    made = {name: program_of(name) for name in _lines("programs.txt")}
    return {name: one for name, one in made.items() if one is not None}


@cache
def _lines(table: str) -> dict[str, str]:
    text = Path(__file__).with_name(table).read_text("utf-8")
    lines = text.replace("\n  ", " ").splitlines()
    parts = (line.partition(" ") for line in lines if line and not line.startswith("#"))
    return {name: rest for names, _, rest in parts for name in names.split(",")}


@cache
def _of_line(table: str, name: str) -> Program | None:
    lines = _lines(table)
    if name not in lines:
        return None
    words = lines[name].split()
    while any(word.startswith("%") for word in words):
        words = [
            one
            for word in words
            for one in (lines[word].split()[3:] if word.startswith("%") else (word,))
        ]
    return Program.of(*words)


def option(program: Program, text: str) -> Option | None:
    """A word that begins with a dash; None where it is not on the list, or not spelled out."""
    if NUMBER in program.takes and re.fullmatch(r"-\d+", text, re.ASCII):
        return Option((NUMBER,))
    if text.startswith("--"):
        return _long(program, text)
    return _alone(program, text) if program.reader == "revisions" else _cluster(program, text)


def _long(program: Program, text: str) -> Option | None:
    name, equals, value = text.partition("=")
    kind = program.takes.get(name)
    if kind is None or (equals and not kind):
        return None
    waits = not equals and kind in {":", ":?", "@"}
    return Option((name,), waits, value if equals and kind == "@" else None)


def _cluster(program: Program, text: str) -> Option | None:
    """``-abn5``, as getopt reads it: letters up to the first that takes a value."""
    for end, letter in enumerate(text[1:], 2):
        kind = program.takes.get(letter)
        if kind is None:
            return None
        if kind:
            rest, names = text[end:], tuple(text[1:end])
            return Option(names, not rest and kind != "::", rest if kind == "@" else None)
    return Option(tuple(text[1:]))


def _alone(program: Program, text: str) -> Option | None:
    """``-p``, ``-U3``: no letter stands behind another."""
    kind, rest = program.takes.get(text[1:2]), text[2:]
    if kind is None or (rest and not kind):
        return None
    return Option((text[1],), not rest and kind == ":")
