"""Contents of files that git shows: of today, of all history, or of named ones alone."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Sequence

from crow.dataclasses import frozen
from crow.extensions.permissions.paths.disk import Disk
from crow.extensions.permissions.shell.script import HOLE, Word

PATCH = re.compile(r"-(?:[pucW]|U\d*|L.*)", re.DOTALL)
PATCHES = (
    "--patch --unified --cc --remerge-diff --word-diff --word-diff-regex --color-words --binary "
    "--dd --patch-with-stat --patch-with-raw --function-context --check --diff-merges"
).split()
SUMMARIES = frozenset(
    "-s -q --no-patch --quiet --stat --shortstat --numstat --name-only --name-status --summary "
    "--raw --dirstat --compact-summary".split()
)
BY_PATCH = frozenset(
    "log reflog whatchanged stash diff-tree diff-index diff-files rev-list add checkout restore "
    "reset commit am rebase status request-pull".split()
)
ALWAYS = frozenset(
    "grep blame annotate archive format-patch cat-file range-diff difftool fast-export bundle "
    "merge-tree merge-file unpack-file checkout-index".split()
)
ELSEWHERE = re.compile(
    r"--(?:git-dir|work-tree|namespace|pathspec-from-file|contents|batch).*|-C.+"
)
REVISION = re.compile(
    r"[\w./~^@-]+(?:@\{u(?:pstream)?\}(?:\.\.\.?[\w./~^@-]*)?)?(?:\^\{(?:tree|commit)\})?"
)
HASH = re.compile(r"[0-9a-f]{4,64}")
TAKES_BLOBS = frozenset({"show", "cat-file"})
MAGIC = re.compile(r"[*?\[\\\x01]|^:")
GIT_VALUED = frozenset({"-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path"})
FIRST_OPERANDS = {"grep": 1, "stash": 1, "reflog": 1}
"""Operands that are neither revisions nor paths: a pattern, a sub-command."""


STEERING = re.compile(
    r"GIT_(?!AUTHOR_|COMMITTER_|TRACE|TERMINAL_PROMPT=|PAGER=|EDITOR=|SEQUENCE_EDITOR=|ASKPASS=|SSH"
    r"|OPTIONAL_LOCKS=|MERGE_AUTOEDIT=|REFLOG_ACTION=|HTTP|SSL|CURL|PROGRESS|ADVICE=|LFS_|FLUSH=)"
    r"\w+=.*",
    re.DOTALL,
)
"""Variables that may lead git to another repository, index, working tree or configuration."""
ADDRESS = re.compile(r"remote\..+\.(?:push)?url|url\..+\.(?:push)?insteadof")
MOVING = re.compile(r"core\.worktree|include(?:if\..+)?\.path")
REMOTE = re.compile(r"(?!file://)[^/]*:")
PATH = re.compile(r"\.{0,2}/|~|\.{1,2}$")
HERE = Word.plain(".")
SPLIT = b"link\x00\x00"
"""The mark of an index that has a part of its names in another file."""


@frozen
class Shown:
    """``paths`` are the pathspecs, ``objects`` files of a revision (from the repository's top).

    ``unclear`` where it cannot be told which files, ``current`` where only those that git tracks
    now.
    """

    paths: tuple[Word, ...] = ()
    objects: tuple[str, ...] = ()
    unclear: bool = False
    current: bool = False


def contents_shown(words: Sequence[Word], is_file: Sequence[bool]) -> Shown | None:
    """What ``git SUB-COMMAND ...`` shows; None where no contents. ``is_file`` marks what exists."""
    name = words[1].text if len(words) > 1 else None
    before = words[2:]
    end = next((i for i, word in enumerate(before) if word.text == "--"), len(before))
    options = [word.shape for word in before[:end] if word.shape.startswith("-")]
    if name is None or not _shows(name, options):
        return None
    operands = [
        (word, there)
        for word, there in zip(before[:end], is_file[2:], strict=False)
        if not word.shape.startswith("-")
    ]
    operands = operands[
        0 if name == "grep" and _gives_pattern(options) else FIRST_OPERANDS.get(name, 0) :
    ]
    if name == "cat-file" and operands and operands[0][0].text in {"blob", "tree", "commit", "tag"}:
        operands = operands[1:]
    paths = [word for word, there in operands if there] + list(before[end + 1 :])
    others = [word.shape for word, there in operands if not there]
    objects = [one.partition(":")[2] for one in others if ":" in one[1:] or one.startswith(":")]
    revisions = [one for one in others if ":" not in one]
    odd = any(MAGIC.search(word.shape) or word.globbed for word in paths)
    odd = odd or any(MAGIC.search(one) for one in objects)
    odd = odd or any(map(ELSEWHERE.fullmatch, options))
    odd = odd or not all(map(REVISION.fullmatch, revisions))
    odd = odd or (name in TAKES_BLOBS and any(map(HASH.fullmatch, revisions)))
    if name == "cat-file":
        return None if revisions and not odd and not objects else Shown((), tuple(objects), odd)
    current = name in {"diff", "grep", "diff-files"} and not others
    current = current and not {"--cached", "--staged", "--merge-base"}.intersection(options)
    if objects and not revisions and not paths:
        return Shown((), tuple(objects), odd)
    return Shown(tuple(paths), tuple(objects), odd, current)


def steers_git(text: str) -> bool:
    """Whether ``NAME=value`` may lead git to other files than it finds by itself."""
    return STEERING.fullmatch(text) is not None


def settings(options: Sequence[Word]) -> Iterator[tuple[Word, Word]]:
    """The names and values that ``git -c NAME=VALUE`` and ``--config-env=NAME=VARIABLE`` give."""
    for before, word in zip((Word.plain(""), *options), options, strict=False):
        shape = word.shape
        if before.shape in {"-c", "--config-env"} or shape.startswith("--config-env="):
            name, _, value = shape.removeprefix("--config-env=").partition("=")
            yield Word.plain(name), Word.plain(value)


def sources(words: Sequence[Word]) -> tuple[Word, ...]:
    """The repositories all of which ``git SUB-COMMAND ...`` copies elsewhere, as paths."""
    name = words[1].text if len(words) > 1 else None
    operands = [word for word in words[2:] if not word.shape.startswith("-")]
    local = tuple(filter(None, map(_local, operands)))
    paths = tuple(word for word in local if PATH.match(word.shape))
    match name:
        case "clone":
            return () if any(REMOTE.match(word.shape) for word in operands) else local
        case "submodule" if operands and operands[0].text == "add":
            return paths
        case "remote" if operands and operands[0].text in {"add", "set-url"}:
            return (*paths, HERE) if paths else ()
        case "config" if len(operands) > 1:
            return (HERE,) if leads_away(operands[-2], operands[-1]) else ()
        case "fetch" | "pull":
            return paths
        case "push":
            return (HERE,) if paths else ()
        case "worktree" if operands and operands[0].text == "add":
            return (HERE,)
        case _:
            return ()


def leads_away(name: Word, value: Word) -> bool:
    """Whether a setting has git take its files from elsewhere, or push them to a directory."""
    key = name.shape.lower()
    if MOVING.fullmatch(key):
        return True
    if ADDRESS.fullmatch(key) is None:
        return False
    where = Word.plain(name.shape[4:].rpartition(".")[0]) if key.startswith("url.") else value
    local = _local(where)
    return local is not None and (HOLE in local.shape or PATH.match(local.shape) is not None)


def _local(word: Word) -> Word | None:
    """An operand as a path; None for an address of another machine."""
    if word.shape.startswith("file://"):
        return Word.plain(word.shape.removeprefix("file://"))
    return None if REMOTE.match(word.shape) else word


def _shows(name: str, options: Sequence[str]) -> bool:
    if name == "cat-file":
        return not {"-t", "-s", "-e", "--batch-check"}.intersection(options)
    if name in ALWAYS:
        return True
    patches = any(map(_is_patch, options))
    if name in BY_PATCH:
        return patches or (name in {"status", "commit"} and any("v" in one[:3] for one in options))
    if name in {"diff", "show"}:
        quiet = any(one.partition("=")[0] in SUMMARIES for one in options)
        return patches or not quiet
    return False


def _is_patch(option: str) -> bool:
    name = option.partition("=")[0]
    if name.startswith("--"):
        return len(name) > 3 and any(one.startswith(name) for one in PATCHES)
    return PATCH.fullmatch(option) is not None


def _gives_pattern(options: Sequence[str]) -> bool:
    return any(re.match(r"-[a-zA-Z]*[ef]|--regexp", one) for one in options)


def repository(disk: Disk, cwd: str) -> str | None:
    """The top of the repository that a directory is in, as git finds it; None for none."""
    path = disk.real(cwd) or cwd
    while True:
        base = path.rstrip("/")
        if disk.exists(f"{base}/.git") or disk.exists(f"{base}/HEAD"):
            return path
        if not base:
            return None
        path = base.rpartition("/")[0] or "/"


def tracked(disk: Disk, top: str) -> list[str] | None:
    """The names of the files that git tracks, as its index has them; None for an odd one.

    ``top`` is the directory that the repository is in.
    """
    git = f"{top.rstrip('/')}/.git"
    if not disk.is_dir(git) or b"sha256" in (disk.data(f"{git}/config") or b""):
        return None
    if not disk.exists(f"{git}/index"):
        return []
    data = disk.data(f"{git}/index")
    try:
        names = None if data is None or SPLIT in data else list(_entries(data))
    except (struct.error, ValueError):
        return None
    return None if names is None or any(name.endswith("/") for name in names) else names


def _entries(data: bytes) -> Iterator[str]:
    """The paths of an index of version 2 or 3. Raises ValueError for another."""
    mark, version, count = struct.unpack_from(">4sLL", data)
    if mark != b"DIRC" or version not in {2, 3}:
        raise ValueError("not an index that is read here")
    start = 12
    for _ in range(count):
        (flags,) = struct.unpack_from(">H", data, start + 60)
        name = start + (64 if flags & 0x4000 else 62)
        end = data.index(b"\0", name)
        yield data[name:end].decode("utf-8", "surrogateescape")
        start += (end - start + 8) // 8 * 8


def without_git_options(words: list[str]) -> list[str]:
    """``git -C dir push`` as ``git push``."""
    index = 1
    while index < len(words) and words[index].startswith("-"):
        index += 2 if words[index] in GIT_VALUED else 1
    return [words[0], *words[index:]]
