"""Extensions and commands that installed packages bring: their entry points, found and used."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from importlib import import_module
from itertools import chain
from operator import attrgetter
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any, TypeAlias

from crow.core.errors import ExtensionError
from crow.core.extensions import Found
from crow.core.support.frozen import frozen

if TYPE_CHECKING:
    from crow.core.agent import Agent

logger = logging.getLogger("crow.extensions")

GROUP = "crow.extensions"
JUDGE = f"{GROUP}.judge"
"""The group of extensions that judge calls: nothing starts where one of them is broken."""
ON_REQUEST = f"{GROUP}.on_request"
"""The group of extensions that are used where the settings have a table for them."""
GROUPS = (GROUP, JUDGE, ON_REQUEST)
COMMANDS = "crow.commands"
"""The group of commands for terminals: ``crow NAME``."""
EVENTS = "crow.events"
"""The group of events that extensions make happen; the value is that of the extension's own."""
FIRST_CALL = "crow.first_call"
"""The group of modules that a first call needs; a name begins with that of an extension."""
SENT = 0.1
"""Seconds after which a request is on its way, and a model that takes its time still thinks."""
NOBODYS = {"TeammateIdle": "teams, which Crow does not bring"}
"""Events that hooks may be written for, and that no extension makes happen."""
OWN = "crow_acp"
OURS = "crow"
"""Who brings what comes with Crow, as a person knows it."""
KINDS = (".dist-info", ".egg-info")
NORMAL = str.maketrans("-.", "__")
"""What is one and the same in the names of packages."""

Package: TypeAlias = "tuple[str, list[EntryPoint]]"


@frozen
class EntryPoint:
    """An entry point of a package: ``value`` is ``module:Name``.

    ``package`` is the distribution's name; ``own`` marks what comes with Crow. ``rival`` is the
    package that has the name already: Crow's own counts, then the first by name.
    """

    name: str
    value: str
    package: str
    group: str = GROUP
    own: bool = False
    rival: str = ""

    @property
    def brought_by(self) -> str:
        """Who offers it, as a person knows it."""
        return OURS if self.own else self.package

    @property
    def alone(self) -> EntryPoint:
        """The same where nothing is used that comes with Crow, and no name of that is taken."""
        return replace(self, rival="") if self.rival == OURS else self

    def load(self) -> Any:
        """Import it; raises whatever its module raises.

        Raises `ExtensionError` for a rival's name, and for a module that Crow's own package lacks.
        """
        if self.rival:
            raise ExtensionError(
                f"the name {self.name!r} is taken by {self.rival}: {self.package} needs another one"
            )
        module, _, path = self.value.partition("[")[0].strip().partition(":")
        try:
            thing: Any = import_module(module.strip())
        except ModuleNotFoundError as error:
            self._refuse_damaged(module.strip(), error)
            raise
        for name in filter(None, path.strip().split(".")):
            thing = getattr(thing, name)
        return thing

    def _refuse_damaged(self, module: str, error: ModuleNotFoundError) -> None:
        if self.own and f"{module}.".startswith(f"{error.name}."):
            package = self.package.replace("_", "-")
            told = f"{package} is damaged: {error.name}, which it names, is missing"
            again = f"uv tool install --reinstall {package}, pip install --force-reinstall"
            raise ExtensionError(f"{told}; install it again ({again} {package})") from error


def entry_points(*groups: str) -> list[EntryPoint]:
    """What installed packages offer in these groups, else every extension, read from their files.

    `importlib.metadata` takes 17 ms for that, at every start; it is asked about what is no folder.
    Of two packages of one name that counts which would be imported: the first on the path. They
    are looked for again when a package has come or gone.
    """
    places = [place or "." for place in sys.path]
    wanted = groups or GROUPS
    every = _entry_points(tuple((place, _changed(place)) for place in places))
    return [point for point in every if point.group in wanted]


def events() -> Mapping[str, str]:
    """The extension that makes each event happen which one announces, by the event's name."""
    named = {point.value: point.name for point in entry_points()}
    announced = {point.name: named.get(point.value, "") for point in entry_points(EVENTS)}
    return announced | NOBODYS


class EarlyImports:
    """Imports of what first calls need, in a thread, while a model thinks.

    What cannot be imported says so where it is called for.
    """

    def __init__(self, disabled: Collection[str]) -> None:
        self._disabled = disabled
        self._left: list[str] | None = None
        self._goes_on = False
        self._timer: asyncio.TimerHandle | None = None
        self._thread: Thread | None = None

    def begin(self) -> None:
        """Import what is left, once a request is on its way."""
        if self._left is None:
            offered = reversed(entry_points(FIRST_CALL))
            self._left = [
                each.value for each in offered if each.name.partition(".")[0] not in self._disabled
            ]
        self.pause()
        if self._left:
            self._timer = asyncio.get_running_loop().call_later(SENT, self._start)

    def pause(self) -> None:
        """Import no further: the model answers, and what it says is worked on."""
        self._goes_on = False
        if self._timer is not None:
            self._timer.cancel()

    def _start(self) -> None:
        self._goes_on = True
        if self._thread is None or not self._thread.is_alive():
            self._thread = Thread(target=self._import, name="crow-imports", daemon=True)
            self._thread.start()

    def _import(self) -> None:
        while self._goes_on and self._left:
            with suppress(Exception):
                import_module(self._left.pop())


def inside(extension: str, module: str = "") -> Any:
    """A module of an extension's own, or what it is itself, wherever it is installed.

    Raises `ExtensionError` where it is not.
    """
    for point in entry_points():
        if point.name == extension and not point.rival:
            home = point.value.partition(":")[0].strip()
            return import_module(f"{home}.{module}" if module else home)
    raise ExtensionError(f"the extension {extension} is not installed, whose command this is")


def _changed(place: str) -> int:
    """When something came or went in a folder."""
    try:
        return os.stat(place).st_mtime_ns  # noqa: PTH116 - five a start
    except OSError:
        return 0


@lru_cache(maxsize=1)
def _entry_points(places: tuple[tuple[str, int], ...]) -> list[EntryPoint]:
    found: dict[str, list[EntryPoint]] = {}
    for place, _ in places:
        for package, points in _packages_in(place):
            found.setdefault(package, points)
    every = sorted(chain.from_iterable(found.values()), key=attrgetter("package"))
    every.sort(key=attrgetter("own"), reverse=True)
    every.sort(key=attrgetter("name"))
    first: dict[tuple[bool | str, str], EntryPoint] = {}
    for point in every:
        first.setdefault((point.group in GROUPS or point.group, point.name), point)
    for at, point in enumerate(every):
        known = first[point.group in GROUPS or point.group, point.name]
        if known is not point:
            every[at] = replace(point, rival=known.brought_by)
    return every


def _packages_in(place: str) -> Iterable[Package]:
    try:
        with os.scandir(place) as entries:
            folders = [entry.name for entry in entries if entry.name.endswith(KINDS)]
    except FileNotFoundError:
        return ()
    except OSError:
        return _packages_of_zip(place)
    found: list[Package] = []
    for folder in folders:
        path, name = f"{place}/{folder}", folder.rpartition(".")[0].partition("-")[0]
        name, text = name.lower().translate(NORMAL), ""
        try:
            if os.access(f"{path}/entry_points.txt", os.F_OK):
                with open(f"{path}/entry_points.txt", encoding="utf-8") as file:  # noqa: PTH123 - fast
                    text = file.read()
        except (OSError, UnicodeDecodeError) as error:
            logger.warning("the entry points of %s cannot be read: %s", path, error)
        found.append((name, _offered(text, path, name) if "[crow." in text else []))
    return found


def _offered(text: str, path: str, name: str) -> list[EntryPoint]:
    """What a package offers Crow, by what is in its folder beside the code."""
    return _parsed(text, name if name == OWN else _title(Path(path)) or name)


def _packages_of_zip(place: str) -> Iterator[Package]:
    from importlib.metadata import distributions

    for package in distributions(path=[place]):
        text = package.read_text("entry_points.txt") or ""
        yield package.name.lower().translate(NORMAL), _parsed(text, package.name)


def _parsed(text: str, package: str) -> list[EntryPoint]:
    found, group = list[EntryPoint](), ""
    for line in map(str.strip, text.splitlines()):
        if line.startswith("["):
            group = line.strip("[]").strip()
        elif group.startswith("crow.") and "=" in line and not line.startswith(("#", ";")):
            name, _, value = map(str.strip, line.partition("="))
            found.append(EntryPoint(name, value, package, group, package == OWN))
    return found


def _title(folder: Path) -> str:
    """The name of a package as it writes itself; empty where it does not say."""
    for name in ("METADATA", "PKG-INFO"):
        with suppress(OSError, UnicodeDecodeError):
            for line in folder.joinpath(name).read_text("utf-8").splitlines():
                if line.startswith("Name:"):
                    return line.removeprefix("Name:").strip()
    return ""


def discover(
    agent: Agent,
    options: Mapping[str, Mapping[str, Any]],
    disabled: frozenset[str],
    trusted: frozenset[str],
) -> Iterator[Found]:
    """Use what packages bring; Crow's own are left to `crow.build`."""
    for point in entry_points():
        if point.own or (point.group == ON_REQUEST and point.name not in options):
            continue
        off, before = point.name in disabled, agent.hooks.owners
        chosen, is_trusted = dict(options.get(point.name, {})), point.name in trusted
        error = None if off else _attempt(agent, point.alone, is_trusted, chosen)
        names = agent.scope.names_since(before)
        yield Found(point.name, point.package, error, off, names=names)


def _attempt(
    agent: Agent, point: EntryPoint, trusted: bool, options: Mapping[str, Any]
) -> str | None:
    """Use what an entry point names; the error in one line where that fails."""
    try:
        agent.use(point.load(), name=point.name, trusted=trusted, source=point.value, **options)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a broken one stops no others
        return " ".join(f"{type(error).__name__}: {error}".split())
    return None
