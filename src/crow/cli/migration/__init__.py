"""Migration from another agent: a report on each thing, and settings that are taken over.

  crow import --from codex             show what becomes of each thing, ask, and write it
  crow import --from codex --dry-run   show it alone
  crow import --from codex --yes       do not ask, for scripts

Agents: claude, codex, opencode, pi, cursor. Servers, commands, skills, sub-agents and instructions
are read where they are; the model and rules are written. Nothing that is in your settings already
is changed, no key is copied or shown, and their files stay as they are. A project's things go to
.crow/settings.local.json.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from crow.cli.migration.row import Row
from crow.cli.migration.writing import Files, planned, write
from crow.cli.options import declare_place, directory
from crow.cli.output import Output, Style
from crow.cli.parser import Parser, UsageError
from crow.cli.stdin import somebody_is_there
from crow.cli.trust import confirmed
from crow.project.other_agents import AgentFolders
from crow.project.trust import project_of
from crow.text import one_line

AGENTS = ("claude", "codex", "opencode", "pi", "cursor")
COLOURS: dict[str, Style] = {"taken": "green", "changed": "yellow", "left out": "red"}


def declare(parser: Parser) -> None:
    """The options of ``crow import``."""
    parser.add_argument("--from", dest="agent", choices=AGENTS, required=True, help="whose")
    parser.add_argument("--dry-run", action="store_true", help="show it, and write nothing")
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask")
    parser.add_argument("--json", action="store_true", help="one object a line, for programs")
    declare_place(parser)


def main(options: argparse.Namespace, out: Output) -> int:
    """Run ``crow import``."""
    home = Path.home()
    project = project_of(directory(options), home)
    place = AgentFolders(home, project if project != home else None)
    rows, files = planned(found(options.agent, place), place)
    show(rows, options, out)
    if not rows:
        out.note(f"there is nothing of {options.agent} in {home} and {project}")
    if not files:
        out.note("there is nothing to write")
    if options.dry_run or not files:
        return 0
    return decide(files, options, out)


def found(agent: str, place: AgentFolders) -> list[Row]:
    """What becomes of each thing of an agent."""
    if agent in ("claude", "opencode"):
        return list(import_module(f"crow.cli.migration.{agent}").rows(place))
    from crow.cli.migration.read_live import rows

    return list(rows(agent, place))


def show(rows: Sequence[Row], options: argparse.Namespace, out: Output) -> None:
    """A line for each."""
    width = max((len(row.what) for row in rows), default=0)
    for row in rows:
        if options.json:
            told = {"what": row.what, "fate": row.fate, "why": row.why, "file": row.file}
            out.verbatim(json.dumps(told, ensure_ascii=False))
            continue
        fate = out.styled(f"{row.fate:9}", COLOURS.get(row.fate, "dim"))
        rest = f"{row.file}{': ' if row.why else ''}{row.why}"
        out.raw(f"{fate}  {one_line(row.what):{width}}  {one_line(rest)}")


def decide(files: Files, options: argparse.Namespace, out: Output) -> int:
    """Write the files where the person says so."""
    names = ", ".join(map(str, files))
    if not options.yes and not somebody_is_there():
        raise UsageError("nothing is written: there is nobody to ask (crow import --yes)")
    if not options.yes and not confirmed(out, f"Write {names}?"):
        out.line("nothing is written")
        return 1
    write(files)
    if not options.json:
        out.line(f"written: {names}")
    if any(path.name == "settings.local.json" for path in files):
        out.note("what is the project's counts once you have said so: crow trust")
    return 0
