"""Let a project's settings, hooks and extensions run, as they are now.

  crow trust [DIR]            show what would run, and trust it
  crow trust --revoke [DIR]   take that back

A change of these files takes the trust away. Without it only the project's deny and ask rules hold.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from crow.cli.ask import somebody_is_there
from crow.cli.output import Output
from crow.cli.parser import Parser, UsageError
from crow.trust import distrust, is_trusted, project_of, trust, what_would_run


def declare(parser: Parser) -> None:
    """The options of ``crow trust``."""
    parser.add_argument("directory", metavar="DIR", nargs="?", default=".")
    parser.add_argument("--revoke", action="store_true", help="take the trust back")
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask")


def main(options: argparse.Namespace, out: Output) -> int:
    """Run ``crow trust``."""
    folder = Path(options.directory).expanduser()
    if not folder.is_dir():
        raise UsageError(f"there is no directory {options.directory!r}")
    project = project_of(folder.absolute(), Path.home())
    if options.revoke:
        out.line(f"{project} {'is' if distrust(project) else 'was'} not trusted")
        return 0
    files = list(what_would_run(project))
    if not files:
        out.line(f"{project} has no settings, hooks or extensions: there is nothing to trust")
        return 0
    if is_trusted(project):
        out.line(f"{project} is trusted already")
        return 0
    out.line(f"{project} would use:")
    for path in files:
        out.line(f"  {path.relative_to(project)}")
    if not options.yes and somebody_is_there() and not confirmed(out):
        out.line("not trusted")
        return 1
    trust(project)
    out.line(f"trusted, until one of {len(files)} files changes")
    return 0


def confirmed(out: Output) -> bool:
    """Ask the person."""
    import sys

    out.write("Trust them? y/n: ")
    answer = sys.stdin.readline().strip().casefold()
    out.at_start = True
    return answer in ("y", "yes")
