"""``test``, ``[`` and ``[[`` in the forms that evaluate nothing."""

from __future__ import annotations

import re
from collections.abc import Sequence

from crow.extensions.permissions.programs.table import Use
from crow.extensions.permissions.shell.script import Word

UNARY = frozenset(f"-{letter}" for letter in "abcdefghknprstuwxzGLNOS")
BINARY = frozenset({"=", "==", "!=", "=~", "-nt", "-ot", "-ef", "<", ">"})
INTEGER = frozenset({"-eq", "-ne", "-lt", "-le", "-gt", "-ge"})
FILES = frozenset(f"-{letter}" for letter in "abcdefghkprsuwxGLNOS")


def read_test(words: Sequence[Word]) -> Use | None:
    """What a test looks at; None where it may evaluate something."""
    inner = list(words[1:])
    closing = {"[": "]", "[[": "]]"}.get(words[0].text or "")
    if closing is not None and (not inner or inner.pop().text != closing):
        return None
    double = words[0].text == "[["
    clauses: list[list[Word]] = [[]]
    for word in inner:
        if double and word.text in {"&&", "||"} and word.bare == word.text:
            clauses.append([])
        else:
            clauses[-1].append(word)
    paths: list[Word] = []
    for clause in clauses:
        found = _clause(clause, double=double)
        if found is None:
            return None
        paths.extend(found)
    return Use(tuple(paths))


def _clause(words: list[Word], *, double: bool) -> list[Word] | None:
    while words and words[0].text == "!":
        words = words[1:]
    if not all(word.known for word in words) or (not double and any(w.splits for w in words)):
        return None
    texts = [word.text for word in words]
    if len(words) == 2 and texts[0] in UNARY:
        return [words[1]] if texts[0] in FILES else []
    if len(words) == 3 and texts[1] in BINARY:
        return [words[0], words[2]] if texts[1] in {"-nt", "-ot", "-ef"} else []
    if len(words) == 3 and texts[1] in INTEGER:
        literal = all(text is not None and re.fullmatch(r"-?\d+", text) for text in texts[::2])
        plain = all(text is None or re.fullmatch(r"-?\d+", text) for text in texts[::2])
        return [] if literal or (plain and not double) else None
    return None
