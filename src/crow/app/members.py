"""The members by which an extension says something of itself, and what stands in each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType, ModuleType
from typing import Any

from crow.core.errors import ExtensionError
from crow.core.extensions import place_in_source

METHODS = (
    "arrive", "brings_tools", "brought_by", "catch_up", "configure", "forget_session", "hides",
    "init_agent", "init_session", "lifespan", "mentions", "no_such_command", "offers_in",
    "options_from", "rule_applies", "terminal_card", "terminal_status", "terminal_widget",
)  # fmt: skip
TABLES = ("choices", "mcp_servers", "switches", "terminal_keys")
LISTS = ("modes", "warnings")
ABSENT = object()


def _is_list(value: object) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, str)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float)


def _is_table(value: object) -> bool:
    return isinstance(value, Mapping)


def _is_method(value: object) -> bool:
    return value is None or callable(value)


MEMBERS: Mapping[str, tuple[str, Callable[[object], bool]]] = MappingProxyType(
    {"order": ("a number", _is_number)}
    | dict.fromkeys(LISTS, ("a list", _is_list))
    | dict.fromkeys(TABLES, ("a table", _is_table))
    | dict.fromkeys(METHODS, ("a method", _is_method))
)


def refuse(thing: Any, *names: str) -> None:
    """Raise `ExtensionError` where a member, of these or of all, is not what Crow takes it for.

    An option may be called like one of them: whoever reads it would fail, and nothing would start.
    """
    for name in names or MEMBERS:
        kind, fits = MEMBERS[name]
        value = getattr(thing, name, ABSENT)
        if not (value is ABSENT or isinstance(value, ModuleType) or fits(value)):
            cls = thing if isinstance(thing, type) else type(thing)
            whose = thing.__name__ if isinstance(thing, ModuleType) else cls.__name__
            raise ExtensionError(
                f"{whose}.{name} is read by Crow as {kind}, and is {value!r}: "
                f"call it something else{place_in_source(cls)}"
            )
