"""Names of a package that are imported when they are first used."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module


def lazy(
    package: str, rooms: Mapping[str, str]
) -> tuple[list[str], Callable[[str], object], Callable[[], list[str]]]:
    """What a package is to have as ``__all__``, ``__getattr__`` and ``__dir__``.

    ``rooms`` maps modules to the names that the package takes from them: all of a module's with
    the first of them.
    """
    homes = {name: room for room, names in rooms.items() for name in names.split()}

    def get(name: str) -> object:
        if name not in homes:
            raise missing(package, name, homes)
        room = import_module(homes[name])
        for each in rooms[homes[name]].split():
            setattr(sys.modules[package], each, getattr(room, each))
        return getattr(room, name)

    return list(homes), get, lambda: list(homes)


def missing(package: str, name: str, known: Iterable[str], rooms: Iterable[str] = ()) -> Exception:
    """The error for a name that is not there.

    For ``from package import name`` it names the nearest one, or the one of ``rooms`` that has it:
    that is asked for as an attribute before a module of the name is looked for. Everybody else
    gets an `AttributeError`, to which Python adds the nearest name where it shows it.
    """
    from importlib.util import find_spec

    imported = sys._getframe(2).f_code.co_name == "_handle_fromlist"  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    if imported and not name.startswith("_") and find_spec(f"{package}.{name}") is None:
        from difflib import get_close_matches

        near = get_close_matches(name, list(known), 1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        homes = (room for room in rooms if name in import_module(room).__all__)
        if home := next(homes, ""):
            hint = f"; it is in {home}"
        return ImportError(f"cannot import name {name!r} from {package!r}{hint}", name=package)
    return AttributeError(f"module {package!r} has no attribute {name!r}")
