"""The members by which an extension says something of itself, and what Crow reads in each."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import ModuleType, NoneType
from typing import Any

from crow.core.errors import ExtensionError
from crow.core.extensions import (
    AgentExtension,
    LifespanExtension,
    SessionExtension,
    place_in_source,
)
from crow.core.support.validation import implements, members_of
from crow.ports import extensions, faces

Kind = tuple[str, tuple[Any, ...]]
KINDS: Mapping[str, Kind] = {
    "Iterable": ("a list", (Iterable,)),
    "Sequence": ("a list", (Iterable,)),
    "Mapping": ("a table", (Mapping,)),
    "int": ("a number", (int, float)),
}
"""What a property of a protocol is to be, by how its annotation begins."""
METHOD: Kind = ("a method", (Callable,))
PROTOCOLS: tuple[type[Any], ...] = (
    *(AgentExtension, SessionExtension, LifespanExtension),
    *(
        each
        for module in (extensions, faces)
        for each in vars(module).values()
        if getattr(each, "_is_runtime_protocol", False) and each.__module__ == module.__name__
    ),
)


def refuse(thing: Any, *protocols: type[Any]) -> None:
    """Raise `ExtensionError` where a member, of these or of all, is not what Crow takes it for.

    An option may be called like one of them: whoever reads it would fail, and nothing would start.
    """
    for protocol in protocols or PROTOCOLS:
        if implements(thing, protocol):
            for name, kind, shape in _members(protocol):
                value = getattr(thing, name)
                if isinstance(value, str) or not isinstance(value, (*shape, ModuleType)):
                    cls = thing if isinstance(thing, type) else type(thing)
                    whose = thing.__name__ if isinstance(thing, ModuleType) else cls.__name__
                    raise ExtensionError(
                        f"{whose}.{name} is read by Crow as {kind}, and is {value!r}: "
                        f"call it something else{place_in_source(cls)}"
                    )


def _members(protocol: type[Any]) -> Iterator[tuple[str, str, tuple[Any, ...]]]:
    """What each member of a protocol is to be, in a word and as types, where that can be seen."""
    for name in members_of(protocol):
        member = inspect.getattr_static(protocol, name)
        if not isinstance(member, property):
            yield name, *METHOD
            continue
        told = str(member.fget.__annotations__["return"])
        head = re.match(r"\w+", told)
        if head and head[0] in KINDS:
            kind, shape = KINDS[head[0]]
            yield name, kind, (*shape, NoneType) if told.endswith("| None") else shape
