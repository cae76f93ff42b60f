"""Commands that print names of files, one a line, and what may be done with such names."""

from __future__ import annotations

from collections.abc import Sequence

from crow.extensions.permissions.programs import PROGRAMS, Use
from crow.extensions.permissions.readonly import reads
from crow.extensions.permissions.script import Chain, Node, Simple, Word

FED = "./fed"
INERT = frozenset({"echo", "basename", "dirname"})
FILTERS = frozenset({"head", "tail", "sort", "uniq", "grep", "cat"})
NAMES_ONLY = {"rg": {"-l", "--files", "--files-with-matches"}, "grep": {"-l", "-rl", "-lr"}}
FED_FLAGS = frozenset({"-0", "-r", "-t", "-x", "-0r", "-r0", "--null", "--no-run-if-empty"})
FED_VALUED = frozenset({"-n", "-P", "-L", "--max-args", "--max-procs", "--max-lines"})


def lists_names(node: Node) -> bool:
    """Whether a command, filters behind it included, prints nothing but names of files."""
    match node:
        case Chain(op="|"):
            return lists_names(node.left) and _filters(node.right)
        case Simple(assignments=(), redirects=()):
            return _lists(node.words)
        case _:
            return False


def _lists(words: Sequence[Word]) -> bool:
    texts = [word.text for word in words]
    if any(text is None or text.startswith(("/", "~")) or ".." in text for text in texts):
        return False
    match texts:
        case ["find", *rest]:
            return not {"-printf", "-ls", "-L", "-H", "-follow"}.intersection(rest)
        case ["git", "ls-files", *rest]:
            return all(text is not None and not text.startswith("-") for text in rest)
        case ["rg" | "grep" as name, *rest]:
            return not NAMES_ONLY[name].isdisjoint(rest)
        case _:
            return False


def _filters(node: Node) -> bool:
    if not isinstance(node, Simple) or node.redirects or node.name not in FILTERS:
        return False
    use = reads(node.words)
    return use is not None and not use.paths


def fed_use(words: Sequence[Word]) -> Use | None:
    """What ``xargs`` and its command read beside the names that they are given; else None.

    None too where more could come of it than reading, whatever the names are.
    """
    index, mark = 1, None
    while index < len(words) and (text := words[index].text or "").startswith("-"):
        if text.startswith("-I"):
            mark = text[2:] or (words[index + 1].text if index + 1 < len(words) else None)
            index += 1 if text[2:] else 2
        elif (
            text in FED_VALUED
            and index + 1 < len(words)
            and (words[index + 1].text or "").isdigit()
        ):
            index += 2
        elif text in FED_FLAGS or (text[:2] in FED_VALUED and text[2:].isdigit()):
            index += 1
        else:
            return None
    return _inner_use(words[index:], mark)


def _inner_use(words: Sequence[Word], mark: str | None) -> Use | None:
    """What the command that is given names reads beside them."""
    name = words[0].text if words else None
    found = PROGRAMS.get(name or "")
    if name is None or found is None or found.guarded or (mark and mark in name):
        return None
    if found.operands not in {"paths", "pattern", "counted"} and name not in INERT:
        return None
    use = reads((*words, Word.plain(FED)) if mark is None else words)
    if use is None or use.follows or any(word.text is None for word in words):
        return None
    given = [w for w in use.paths if w.text != FED and not (mark and mark in (w.text or ""))]
    return Use(tuple(given), use.deep)
