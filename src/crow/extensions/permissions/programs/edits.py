"""File commands: what they write and read, and when nothing more can come of them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import unquote

from crow.dataclasses import frozen
from crow.extensions.permissions.programs.readonly import reads
from crow.extensions.permissions.programs.sed import edited
from crow.extensions.permissions.programs.table import Program, Use, option, program_of
from crow.extensions.permissions.shell.script import Word
from crow.extensions.permissions.shell.wrapper import program


@frozen
class Edits:
    """The words that a command writes (or removes) and reads. ``sure`` where that is all."""

    writes: tuple[Word, ...]
    reads: tuple[Word, ...] = ()
    sure: bool = False


ACCEPTED = {
    name: Program.of("getopt_long", "paths", "writes", *options.split())
    for name, options in {
        "mkdir": "-pvm: --parents --verbose --mode:",
        "touch": "-acm --no-create",
        "rm": "-dfirRvI --force --recursive --dir --verbose --interactive::",
        "rmdir": "-pv --parents --verbose --ignore-fail-on-non-empty",
        "mv": "-finuvT --force --no-clobber --update:: --verbose",
        "cp": "-afinpruvRT --archive --force --no-clobber --recursive --update:: --verbose",
    }.items()
}
LAST = frozenset({"cp", "install", "ln", "rsync", "scp", "link"})
WRITERS = frozenset(
    {*ACCEPTED, *LAST, "sed", "tee", "truncate", "chmod", "chown", "chgrp", "dd", "shred", "unlink"}
    | {"patch", "unzip", "mkfifo", "mknod", "setfacl", "chattr", "sponge", "ex", "ed", "vi", "vim"}
)
PATHLESS = frozenset({"text", "none", "printf", "printenv", "version", "date", "ps", "number"})
READING = frozenset(
    "less more most bat batcat yq zcat bzcat xzcat gzip gunzip "
    "bzip2 xz zip tar bsdtar 7z 7za rar cp mv ln install rsync scp dd tee source . "
    "split csplit openssl gpg curl wget base32 iconv pr fmt look ag ack zgrep vim vi "
    "nano emacs ed ex view open xdg-open mapfile readarray python python3 node perl "
    "ruby php patch shuf tsort ptx dos2unix envsubst m4 pandoc highlight pygmentize "
    "glow hexyl sqlite3 strace uuencode".split()
)
ARCHIVERS = frozenset({"tar", "bsdtar", "7z", "7za", "rar"})
COPIERS = frozenset({"cp", "rsync", "scp", "zip", "zgrep"})
FILE_URL = re.compile(r"file:(?://[^/]*)?(/.*)", re.IGNORECASE | re.DOTALL)


def edits(words: Sequence[Word]) -> Edits | None:
    """What a command does to files, where it is known for doing that; else None."""
    name = program(words[0]) if words else None
    if name not in WRITERS:
        return None
    if name == "sed":
        done = edited(words)
        return None if done is None else Edits(tuple(done[0]), (), done[1])
    operands, sure = _operands(ACCEPTED.get(name), words[1:])
    if name == "dd":
        return Edits(tuple(_values(words, "of=")), tuple(_values(words, "if=")))
    if name in {"chmod", "chown", "chgrp", "setfacl", "chattr"}:
        return Edits(tuple(operands[1:]))
    target = _target(words)
    if name in LAST:
        writes = target or operands[-1:]
        return Edits(tuple(writes), tuple(operands[: len(operands) - len(writes)]), sure)
    if name == "mv":
        return Edits(tuple(operands + target), (), sure and not target)
    return Edits(tuple(operands), (), sure)


def _operands(found: Program | None, words: Sequence[Word]) -> tuple[list[Word], bool]:
    operands: list[Word] = []
    sure, ended, index = found is not None, False, 0
    while index < len(words):
        word, text = words[index], words[index].text
        index += 1
        if text == "--" and not ended:
            ended = True
        elif text is None or ended or not text.startswith("-") or text == "-":
            operands.append(word)
            sure = sure and text is not None and not (word.globbed and word.bare[:1] in "*?[")
        elif found is None or (made := option(found, text)) is None:
            sure = False
        elif made.waits:
            value = words[index] if index < len(words) else None
            sure = sure and value is not None and value.text is not None and not value.globbed
            index += 1
    return operands, sure


def _target(words: Sequence[Word]) -> list[Word]:
    """The directory that ``-t`` names."""
    for index, word in enumerate(words):
        text = word.text or ""
        if text in {"-t", "--target-directory"}:
            return list(words[index + 1 : index + 2])
        if text.startswith("--target-directory="):
            return [Word.plain(text.split("=", 1)[1])]
        if re.fullmatch(r"-[a-zA-Z]*t.+", text) and program(words[0]) in {
            "cp",
            "mv",
            "ln",
            "install",
        }:
            return [Word.plain(text.split("t", 1)[1])]
    return []


def _values(words: Sequence[Word], mark: str) -> list[Word]:
    return [Word.plain(w.text[len(mark) :]) for w in words if w.text and w.text.startswith(mark)]


def may_read(words: Sequence[Word]) -> Use | None:
    """What a file command may take for paths; None for one that is not known for reading files."""
    name = program(words[0]) if words else None
    if name is None or not _is_reading(name):
        return None
    plain = (Word.plain(name), *words[1:])
    use = reads(plain) or reads(plain, loose=True)
    if use is not None:
        return Use((*use.paths, *_attached(words)), use.deep, use.follows)
    deep = name in ARCHIVERS or (
        name in COPIERS
        and any(
            w.text and re.fullmatch(r"-[a-zA-Z]*[rRa][a-zA-Z]*|--recursive|--archive", w.text)
            for w in words
        )
    )
    return Use((*words[1:], *_attached(words)), deep)


def _is_reading(name: str) -> bool:
    found = program_of(name)
    return name in READING or (found is not None and found.operands not in PATHLESS)


def _attached(words: Sequence[Word]) -> list[Word]:
    """Paths behind an option's ``=``, an ``@``, a short option's letter or ``file:``."""
    found: list[Word] = []
    for word in words[1:]:
        text = word.text
        if not text:
            continue
        if url := FILE_URL.match(text):
            found.append(Word.plain(unquote(url[1])))
        if "=" in text:
            found.append(Word.plain(text.split("=", 1)[1]))
        if "@" in text:
            found.append(Word.plain(text.split("@", 1)[1]))
        if re.match(r"-[A-Za-z][^-]", text) and not text.startswith("--"):
            found.append(Word.plain(text[2:]))
    return [word for word in found if word.text]
