"""Secrets in a command: values that no rule may carry into a settings file, and variables by name.

Of a variable nothing but its name is looked at.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from itertools import pairwise
from posixpath import normpath

from crow.extensions.permissions.programs.readonly import shows_processes
from crow.extensions.permissions.shell.script import HOLE, Variable, Word
from crow.process import is_secret

NAME = r"[\w.-]*(?:PASS|PWD|TOKEN|SECRET|KEY|CREDENTIAL|AUTH|BEARER)[\w.-]*"
GIVEN = re.compile(rf"(?:^|[^\w-])-*{NAME}[\"']?\s*(?:=|:(?!:))", re.IGNORECASE)
OPTION = re.compile(rf"-{NAME}", re.IGNORECASE)
VALUE = re.compile(
    r"\bbearer\s+\S"
    r"|\b(?:gh[a-z]_|github_pat_|glpat-|sk-|[rs]k_live_|xox[a-z]-|npm_|pypi-|hf_)\w{6}"
    r"|\bAKIA[0-9A-Z]{8}|\beyJ[\w-]{12}"
    r"|://[^/\s@]*:[^/\s@]+@|PRIVATE KEY",
    re.IGNORECASE,
)
LOGIN = re.compile(r"(?:-u|--user|--proxy-user)=?")
GLUED = re.compile(r"-p.+|-u.*:.+")
TAKES_PASSWORD = frozenset({"mysql", "mysqldump", "mysqladmin", "mariadb", "curl", "sshpass"})

LOOKED_UP = re.compile(r"(?:ENVIRON\s*\[\s*\"|\benv\.|\$ENV\.|\[\s*\")(\w+)")
LOOKING_UP = frozenset({"printenv", "jq", "awk", "gawk", "mawk"})
ENVIRON = "environ"
"""The file of ``/proc`` in which any process of the same user finds a process's variables."""
HOLDING = (ENVIRON, "mem")
PS_ENVIRONMENT = re.compile(r"[A-Za-z]*[eE][A-Za-z]*|-[A-Za-z]*E[A-Za-z]*|.*environ.*")
TESTS = frozenset({"test", "[", "[["})
PRESENCE = frozenset({"-n", "-z", "-v"})


def secrets_in(words: Sequence[Word]) -> Iterator[str]:
    """The names of variables among words that carry secrets.

    A test for whether there is one shows nothing of it.
    """
    program = words[0].text if words else None
    for before, word in zip((None, *words), words, strict=False):
        for part in word.parts:
            if isinstance(part, Variable) and is_secret(part.name):
                tests = program in TESTS and before is not None and before.text in PRESENCE
                yield from () if tests else (part.name,)
    texts = [word.text for word in words]
    looks_up = LOOKING_UP.intersection(texts)
    if looks_up:
        plain = [text for text in texts if text]
        named = plain if "printenv" in looks_up else LOOKED_UP.findall(" ".join(plain))
        yield from filter(is_secret, named)
    if any(is_environment(word.shape) for word in words) or _lists_environments(words):
        yield ENVIRON


def is_environment(shape: str) -> bool:
    """Whether a path may lead to the variables of a process: ``/proc/$PPID/environ``."""
    if not shape.startswith(("/", "..", HOLE)):
        return False
    *above, last = normpath(shape.replace(HOLE, "*")).lstrip("/").split("/")
    if not above or not any(fnmatchcase(name, last) for name in HOLDING):
        return False
    named = "proc" in above or (ENVIRON in last and any(fnmatchcase("proc", one) for one in above))
    return named or (shape.startswith("/") and fnmatchcase("proc", above[0]))


def _lists_environments(words: Sequence[Word]) -> bool:
    """``ps auxe``."""
    if not words or words[0].text != "ps" or shows_processes(words):
        return False
    return any(PS_ENVIRONMENT.fullmatch(word.shape) for word in words[1:])


def holds_secret(words: Sequence[str]) -> bool:
    """Whether a variable, an option or a value among the words looks like a secret."""
    if any(GIVEN.search(word) or VALUE.search(word) for word in words):
        return True
    if any(OPTION.fullmatch(word) for word in words[:-1]):
        return True
    asks = any(word.rpartition("/")[2] in TAKES_PASSWORD for word in words)
    glued = asks and any(GLUED.fullmatch(word) for word in words)
    return glued or any(LOGIN.fullmatch(one) and ":" in value for one, value in pairwise(words))
