"""Front matter: what stands between two lines of ``---`` at the head of a Markdown file.

It is read as those read it who write it: as YAML, and where it is none, as what was meant.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, cast

Table = dict[str, Any]
KNOWN = frozenset(
    "name description when_to_use argument-hint arguments allowed-tools allowed_tools allowedTools "
    "disallowed-tools disallowedTools tools model effort disable-model-invocation user-invocable "
    "context agent background paths globs hooks shell version metadata license compatibility color "
    "permissionMode mcpServers maxTurns skills initialPrompt memory omitClaudeMd isolation "
    "keep-coding-instructions force-for-plugin category tags author triggers".split()
)
"""Names that begin a value where a line cannot be told from the text above it."""
_KEY = r"([A-Za-z_][\w-]*):(?:[ \t]+(.*?))?[ \t]*$"
_SPECIAL = r"[{}\[\]*&#!|>%@`]|: |:$"
_AS_IT_IS = r"\"(?:[^\"\\]|\\.)*\"|'(?:[^']|'')*'|[|>][-+0-9]*"
_TABS = r"(?m)^\t+"
_NAME = r"(?:[^\s,()]|\([^)]*\)?)+"
_SCALARS = (
    ("null", r"~|null|Null|NULL|", "~nN\0"),
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("int", r"[-+]?(?:0|[1-9][0-9]{0,17})", "-+0123456789"),
    ("float", r"[-+]?[0-9]{1,17}\.[0-9]{1,17}", "-+0123456789"),
)
"""Plain values that are no text; everything else is, dates and ``no`` and ``on`` as well."""
DEEPEST = 100
LONGEST = 100_000
"""Characters of a file."""
NO_TABLE = "the front matter is no table of names and values"


class FrontMatter(NamedTuple):
    """A file's front matter and the text below it.

    ``fault`` is why the front matter counts for nothing, in a line; empty where it counts.
    """

    table: Table
    body: str
    fault: str = ""

    @classmethod
    def parse(cls, text: str) -> FrontMatter:
        """The front matter of a text; nothing where there is none, or where it cannot be read."""
        text = text.removeprefix("\ufeff")
        lines = text.splitlines(keepends=True)
        if not lines or lines[0].rstrip() != "---":
            return cls({}, text)
        end = next((n for n, line in enumerate(lines[1:], 1) if line.rstrip() == "---"), None)
        if end is None:
            fault = "the front matter that begins in line 1 is not closed by ---"
            return cls({}, text, fault)
        written, body = "".join(lines[1:end]), "".join(lines[end + 1 :])
        found = _loaded(written)
        if isinstance(found, str):
            table = _table(_loaded(_quoted(written))) or _by_lines(written)
            return cls(table, body, "" if table else found)
        fault = "" if found is None or isinstance(found, dict) else NO_TABLE
        return cls(_table(found), body, fault)

    @classmethod
    def read(cls, path: Path) -> FrontMatter:
        """The front matter of a file.

        Raises ``OSError``, and ``ValueError`` for what is too long or no text.
        """
        with path.open(encoding="utf-8-sig", errors="replace") as file:
            text = file.read(LONGEST + 1)
        if len(text) > LONGEST:
            raise ValueError(f"it has more than {LONGEST} characters")
        if "\0" in text:
            raise ValueError("it is no text")
        return cls.parse(text)

    def text(self, *names: str) -> str:
        """The first of these values that is there, as text: a list as it was written."""
        return next(filter(None, (_text(self.table.get(name)).strip() for name in names)), "")

    def flag(self, name: str, *, default: bool = False) -> bool:
        """A value that says yes or no, also in words."""
        value = self.table.get(name)
        if value is None:
            return default
        return value is True or str(value).strip().casefold() in {"true", "yes", "on", "1"}

    def names(self, *names: str) -> list[str] | None:
        """The names in the first of these values: a list, or text with commas or blanks.

        What stands in brackets is one with what stands before it. None without a value.
        """
        value = next((self.table[name] for name in names if self.table.get(name) is not None), None)
        return None if value is None else [name for name in _parts(value) if name]


def _table(found: Any) -> Table:
    table = cast("dict[object, Any]", found) if isinstance(found, dict) else {}
    return {str(name): value for name, value in table.items()}


@cache
def _loader() -> Any:
    import yaml

    resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}
    for tag, pattern, first in _SCALARS:
        for letter in first.replace("\0", ""):
            known = resolvers.setdefault(letter, [])
            known.append((f"tag:yaml.org,2002:{tag}", re.compile(rf"(?:{pattern})\Z")))
    resolvers[""] = resolvers["~"]
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return type("Loader", (loader,), {"yaml_implicit_resolvers": resolvers})


def _loaded(written: str) -> Any:
    """What stands there as YAML; a text that says what is wrong, where it is none."""
    import yaml

    try:
        _check_depth(cast("Any", yaml).parse(written, _loader()))
        found: object = yaml.load(written, _loader())  # noqa: S506 - it is a safe one
    except (yaml.YAMLError, ValueError, RecursionError, TypeError) as error:
        return _explained(error)
    return [found] if isinstance(found, str) else found


def _check_depth(events: Iterable[Any]) -> None:
    """Raise ``ValueError`` for what is nested so deep that reading it would end the process."""
    depth = 0
    for event in events:
        depth += event.__class__.__name__.endswith("StartEvent")
        depth -= event.__class__.__name__.endswith("EndEvent")
        if depth > DEEPEST:
            raise ValueError("it is nested too deep")


def _explained(error: Exception) -> str:
    mark = getattr(error, "problem_mark", None)
    where = f"line {mark.line + 2}: " if mark is not None else ""
    return f"{where}no YAML ({getattr(error, 'problem', None) or 'it cannot be read'})"


def _quoted(written: str) -> str:
    """The same with values quoted that only look like YAML, and tabs at the front as blanks."""
    lines = re.sub(_TABS, lambda tabs: "  " * len(tabs[0]), written).splitlines()
    return "\n".join(map(_quoted_line, lines))


def _quoted_line(line: str) -> str:
    match = re.match(_KEY, line)
    value = match[2] if match else None
    if (
        match is None
        or not value
        or not re.search(_SPECIAL, value)
        or re.fullmatch(_AS_IT_IS, value)
    ):
        return line
    is_list = value.startswith("[") and isinstance(_loaded(value), list)
    return line if is_list else f"{match[1]}: {json.dumps(value, ensure_ascii=False)}"


def _by_lines(written: str) -> Table:
    """The values of known names; a line that begins none goes on with what stands above it."""
    parts: list[tuple[str, list[str]]] = []
    for line in written.splitlines():
        match = re.match(_KEY, line)
        if match and (match[1] in KNOWN or not parts):
            parts.append((match[1], [line]))
        elif parts:
            parts[-1][1].append(line)
    return {name: _value(name, lines) for name, lines in parts}


def _value(name: str, lines: list[str]) -> Any:
    whole = _table(_loaded("\n".join(lines)))
    if set(whole) == {name}:
        return whole[name]
    text = "\n".join([lines[0].partition(":")[2], *lines[1:]]).strip()
    listed: Any = _loaded(text) if text.startswith("-") else None
    return cast("Any", listed) if isinstance(listed, list) else text


def _text(value: object) -> str:
    match value:
        case str():
            return value
        case bool():
            return str(value).lower()
        case int() | float():
            return str(value)
        case list():
            values = cast("list[object]", value)
            parts = ["" if isinstance(part, list) else _text(part) for part in values]
            return f"[{', '.join(parts)}]" if all(parts) else ""
        case _:
            return ""


def _parts(value: object) -> Iterator[str]:
    if isinstance(value, list):
        for each in cast("list[object]", value):
            yield _text(each).strip() if not isinstance(each, list) else ""
    else:
        written = _text(value).strip()
        written = written[1:-1] if written.startswith("[") and written.endswith("]") else written
        yield from (name.strip("\"'") for name in re.findall(_NAME, written))
