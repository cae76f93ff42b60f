"""Let a project's settings, hooks and extensions run, as they are now.

  crow trust [DIR]            show what would run, ask, and trust it
  crow trust -y [DIR]         the same without asking, for scripts
  crow trust --revoke [DIR]   take that back
  crow trust --list           the projects that were decided about

A change of these files takes the trust away. Without it only the project's deny and ask rules hold.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path

from crow.cli.output import Output
from crow.cli.parser import Parser, UsageError
from crow.cli.stdin import somebody_is_there
from crow.project.trust import (
    distrust,
    fingerprint,
    is_trusted,
    project_of,
    projects,
    trust,
    what_would_run,
)
from crow.text import one_line


def declare(parser: Parser) -> None:
    """The options of ``crow trust``."""
    parser.add_argument("directory", metavar="DIR", nargs="?", default=".")
    parser.add_argument("--revoke", action="store_true", help="take the trust back")
    parser.add_argument("--list", action="store_true", help="list what was decided")
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask")
    parser.add_argument("--json", action="store_true", help="of --list: one object a line")


def main(options: argparse.Namespace, out: Output) -> int:
    """Run ``crow trust``."""
    if options.list:
        return show_list(options, out)
    folder = Path(os.path.expanduser(options.directory))
    if not folder.is_dir():
        raise UsageError(f"there is no directory {options.directory!r}")
    project = project_of(folder.absolute(), Path.home())
    if options.revoke:
        out.line(f"{project} {'is' if distrust(project) else 'was'} not trusted")
        return 0
    if not list(what_would_run(project)):
        out.line(f"{project} has no settings, hooks or extensions: there is nothing to trust")
        return 0
    if is_trusted(project):
        out.line(f"{project} is trusted already")
        return 0
    return decide(project, options, out)


def decide(project: Path, options: argparse.Namespace, out: Output) -> int:
    """Show what would run, and trust it where the person says so."""
    shown = fingerprint(project)
    show(project, out)
    if not options.yes and not somebody_is_there():
        raise UsageError("not trusted: there is nobody to ask (crow trust --yes trusts unasked)")
    if not options.yes and not confirmed(out):
        out.line("not trusted")
        return 1
    if trust(project, shown) is None:
        out.error("not trusted: the files have changed meanwhile")
        return 1
    out.line("trusted, until one of these files changes")
    return 0


def show(project: Path, out: Output) -> None:
    """What would run, and the files that say so."""
    from crow.app.trust_summary import project_requests
    from crow.settings import load

    lines = project_requests(load(project))
    out.line(f"{project} would use:")
    for line in lines or ["nothing that needs trust"]:
        out.line(f"  {line}")
    out.line("said in:", "dim")
    for path in what_would_run(project):
        out.line(f"  {one_line(str(path.relative_to(project)))}", "dim")


def show_list(options: argparse.Namespace, out: Output) -> int:
    """Every project that somebody decided about."""
    for path, state in sorted(projects().items()):
        if options.json:
            out.verbatim(json.dumps({"project": path, "state": state}))
        else:
            out.raw(f"{state:8}  {one_line(path)}")
    return 0


def confirmed(out: Output, question: str = "Trust them?") -> bool:
    """Ask the person."""
    import sys

    out.write(f"{question} y/N: ")
    answer = sys.stdin.readline().strip().casefold()
    out.at_start = True
    return answer in ("y", "yes")
