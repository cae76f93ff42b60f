"""The files that a command runs: its program, a script it is given, what it looks for itself."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from crow.extensions.permissions.shell.language import given
from crow.extensions.permissions.shell.script import Word
from crow.extensions.permissions.shell.wrapper import INTERPRETERS, SHELLS, program

IMPLIED = {
    "make": "Makefile makefile GNUmakefile",
    "gmake": "Makefile makefile GNUmakefile",
    "npm": "package.json",
    "yarn": "package.json",
    "pnpm": "package.json",
    "just": "justfile Justfile .justfile",
    "rake": "Rakefile",
    "cargo": "build.rs",
}
"""What programs run without being told to."""
RUNNERS = frozenset(
    "tsx ts-node bun deno go java pytest py.test dotnet swift julia groovy kotlin scala npx".split()
)
"""Programs of which any word may name what is run."""
FETCHERS = frozenset({"curl", "wget"})
UNWRITTEN = frozenset(
    "chmod chown chgrp setfacl chattr touch mkdir mkfifo mknod rm rmdir unlink shred "
    "truncate".split()
)
"""File commands that give nobody's file a content."""
AWK = re.compile(r"[gmn]?awk")
INCLUDES = re.compile(r"-[il]|--(?:include|load)|.*@(?:include|load)\b", re.DOTALL)
CODE = re.compile(
    r".*\.(?:py[icx]?|pyw|pth|so|[mc]?[jt]s|[jt]sx|rb|p[lm]|php|lua|tcl|awk|ps1|R|jl|exs?"
    r"|(?:ba|z|k|fi)?sh|go|rs|java|kts?|scala|groovy|gradle|swift|c|cc|cpp|h|hpp|cs|fs|mk)"
)
"""Files that another one of their language may run, include or import by themselves."""
SHELL_VALUED = frozenset({"-o", "-O", "+o", "+O"})
SHELL_FILES = frozenset({"--rcfile", "--init-file"})
TEXT = re.compile(r"-[a-zA-Z]*c[a-zA-Z]*")


def runs(words: Sequence[Word]) -> Iterator[Word]:
    """The words that name what a command runs; a module of Python's as its file."""
    name = program(words[0]) or ""
    if re.search("[/.]", words[0].shape):
        yield words[0]
    yield from map(Word.plain, IMPLIED.get(name, "").split())
    if name in SHELLS:
        yield from _of_shell(words)
    elif name in RUNNERS:
        yield from words[1:]
    elif (told := given(words)) is not None:
        yield from told.files


def runs_code(words: Sequence[Word]) -> bool:
    """Whether a command may run files that are not named in it: what a text imports, say."""
    name = program(words[0]) or ""
    if AWK.fullmatch(name):
        return any(INCLUDES.match(word.shape) for word in words[1:])
    return (
        name in SHELLS
        or name in RUNNERS
        or name in IMPLIED
        or INTERPRETERS.fullmatch(name) is not None
        or ("/" in words[0].shape and not words[0].shape.startswith("/"))
    )


def _of_shell(words: Sequence[Word]) -> Iterator[Word]:
    waiting = list(reversed(words[1:]))
    while waiting:
        word = waiting.pop()
        if word.shape in SHELL_VALUED | SHELL_FILES:
            value = waiting.pop() if waiting else word
            if word.shape in SHELL_FILES:
                yield value
        elif TEXT.fullmatch(word.shape):
            return
        elif word.shape[:1] not in {"-", "+"}:
            yield word
            return
