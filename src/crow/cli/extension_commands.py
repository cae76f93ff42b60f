"""Commands that extensions bring, as entry points of the group ``crow.commands``.

Each names a module, or anything else with a docstring, ``declare(parser)`` and ``main(options,
out)``, as the modules of this package have them.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Any

from crow.cli.output import Output
from crow.cli.parser import COMMANDS, SAME, Help, Parser, UsageError, no_such
from crow.core.errors import CrowError
from crow.entry_points import COMMANDS as GROUP
from crow.entry_points import EntryPoint, entry_points

TAKEN = frozenset({*COMMANDS, *SAME, "chat", "help"})
"""What nobody else's command can be called."""


def installed() -> dict[str, EntryPoint]:
    """The commands by name; Crow's own stand for themselves."""
    points = (point for point in entry_points(GROUP) if not _rival(point))
    return {point.name: point for point in points}


def _rival(point: EntryPoint) -> str:
    """Who has a command's name already."""
    return "crow" if point.name in TAKEN else point.rival


def left_out() -> Iterator[str]:
    """A line for each command whose name somebody else has."""
    for point in entry_points(GROUP):
        if rival := _rival(point):
            whose = "Crow has one" if rival == "crow" else f"{rival} has one"
            yield f"the command {point.name!r} of {point.package} is left out: {whose} of that name"


class ExtensionCommand:
    """A command that a package brings; what it raises says which package that is."""

    def __init__(self, point: EntryPoint, command: Any) -> None:
        self.point = point
        self.command = command
        self.__doc__ = command.__doc__

    def declare(self, parser: Parser) -> None:
        """Say which options there are."""
        with self._named():
            self.command.declare(parser)

    def main(self, options: Namespace, out: Output) -> int:
        """Run it."""
        with self._named():
            return self.command.main(options, out)

    @contextmanager
    def _named(self) -> Generator[None]:
        try:
            yield
        except (CrowError, Help):
            raise
        except Exception as error:
            where = f"the command {self.point.name} of {self.point.package} failed"
            told = f"{where}: {type(error).__name__}: {error} (CROW_DEBUG=1 shows where)"
            raise CrowError(told) from error


def command_of(name: str) -> Any:
    """The command of this name. Raises `UsageError` where there is none."""
    found = installed()
    if name not in found:
        from crow.cli.migration_hints import command

        known = {*COMMANDS, *found}
        if told := command(name):
            raise UsageError(told)
        raise UsageError(f"{no_such('command', name, known)} (see crow --help)")
    point = found[name]
    try:
        return point.load() if point.own else ExtensionCommand(point, point.load())
    except (Exception, SystemExit) as error:
        why = str(error) if isinstance(error, CrowError) else repr(error)
        text = f"the command {name} of {point.package} is broken: {why}"
        raise CrowError(text) from error


def summaries() -> Iterator[tuple[str, str]]:
    """Each command and, in a line, what it is for."""
    for name in installed():
        try:
            doc = command_of(name).__doc__ or ""
        except CrowError as error:
            doc = str(error)
        first = doc.strip().partition("\n")[0].removesuffix(".")
        yield name, first[:1].lower() + first[1:]
