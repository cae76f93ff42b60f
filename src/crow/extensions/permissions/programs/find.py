"""``find`` without anything that writes, deletes or runs."""

from __future__ import annotations

from collections.abc import Sequence

from crow.extensions.permissions.programs.table import Use
from crow.extensions.permissions.shell.script import Word

FIND_FLAGS = frozenset(
    "-print -print0 -ls -prune -not ! -a -and -o -or ( ) , -empty -readable -writable -executable "
    "-true -false -depth -mount -xdev -follow -daystart -noleaf -quit -nouser -nogroup "
    "-ignore_readdir_race -nowarn -warn".split()
)
FIND_VALUED = frozenset(
    "-name -iname -path -ipath -wholename -iwholename -regex -iregex -type -xtype -maxdepth "
    "-mindepth -size -mtime -mmin -ctime -cmin -atime -amin -newermt -user -group -uid -gid "
    "-perm -links -inum -lname -ilname -regextype -printf -used -fstype".split()
)
FIND_REFERENCE = frozenset({"-newer", "-anewer", "-cnewer", "-samefile"})


def read_find(words: Sequence[Word]) -> Use | None:
    """Where a search begins; None where it does more than to search."""
    index = 1
    while index < len(words) and words[index].text in {"-H", "-L", "-P"}:
        index += 1
    paths: list[Word] = []
    while index < len(words) and not _is_expression(words[index]):
        paths.append(words[index])
        index += 1
    while index < len(words):
        text = words[index].text
        valued = text in FIND_VALUED or text in FIND_REFERENCE
        if not valued and text not in FIND_FLAGS:
            return None
        if valued:
            index += 1
            if index >= len(words) or not _is_single(words[index]):
                return None
            paths += [words[index]] if text in FIND_REFERENCE else []
        index += 1
    if not all(_is_single(path) for path in paths):
        return None
    follows = any(word.text in {"-L", "-follow"} for word in words)
    return Use(tuple(paths) or (Word.plain("."),), deep=True, follows=follows)


def _is_expression(word: Word) -> bool:
    text = word.text
    return text is not None and (text.startswith("-") or text in {"(", ")", "!", ","})


def _is_single(word: Word) -> bool:
    """Whether a word is certainly one word, and known enough."""
    return word.known and not word.globbed and not word.splits
