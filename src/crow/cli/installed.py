"""Commands that extensions bring, as entry points of the group ``crow.commands``.

Each names a module, or anything else with a docstring, ``declare(parser)`` and ``main(options,
out)``, as the modules of this package have them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from crow.cli.parser import COMMANDS, UsageError, no_such
from crow.core.errors import CrowError
from crow.core.extensions import COMMANDS as GROUP
from crow.core.extensions import EntryPoint, entry_points


def installed() -> dict[str, EntryPoint]:
    """The commands by name; Crow's own stand for themselves."""
    found: dict[str, EntryPoint] = {}
    for point in entry_points(GROUP):
        if point.own or point.name not in found:
            found[point.name] = point
    return {name: found[name] for name in sorted(found.keys() - COMMANDS.keys())}


def command_of(name: str) -> Any:
    """The command of this name. Raises `UsageError` where there is none."""
    found = installed()
    if name not in found:
        known = {*COMMANDS, *found}
        raise UsageError(f"{no_such('command', name, known)} (see crow --help)")
    try:
        return found[name].load()
    except (Exception, SystemExit) as error:
        text = f"the command {name} of {found[name].package} is broken: {error!r}"
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
