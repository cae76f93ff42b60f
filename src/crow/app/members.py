"""The members by which an extension says something of itself, held against their protocols."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import FunctionType, ModuleType
from typing import Any

from crow.core.errors import ExtensionError
from crow.core.extensions import (
    AgentExtension,
    LifespanExtension,
    SessionExtension,
    place_in_source,
)
from crow.core.sessions import SessionKeeper
from crow.core.support.validation import implements, members_of
from crow.ports import extensions, faces

ABSENT = object()
ELSEWHERE = "call it something else"
PROTOCOLS: tuple[type[Any], ...] = (
    AgentExtension,
    SessionExtension,
    LifespanExtension,
    SessionKeeper,
    *[
        each
        for room in (extensions, faces)
        for each in vars(room).values()
        if getattr(each, "_is_runtime_protocol", False) and each is not faces.CompletingCommand
    ],
)
"""What an extension is asked whether it is one."""
KINDS: Mapping[str, tuple[str, Callable[[object], bool]]] = {
    "Mapping": ("a table", lambda value: isinstance(value, Mapping)),
    "Iterable": (
        "a list",
        lambda value: isinstance(value, Iterable) and not isinstance(value, str),
    ),
    "int": ("a number", lambda value: isinstance(value, int | float)),
    "bool": ("true or false", lambda value: isinstance(value, bool)),
}
"""What the members that are no methods are read as, by their annotations."""


def refuse(thing: Any, *protocols: type[Any]) -> None:
    """Raise `ExtensionError` where a member is not what one of these protocols, or any, wants.

    An option may be called like one of them: whoever reads it would fail, and nothing would start.
    """
    for wrong in _misfits(thing, protocols or PROTOCOLS):
        raise ExtensionError(wrong)


def _misfits(thing: Any, protocols: Iterable[type[Any]]) -> Iterator[str]:
    """What is wrong with the members of an extension, a line each; no property is read."""
    for protocol in protocols:
        if not implements(thing, protocol):
            continue
        for name in members_of(protocol):
            if wrong := _misfit(thing, name, vars(protocol)[name]):
                cls = thing if isinstance(thing, type) else type(thing)
                whose = thing.__name__ if isinstance(thing, ModuleType) else cls.__name__
                yield f"{whose}.{name} is {wrong}{place_in_source(_written(thing, name) or cls)}"


def _misfit(thing: Any, name: str, wanted: Any) -> str:
    """Why a member is not what it is taken for; empty where it is, or where nobody can tell."""
    found = inspect.getattr_static(thing, name, ABSENT)
    if isinstance(found, property):
        is_read = isinstance(wanted, property)
        return "" if is_read else "called by Crow, and is a property: make it a method"
    value = getattr(thing, name, ABSENT)
    if value is ABSENT or isinstance(value, ModuleType):  # such as Python's own warnings
        return ""
    if isinstance(wanted, property):
        hints: Mapping[str, str] = getattr(wanted.fget, "__annotations__")  # noqa: B009
        return _not_read(value, hints["return"])
    if not callable(value):
        return f"called by Crow, and is {value!r}: {ELSEWHERE}"
    return _not_called(value, getattr(wanted, "__func__", wanted))


def _not_read(value: object, annotation: str) -> str:
    if inspect.isroutine(value):
        return "read by Crow, and is a method: put @property above it"
    kind, fits = KINDS.get(annotation.partition("[")[0], ("", lambda _: True))
    is_none = value is None and annotation.endswith("None")
    return (
        "" if is_none or fits(value) else f"read by Crow as {kind}, and is {value!r}: {ELSEWHERE}"
    )


def _not_called(value: Any, wanted: Any) -> str:
    """Why a method cannot be called as that of the protocol is."""
    _, *given = inspect.signature(wanted).parameters.values()
    try:
        taken = inspect.signature(value)
    except ValueError:  # nobody knows what it takes
        return ""
    try:
        taken.bind(
            *[each for each in given if each.kind is each.POSITIONAL_OR_KEYWORD],
            **{each.name: each for each in given if each.kind is each.KEYWORD_ONLY},
        )
    except TypeError:
        told = ", ".join(each.name for each in given)
        return f"called by Crow with ({told}), and takes {taken}"
    if inspect.iscoroutinefunction(value) and not inspect.iscoroutinefunction(wanted):
        return "not awaited by Crow, and is async: make it a plain def"
    return ""


def _written(thing: Any, name: str) -> Any:
    """The function that a member is, or that its property calls; None where it is none."""
    found = inspect.getattr_static(thing, name, None)
    found = getattr(found, "fget", None) or getattr(found, "__func__", found)
    return found if isinstance(found, FunctionType) else None
