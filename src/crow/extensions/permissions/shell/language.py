"""Programs that run text which they are given: where it stands, and whether it can be foreseen.

``python -c "$x"`` hides what it runs as ``sh -c "$x"`` does. A table says where each takes it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from crow.dataclasses import frozen
from crow.extensions.permissions.shell.script import HOLE, Word
from crow.extensions.permissions.shell.wrapper import program

INPUTS = frozenset({"-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"})
TELLING = r"-V+|-h|--version|--help"
GLOBS = frozenset("*?[")
FILE, NOTHING = 0, -1


@frozen
class Language:
    """A program's way to be given what it runs.

    ``text`` are options whose value is run, ``file`` those that name a file with it, ``valued``
    others with a value, ``glued`` those whose value is never the next word, ``ends`` the one behind
    which all is the program's. ``operand`` is the one that is run where no option gave anything:
    of 0 the first is a `FILE` and ends the options, of -1 `NOTHING` is. ``telling`` are options
    with which it only tells something.
    """

    text: frozenset[str]
    file: frozenset[str]
    valued: frozenset[str]
    glued: frozenset[str] = frozenset()
    ends: str = ""
    operand: int = FILE
    telling: str = TELLING + "|-v"

    @property
    def permutes(self) -> bool:
        """Whether options may stand behind operands."""
        return self.operand != FILE


def _of(
    text: str, *, file: str = "", valued: str = "", glued: str = "", **rest: int | str
) -> Language:
    return Language(*(frozenset(one.split()) for one in (text, file, valued, glued)), **rest)  # pyright: ignore[reportArgumentType]


LANGUAGES = {
    r"(?:python|pypy)[\d.]*": _of("c", valued="W X Q", ends="m", telling=TELLING),
    r"perl[\d.]*": _of("e E M m", valued="I", glued="i F C D V x d"),
    r"ruby[\d.]*": _of("e", valued="I r C E", glued="F K W x T i"),
    r"node[\d.]*|nodejs": _of(
        "e p -pe --eval --print",
        valued="r C --require --import --loader --conditions",
        telling=TELLING + "|-v|--test|--run",
    ),
    "bun": _of("e p --eval --print", valued="r --preload --cwd"),
    "deno": _of("eval"),
    r"php[\d.]*": _of(
        "r B R E --run", file="f F S --file", valued="d c z t", telling=TELLING + "|-[vim]|--ini"
    ),
    r"lua[\d.]*|luajit": _of("e", valued="l"),
    r"tclsh[\d.]*|wish": _of(""),
    "osascript": _of("e", valued="l s"),
    "pwsh|powershell": _of("-c -Command -command -ec -EncodedCommand -e", file="-f -File -file"),
    "expect": _of("c", file="f", valued="d"),
    "Rscript": _of("e"),
    "[gmn]?awk": _of(
        "e --source",
        file="f E --file --exec",
        valued="F v l i --assign --field-separator --include",
        operand=1,
    ),
    "sed|gsed": _of("e --expression", file="f --file", valued="l --line-length", operand=1),
    "sqlite3": _of("-cmd", file="-init", valued="-separator -nullvalue -newline", operand=2),
    "vim?|nvim|ex|view": _of("c --cmd", valued="S T s u w W", operand=NOTHING),
    "emacs": _of("-eval --eval --execute", valued="l", operand=NOTHING),
    "gdb": _of("-ex -eval-command --ex --eval-command -iex", valued="x p", operand=NOTHING),
    "g?make": _of("E --eval", file="f --file --makefile", valued="C I j l o W", operand=NOTHING),
    "(?:bsd|g)?tar": _of(
        "I F --checkpoint-action --to-command --use-compress-program --rsh-command --info-script",
        valued="f C T X b H V g K",
        operand=NOTHING,
    ),
    "rsync": _of("e --rsh --rsync-path", valued="f B T M", operand=NOTHING),
}


def language_of(words: Sequence[Word]) -> Language | None:
    """The table's line for a command."""
    return _line_of(program(words[0]) or "") if words else None


@lru_cache(256)
def _line_of(name: str) -> Language | None:
    return next((one for key, one in LANGUAGES.items() if re.fullmatch(key, name)), None)


@dataclass(slots=True)
class Given:
    """The code that a command has its program run.

    ``found`` where something is; ``hidden`` where that, or an option that says so, cannot be
    foreseen, ``globbed`` where a file's name could be taken for such an option; ``from_input``
    where it comes as the program's input. ``texts`` are those found, ``files`` name others.
    """

    texts: list[Word]
    files: list[Word] = field(default_factory=list[Word])
    found: bool = False
    hidden: bool = False
    globbed: bool = False
    from_input: bool = False

    def take(self, text: Word, *, joined: bool = False) -> None:
        """Take a text that is run."""
        self.found = True
        self.texts.append(text)
        named = not joined and text.globbed and text.bare[:1] in GLOBS
        self.hidden = self.hidden or HOLE in text.shape or named


def given(words: Sequence[Word]) -> Given | None:
    """What a command has its program run; None for a program that runs no text."""
    language = language_of(words)
    if language is None:
        return None
    found, told, operands = Given([]), False, 0
    waiting, ended = list(reversed(words[1:])), False
    while waiting:
        word = waiting.pop()
        shape = word.shape
        if shape == "--" and not ended:
            ended = True
        elif not ended and ((shape.startswith("-") and shape != "-") or shape in language.text):
            told = told or re.fullmatch(language.telling, shape) is not None
            if _option(language, word, waiting, found):
                return found
        else:
            operands += 1
            _operand(language, operands, word, found)
            ended = ended or not language.permutes
            if language.operand == FILE:
                break
    needs_none = told or found.found or language.operand in {NOTHING, 1}
    found.from_input = found.from_input or not needs_none
    return found


def _operand(language: Language, number: int, word: Word, found: Given) -> None:
    """Take an operand: the program's text, the file with it, or neither."""
    if found.found or number != max(language.operand, 1) or language.operand == NOTHING:
        return
    if language.operand != FILE:
        found.take(word)
        return
    found.found = True
    found.files.append(word)
    found.from_input = word.text in INPUTS
    found.hidden = found.hidden or word.shape[:1] == HOLE
    found.globbed = word.globbed and word.bare[:1] in GLOBS


def _option(language: Language, word: Word, waiting: list[Word], found: Given) -> bool:
    """Take an option with its value; whether all behind it are the program's own arguments."""
    name, equals, value = word.shape.partition("=")
    if name.startswith("--") or name in language.text | language.file | language.valued:
        _value(language, name, Word.plain(value) if equals else None, waiting, found)
        return False
    for end, letter in enumerate(word.shape[1:], 2):
        rest = word.shape[end:]
        if letter == HOLE:
            found.hidden = True
        if letter == language.ends:
            found.found = True
            module = (rest or (waiting[-1].shape if waiting else "")).replace(".", "/")
            found.files += [Word.plain(f"{module}{end}") for end in (".py", "/__main__.py")]
            return True
        if letter in language.glued or letter == HOLE:
            return False
        if letter in language.text | language.file | language.valued:
            _value(language, letter, Word.plain(rest) if rest else None, waiting, found)
            return False
    return False


def _value(
    language: Language, name: str, joined: Word | None, waiting: list[Word], found: Given
) -> None:
    """Take what an option is given, in its own word or the next."""
    if name not in language.text | language.file | language.valued:
        return
    value = joined or (waiting.pop() if waiting else None)
    if name in language.text and value is not None:
        found.take(value, joined=joined is not None)
    elif name in language.file:
        found.found = True
        found.files += [value] if value is not None else []
        found.from_input = found.from_input or (value is not None and value.shape in INPUTS)
