"""The members by which an extension says something of itself, held against their protocols."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from types import FunctionType, MemberDescriptorType, ModuleType
from typing import Any

from crow.core.errors import ExtensionError
from crow.core.extensions import (
    AgentExtension,
    LifespanExtension,
    SessionExtension,
    place_in_source,
)
from crow.core.sessions import SessionKeeper
from crow.core.support.validation import members_of
from crow.ports import extensions, faces

ABSENT = object()
PLAIN = (FunctionType, classmethod, staticmethod, MemberDescriptorType)
"""What an attribute is in its class that can be looked at: nobody's code runs for that."""
ELSEWHERE = "call it something else"
LEFT_ALONE = (
    extensions.Inherited,  # a method of that name is none
    extensions.Ordered,  # of classes alone, by who sorts them
    faces.CompletingCommand,
    faces.CardProvider,  # what fails on the screen is named there
    faces.StatusProvider,
    faces.WidgetProvider,
)
PROTOCOLS: tuple[type[Any], ...] = (
    AgentExtension,
    SessionExtension,
    LifespanExtension,
    SessionKeeper,
    *[
        each
        for room in (extensions, faces)
        for each in vars(room).values()
        if getattr(each, "_is_runtime_protocol", False) and each not in LEFT_ALONE
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
    "bool": ("true or false", lambda value: isinstance(value, int | None)),
}
"""What the members that are no methods are read as, by their annotations."""


def refuse(thing: Any, *protocols: type[Any]) -> None:
    """Raise `ExtensionError` where a member is not what one of these protocols, or any, wants.

    An option may be called like one of them: whoever reads it would fail, and nothing would start.
    Nobody's code runs for that.
    """
    for protocol in protocols or PROTOCOLS:
        found = {name: inspect.getattr_static(thing, name, ABSENT) for name in members_of(protocol)}
        for name, member in found.items() if ABSENT not in found.values() else ():
            if wrong := _misfit(thing, name, member, vars(protocol)[name]):
                cls = thing if isinstance(thing, type) else type(thing)
                whose = thing.__name__ if isinstance(thing, ModuleType) else cls.__name__
                place = place_in_source(_written(member) or cls)
                raise ExtensionError(f"{whose}.{name} is {wrong}{place}")


def _misfit(thing: Any, name: str, found: object, wanted: Any) -> str:
    """Why a member is not what it is taken for; empty where it is, or where nobody can tell."""
    is_read, is_object = isinstance(wanted, property), not isinstance(thing, type | ModuleType)
    if is_object and isinstance(found, property):
        return "" if is_read else "called by Crow, and is a property: make it a method"
    if is_object and hasattr(type(found), "__get__") and not isinstance(found, PLAIN):
        return ""  # it is made when it is asked for
    value: Any = getattr(thing, name, None)
    if isinstance(value, ModuleType):  # such as Python's own warnings
        return ""
    if is_read:
        annotation = str(inspect.signature(wanted.fget).return_annotation)
        return _not_read(value, annotation, is_object=is_object)
    if value is None:  # which is no method
        return ""
    if not callable(value):
        return f"called by Crow, and is {value!r}: {ELSEWHERE}"
    return _not_called(value, wanted)


def _not_read(value: object, annotation: str, *, is_object: bool) -> str:
    if inspect.isroutine(value):
        do = "put @property above it" if is_object else ELSEWHERE
        return f"read by Crow, and is a method: {do}"
    kind, fits = KINDS.get(annotation.partition("[")[0], ("", lambda _: True))
    if fits(value) or (value is None and annotation.endswith("None")):
        return ""
    return f"read by Crow as {kind}, and is {value!r}: {ELSEWHERE}"


def _not_called(value: Any, wanted: Any) -> str:
    """Why a method cannot be called as that of the protocol is."""
    _, *given = inspect.signature(wanted).parameters.values()
    try:
        taken = inspect.signature(value)
    except (ValueError, TypeError, NameError):  # nobody knows what it takes
        taken = None
    try:
        if taken is not None and all(each.kind is not each.VAR_KEYWORD for each in given):
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


def _written(found: object) -> Any:
    """The function that a member is, or that its property calls; None where it is none."""
    found = getattr(found, "fget", None) or getattr(found, "__func__", found)
    return found if isinstance(found, FunctionType) else None
