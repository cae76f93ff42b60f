"""One skill: what its SKILL.md says of it, and its text when it is used.

The format is the Agent Skills standard (agentskills.io). A file that departs from it is taken as
far as it makes sense, and every departure is named in a line.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from crow import CrowError
from crow.dataclasses import frozen
from crow.project import Plugin, fill_placeholders

if TYPE_CHECKING:
    from crow.project import FrontMatter

Scope = Literal["project", "user", "installed", "plugin"]

LONGEST_NAME = 64
LONGEST_DESCRIPTION = 1024
LONGEST_COMPATIBILITY = 500
LONGEST_FILE = 100_000
FILES_SHOWN = 50
_NAME = r"[^\W_]+(?:-[^\W_]+)*"
_ARGUMENT = r"\$ARGUMENTS(?:\[(\d+)\])?"


class SkillError(CrowError):
    """A SKILL.md cannot be used; the text says why."""


@frozen
class Skill:
    """A skill before it is used; its text is read when it is.

    ``for_model`` is False where only the user may start it, ``for_user`` where it is no slash
    command (``disable-model-invocation``, ``user-invocable``). ``keywords`` are those of
    ``metadata.keywords`` or ``metadata.triggers``, in lower case. ``project`` is the directory
    that holds a project's skills. One of a ``plugin`` is named after this and its folder; ``title``
    is the name that its file gives it. ``another`` is the agent that it is brought along from.
    """

    name: str
    description: str
    path: Path
    scope: Scope
    compatibility: str = ""
    keywords: tuple[str, ...] = ()
    hint: str = ""
    for_model: bool = True
    for_user: bool = True
    project: Path | None = None
    plugin: Plugin | None = None
    title: str = ""
    another: str = ""

    @property
    def is_typed(self) -> bool:
        """False for a name that is no command's, as a plugin's folder with a blank may be."""
        return self.name.replace("/", " ").split() == [self.name]

    @property
    def origin(self) -> str:
        """Where it is from, in few words."""
        return f"{self.another}, {self.scope}" if self.another else self.scope

    @property
    def titles(self) -> tuple[str, ...]:
        """Further names of a plugin's skill: with the plugin's name and alone."""
        whole = self.plugin.called(self.title) if self.plugin and self.title else ""
        return (whole, self.title) if whole else ()

    @property
    def line(self) -> str:
        """All that a model is told of it."""
        needs = f" Needs: {self.compatibility}" if self.compatibility else ""
        return f"- {self.name}: {self.description}{needs} ({self.path})"

    @property
    def folder(self) -> Path:
        """Where its files are."""
        return self.path.parent

    def matches(self, prompt: str) -> bool:
        """True where a keyword stands in the prompt as a word."""
        text = prompt.casefold()
        return any(re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text) for word in self.keywords)


def read(
    path: Path, scope: Scope, project: Path | None = None, plugin: Plugin | None = None
) -> tuple[Skill, list[str]]:
    """The skill of a SKILL.md, and what is wrong with it, a line a fault; a plugin's is as it is.

    Raises `SkillError` where it is so wrong that there is no skill.
    """
    from crow.project import FrontMatter

    front = FrontMatter.parse(_text(path))
    table, faults = front.table, [front.fault] if front.fault else []
    folder = path.parent.name
    if plugin is not None:
        name = plugin.called(folder if path.parent != plugin.root else plugin.name)
    else:
        name = _name(table.get("name"), folder, [] if front.fault else faults)
    described = [_line(table.get("description")), _line(table.get("when_to_use"))]
    description = " ".join(filter(None, described)) or _first_line(front.body)
    if not description:
        raise SkillError("it has no description and no text, so nobody can know when to use it")
    if len(description) > LONGEST_DESCRIPTION:
        faults.append(_too_long("description", len(description), LONGEST_DESCRIPTION))
        description = f"{description[: LONGEST_DESCRIPTION - 3]}..."
    compatibility = _line(table.get("compatibility"))
    if len(compatibility) > LONGEST_COMPATIBILITY:
        faults.append(_too_long("compatibility", len(compatibility), LONGEST_COMPATIBILITY))
        compatibility = compatibility[:LONGEST_COMPATIBILITY]
    skill = Skill(
        name,
        description,
        path,
        scope,
        compatibility,
        _keywords(table, faults),
        _line(front.text("argument-hint")),
        not front.flag("disable-model-invocation"),
        front.flag("user-invocable", default=True),
        project,
        plugin,
        _line(table.get("name")),
    )
    return skill, [] if plugin is not None else faults


def _first_line(body: str) -> str:
    return _line(next((line.lstrip("# ") for line in body.splitlines() if line.strip("# ")), ""))


def instructions(skill: Skill, args: str, values: Mapping[str, str]) -> str:
    """The text of a skill as the model gets it, with its folder, its files and the arguments.

    ``values`` are what ``${CLAUDE_...}`` stands for. Raises `CrowError` or ``OSError`` where the
    file cannot be read any more.
    """
    mine = {**values, "CLAUDE_SKILL_DIR": str(skill.folder)}
    body = fill_placeholders(_parsed(skill).body.strip(), mine, skill.plugin)
    if len(body) > LONGEST_FILE:
        body = f"{body[:LONGEST_FILE]}\n[... cut off; the rest is in {skill.path}]"
    takes_args = "$ARGUMENTS" in body
    words = args.split()
    body = re.sub(_ARGUMENT, lambda m: _nth(words, int(m[1])) if m[1] else args, body)
    parts = [f'<skill name="{skill.name}" folder="{skill.folder}">\n{body}\n</skill>']
    if files := list(_files(skill)):
        shown = ", ".join(files[:FILES_SHOWN])
        more = " and more" if len(files) > FILES_SHOWN else ""
        parts.append(
            f"Files in its folder, to be read where the text calls for them: {shown}{more}"
        )
    if args and not takes_args:
        parts.append(f"Arguments: {args}")
    return "\n\n".join(parts)


def _nth(words: list[str], at: int) -> str:
    return words[at] if at < len(words) else ""


def front_matter(skill: Skill) -> dict[str, Any]:
    """All that the head of its file says. Raises `CrowError` or ``OSError``."""
    return _parsed(skill).table


def _parsed(skill: Skill) -> FrontMatter:
    from crow.project import FrontMatter

    return FrontMatter.parse(_text(skill.path))


def _text(path: Path) -> str:
    if not stat.S_ISREG(path.stat().st_mode):
        raise SkillError("it is no regular file")
    with path.open(encoding="utf-8-sig", errors="replace") as file:
        text = file.read(2 * LONGEST_FILE)
    return text.replace("\0", "")


def _name(written: object, folder: str, faults: list[str]) -> str:
    """The name to use: the written one where it is one, else what can be made of it."""
    name, folder = _compared(_line(written)), _compared(folder)
    if not name:
        faults.append(f"it has no name; its folder's is used: {_slug(folder)}")
        return _checked(_slug(folder))
    if not re.fullmatch(_NAME, name) or name != name.lower():
        slug = _slug(name)
        faults.append(
            f"the name {name[:LONGEST_NAME]!r} is not in lower case with hyphens; it is {slug} here"
        )
        return _checked(slug)
    if len(name) > LONGEST_NAME:
        faults.append(_too_long("name", len(name), LONGEST_NAME))
    if name != folder:
        faults.append(f"its name is {name!r}, but its folder's is {folder!r}")
    return name


def _checked(slug: str) -> str:
    if not slug:
        raise SkillError("neither its name nor its folder's can be used as a name")
    return slug


def _slug(text: str) -> str:
    return re.sub(r"[\W_]+", "-", text.lower()).strip("-")[:LONGEST_NAME].strip("-")


def _compared(text: str) -> str:
    """A name in the form in which those of all scripts are compared."""
    if text.isascii():
        return text
    from unicodedata import normalize

    return normalize("NFKC", text)


def _too_long(what: str, length: int, limit: int) -> str:
    return f"its {what} is too long: {length} characters, {limit} are allowed"


def _line(value: object) -> str:
    """A value as one line of printable text; empty for what is no text."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return ""
    return " ".join("".join(c if c.isprintable() else " " for c in str(value)).split())


def _keywords(table: Mapping[str, Any], faults: list[str]) -> tuple[str, ...]:
    metadata: object = table.get("metadata")
    if metadata is None:
        return ()
    if not isinstance(metadata, dict):
        faults.append("its metadata is no table of names and values")
        return ()
    values = cast("dict[str, Any]", metadata)
    given: object = [values.get("keywords"), values.get("triggers")]
    return tuple(dict.fromkeys(_words(given)))


def _words(value: object) -> Iterator[str]:
    if isinstance(value, list):
        for each in cast("list[object]", value):
            yield from _words(each)
    else:
        yield from filter(None, (word.strip().casefold() for word in _line(value).split(",")))


def _files(skill: Skill) -> Iterator[str]:
    """The files beside SKILL.md, relative, one more than are shown at most."""
    count = 0
    for parent, folders, names in os.walk(skill.folder):
        folders[:] = sorted(f for f in folders if not f.startswith(".") and f != "__pycache__")
        for name in sorted(names):
            path = Path(parent, name)
            if not name.startswith(".") and path != skill.path:
                count += 1
                yield str(path.relative_to(skill.folder))
            if count > FILES_SHOWN:
                return
