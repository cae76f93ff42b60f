"""Effective settings and the file that each came from; with --all the defaults, too.

Files, the stronger later: ~/.claude/settings.json, ~/.crow/settings.json (or .toml), the project's
.claude/ and .crow/settings.json, .claude/ and .crow/settings.local.json, --settings FILE, options,
/etc/claude-code/managed-settings.json, /etc/crow/managed-settings.json, and managed-settings.d/
beside them. Lists are joined. Keys and the like are hidden. Then what is read where Codex,
opencode, pi and Cursor have it; --all says what of that is left out.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from typing import TYPE_CHECKING

from crow.cli.options import declare_agent, settings_of
from crow.cli.output import Output
from crow.cli.parser import Parser
from crow.core.errors import ExtensionError
from crow.entry_points import inside
from crow.text import one_line

if TYPE_CHECKING:
    from collections.abc import Mapping

    from crow.cli.setting_rows import Row
    from crow.extensions.sandbox.finder import Finder
    from crow.settings import Settings

ALWAYS = ("model", "permissions.defaultMode")
"""What people see though it has its default."""


def declare(parser: Parser) -> None:
    """The options of ``crow config``."""
    parser.add_argument("--all", action="store_true", help="also what has its default")
    parser.add_argument("--set", action="store_true", help="with --json: no defaults")
    parser.add_argument("--json", action="store_true", help="every setting as an object a line")
    parser.add_argument("--schema", action="store_true", help="print the JSON schema for editors")
    declare_agent(parser)


def main(options: argparse.Namespace, out: Output) -> int:
    """Run ``crow config``."""
    if options.schema:
        from crow.settings.schema import whole

        out.verbatim(json.dumps(whole(), indent=2, ensure_ascii=False))
        return 0
    settings = settings_of(options)
    refused = _refused(settings, options)
    show_rows(settings, refused, options, out)
    show_brought(settings, options, out)
    problems = [*settings.problems, *refused.values()]
    for text in problems:
        out.error(text)
    return 1 if problems else 0


def _refused(settings: Settings, options: argparse.Namespace) -> dict[str, str]:
    """What extensions of files do not take; nothing is loaded where no setting speaks of any."""
    from crow.entry_points import entry_points

    if settings.extensions.keys() <= {point.name for point in entry_points()}:
        return {}
    from crow.cli.ext import tried
    from crow.cli.setting_rows import refused_by

    return refused_by(tried(options, settings), settings)


def show_rows(
    settings: Settings, refused: Mapping[str, str], options: argparse.Namespace, out: Output
) -> None:
    """Show what is asked for of the settings: for people what is set, for programs all."""
    from crow.cli.setting_rows import rows

    found = list(rows(settings, refused=refused))
    is_whole = options.all or (options.json and not options.set)
    kept = [row for row in found if is_whole or row.state != "default"]
    if options.json:
        for row in kept:
            out.verbatim(json.dumps(asdict(row), ensure_ascii=False))
        return
    if not (options.all or options.set):
        kept = [*(row for row in found if row.name in ALWAYS and row.state == "default"), *kept]
    width = min(max((len(row.name) for row in kept), default=0), 40)
    for row in kept:
        out.raw(f"{row.name:{width}}  {_told(row, out)}")
    out.raw(f"{'commands run in':{width}}  {one_line(confinement(settings))}")
    left = len(found) - len(kept)
    if left and not options.set:
        out.line(f"{left} more settings have their defaults: crow config --all", "dim")


def show_brought(settings: Settings, options: argparse.Namespace, out: Output) -> None:
    """Show what is read where other agents have it, and the file that each thing is in."""
    from crow.app.plugins import brought_of
    from crow.cli.setting_rows import UNTRUSTED, Row

    used = brought_of(settings)
    for each in brought_of(settings, trusted=True):
        name, what = f"from {each.agent}", each.label
        if each.kind == "left out" and not options.all:
            continue
        reason = each.why if each.kind == "left out" else "" if each in used else UNTRUSTED
        row = Row(name, what, str(each.path), "left out" if reason else "set", reason)
        if options.json:
            out.verbatim(json.dumps(asdict(row), ensure_ascii=False))
        else:
            out.raw(f"{name:20}  {_told(row, out)}")


def _told(row: Row, out: Output) -> str:
    """The value of a setting, and where that is from."""
    value = row.value
    shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    shown = "not set" if value is None else shown
    where = row.source if row.state == "set" else f"{row.source} ({row.state})".strip()
    where = f"{where}: {row.reason}" if row.reason else where
    return f"{one_line(shown)}  {out.styled(one_line(where), 'dim')}"


def confinement(settings: Settings) -> str:
    """What holds commands here, in a few words."""
    from crow.app.sandbox import sandbox_of

    wanted = sandbox_of(settings)
    try:
        finder: Finder = inside("sandbox", "finder").Finder(wanted.backend)
    except ExtensionError:
        return "NO SANDBOX: the extension sandbox is not installed"
    if any(entry.text == "sandbox" for entry in settings.disabled):
        return "NO SANDBOX: the extension sandbox is disabled"
    if not wanted.enabled:
        return f"no sandbox: it is switched off ({wanted.off})"
    if finder.find().holds:
        return f"a sandbox: {finder.line} (crow sandbox says more)"
    return f"NO SANDBOX: {finder.why}"
