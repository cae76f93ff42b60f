"""Programs that only read, with every option that they may be given.

An option that is not on the list (it may write, run something, or read a list of paths) takes
the command off the list. What a program reads is returned, and judged as a read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from crow.extensions.permissions.bracket import read_test
from crow.extensions.permissions.filters import read_awk, read_jq
from crow.extensions.permissions.find import read_find
from crow.extensions.permissions.programs import PROGRAMS, Program, Use, option
from crow.extensions.permissions.script import Word
from crow.extensions.permissions.sed import read_sed

PRINTF_ASSIGNS = re.compile(r"%[-+ #0-9.*']*[hlLjzt]*n")
PS_SHOWS = re.compile(
    r"(?:(?:-?[axuwfl]+|-[eA][fFlLjw]*|-[fFl]+|-[pCou] [\w,%=.-]+|-eo [\w,%=.-]+|--forest"
    r"|--no-headers|--sort=[\w,+-]+)(?: |$))*"
)
DATE_FORMAT = re.compile(r"\+.*", re.DOTALL)


def reads(words: Sequence[Word], *, loose: bool = False) -> Use | None:
    """What a command reads, where it is one that only reads; else None.

    ``loose`` asks what it would read, though options that are not on the list are among them.
    """
    name = words[0].text if words else None
    found = PROGRAMS.get(name or "")
    if found is None:
        return None
    if found.operands == "any":
        return Use() if all(word.known for word in words) else None
    special = SPECIAL.get(found.operands)
    if special is not None:
        return special(words)
    return _parse(found, words[1:], loose=loose)


def _parse(program: Program, words: Sequence[Word], *, loose: bool = False) -> Use | None:
    """Take the options off; what remains are the operands."""
    operands: list[Word] = []
    options: list[str] = []
    waiting = list(words)
    ended = False
    while waiting:
        word = waiting.pop(0)
        text = word.text
        if ended or text is None or not text.startswith("-") or text == "-":
            if not _is_operand(program, word, ended=ended) and not loose:
                return None
            operands.append(word)
        elif text == "--":
            ended = True
        elif (step := option(program, text)) is not None:
            options.append(text)
            values, waiting = waiting[:step], waiting[step:]
            known = len(values) == step and all(_is_value(program, value) for value in values)
            if not known and not loose:
                return None
        elif not loose:
            return None
        else:
            options.append("-e")  # so that the first operand is taken for a path
    return _use(program, operands, options, loose=loose)


def _is_operand(program: Program, word: Word, *, ended: bool = False) -> bool:
    """Whether a word is certainly no option that its program should not have."""
    if not program.guarded or ended or word.piped:
        return word.known
    return word.text is not None and not word.globbed


def _is_value(program: Program, word: Word) -> bool:
    """Whether a word is certainly the value of the option before it, and nothing more."""
    return _is_operand(program, word) and not (program.guarded and word.shape.startswith("-"))


def _use(
    program: Program, operands: list[Word], options: Sequence[str], *, loose: bool
) -> Use | None:
    deep = program.deep == "*" or _has(options, program.deep)
    here = (Word.plain("."),) if deep else ()
    match program.operands:
        case "text":
            return Use()
        case "none":
            return Use() if not operands or loose else None
        case "number":
            return Use() if all((word.text or "?").isdigit() for word in operands) else None
        case "path" if len(operands) > 1 and not loose:
            return None
        case "pattern":
            given = any(text[:2] == "-e" or text.startswith("--regexp") for text in options)
            paths = operands if given else operands[1:]
        case _:
            paths = operands
    return Use(tuple(paths) or here, deep, _has(options, program.follows))


def _has(options: Sequence[str], letters: str) -> bool:
    """Whether an option is one of these letters, or spells out one of them."""
    for text in options:
        if text.startswith("--"):
            if text in LONG.get(letters, ()):
                return True
        elif any(letter in letters for letter in text[1:]):
            return True
    return False


LONG = {
    "r": {"--recursive"},
    "rR": {"--recursive", "--dereference-recursive"},
    "R": {"--dereference-recursive"},
    "L": {"--follow"},
}


def _ps(words: Sequence[Word]) -> Use | None:
    """``ps aux``; a BSD ``e`` would show what is in other programs' environments."""
    text = " ".join(word.text if word.text and not word.globbed else "?" for word in words[1:])
    return Use() if PS_SHOWS.fullmatch(text) else None


def _printf(words: Sequence[Word]) -> Use | None:
    rest = words[2:] if len(words) > 1 and words[1].text == "--" else words[1:]
    if not rest or rest[0].text is None or rest[0].text.startswith("-"):
        return None
    fine = all(word.known for word in rest) and not rest[0].globbed
    return Use() if fine and not PRINTF_ASSIGNS.search(rest[0].text) else None


def _date(words: Sequence[Word]) -> Use | None:
    operands: list[Word] = []
    index = 1
    while index < len(words):
        text = words[index].text
        index += 1
        if text is None:
            return None
        if not text.startswith("-"):
            operands.append(words[index - 1])
        elif re.fullmatch(r"-I(?:date|hours|minutes|seconds|ns)?", text) is None:
            step = option(PROGRAMS["date"], text)
            values = words[index:][: step or 0]
            if step is None or len(values) < step or any(w.splits or w.globbed for w in values):
                return None
            index += step
    fine = len(operands) <= 1 and all(DATE_FORMAT.fullmatch(w.text or "") for w in operands)
    return Use() if fine else None


SPECIAL: dict[str, Callable[[Sequence[Word]], Use | None]] = {
    "test": read_test,
    "printf": _printf,
    "date": _date,
    "sed": read_sed,
    "find": read_find,
    "jq": read_jq,
    "awk": read_awk,
    "ps": _ps,
}
