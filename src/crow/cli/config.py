"""Every setting that holds here, and the file that it came from.

Files, the stronger later: ~/.claude/settings.json, ~/.crow/settings.json (or .toml), the project's
.claude/ and .crow/settings.json, .claude/ and .crow/settings.local.json, --settings FILE, options,
/etc/claude-code/managed-settings.json, /etc/crow/managed-settings.json. Lists are joined.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterator
from typing import Any

from crow.cli.options import declare_agent, settings_of
from crow.cli.output import Output, one_line
from crow.cli.parser import Parser
from crow.settings import Settings

Row = tuple[str, Any, str]
SECRET = re.compile(r"key|token|secret|password|authorization|cookie", re.IGNORECASE)
PLAIN = ("model", "base_url", "api_key", "context_window")
TABLES = ("headers", "params", "providers", "extensions", "limits", "env")


def declare(parser: Parser) -> None:
    """The options of ``crow config``."""
    parser.add_argument("--json", action="store_true", help="one object a line, for programs")
    declare_agent(parser)


def main(options: argparse.Namespace, out: Output) -> int:
    """Run ``crow config``."""
    settings = settings_of(options)
    found = list(rows(settings))
    width = max((len(name) for name, _, _ in found), default=0)
    for name, value, source in found:
        if options.json:
            out.verbatim(json.dumps({"name": name, "value": value, "source": source}))
        else:
            shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            out.raw(f"{name:{width}}  {one_line(shown)}  {out.styled(one_line(source), 'dim')}")
    if not found and not options.json:
        out.line("nothing is set: every setting has its default (crow config --help: the files)")
    for text in (*settings.problems, *map(str, settings.withheld)):
        where = "" if text in settings.problems else "left out, the project is not trusted: "
        out.error(f"{where}{text}")
    return 1 if settings.problems else 0


def rows(settings: Settings) -> Iterator[Row]:
    """Name, value and source of every setting; keys and the like are hidden."""
    for name in PLAIN:
        value = getattr(settings, name)
        if value is not None:
            yield name, hidden(name, value), str(settings.origins[name])
    for name in TABLES:
        for path, value in leaves(getattr(settings, name), name):
            yield path, hidden(path, value), str(settings.origins.get(path, ""))
    yield from permissions(settings)
    for name, entries in (("models", settings.models), ("extensions.disable", settings.disabled)):
        yield from ((name, entry.text, str(entry.source)) for entry in entries)
    for source, table in settings.hooks:
        for event in table:
            yield f"hooks.{event}", table[event], str(source)


def permissions(settings: Settings) -> Iterator[Row]:
    """The rules, one a row."""
    lists = settings.permissions
    if lists.mode is not None:
        source = settings.origins["permissions.defaultMode"]
        yield "permissions.defaultMode", lists.mode, str(source)
    for name, entries in (
        ("deny", lists.deny),
        ("ask", lists.ask),
        ("allow", lists.allow),
        ("additionalDirectories", lists.directories),
        ("trusted", lists.trusted),
    ):
        for entry in entries:
            yield f"permissions.{name}", entry.text, str(entry.source)


def leaves(table: Any, prefix: str) -> Iterator[tuple[str, Any]]:
    """The values of a table of tables, each with its dotted path."""
    for name, value in table.items():
        path = f"{prefix}.{name}"
        if isinstance(value, dict):
            yield from leaves(value, path)
        else:
            yield path, value


def hidden(path: str, value: Any) -> Any:
    """A value, unless it is one that nobody should see."""
    return "(hidden)" if SECRET.search(path.rpartition(".")[2]) else value
