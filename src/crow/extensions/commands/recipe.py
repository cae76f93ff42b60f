"""A custom command as its file has it: Markdown with arguments, shell lines and files in it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from crow import CrowError
from crow.dataclasses import frozen, mutable
from crow.project import Plugin, fill_placeholders, from_home, reason

if TYPE_CHECKING:
    from crow.project import Brought, FrontMatter

DESCRIPTION = 100
NAME = r"[\w.-]+(:[\w.-]+)*"
_PIECE = (
    r"(?ms)^```!\s*\n(?P<block>.*?)^```[ \t]*$"
    r"|(?:(?<=\s)|^)!`(?P<line>[^`\n]+)`"
    r"|(?<![\w`@./$-])(?<!\$\{)@(?P<file>(?:\\ |[^\s`\"'<>()\[\],;])+)"
)
_ARGUMENT = (
    r"\$(?:ARGUMENTS(?:\[(\d+)\])?|([1-9])(?!\d)|([A-Za-z_]\w*)"
    r"|(@|\{(?:@:(?P<start>\d+)(?::(?P<count>\d+))?|(?P<which>[1-9@]):-(?P<default>[^}]*))\}))"
)
_GIVEN = r"([A-Za-z_]\w*)=(.*)"

Scope = Literal["project", "user", "plugin"]


@frozen
class Piece:
    """A part of a command's text: as it is, a command line for the shell, or the path of a file."""

    kind: Literal["text", "shell", "file"]
    text: str


@frozen
class Recipe:
    """A custom command. ``model`` is the one that is to answer, None for the session's own.

    ``arguments`` are the names that the file gives them. ``plugin`` is the one that brings it,
    ``another`` the agent that it is brought along from.
    """

    name: str
    description: str
    hint: str
    body: str
    model: str | None
    scope: Scope
    path: Path
    arguments: tuple[str, ...] = ()
    plugin: Plugin | None = None
    another: str = ""

    @property
    def origin(self) -> str:
        """Where it is from, in few words."""
        if self.plugin or not self.another:
            return self.plugin.name if self.plugin else self.scope
        parts = self.path.parts
        if self.scope == "project":
            mark = f".{self.another}"
            shown = Path(*parts[parts.index(mark) :]) if mark in parts else self.path.name
        else:
            shown = from_home(self.path)
        return f"{self.another}, {shown}"

    def pieces(self, args: str, values: Mapping[str, str] | None = None) -> list[Piece]:
        """The text with the arguments in it. What an argument looks like does not matter.

        ``$ARGUMENTS`` is all of them; ``$ARGUMENTS[0]``, ``$1`` to ``$9`` and ``$name`` are single
        ones as a shell splits them. Arguments that no place is for follow the text. Where nothing
        was typed and the file speaks of no arguments, ``$1`` is a shell's or awk's. ``values`` are
        what ``${CLAUDE_...}`` stands for. In pi's ``$@`` is all of them, too, and ``${@:2}`` those
        from the second on; in Codex' ``$NAME`` is what was typed as ``NAME=value``.
        """
        words = _words(args)
        body = fill_placeholders(self.body, values or {}, self.plugin)

        def put(text: str) -> str:
            return re.sub(_ARGUMENT, lambda match: self._argument(match, args, words), text)

        pieces = [Piece(piece.kind, put(piece.text)) for piece in _pieces(body)]
        takes = any(put(each[0]) != each[0] for each in re.finditer(_ARGUMENT, body))
        if args and not takes:
            pieces.append(Piece("text", f"\n\nARGUMENTS: {args}"))
        return pieces

    def _argument(self, match: re.Match[str], args: str, words: list[str]) -> str:
        """What stands in the place of an argument; other names with a ``$`` are left alone."""
        index, number, name, of_pi = match.groups()[:4]
        if of_pi:
            return _of_pi(match, args, words) if self.another == "pi" else match[0]
        given = self._given(words)
        is_other = number and not (words or self.hint or self.arguments)
        if is_other or (name is not None and name not in (*self.arguments, *given)):
            return match[0]
        if name in given:
            return given[name]
        if name is not None:
            at = self.arguments.index(name)
        elif (index or number) is None:
            return args
        else:
            at = int(index) if index else int(number) - 1
        return words[at] if at < len(words) else ""

    def _given(self, words: list[str]) -> dict[str, str]:
        """The arguments that were typed with their names; in Codex' files alone."""
        found = (re.fullmatch(_GIVEN, word, re.DOTALL) for word in words)
        return {it[1]: it[2] for it in found if it} if self.another == "codex" else {}


def _of_pi(match: re.Match[str], args: str, words: list[str]) -> str:
    """What stands in the place of ``$@``, ``${@:2:1}`` and ``${1:-default}``."""
    start, count, which, default = match.group("start", "count", "which", "default")
    if start:
        first = max(int(start), 1) - 1
        return " ".join(words[first : None if count is None else first + int(count)])
    if which in (None, "@"):
        return args or default or ""
    at = int(which) - 1
    return words[at] if at < len(words) and words[at] else default


def _pieces(body: str) -> Iterator[Piece]:
    end = 0
    for match in re.finditer(_PIECE, body):
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
        from shlex import split

        return split(args)
    except ValueError:
        return args.split()


@mutable
class Recipes:
    """The commands of several folders by name; ``problems`` are lines for a person."""

    named: dict[str, Recipe] = field(default_factory=dict[str, Recipe])
    problems: list[str] = field(default_factory=list[str])

    def read(
        self,
        files: Iterable[Path],
        folder: Path,
        scope: Scope,
        plugin: Plugin | None = None,
        another: str = "",
    ) -> None:
        """Add the commands in the files of a folder; of one name the first one counts."""
        for path in files:
            try:
                recipe, fault = read(path, folder, scope, plugin, another)
            except (CrowError, OSError, ValueError, RecursionError) as error:
                self.problems.append(f"{path} is no command: {reason(error)}")
                continue
            self.named.setdefault(recipe.name, recipe)
            if fault and plugin is None and not another:
                self.problems.append(f"{path}: {fault}, so it counts for nothing")


def recipe_of(brought: Brought) -> Recipe:
    """The command that another agent's settings file describes. Raises ``ValueError``."""
    table, name = brought.value, brought.name.replace("/", ":")
    if not re.fullmatch(NAME, name):
        raise ValueError(f"{name!r} cannot be typed as a name")
    body = str(table["template"]).strip()
    described = str(table.get("description") or _first_line(body or "-"))
    scope: Scope = "project" if brought.is_project else "user"
    line = " ".join(described.split())
    return Recipe(name, line, "", body, None, scope, brought.path, another=brought.agent)


def read(
    path: Path, folder: Path, scope: Scope, plugin: Plugin | None = None, another: str = ""
) -> tuple[Recipe, str]:
    """The command of a file, and what is wrong with its front matter.

    Raises ``ValueError`` or ``OSError``.
    """
    inside = path.relative_to(folder if path != folder else folder.parent)
    parts = inside.with_suffix("").parts
    name = plugin.called(*parts) if plugin else ":".join(parts)
    if not re.fullmatch(NAME, name):
        raise ValueError(f"{name!r} cannot be typed as a name: letters, digits, '.', '_' and '-'")
    if not path.is_file():
        raise ValueError("it is no file")
    from crow.project import FrontMatter

    front = FrontMatter.read(path)
    body = front.body.strip()
    if not body:
        raise ValueError("it is empty")
    # A model that a file for another agent names is not meant for this one.
    theirs = plugin is not None or bool(another) or ".claude" in folder.parts
    recipe = Recipe(
        name,
        _line(front, "description") or _first_line(body),
        _line(front, "argument-hint"),
        body,
        (None if theirs else _line(front, "model")) or None,
        scope,
        path,
        tuple(front.names("arguments") or ()),
        plugin,
        another,
    )
    return recipe, front.fault


def _line(front: FrontMatter, name: str) -> str:
    """A value of the front matter as a line."""
    return " ".join(front.text(name).split())


def _first_line(body: str) -> str:
    line = body.splitlines()[0].lstrip("# ").strip()
    return line if len(line) <= DESCRIPTION else f"{line[: DESCRIPTION - 1].rstrip()}…"
