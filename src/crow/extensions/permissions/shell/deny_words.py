"""The words of a command, as deny and ask rules look at them: what they may stand for, or name."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from crow.extensions.permissions.programs.edits import edits
from crow.extensions.permissions.programs.readonly import reads
from crow.extensions.permissions.shell.language import language_of
from crow.extensions.permissions.shell.script import HOLE, Text, Variable, Word
from crow.extensions.permissions.shell.wrapper import SHELLS, Unwrapped, program, shell_texts

NUMBERS = frozenset({"(arithmetic)", "?", "#", "$", "!"})
LINKING = re.compile(r"-[a-zA-Z]*[sl]|--(?:symbolic-)?link$")
GIT_TAKES_TEXT = frozenset(
    {"commit", "log", "show", "diff", "tag", "merge", "notes", "grep", "blame", "shortlog"}
)
GIT_OPTION = re.compile(r"-(?!m|-message|-grep|-author|-format|-pretty|-date|-trailer|S|G)")
PATH_LIKE = re.compile(r"[\w./~-]*[./][\w./~-]*")
SCRIPTED_PATH = re.compile(r"[rRwW]\s*([\w./~-]*[./][\w./~-]*)")


def settled(word: Word) -> Word:
    """A word whose variables that are numbers are some number."""
    if len(word.parts) == 1 and type(word.parts[0]) is Text:
        return word
    return Word.of(
        [
            Text("0", quoted=True) if isinstance(part, Variable) and part.name in NUMBERS else part
            for part in word.parts
        ]
    )


def placeholders(words: Sequence[Word], inner: Unwrapped) -> tuple[str, ...]:
    """What a command that runs another one puts names of files for, in that one's words."""
    if not inner.open:
        return ()
    named = [
        word.shape[2:] or after.shape for word, after in pairwise(words) if word.shape[:2] == "-I"
    ]
    return ("{}", *named)


def opened(words: tuple[Word, ...], marks: Sequence[str]) -> tuple[Word, ...]:
    """The words of an interpreter, those unknown that begin with whatever ``xargs`` puts there."""
    if not marks or (language_of(words) is None and program(words[0]) not in SHELLS):
        return words
    hole = Text(HOLE)
    return tuple(
        Word.of([hole, *word.parts]) if word.shape.startswith(tuple(marks)) else word
        for word in words
    )


def makes_links(words: Sequence[Word]) -> bool:
    """Whether a command gives files more names, or makes links to them."""
    name = program(words[0])
    return name in {"ln", "link"} or (name == "cp" and any(LINKING.match(w.shape) for w in words))


def checked_words(words: Sequence[Word]) -> Sequence[Word]:
    """The words behind a command's name that it may take for more than text."""
    name = program(words[0])
    done = edits(words)
    if name in {"echo", "printf"} or reads(words) is not None or (done and done.sure):
        return ()
    if name == "gh" and len(words) > 1 and words[1].text in {"pr", "issue", "release"}:
        return ()
    if name in SHELLS:
        texts = shell_texts(words)  # which are read as commands
        return [word for word in words[1:] if word.text not in texts]
    if name != "git":
        return words[1:]
    index = next((i for i, w in enumerate(words[1:], 1) if w.text in GIT_TAKES_TEXT), len(words))
    if any(w.text in {"-c", "--exec-path"} for w in words[1:index]):
        return words[1:]
    rest = words[index + 1 :]
    return (*words[1:index], *(w for w in rest if GIT_OPTION.match(w.shape)))


def parts_of(text: str) -> set[str]:
    """All in a text that may be a path; what follows an unknown part may be below the cwd."""
    found = {text, *PATH_LIKE.findall(text), *SCRIPTED_PATH.findall(text)}
    if HOLE in text:
        found |= {part.lstrip("/") for part in found}
    return {part for part in found if part and HOLE not in part}


def globs(words: Sequence[Word], wanted: Sequence[str]) -> bool:
    """Whether a glob among words could stand for a literal word of a rule."""
    for word in words:
        if word.globbed:
            expression = wildcards(word.shape)
            if any(expression.fullmatch(one) for one in wanted if "*" not in one):
                return True
    return False


def wildcards(text: str) -> re.Pattern[str]:
    """A glob of the shell, taken generously."""
    return re.compile(
        "".join(".*" if one in "*?[]" or one == HOLE else re.escape(one) for one in text), re.DOTALL
    )
