"""Programs that only read, with every option that they may be given.

An option that is not on the list (it may write, run something, or read a list of paths) takes
the command off the list. What a program reads is returned, and judged as a read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from crow.extensions.permissions.programs.bracket import read_test
from crow.extensions.permissions.programs.filters import read_awk, read_jq
from crow.extensions.permissions.programs.find import read_find
from crow.extensions.permissions.programs.options import Options, read_options
from crow.extensions.permissions.programs.sed import read_sed
from crow.extensions.permissions.programs.table import Program, Use, program_of
from crow.extensions.permissions.shell.script import Word

STOPPING = frozenset({"getopt", "getopt_long"})  # some stop at the first operand
PRINTF_ASSIGNS = re.compile(r"%[-+ #0-9.*']*[hlLjzt]*n")
NAME = re.compile(r"[A-Za-z_]\w*")
VERSIONS = frozenset({("node", "-v"), ("nodejs", "-v"), ("python", "-V"), ("python3", "-V")})
PS_SHOWS = re.compile(
    r"(?:(?:-?[axuwfl]+|-[eA][fFlLjw]*|-[fFl]+|-[pCou] [\w,%=.-]+|-eo [\w,%=.-]+|--forest"
    r"|--no-headers|--sort=[\w,+-]+)(?: |$))*"
)


def reads(words: Sequence[Word], *, loose: bool = False) -> Use | None:
    """What a command reads, where it is one that only reads; else None.

    ``loose`` asks what it would read, though options that are not on the list are among them.
    """
    found = program_of(words[0].text) if words else None
    if found is None or (found.reader == "known" and not loose):
        return None
    if found.reader == "any":
        return Use() if all(word.known for word in words) else None
    special = SPECIAL.get(found.operands)
    if special is not None:
        return special(words)
    read = read_options(found, words[1:], loose=loose)
    if read is None:
        return None
    return _loose_use(found, read) if loose else _use(found, read)


def _use(program: Program, read: Options) -> Use | None:
    """What a command with these operands reads."""
    match program.operands:
        case "text":
            return Use()
        case "none":
            return None if read.operands else Use()
        case "number":
            return Use() if all((word.text or "?").isdigit() for word in read.operands) else None
        case "path" if not _is_single(read):
            return None
        case _:
            use = _loose_use(program, read)
            late = read.late if program.reader in STOPPING else ()
            return replace(use, paths=(*use.paths, *late), globs=tuple(read.globs))


def _is_single(read: Options) -> bool:
    """Whether there is at most one operand, however the options are read."""
    plain = not any(word.globbed or word.splits for word in read.operands)
    return plain and len(read.operands) <= 1 and not read.late


def _loose_use(program: Program, read: Options) -> Use:
    if program.operands in {"text", "none", "number"}:
        return Use()
    deep = read.has(program.deep)
    given = read.unknown or read.has(program.given)
    first = program.operands == "pattern" and not given and read.operands
    paths = read.operands[1:] if first and not first[0].globbed else read.operands
    here = (Word.plain("."),) if deep and not paths else ()
    return Use((*paths, *here, *read.files), deep, read.has(program.follows))


def shows_processes(words: Sequence[Word]) -> bool:
    """``ps aux``; a BSD ``e`` would show what is in other programs' environments."""
    texts = [word.text if word.text and not word.globbed else "?" for word in words[1:]]
    text = " ".join("?" if " " in one else one for one in texts)
    return PS_SHOWS.fullmatch(text) is not None and "environ" not in text


def _ps(words: Sequence[Word]) -> Use | None:
    return Use() if shows_processes(words) else None


def _printenv(words: Sequence[Word]) -> Use | None:
    """``printenv NAME``; without a name it shows all of them."""
    names = [word.text or "" for word in words[1:]]
    return Use() if names and all(map(NAME.fullmatch, names)) else None


def _version(words: Sequence[Word]) -> Use | None:
    """``node --version`` and nothing more."""
    said = words[1].text if len(words) == 2 else None
    return Use() if said == "--version" or (words[0].text, said) in VERSIONS else None


def _printf(words: Sequence[Word]) -> Use | None:
    rest = words[2:] if len(words) > 1 and words[1].text == "--" else words[1:]
    if not rest or rest[0].text is None or rest[0].text.startswith("-"):
        return None
    fine = all(word.known for word in rest) and not rest[0].globbed
    return Use() if fine and not PRINTF_ASSIGNS.search(rest[0].text) else None


def _date(words: Sequence[Word]) -> Use | None:
    """``date +%F``; another operand would set the clock, and so would a number given to BSD's."""
    found = program_of("date")
    read = read_options(found, words[1:]) if found else None
    if read is None or len(read.operands) > 1:
        return None
    numbers = any((value.text or "").isdigit() for _, value in read.values)
    formats = all(word.shape.startswith("+") for word in read.operands)
    return Use() if formats and not numbers else None


SPECIAL: dict[str, Callable[[Sequence[Word]], Use | None]] = {
    "test": read_test,
    "printf": _printf,
    "printenv": _printenv,
    "version": _version,
    "date": _date,
    "sed": read_sed,
    "find": read_find,
    "jq": read_jq,
    "awk": read_awk,
    "ps": _ps,
}
