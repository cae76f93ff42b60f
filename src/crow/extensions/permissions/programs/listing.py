"""Commands that print names of files, one a line, and what may be done with such names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from crow.extensions.permissions.programs.options import read_options
from crow.extensions.permissions.programs.readonly import reads
from crow.extensions.permissions.programs.table import Use, program_of
from crow.extensions.permissions.shell.script import Chain, Node, Simple, Word

Names = Literal["", "paths", "names"]
FED = Word.plain("./fed")
INERT = frozenset({"echo", "basename", "dirname"})
FILTERS = {
    "head": {"n", "q", "--lines", "-NUM"},
    "tail": {"n", "q", "--lines", "-NUM"},
    "sort": set("bdfgikMnrRstuVh"),
    "uniq": set("diu"),
    "grep": {*"EFPwxviem", "--invert-match", "--ignore-case", "--extended-regexp", "--regexp"},
    "cat": set[str](),
}
NAMING = frozenset({"l", "--files-with-matches"})
SEARCHED = NAMING | {
    *"EFPwxviersSIugtT0.",
    *("--include", "--exclude", "--exclude-dir", "--recursive", "--ignore-case", "--word-regexp"),
    *("--fixed-strings", "--extended-regexp", "--perl-regexp", "--regexp", "--null", "--hidden"),
    *("--no-ignore", "--glob", "--iglob", "--type", "--type-not", "--sort", "--no-messages"),
}
FED_FLAGS = frozenset({"-0", "-r", "-t", "-x", "-0r", "-r0", "--null", "--no-run-if-empty"})
FED_VALUED = frozenset({"-n", "-P", "-L", "--max-args", "--max-procs", "--max-lines"})


def names_listed(node: Node) -> Names:
    """Whether a command, filters behind it included, prints nothing but names of files.

    None of ``paths`` begins with a dash; ``names`` are those of a directory as they are.
    """
    match node:
        case Chain(op="|"):
            return names_listed(node.left) if _filters(node.right) else ""
        case Simple(assignments=(), redirects=()):
            return _listed(node.words)
        case _:
            return ""


def _listed(words: Sequence[Word]) -> Names:
    texts = [word.text for word in words]
    if any(text is None or text.startswith(("/", "~")) or ".." in text for text in texts):
        return ""
    match texts:
        case ["find", *rest]:
            printed = {"-printf", "-ls", "-L", "-H", "-follow"}.intersection(rest)
            return "" if printed else "paths"
        case ["git", "ls-files", *rest]:
            return "" if any(text is None or text.startswith("-") for text in rest) else "names"
        case ["rg", *_] if _has_only(words, SEARCHED | {"--files"}):
            return "names" if _has_any(words, NAMING | {"--files"}) else ""
        case ["grep", *_] if _has_only(words, SEARCHED):
            return "names" if _has_any(words, NAMING) else ""
        case _:
            return ""


def _names(words: Sequence[Word]) -> list[str] | None:
    found = program_of(words[0].text)
    read = read_options(found, words[1:]) if found else None
    return None if read is None else read.names


def _has_only(words: Sequence[Word], wanted: set[str] | frozenset[str]) -> bool:
    names = _names(words)
    return names is not None and wanted.issuperset(names)


def _has_any(words: Sequence[Word], wanted: frozenset[str]) -> bool:
    return not wanted.isdisjoint(_names(words) or ())


def _filters(node: Node) -> bool:
    """Whether a command passes lines on whole, some of them, and reads nothing else."""
    if not isinstance(node, Simple) or node.redirects or node.name not in FILTERS:
        return False
    use = reads(node.words)
    return use is not None and not use.paths and _has_only(node.words, FILTERS[node.name])


def found_use(words: Sequence[Word]) -> tuple[tuple[Word, ...], tuple[Word, ...], Use] | None:
    """``find ... -exec COMMAND {} +``: the search, the command, and what that reads beside names.

    None where more could come of it than reading, whatever is found.
    """
    texts = [word.text for word in words]
    if texts[:1] != ["find"] or texts.count("-exec") != 1 or texts.count("{}") != 1:
        return None
    start, named = texts.index("-exec"), texts.index("{}")
    if not start + 1 < named < len(words) - 1 or texts[named + 1] not in {";", "+"}:
        return None
    inner, search = tuple(words[start + 1 : named]), (*words[:start], *words[named + 2 :])
    use = _inner_use(inner, None, "paths")
    return None if use is None else (search, inner, use)


def fed_use(words: Sequence[Word], listed: Names) -> Use | None:
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
    return _inner_use(words[index:], mark, listed)


def _inner_use(words: Sequence[Word], mark: str | None, listed: Names) -> Use | None:
    """What the command that is given names reads beside them."""
    found = program_of(words[0].text) if words else None
    if found is None or found.harm == "writes" or (mark and _misplaced(words, mark)):
        return None
    if found.operands not in {"paths", "pattern"} and words[0].text not in INERT:
        return None
    use = reads((*words, FED) if mark is None else words)
    if use is None or use.follows or any(word.text is None for word in words):
        return None
    given = [_before(word, mark) for word in use.paths if word != FED]
    dashes = found.harm == "reads" and listed == "names" and "--" not in {w.text for w in words}
    globs = (*use.globs, FED) if dashes else use.globs
    return Use(tuple(one for one in given if one is not None), use.deep, globs=globs)


def _misplaced(words: Sequence[Word], mark: str) -> bool:
    """Whether a name would become anything but a path: a program, an option, a way up."""
    texts = [word.text or "" for word in words]
    if mark in texts[0] or any(mark in text and text.startswith("-") for text in texts):
        return True
    ends = [text.partition(mark) for text in texts if mark in text]
    return any(".." in end or mark in end or begin.rpartition("/")[2] for begin, _, end in ends)


def _before(word: Word, mark: str | None) -> Word | None:
    """The directory that a name is looked for in; None for the one that it was found in."""
    if mark is None or mark not in (word.text or ""):
        return word
    begin = (word.text or "").partition(mark)[0]
    return Word.plain(begin) if begin else None
