"""Every setting that holds here, and the file that it came from.

Files, the stronger later: ~/.claude/settings.json, ~/.crow/settings.json (or .toml), the project's
.claude/ and .crow/settings.json, .claude/ and .crow/settings.local.json, --settings FILE, options,
/etc/claude-code/managed-settings.json, /etc/crow/managed-settings.json, and managed-settings.d/
beside them. Lists are joined. Keys and the like are hidden.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict

from crow.cli.options import declare_agent, settings_of
from crow.cli.output import Output, one_line
from crow.cli.parser import Parser


def declare(parser: Parser) -> None:
    """The options of ``crow config``."""
    parser.add_argument("--set", action="store_true", help="leave out what has its default")
    parser.add_argument("--json", action="store_true", help="one object a line, for programs")
    parser.add_argument("--schema", action="store_true", help="print the JSON schema for editors")
    declare_agent(parser)


def main(options: argparse.Namespace, out: Output) -> int:
    """Run ``crow config``."""
    if options.schema:
        from crow.settings.schema import whole

        out.verbatim(json.dumps(whole(), indent=2, ensure_ascii=False))
        return 0
    from crow.cli.setting import rows

    settings = settings_of(options)
    found = [row for row in rows(settings) if not options.set or row.state != "default"]
    width = min(max((len(row.name) for row in found), default=0), 40)
    for row in found:
        if options.json:
            out.verbatim(json.dumps(asdict(row), ensure_ascii=False))
            continue
        value = row.value
        shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        shown = "not set" if value is None else shown
        where = row.source if row.state == "set" else f"{row.source} ({row.state})".strip()
        where = f"{where}: {row.reason}" if row.reason else where
        out.raw(f"{row.name:{width}}  {one_line(shown)}  {out.styled(one_line(where), 'dim')}")
    for text in settings.problems:
        out.error(text)
    return 1 if settings.problems else 0
