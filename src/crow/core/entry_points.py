"""Entry points of the installed packages, read from their own files.

`importlib.metadata` does the same in 17 ms, at every start; it is asked about what is no folder.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from crow.core.frozen import frozen

logger = logging.getLogger("crow.extensions")

GROUP = "crow.extensions"
ON_REQUEST = f"{GROUP}.on_request"
"""The group of extensions that are used where the settings have a table for them."""
OWN = "crow_acp"
KINDS = (".dist-info", ".egg-info")
Package = tuple[str, Iterable["EntryPoint"]]


@frozen
class EntryPoint:
    """What a package says that one of its extensions is: ``value`` is ``module:Name``.

    ``package`` is the distribution's name; ``own`` marks those that come with Crow.
    """

    name: str
    value: str
    package: str
    own: bool = False
    on_request: bool = False

    def load(self) -> Any:
        """Import it; raises whatever its module raises."""
        module, _, path = self.value.partition("[")[0].strip().partition(":")
        thing: Any = import_module(module.strip())
        for name in filter(None, path.strip().split(".")):
            thing = getattr(thing, name)
        return thing


def entry_points() -> list[EntryPoint]:
    """Every extension that an installed package offers, by name.

    Of two packages of one name that counts which would be imported: the first on the path.
    """
    found: dict[str, list[EntryPoint]] = {}
    for place in sys.path:
        for package, points in _packages_in(place or "."):
            if package not in found:
                found[package] = list(points)
    every = (point for points in found.values() for point in points)
    return sorted(every, key=lambda point: point.name)


def _packages_in(place: str) -> Iterator[Package]:
    try:
        with os.scandir(place) as entries:
            folders = [entry.path for entry in entries if entry.name.endswith(KINDS)]
    except FileNotFoundError:
        return
    except OSError:
        yield from _packages_of_zip(place)
        return
    for folder in map(Path, folders):
        name = _normal(folder.stem.partition("-")[0])
        yield name, _points(folder, name)


def _points(folder: Path, name: str) -> Iterator[EntryPoint]:
    try:
        text = folder.joinpath("entry_points.txt").read_text("utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return
    except (OSError, UnicodeDecodeError) as error:
        logger.warning("the entry points of %s cannot be read: %s", folder, error)
        return
    if GROUP in text:
        yield from _parsed(text, name if name == OWN else _title(folder) or name)


def _packages_of_zip(place: str) -> Iterator[Package]:
    from importlib.metadata import distributions

    for package in distributions(path=[place]):
        text = package.read_text("entry_points.txt") or ""
        yield _normal(package.name), _parsed(text, package.name)


def _parsed(text: str, package: str) -> Iterator[EntryPoint]:
    group = ""
    for line in map(str.strip, text.splitlines()):
        if line.startswith("["):
            group = line.strip("[]").strip()
        elif group in (GROUP, ON_REQUEST) and "=" in line and not line.startswith(("#", ";")):
            name, _, value = map(str.strip, line.partition("="))
            yield EntryPoint(name, value, package, package == OWN, group == ON_REQUEST)


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
