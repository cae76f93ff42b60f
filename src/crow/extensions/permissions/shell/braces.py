"""Brace expansion of the simple kind: ``{a,b}`` makes two words, as bash does before all else."""

from __future__ import annotations

import re
from collections.abc import Iterable

from crow.extensions.permissions.shell.script import Text, Word

LIST = re.compile(r"([^{}]*)\{([^{},]*(?:,[^{},]*)+)\}([^{}]*)")
MOST = 8


def expanded(words: Iterable[Word]) -> tuple[Word, ...]:
    """The words that bash makes of words; one with other braces than ``{a,b}`` stays as it is."""
    return tuple(one for word in words for one in _alternatives(word))


def _alternatives(word: Word) -> list[Word]:
    if not word.braced:
        return [word]
    index = next(
        (
            i
            for i, p in enumerate(word.parts)
            if isinstance(p, Text) and not p.quoted and "{" in p.value
        ),
        None,
    )
    if index is None or sum(word.bare.count(mark) for mark in "{}") != 2:
        return [word]
    part = word.parts[index]
    found = LIST.fullmatch(part.value) if isinstance(part, Text) else None
    if found is None or ".." in found[2] or "$" in word.bare:
        return [word]
    before, after = list(word.parts[:index]), list(word.parts[index + 1 :])
    choices = found[2].split(",")
    if not (found[1] or found[3] or before or after or all(choices)):
        return [word]  # an empty word that bash drops
    return (
        [
            Word.of([*before, Text(found[1] + choice + found[3]), *after])
            for choice in choices[:MOST]
        ]
        if len(choices) <= MOST
        else [word]
    )
