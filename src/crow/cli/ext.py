"""Every extension that was looked for: in use, left out, disabled or broken, and its source.

crow ext list
"""

from __future__ import annotations

import argparse
import json

from crow.app import UNTRUSTED
from crow.cli.options import agent_of, declare_place, settings_of
from crow.cli.output import Output, one_line
from crow.cli.parser import Parser, UsageError, no_such
from crow.cli.view import counted
from crow.core.agent import Agent
from crow.core.installed import Found


def declare(parser: Parser) -> None:
    """The options of ``crow ext``."""
    parser.add_argument("action", metavar="ACTION", nargs="?", default="list", help="list")
    parser.add_argument(
        "--extension", metavar="FILE_OR_PACKAGE", action="append", default=[], help="try this one"
    )
    parser.add_argument("--json", action="store_true", help="one object a line, for programs")
    declare_place(parser)


def main(options: argparse.Namespace, out: Output) -> int:
    """Run ``crow ext``."""
    if options.action != "list":
        raise UsageError(f"{no_such('action', options.action, ['list'])} (crow ext list)")
    settings = settings_of(options)
    agent = agent_of(options, settings)
    width = max((len(found.name) for found in agent.found), default=0)
    for found in agent.found:
        if options.json:
            out.verbatim(json.dumps(described(found, agent)))
        else:
            show(found, agent, width, out)
    if not options.json:
        for text in settings.problems:
            out.error(text)
    return 1 if any(found.error for found in agent.found) else 0


def state(found: Found) -> str:
    """What became of an extension, in a word."""
    if found.disabled:
        return "disabled"
    if found.error == UNTRUSTED:
        return "left out"
    return "broken" if found.error else "in use"


def show(found: Found, agent: Agent, width: int, out: Output) -> None:
    """One extension in a line, its error in another."""
    word = state(found)
    colour = {"in use": "green", "broken": "red"}.get(word, "yellow")
    mark = out.styled(f"{word:8}", colour)  # pyright: ignore[reportArgumentType]
    hung = sum(hook.owner.name == found.name for hook in agent.hooks)
    hooks = f", {counted(hung, 'hook')}" if hung else ""
    source = out.styled(one_line(f"{found.source}{hooks}"), "dim")
    out.raw(f"{mark}  {one_line(found.name):{width}}  {source}")
    if found.error:
        out.line(f"          {one_line(found.error)}", colour)  # pyright: ignore[reportArgumentType]


def described(found: Found, agent: Agent) -> dict[str, object]:
    """An extension as a JSON object."""
    events = sorted({hook.event for hook in agent.hooks if hook.owner.name == found.name})
    return {
        "name": found.name,
        "state": state(found),
        "source": found.source,
        "error": found.error,
        "hooks": events,
    }
