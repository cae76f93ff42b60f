"""A custom command as its file has it: Markdown with arguments, shell lines and files in it."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from crow.core.errors import CrowError
from crow.frontmatter import parse

LONGEST = 100_000
DESCRIPTION = 100
SUFFIX = ".md"
_NAME = re.compile(r"[\w.-]+(:[\w.-]+)*")
_PIECE = re.compile(
    r"^```!\s*\n(?P<block>.*?)^```[ \t]*$"
    r"|(?:(?<=\s)|^)!`(?P<line>[^`\n]+)`"
    r"|(?<![\w`@./-])@(?P<file>(?:\\ |[^\s`\"'<>()\[\],;])+)",
    re.MULTILINE | re.DOTALL,
)
_ARGUMENT = re.compile(r"\$(ARGUMENTS|[1-9])(?!\d)")

Scope = Literal["project", "user"]
Stamp = tuple[str, int, int]


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a command's text: as it is, a command line for the shell, or the path of a file."""

    kind: Literal["text", "shell", "file"]
    text: str


@dataclass(frozen=True, slots=True)
class Recipe:
    """A custom command. ``model`` is the one that is to answer, None for the session's own."""

    name: str
    description: str
    hint: str
    body: str
    model: str | None
    scope: Scope
    path: Path

    def pieces(self, args: str) -> list[Piece]:
        """The text with the arguments in it. What an argument looks like does not matter.

        ``$ARGUMENTS`` is all of them, ``$1`` to ``$9`` are single ones as a shell splits them.
        Arguments that no place is for follow the text.
        """
        words = _words(args)

        def filled(text: str) -> str:
            return _ARGUMENT.sub(lambda match: _argument(match[1], args, words), text)

        pieces = [Piece(piece.kind, filled(piece.text)) for piece in _pieces(self.body)]
        if args and not _ARGUMENT.search(self.body):
            pieces.append(Piece("text", f"\n\nARGUMENTS: {args}"))
        return pieces


def _pieces(body: str) -> Iterator[Piece]:
    end = 0
    for match in _PIECE.finditer(body):
        yield Piece("text", body[end : match.start()])
        if match["file"] is not None:
            name = match["file"].rstrip(".:!?")
            yield Piece("file", name)
            yield Piece("text", match["file"][len(name) :])
        else:
            yield Piece("shell", (match["block"] or match["line"]).strip())
        end = match.end()
    yield Piece("text", body[end:])


def _words(args: str) -> list[str]:
    try:
        return shlex.split(args)
    except ValueError:
        return args.split()


def _argument(name: str, args: str, words: list[str]) -> str:
    if name == "ARGUMENTS":
        return args
    return words[int(name) - 1] if int(name) <= len(words) else ""


@dataclass(slots=True)
class Recipes:
    """The commands of several folders by name; ``problems`` are lines for a person."""

    named: dict[str, Recipe] = field(default_factory=dict[str, Recipe])
    problems: list[str] = field(default_factory=list[str])

    def read(self, folder: Path, scope: Scope) -> None:
        """Add the commands of a folder; of one name the first one counts."""
        for path in files(folder):
            try:
                recipe = read(path, folder, scope)
            except (CrowError, OSError, ValueError, RecursionError) as error:
                reason = getattr(error, "strerror", None) or error
                self.problems.append(f"{path} is no command: {' '.join(str(reason).split())}")
            else:
                self.named.setdefault(recipe.name, recipe)


def files(folder: Path) -> Iterator[Path]:
    """The Markdown files in a folder and the ones below it; links to folders are not followed."""
    for place, folders, names in os.walk(folder):
        folders.sort()
        yield from (Path(place, name) for name in sorted(names) if name.endswith(SUFFIX))


def stamps(folders: Iterable[Path]) -> list[Stamp]:
    """What tells whether a file came, went or changed."""
    found: list[Stamp] = []
    for folder in folders:
        for path in files(folder):
            try:
                status = path.stat()
            except OSError:
                continue
            found.append((str(path), status.st_mtime_ns, status.st_size))
    return found


def read(path: Path, folder: Path, scope: Scope) -> Recipe:
    """The command of a file. Raises ``ValueError``, ``OSError`` or `FrontMatterError`."""
    name = ":".join(path.relative_to(folder).with_suffix("").parts)
    if not _NAME.fullmatch(name):
        raise ValueError(f"{name!r} cannot be typed as a name: letters, digits, '.', '_' and '-'")
    if not path.is_file():
        raise ValueError("it is no file")
    with path.open(encoding="utf-8-sig") as file:
        text = file.read(LONGEST + 1)
    if len(text) > LONGEST:
        raise ValueError(f"it has more than {LONGEST} characters")
    front, body = parse(text)
    body = body.strip()
    if not body:
        raise ValueError("it is empty")
    # A model that a file for another agent names is not meant for this one.
    model = _text(front.get("model")) if ".claude" not in folder.parts else ""
    return Recipe(
        name,
        _text(front.get("description")) or _first_line(body),
        _text(front.get("argument-hint")),
        body,
        model or None,
        scope,
        path,
    )


def _text(value: object) -> str:
    """A value of the front matter as a line; a list as it was written."""
    if value is None:
        return ""
    written = str(value)  # pyright: ignore[reportUnknownArgumentType]
    return " ".join((written.replace("'", "") if isinstance(value, list) else written).split())


def _first_line(body: str) -> str:
    line = body.splitlines()[0].lstrip("# ").strip()
    return line if len(line) <= DESCRIPTION else f"{line[: DESCRIPTION - 1].rstrip()}…"
