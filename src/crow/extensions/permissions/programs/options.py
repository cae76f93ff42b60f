"""The words of a command, told apart as its program tells them: options, their values, operands.

Two readings are kept. GNU's getopt takes options wherever they stand; others (BSD, macOS, anything
under POSIXLY_CORRECT) take every word behind the first operand for an operand too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from crow.extensions.permissions.programs.table import Program, option
from crow.extensions.permissions.shell.script import HOLE, Text, Word


@dataclass(slots=True)
class Options:
    """The options of a command, as they were read.

    ``late`` are options, values and ``--`` that stand behind the first operand, ``files`` the
    paths that options name, ``values`` the separate values. ``globs`` may stand for names that
    begin with a dash. ``unknown`` tells of an option that is not on the list.
    """

    names: list[str] = field(default_factory=list[str])
    operands: list[Word] = field(default_factory=list[Word])
    late: list[Word] = field(default_factory=list[Word])
    files: list[Word] = field(default_factory=list[Word])
    values: list[tuple[str, Word]] = field(default_factory=list[tuple[str, Word]])
    globs: list[Word] = field(default_factory=list[Word])
    unknown: bool = False

    def has(self, wanted: frozenset[str]) -> bool:
        """Whether any of these options was given."""
        return "*" in wanted or not wanted.isdisjoint(self.names)


def read_options(program: Program, words: Sequence[Word], *, loose: bool = False) -> Options | None:
    """Tell a command's words apart; None where that cannot be done for certain.

    ``loose`` passes over whatever is not on the list, and says so.
    """
    found = Options()
    waiting = list(reversed(words))
    ended = False
    while waiting:
        word = waiting.pop()
        if ended or not word.shape.startswith("-") or word.text == "-":
            if not loose and not (ended and word.known) and not _is_operand(program, word, found):
                return None
            found.operands.append(word)
        elif word.text == "--":
            ended = True
            found.late.extend([word] if found.operands else [])
        elif not _option(program, word, waiting, found, loose=loose) and not loose:
            return None
    return found


def _option(
    program: Program, word: Word, waiting: list[Word], found: Options, *, loose: bool
) -> bool:
    """Take an option and its value; whether both are certain."""
    made = option(program, word.shape) if is_spelled_out(word) else None
    if made is None:
        found.unknown = True
        plain = program.operands == "text" and program.harm == "none"
        return plain and word.known and word.text is None
    found.names.extend(made.names)
    taken = [word]
    if made.path is not None:
        found.files.append(Word.plain(made.path))
    certain = made.path is None or (word.text is not None and not word.globbed)
    if made.waits:
        taken += [waiting.pop()] if waiting else []
        certain = certain and all(_is_value(program, value) for value in taken[1:])
        certain = certain and (len(taken) == 2 or program.takes[made.names[-1]] == ":?")
        found.values.extend((made.names[-1], value) for value in taken[1:])
        if program.takes[made.names[-1]] == "@":
            found.files.extend(taken[1:])
    if found.operands:
        found.late.extend(taken)
    return certain


def is_spelled_out(word: Word) -> bool:
    """Whether a word of options is known, but for the value behind an ``=``."""
    if word.text is not None:
        return True
    return word.known and not word.splits and HOLE not in word.shape.partition("=")[0]


def _is_value(program: Program, word: Word) -> bool:
    """Whether a word is certainly one, and the value of the option before it."""
    if program.harm == "none" and program.operands == "text":
        return word.known
    single = word.known and not word.globbed and not word.splits
    own = program.harm == "writes" and word.shape.startswith("-")
    return single and not own


def _is_operand(program: Program, word: Word, found: Options) -> bool:
    """Whether a word is certainly no option that its program should not have."""
    if not word.known:
        return False
    if program.harm == "none" or word.piped:
        return True
    first = word.parts[0]
    if word.splits or not isinstance(first, Text):
        return False
    if not word.globbed:
        return True
    if program.harm == "writes":
        return False
    if not first.quoted and first.value[:1] in {"*", "?"}:
        found.globs.append(word)
    return first.quoted or first.value[:1] != "["
