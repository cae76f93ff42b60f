"""Git commands that only read, in a repository whose own settings run nothing."""

from __future__ import annotations

import re
from collections.abc import Sequence

from crow.extensions.permissions.programs.options import Options, read_options
from crow.extensions.permissions.programs.table import git_command
from crow.extensions.permissions.shell.script import Word

LISTING = {"stash": {"list", "show"}, "worktree": {"list"}, "reflog": {"show", "exists"}}
PATTERN_MARKS = frozenset(
    {"--list", "--contains", "--no-contains", "--merged", "--no-merged", "--points-at"}
)
GLOBAL = frozenset({"--no-pager", "-P", "--no-optional-locks", "--literal-pathspecs"})
SHOWN_CONFIG = frozenset({"--get", "--get-all", "--get-regexp", "--list", "l"})
NO_INDEX = "--no-index"
RUNS = re.compile(
    r"%[-+ ]?G|%\(\*?(?:[\w:]*signature|describe)|^(?:--sort=)?[-*]*(?:[\w:]*signature|describe)\b"
)


def reads_only(words: Sequence[Word]) -> tuple[Word, ...] | None:
    """The words of a git command that may be paths, where it only reads; else None.

    Which of them are revisions, git finds out by itself. It only reads in a quiet repository.
    """
    index = 1
    while index < len(words) and words[index].text in GLOBAL:
        index += 1
    name = words[index].text if index < len(words) else None
    rest = words[index + 1 :]
    if name in {"--version", "--help"}:
        return None if rest else ()
    found = git_command(name)
    if found is None or name is None or not all(map(_is_plain, rest)):
        return None
    read = read_options(found, rest)
    if read is None or NO_INDEX in read.names or not _is_listing(name, rest, read):
        return None
    skips = found.operands == "pattern" and "e" not in read.names
    return tuple(read.operands[1:] if skips else read.operands)


def moved(words: Sequence[Word]) -> tuple[Word | None, tuple[Word, ...]]:
    """The directory of ``git -C DIR ...``, if it has one, and the command without it."""
    if len(words) > 3 and words[1].text == "-C" and words[2].text:
        return words[2], (words[0], *words[3:])
    return None, tuple(words)


def _is_plain(word: Word) -> bool:
    """Whether a word is certainly one word, and nothing that makes git run a program."""
    single = word.known and not word.globbed and not word.splits
    return single and not RUNS.search(word.shape)


def _is_listing(name: str, words: Sequence[Word], read: Options) -> bool:
    """Whether a command that can also change something only lists."""
    match name:
        case "stash" | "worktree" | "reflog":
            first = words[0].text if words else None
            return first in LISTING[name] or (name == "reflog" and not read.operands)
        case "config":
            return _shows_config(read)
        case "branch":
            return not read.operands or not PATTERN_MARKS.isdisjoint(read.names)
        case "tag":
            return not read.operands or not (PATTERN_MARKS | {"l"}).isdisjoint(read.names)
        case "remote":
            texts = [word.text for word in read.operands]
            return not texts or (texts[0] == "get-url" and len(texts) == 2)
        case _:
            return True


def _shows_config(read: Options) -> bool:
    """Whether ``git config`` shows settings; its sub-commands of newer gits among the ways.

    Behind a name it takes whatever comes for the new value: ``git config user.name --list``.
    """
    if read.late:
        return False
    operands = [word.text or "" for word in read.operands]
    if operands[:1] in (["get"], ["list"]):
        return True
    if any("." not in text for text in operands):
        return False
    return len(operands) == 1 or not SHOWN_CONFIG.isdisjoint(read.names)
