"""Secrets in a command's words, which no rule may carry into a settings file."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

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


def holds_secret(words: Sequence[str]) -> bool:
    """Whether a variable, an option or a value among the words looks like a secret."""
    if any(GIVEN.search(word) or VALUE.search(word) for word in words):
        return True
    if any(OPTION.fullmatch(word) for word in words[:-1]):
        return True
    asks = any(word.rpartition("/")[2] in TAKES_PASSWORD for word in words)
    glued = asks and any(GLUED.fullmatch(word) for word in words)
    return glued or any(LOGIN.fullmatch(one) and ":" in value for one, value in pairwise(words))
