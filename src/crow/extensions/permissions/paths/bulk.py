"""Commands that work on whole directories: which they remove, copy and fill."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from crow.dataclasses import frozen
from crow.extensions.permissions.programs.edits import edits
from crow.extensions.permissions.shell.script import Word
from crow.extensions.permissions.shell.wrapper import program

RSYNC_VALUED = frozenset(
    "-e -f -B -T -M --rsh --filter --include --exclude-from --include-from --files-from --temp-dir "
    "--partial-dir --backup-dir --suffix --chmod --chown --max-size --min-size --timeout --port "
    "--bwlimit --log-file --out-format --rsync-path --block-size".split()
)
UNPACKERS = frozenset({"tar", "bsdtar", "unzip", "bsdunzip", "7z", "7za", "unrar", "cpio"})
REMOTE = re.compile(r"[^/]*:")
FINDS = frozenset({"-name", "-iname"})


@frozen
class Bulk:
    """``removed`` directories go away whole, ``copied`` ones (with where to) are repeated there.

    ``filled`` ones get files whose names nobody can tell. ``spared`` are names that are left out,
    ``named`` the only ones that are meant.
    """

    removed: tuple[Word, ...] = ()
    copied: tuple[tuple[Word, Word], ...] = ()
    filled: tuple[Word, ...] = ()
    spared: frozenset[str] = frozenset()
    named: tuple[str, ...] = ()


def bulk(words: Sequence[Word]) -> Bulk | None:
    """What a command does with whole directories; None where it does nothing of the kind."""
    name = program(words[0]) if words else None
    match name:
        case "rm" | "mv" | "cp":
            return _moved(name, words)
        case "rsync":
            return _synchronised(words)
        case "git":
            return _cleaned(words)
        case "find":
            return _deleted(words)
        case _ if name in UNPACKERS:
            return _unpacked(name or "", words)
        case _:
            return None


def _moved(name: str, words: Sequence[Word]) -> Bulk | None:
    done = edits(words)
    if done is None or not done.writes:
        return None
    if name == "rm":
        return Bulk(removed=done.writes)
    *sources, target = (*done.reads, *done.writes)
    pairs = tuple((source, target) for source in sources)
    return Bulk(removed=tuple(sources) if name == "mv" else (), copied=pairs)


def _synchronised(words: Sequence[Word]) -> Bulk | None:
    operands: list[Word] = []
    spared: set[str] = set()
    index, deletes = 1, False
    while index < len(words):
        text = words[index].text or ""
        index += 1
        if text == "--exclude" and index < len(words):
            spared.add((words[index].text or "").strip("/"))
            index += 1
        elif text.startswith("--exclude="):
            spared.add(text.partition("=")[2].strip("/"))
        elif text.startswith("-") and text != "-":
            deletes = deletes or text.startswith(("--del", "--remove-source"))
            index += text in RSYNC_VALUED
        else:
            operands.append(words[index - 1])
    if len(operands) < 2:
        return None
    *sources, target = operands
    remote = any(REMOTE.match(source.shape) for source in sources)
    copied = tuple((source, target) for source in sources)
    gone, full = (target,) if deletes else (), (target,) if remote else ()
    return Bulk(gone, copied, full, frozenset(spared))


def _cleaned(words: Sequence[Word]) -> Bulk | None:
    """``git clean``; of a directory that is a repository itself it leaves ``.git`` alone."""
    texts = [word.text or "" for word in words]
    index = 1
    while texts[index : index + 1] and texts[index].startswith("-"):
        index += 2 if texts[index] in {"-C", "-c"} else 1
    if texts[index : index + 1] != ["clean"]:
        return None
    options = [text for text in texts[index + 1 :] if text.startswith("-")]
    letters = "".join(text[1:] for text in options if not text.startswith("--"))
    if "n" in letters or "--dry-run" in options:
        return None
    twice = letters.count("f") + options.count("--force") > 1
    paths = [word for word in words[index + 1 :] if word.text not in options]
    kept = () if twice else (".git",)
    return Bulk(removed=tuple(paths) or (Word.plain("."),), spared=frozenset(kept))


def _deleted(words: Sequence[Word]) -> Bulk | None:
    """``find -delete``; with nothing but names asked for, only what has such a name."""
    texts = [word.text or "" for word in words]
    if "-delete" not in texts:
        return None
    first = next((i for i, one in enumerate(texts[1:], 1) if one[:1] in {"-", "(", "!"}), 1)
    roots = tuple(words[1:first]) or (Word.plain("."),)
    tests = texts[first:]
    plain = not {"-o", "-or", "!", "-not", ","}.intersection(tests)
    named = [after for one, after in pairwise(tests) if one in FINDS]
    return Bulk(removed=roots, named=tuple(named) if plain else ())


def _unpacked(name: str, words: Sequence[Word]) -> Bulk | None:
    texts = [word.text or "" for word in words]
    if name in {"tar", "bsdtar"}:
        return _untarred(words, texts)
    first = texts[1] if len(texts) > 1 else ""
    if name in {"7z", "7za", "unrar"}:
        target = [Word.plain(text[2:]) for text in texts if text.startswith("-o") and text[2:]]
        return Bulk(filled=tuple(target) or (Word.plain("."),)) if first in {"x", "e"} else None
    if name == "cpio":
        reads = any(re.fullmatch(r"-[a-z]*[ip][a-z]*|--extract|--pass-through", t) for t in texts)
        return Bulk(filled=(Word.plain("."),)) if reads else None
    if any(re.fullmatch(r"-[a-zA-Z]*[lptvzZ][a-zA-Z]*", text) for text in texts[1:]):
        return None
    after = [words[i + 1] for i, text in enumerate(texts[:-1]) if text == "-d"]
    return Bulk(filled=tuple(after) or (Word.plain("."),))


def _untarred(words: Sequence[Word], texts: Sequence[str]) -> Bulk | None:
    old = texts[1] if len(texts) > 1 and not texts[1].startswith("-") else ""
    short = re.compile(r"-[a-zA-Z]*x[a-zA-Z]*")
    if not ("x" in old or any(short.fullmatch(t) or t in {"--extract", "--get"} for t in texts)):
        return None
    target: list[Word] = []
    for index, text in enumerate(texts):
        if text in {"-C", "--directory", "--cd"}:
            target += words[index + 1 : index + 2]
        elif text.startswith("--directory="):
            target.append(Word.plain(text.partition("=")[2]))
        elif text.startswith("-C") and len(text) > 2:
            target.append(Word.plain(text[2:]))
    return Bulk(filled=tuple(target[-1:]) or (Word.plain("."),))
