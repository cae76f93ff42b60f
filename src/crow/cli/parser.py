"""The command line: one table of sub-commands, and errors that say what was meant."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable
from functools import partial
from typing import Any, NoReturn

from crow.core.errors import CrowError

COMMANDS = {
    "run": "answer one prompt",
    "acp": "speak the Agent Client Protocol on standard input and output",
    "models": "which models can be asked, and what one of them can do",
    "login": "store an API key (logout removes it)",
    "logout": "remove stored API keys",
    "mcp": "MCP servers: add, list, sign in, try",
    "import": "take over what another agent is set to: claude, codex, opencode, pi",
    "demo": "three prompts with the embedded model: no key, no network",
    "sessions": "list, show, search, copy and delete stored sessions",
    "eval": "recorded sessions as tests: record one, run them again",
    "ext": "which extensions were found, loaded or broken; new writes one",
    "plugin": "plugins in Claude Code's shape, and marketplaces of them",
    "hooks": "which hooks run, in which order, from which file",
    "config": "effective settings and the file that each came from",
    "trust": "let a project's settings and extensions run",
    "completion": "have a shell complete this command line",
}


SAME = {"plugins": "plugin"}
"""Commands by names that they have elsewhere."""

PLAIN = "\0"
"""Before a word that is no option, however it begins; no word of a command line can hold it."""
FENCE = f"--{PLAIN}"
"""An option that means nothing, and ends the words of the one before it."""


WIDTH = 80
"""Cells in a line where nobody knows."""


class UsageError(CrowError):
    """The command line cannot be understood; the command ends with status 2."""


class Help(Exception):  # noqa: N818 - what was asked for is no error
    """Somebody wants this text, and nothing done."""


def columns() -> int:
    """How wide a terminal is: `shutil` says the same, and imports what archives are packed with."""
    told = os.environ.get("COLUMNS", "")
    if told.isdecimal() and int(told):
        return int(told)
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns or WIDTH
    except (AttributeError, OSError, ValueError):
        return WIDTH


class Fence(argparse.Action):
    """Does nothing."""

    def __call__(self, *_: object) -> None:
        """Leave everything as it is."""


class Parser(argparse.ArgumentParser):
    """argparse with errors raised, and the nearest option named."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.notes: list[str] = []
        wide = partial(argparse.RawDescriptionHelpFormatter, width=columns() - 2)
        kwargs.setdefault("formatter_class", wide)
        super().__init__(*args, allow_abbrev=False, **kwargs)

    def error(self, message: str) -> NoReturn:
        """Raise what argparse would print."""
        raise UsageError(f"{message} (see {self.prog} --help)")

    def print_help(self, file: Any = None) -> NoReturn:
        """Raise what argparse would print."""
        raise Help(self.format_help())

    def understand(self, argv: list[str]) -> argparse.Namespace:
        """The options of a command line, wherever they stand among the arguments.

        What comes behind ``--`` is none. Raises `UsageError` for one that is unknown. ``notes`` are
        lines about what was passed over.
        """
        argv = self._without_foreign(argv)
        end = argv.index("--") if "--" in argv else len(argv)
        marked = [*argv[:end], *(PLAIN + word for word in argv[end + 1 :])]
        if end < len(argv) and self._subparsers is None:
            self.add_argument(FENCE, action=Fence, nargs=0, dest=argparse.SUPPRESS)
            marked.insert(end, FENCE)
        usage = self.usage
        if usage is None and not any(map(_may_ask_for_help, argv[:end])):
            self.usage = argparse.SUPPRESS  # else argparse writes it, for errors that it is not in
        options, unknown = self.parse_known_intermixed_args(marked)
        self.usage = usage
        if end < len(argv):
            for name, value in vars(options).items():
                setattr(options, name, _unmarked(value))
            unknown = _unmarked(unknown)
        if unknown:
            word = next((word for word in unknown if word.startswith("-")), unknown[0])
            name = word.partition("=")[0]
            noun = "option" if word.startswith("-") else "argument"
            known = (each for each in self.names if each.startswith("--") and each != FENCE)
            raise UsageError(f"{no_such(noun, name, known)} (see {self.prog} --help)")
        return options

    def _without_foreign(self, argv: list[str]) -> list[str]:
        """A command line without what other agents' users type out of habit, where it can be so."""
        end = argv.index("--") if "--" in argv else len(argv)
        known = self.names
        names = (word.partition("=")[0] for word in argv[:end] if word.startswith("-"))
        if not self.takes_sessions or all(name in known for name in names):
            return argv
        from crow.cli.migration_hints import drop_foreign_options

        left, self.notes, wrong = drop_foreign_options(argv[:end], known)
        if wrong:
            raise UsageError(wrong)
        return [*left, *argv[end:]]

    @property
    def names(self) -> dict[str, Any]:
        """The options that there are, short ones too."""
        return self._option_string_actions

    @property
    def takes_sessions(self) -> bool:
        """True for a command that is about what an agent does."""
        return "--model" in self.names


def _may_ask_for_help(word: str) -> bool:
    return word == "--help" or (word[:1] == "-" and word[1:2] != "-" and "h" in word)


def _unmarked(value: Any) -> Any:
    """What was given, without the marks of `understand`."""
    if isinstance(value, list):
        return [_unmarked(one) for one in value]  # pyright: ignore[reportUnknownVariableType]
    return value.removeprefix(PLAIN) if isinstance(value, str) else value


def no_such(noun: str, word: str, known: Iterable[str]) -> str:
    """One line that says that a thing does not exist, and which one may be meant."""
    from difflib import get_close_matches

    near = get_close_matches(word, sorted(known), n=2)
    hint = f"; did you mean {' or '.join(map(repr, near))}?" if near else ""
    return f"there is no {noun} {word!r}{hint}"


def overview(more: Iterable[tuple[str, str]] = (), notes: Iterable[str] = ()) -> Parser:
    """The parser of ``crow`` without a sub-command; ``more`` are the commands of extensions.

    ``notes`` are lines that stand behind all of them.
    """
    commands = {**COMMANDS, **dict(more)}
    width = max(map(len, commands))
    rows = "\n".join(f"  {name:{width}}  {text}" for name, text in commands.items())
    last = "\n".join((*notes, "crow alone talks with you; crow COMMAND --help says more."))
    parser = Parser(
        prog="crow",
        usage="crow [COMMAND] ...",
        description="A coding agent that is extended, not forked.",
        epilog=f"commands:\n{rows}\n\n{last}",
    )
    parser.add_argument("-v", "--version", action="store_true", help="print the version and end")
    return parser
