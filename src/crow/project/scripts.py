"""Scripts of a project that its hooks and MCP servers run: those that their commands name.

Commands are read word by word, not understood: what a named script runs in turn is not known.
"""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple, TypeGuard, cast

LARGEST = 1_000_000
ROOT = (
    r"\$\{(?:workspaceFolder|CLAUDE_PROJECT_DIR(?::-[^}]*)?)\}|\$CLAUDE_PROJECT_DIR\b|\$\{PWD\}|\$PWD\b"
    r"|\$\((?:pwd|git rev-parse --show-toplevel)\)|`(?:pwd|git rev-parse --show-toplevel)`"
)
MARK = "\x01"
"""Stands for the project's directory, which may have blanks in its name."""
HOME = r"^~(?=/)|\$\{HOME\}|\$HOME\b"
DATA = frozenset(
    {".log", ".txt", ".md", ".json", ".jsonl", ".csv", ".tsv", ".lock", ".tmp", ".out", ".pid"}
    | {".db", ".sqlite", ".html", ".xml", ".yaml", ".yml", ".toml"}
)
"""Files that are read or written rather than run, unless they are the command itself."""
WRITERS = frozenset({"touch", "tee", "rm", "mkdir", "rmdir", "echo", "printf", "truncate"})
SUFFIX = r"(?i)\.[a-z]\w{0,4}$"
KEY = r"(?m)^\s*(?:-\s+)?(?:[\w-]+:(?:\s+|$))?|^\s*-\s+"
BLOCK = r"(?ms)^hooks:(.*?)(?=^\S|\Z)"

SETTINGS = frozenset({"settings", "settings.local"})
SERVERS = {"opencode": "mcp", "config": "mcp_servers"}
"""The files of other agents of which servers alone run, and what these stand under."""
RUNNING = ("hooks", "mcpServers", "extensions", "statusLine", "apiKeyHelper", "providers")
"""What of settings runs commands; those of ``fileSuggestion`` and the like Crow does not run."""
COMMANDS = ("command", "apiKeyHelper")
"""The keys whose text is a command."""


class Named(NamedTuple):
    """A path that a command names; ``looks_run`` makes it a script where there is no file yet."""

    path: Path
    looks_run: bool


def scripts_in(path: Path, project: Path) -> Iterator[Path]:
    """The project's files that a settings file, a plugin's JSON or front matter lets run."""
    try:
        status = path.stat()
    except OSError:
        return
    stamp = (status.st_mtime_ns, status.st_ctime_ns, status.st_size)
    yield from _counting(_told_in(path, project, stamp))


def scripts_of(value: object, project: Path) -> Iterator[Path]:
    """The project's files that the commands anywhere in a table name, there or not."""
    yield from _counting(_told(value, project))


def _counting(found: Iterable[Named]) -> Iterator[Path]:
    for one in found:
        if one.path.is_file() or (one.looks_run and not one.path.exists()):
            yield one.path


@lru_cache(1024)
def _told_in(path: Path, project: Path, stamp: tuple[int, int, int]) -> tuple[Named, ...]:
    """What a file names that looks like this; asked before every prompt, of every skill."""
    if stamp[2] > LARGEST:
        return ()
    try:
        text = path.read_text("utf-8-sig")
        if path.suffix == ".md":
            return tuple(_of_front_matter(text, project))
        table = _table(text, path.suffix)
        if path.stem in SERVERS and isinstance(table, dict):
            table = cast("Mapping[str, object]", table).get(SERVERS[path.stem])
        if path.stem in SETTINGS and isinstance(table, dict):
            told = cast("Mapping[str, object]", table)
            table = [{key: told[key]} for key in RUNNING if key in told]
        return tuple(_told(table, project))
    except (OSError, ValueError, RecursionError):
        return ()


def _table(text: str, suffix: str) -> object:
    if suffix == ".jsonc":
        from crow.project.other_agents.files import plain

        return json.loads(plain(text))
    if suffix != ".toml":
        return json.loads(text)
    import tomllib

    return tomllib.loads(text)


def _told(value: object, project: Path) -> Iterator[Named]:
    if isinstance(value, list):
        for each in cast("list[object]", value):
            yield from _told(each, project)
    elif isinstance(value, dict):
        table = cast("Mapping[str, object]", value)
        args, cwd = table.get("args"), table.get("cwd")
        for told in map(table.get, COMMANDS):
            # opencode has program and arguments in one list
            command, *more = (
                (cast("list[object]", told) or [None]) if isinstance(told, list) else [told]
            )
            if not _is_text(command):
                continue
            words = [*more, *(cast("list[object]", args) if isinstance(args, list) else [])]
            base = _placed(cwd, project, project) if isinstance(cwd, str) else project
            texts = [shlex.quote(each) for each in words if isinstance(each, str)]
            yield from _named(" ".join([command, *texts]), project, base)
        for each in table.values():
            yield from _told(each, project)


def _is_text(value: object) -> TypeGuard[str]:
    return isinstance(value, str)


def _named(text: str, project: Path, base: Path | None = None) -> Iterator[Named]:
    """What a shell command can mean below ``project``; ``base`` is where it runs."""
    bases = [base or project]
    for command in _commands(re.sub(ROOT, MARK, text)):
        program = command[0].rpartition("/")[2]
        if program == "cd" and len(command) > 1:
            bases.append(_placed(command[1], bases[-1], project))
        for index, word in enumerate(command):
            if re.search(r"\s", word) and word != text:
                yield from _named(word, project, bases[-1])
            if index == 0 or program not in WRITERS:
                yield from _files(word, bases, project, runs=index == 0)


def _files(word: str, bases: Iterable[Path], project: Path, *, runs: bool) -> Iterator[Named]:
    """The files that one word can mean, ``--option=FILE`` too."""
    for one in dict.fromkeys((word, word.rpartition("=")[2])):
        for base in bases:
            path = _placed(one, base, project)
            is_inside = path != project and path.is_relative_to(project)
            if is_inside and (runs or path.suffix.lower() not in DATA):
                yield Named(path, _looks_run(one, runs=runs))


def _looks_run(word: str, *, runs: bool) -> bool:
    """Whether a word that is no file yet is the name of one."""
    if word.startswith("-") or "://" in word or re.search(r"\s", word):
        return False
    return (runs and "/" in word) or re.search(SUFFIX, word) is not None


def _placed(word: str, base: Path, project: Path) -> Path:
    told = re.sub(HOME, lambda _: f"{Path.home()}", re.sub(ROOT, MARK, word)).replace(
        MARK, str(project)
    )
    return Path(os.path.normpath(base / told))


def _commands(text: str) -> Iterator[list[str]]:
    """The words of every command of a line, without what its output goes to."""
    words: list[str] = []
    skip = False
    for word in _words(text):
        if word and not word.strip("();<>|&"):
            skip = ">" in word
            if words and not skip and "<" not in word:
                yield words
                words = []
        elif not skip and not (not words and re.match(r"[A-Za-z_]\w*=", word)):
            words.append(word)
        else:
            skip = False
    if words:
        yield words


def _words(text: str) -> list[str]:
    reader = shlex.shlex(text.replace("\n", " ; "), posix=True, punctuation_chars=True)
    reader.whitespace_split = True
    reader.commenters = ""
    try:
        return list(reader)
    except ValueError:  # a quote is not closed
        return re.findall(r"[^\s\"'();<>|&]+", text)


def _of_front_matter(text: str, project: Path) -> Iterator[Named]:
    """What the hooks in a file's front matter name, as text, for there may be many; and servers."""
    if not text.startswith("---"):
        return
    head = text[: text.find("\n---", 3)]
    if "mcpServers" in head:
        from crow.project.frontmatter import FrontMatter

        yield from _told(FrontMatter.parse(text).table.get("mcpServers"), project)
    for block in re.findall(BLOCK, head):
        for line in re.sub(KEY, "", block).splitlines():
            words = line.strip().strip("[]").replace(", ", " ")
            yield from _named(words, project)
