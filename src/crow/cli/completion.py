"""Print what has a shell complete the command line of crow.

  crow completion bash   >> ~/.bash_completion
  crow completion zsh    > a file _crow in a folder of $fpath
  crow completion fish   > ~/.config/fish/completions/crow.fish

It knows the commands and options that were installed when it was printed.
"""

from __future__ import annotations

import argparse
from typing import Any, cast

from crow.cli.output import Output
from crow.cli.parser import COMMANDS, Parser

SHELLS = ("bash", "zsh", "fish")
PLACES = {"FILE": "FILE", "FILE_OR_PACKAGE": "FILE", "DIR": "DIRECTORY"}
"""What the names of arguments say about what completes them."""


def declare(parser: Parser) -> None:
    """The options of ``crow completion``."""
    parser.add_argument("shell", metavar="SHELL", choices=SHELLS, help="bash, zsh or fish")


def main(options: argparse.Namespace, out: Output) -> int:
    """Run ``crow completion``."""
    import shtab

    parser = whole()
    _complete_places(parser)
    out.verbatim(shtab.complete(parser, shell=options.shell))
    return 0


def whole() -> Parser:
    """All commands with their options, in one parser: for shells, and for the manual page."""
    from crow.cli import chat, imported
    from crow.cli.extension_commands import summaries

    parser = Parser(
        prog="crow",
        description="A coding agent that is extended, not forked; alone it talks with you.",
    )
    parser.add_argument("-v", "--version", action="store_true", help="print the version and end")
    chat.declare_options(parser)
    commands = parser.add_subparsers(metavar="COMMAND", parser_class=Parser)
    for name, text in {**COMMANDS, **dict(summaries())}.items():
        command = imported(name)
        declared = commands.add_parser(name, help=text, description=command.__doc__)
        command.declare(declared)
    return parser


def _complete_places(parser: argparse.ArgumentParser) -> None:
    """Have files and folders completed where they are meant."""
    import shtab

    actions: list[Any] = vars(parser)["_actions"]
    for action in actions:
        place = PLACES.get(str(action.metavar))
        if place is not None:
            action.complete = getattr(shtab, place)
        choices: object = action.choices
        if isinstance(choices, dict):
            for each in cast("dict[str, argparse.ArgumentParser]", choices).values():
                _complete_places(each)
