"""What the permission rules say to a call, and which rule it was.

  crow permissions check 'Bash(rm -rf build)'   in the current project, with its settings
  crow permissions check < cases.jsonl          one case a line, one decision a line

A case is a JSON object with tool, input, cwd, and rules (lists allow, ask and deny).
"""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING

from crow.cli.options import declare_agent, directory, settings_of
from crow.cli.output import Output
from crow.cli.parser import Parser, UsageError, no_such

if TYPE_CHECKING:
    from crow.settings import Settings

COLOURS = {"allow": "green", "ask": "yellow", "deny": "red"}


def declare(parser: Parser) -> None:
    """The options of ``crow permissions``."""
    parser.add_argument("action", metavar="ACTION", help="check")
    parser.add_argument("call", metavar="CALL", nargs="?", help="such as 'Bash(rm -rf build)'")
    parser.add_argument("--json", action="store_true", help="the decision as a JSON object")
    declare_agent(parser)


def main(options: argparse.Namespace, out: Output) -> int:
    """Run ``crow permissions``."""
    if options.action != "check":
        raise UsageError(f"{no_such('action', options.action, ['check'])} (crow permissions check)")
    if options.call is None:
        return check_cases(out)
    return check_call(options, out)


def check_cases(out: Output) -> int:
    """Judge the cases of standard input."""
    from crow.extensions.permissions.check import check_lines

    for line in check_lines(sys.stdin):
        out.verbatim(line)
    return 0


def check_call(options: argparse.Namespace, out: Output) -> int:
    """Judge one call by the settings that hold here."""
    from crow.app import rules_of
    from crow.extensions.permissions import Permissions
    from crow.extensions.permissions.check import parse_call

    try:
        tool, args = parse_call(options.call)
    except ValueError as error:
        raise UsageError(f"{error}, for instance 'Bash(rm -rf build)'") from None
    settings = settings_of(options)
    for problem in settings.problems:
        out.error(problem)
    permissions = Permissions.of(**rules_of(settings))
    for warning in permissions.warnings:
        out.error(warning)
    decision = permissions.judge(tool, args, cwd=str(directory(options)))
    if options.json:
        about = {"decision": decision.decision, "reason": decision.reason, "rule": decision.rule}
        out.verbatim(json.dumps(about))
    else:
        word = out.styled(decision.decision, COLOURS[decision.decision])  # pyright: ignore[reportArgumentType]
        out.raw(f"{word}  {out.fit(decision.reason, 7)}")
        for source in sources_of(decision.rule, settings):
            out.line(f"  {decision.rule}  from {source}", "dim")
    return 0


def sources_of(rule: str | None, settings: Settings) -> list[str]:
    """The files in which a rule stands."""
    lists = settings.permissions
    entries = (*lists.deny, *lists.ask, *lists.allow)
    return [str(entry.source) for entry in entries if entry.text == rule]
