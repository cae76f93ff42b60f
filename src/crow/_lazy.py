"""Names of a package that are imported when they are first used."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module


def lazy(
    package: str, rooms: Mapping[str, str]
) -> tuple[list[str], Callable[[str], object], Callable[[], list[str]]]:
    """What a package is to have as ``__all__``, ``__getattr__`` and ``__dir__``.

    ``rooms`` maps modules to the names that the package takes from them.
    """
    homes = {name: room for room, names in rooms.items() for name in names.split()}

    def get(name: str) -> object:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        thing: object = getattr(import_module(homes[name]), name)
        setattr(sys.modules[package], name, thing)
        return thing

    return list(homes), get, lambda: list(homes)
