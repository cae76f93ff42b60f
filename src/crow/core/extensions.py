"""Extensions: found as entry points of packages, made with their options, entered and left."""

from __future__ import annotations

import asyncio
import inspect
import logging
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import replace
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

from crow.core.errors import ExtensionError, nearest
from crow.core.frozen import frozen

logger = logging.getLogger("crow.extensions")

GROUP = "crow.extensions"
JUDGE = f"{GROUP}.judge"
"""The group of extensions that judge calls: nothing starts where one of them is broken."""
ON_REQUEST = f"{GROUP}.on_request"
"""The group of extensions that are used where the settings have a table for them."""
COMMANDS = "crow.commands"
"""The group of commands for terminals: ``crow NAME``."""
OWN = "crow_acp"
OURS = "crow"
"""Who brings what comes with Crow, as a person knows it."""
KINDS = (".dist-info", ".egg-info")
ENTER_TIMEOUT = 30.0
LEAVE_TIMEOUT = 5.0

Package = tuple[str, list["EntryPoint"]]
T = TypeVar("T")


@frozen
class EntryPoint:
    """What a package offers under a name: ``value`` is ``module:Name``.

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
        """Import it; raises whatever its module raises, and `ExtensionError` for a rival's name."""
        if self.rival:
            raise ExtensionError(
                f"the name {self.name!r} is taken by {self.rival}: {self.package} needs another one"
            )
        module, _, path = self.value.partition("[")[0].strip().partition(":")
        thing: Any = import_module(module.strip())
        for name in filter(None, path.strip().split(".")):
            thing = getattr(thing, name)
        return thing


def entry_points(*groups: str) -> list[EntryPoint]:
    """What installed packages offer in these groups, else every extension, read from their files.

    `importlib.metadata` takes 17 ms for that, at every start; it is asked about what is no folder.
    Of two packages of one name that counts which would be imported: the first on the path. They
    are looked for again when a package has come or gone.
    """
    places = [place or "." for place in sys.path]
    wanted = groups or (GROUP, JUDGE, ON_REQUEST)
    every = _entry_points(tuple((place, _changed(place)) for place in places))
    return [point for point in every if point.group in wanted]


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
    every = [point for points in found.values() for point in points]
    every.sort(key=lambda point: (point.name, not point.own, point.package))
    first: dict[tuple[bool, str], EntryPoint] = {}
    for point in every:
        first.setdefault((point.group == COMMANDS, point.name), point)
    return [_beside(first[point.group == COMMANDS, point.name], point) for point in every]


def _beside(first: EntryPoint, point: EntryPoint) -> EntryPoint:
    """An entry point that knows whether another one has its name."""
    return point if first is point else replace(point, rival=first.brought_by)


def _packages_in(place: str) -> Iterator[Package]:
    try:
        with os.scandir(place) as entries:
            folders = [entry.name for entry in entries if entry.name.endswith(KINDS)]
    except FileNotFoundError:
        return
    except OSError:
        yield from _packages_of_zip(place)
        return
    for folder in folders:
        name = _normal(folder.rpartition(".")[0].partition("-")[0])
        yield name, _points(f"{place}/{folder}", name)


def _points(folder: str, package: str) -> list[EntryPoint]:
    try:
        with open(f"{folder}/entry_points.txt", encoding="utf-8") as file:  # noqa: PTH123 - at every start
            text = file.read()
    except (FileNotFoundError, NotADirectoryError):
        return []
    except (OSError, UnicodeDecodeError) as error:
        logger.warning("the entry points of %s cannot be read: %s", folder, error)
        return []
    if "[crow." not in text:
        return []
    return list(_parsed(text, package if package == OWN else _title(Path(folder)) or package))


def _packages_of_zip(place: str) -> Iterator[Package]:
    from importlib.metadata import distributions

    for package in distributions(path=[place]):
        text = package.read_text("entry_points.txt") or ""
        yield _normal(package.name), list(_parsed(text, package.name))


def _parsed(text: str, package: str) -> Iterator[EntryPoint]:
    group = ""
    for line in map(str.strip, text.splitlines()):
        if line.startswith("["):
            group = line.strip("[]").strip()
        elif group.startswith("crow.") and "=" in line and not line.startswith(("#", ";")):
            name, _, value = map(str.strip, line.partition("="))
            yield EntryPoint(name, value, package, group, package == OWN)


def _title(folder: Path) -> str:
    """The name of a package as it writes itself; empty where it does not say."""
    for name in ("METADATA", "PKG-INFO"):
        with suppress(OSError, UnicodeDecodeError):
            for line in folder.joinpath(name).read_text("utf-8").splitlines():
                if line.startswith("Name:"):
                    return line.removeprefix("Name:").strip()
    return ""


def _normal(name: str) -> str:
    return name.lower().replace("-", "_").replace(".", "_")


@frozen
class Found:
    """An extension that was looked for: where it came from, and the error if it is broken.

    ``problems`` are lines about options that it did not get; ``names`` those under which it is in
    use, one for each class of a file.
    """

    name: str
    source: str
    error: str | None = None
    disabled: bool = False
    problems: tuple[str, ...] = ()
    names: tuple[str, ...] = ()


def attempt(
    use: Callable[..., Any],
    point: EntryPoint,
    trusted: bool,
    options: Mapping[str, Any],
) -> str | None:
    """Use what an entry point names; the error in one line where that fails."""
    try:
        use(point.load(), name=point.name, trusted=trusted, source=point.value, **options)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a broken one stops no others
        return " ".join(f"{type(error).__name__}: {error}".split())
    return None


def make(cls: type[T], name: str, options: Mapping[str, Any]) -> T:
    """An extension from its class and its options, which must fit the constructor.

    Raises `ExtensionError` for an option that does not exist or is missing.
    """
    parameters = inspect.signature(cls).parameters.values()
    open_ended = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    named = [p for p in parameters if p.name != "agent" and p.kind not in open_ended]
    if not any(p.kind is p.VAR_KEYWORD for p in parameters):
        refuse_unknown(name, options, [p.name for p in named])
    for parameter in named:
        if parameter.default is parameter.empty and parameter.name not in options:
            raise ExtensionError(f"the extension {name} needs the option {parameter.name!r}")
    return cls(**options)


def refuse_unknown(name: str, options: Mapping[str, Any], known: list[str]) -> None:
    """Raise for the first option that is none, with the nearest one."""
    for option in options:
        if option not in known:
            near = nearest(option, known)
            there = f"it has {', '.join(known)}" if known else "it has none"
            hint = f"did you mean {near!r}?" if near else there
            raise ExtensionError(f"the extension {name} has no option {option!r}; {hint}")


class Lifespan:
    """One extension's ``async def lifespan(self, agent): ... yield ...``.

    On a session it is called with that.
    """

    def __init__(
        self,
        name: str,
        make: Callable[..., Any],
        host: object,
        *,
        enter_timeout: float = ENTER_TIMEOUT,
        leave_timeout: float = LEAVE_TIMEOUT,
    ) -> None:
        self.name = name
        self.enter_timeout = enter_timeout
        self.leave_timeout = leave_timeout
        self._make = make
        self._host = host
        self._leave = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @property
    def entered(self) -> bool:
        """True while there is something to leave: it was begun, and has not failed."""
        return self._task is not None

    async def enter(self) -> None:
        """Run the part before ``yield``. Raises `ExtensionError` where that fails or hangs."""
        ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        task = asyncio.create_task(self._live(ready), name=f"lifespan of {self.name}")
        self._task = task
        try:
            async with asyncio.timeout(self.enter_timeout):
                await ready
        except TimeoutError:
            raise ExtensionError(
                f"the extension {self.name} did not start within {self.enter_timeout:g} s"
            ) from None
        finally:
            if not ready.done() or ready.cancelled() or ready.exception() is not None:
                self._task = None
                task.cancel()

    async def leave(self) -> None:
        """Run the part behind ``yield``; what fails or hangs there is logged."""
        if self._task is None:
            return
        self._leave.set()
        _, late = await asyncio.wait({self._task}, timeout=self.leave_timeout)
        if late:
            logger.warning(
                "the extension %s did not stop within %g s", self.name, self.leave_timeout
            )
            self._task.cancel()

    async def _live(self, ready: asyncio.Future[None]) -> None:
        try:
            async with self._context():
                ready.set_result(None)
                await self._leave.wait()
        except Exception as error:  # noqa: BLE001 - somebody else's code
            if ready.done():
                logger.warning("the extension %s failed to stop: %r", self.name, error)
            else:
                text = f"the extension {self.name} failed to start: {error!r}"
                ready.set_exception(ExtensionError(text))

    def _context(self) -> AbstractAsyncContextManager[Any]:
        if inspect.isasyncgenfunction(self._make):
            return asynccontextmanager(self._make)(self._host)
        return self._make(self._host)
