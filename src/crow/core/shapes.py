"""Whether a value is what an annotation says, all the way down; annotations are the only rules."""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import (
    Any,
    Literal,
    NotRequired,
    Required,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

Fits = Callable[[Any], bool]
SHOWN = 60


def check(name: str, value: object, shape: Any) -> None:
    """Raise ``TypeError`` where a value has not the shape, which is a type or a function."""
    if not fits(shape)(value):
        raise TypeError(f"{name} must be {_told(shape)}, not {_short(value)}")


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."


def _told(shape: Any) -> str:
    if isinstance(shape, types.FunctionType):
        return str(shape.__doc__)
    return shape.__name__ if isinstance(shape, type) else str(shape).replace("typing.", "")


def json_value(value: Any) -> bool:
    """JSON"""  # noqa: D400 - a noun for sentences
    if isinstance(value, dict):
        items = cast("dict[Any, Any]", value).items()
        return all(isinstance(key, str) and json_value(each) for key, each in items)
    if isinstance(value, list | tuple):
        return all(map(json_value, cast("list[Any]", value)))
    return value is None or isinstance(value, str | int | float)


def json_object(value: Any) -> bool:
    """an object of JSON"""  # noqa: D400, D403 - a noun for sentences
    return isinstance(value, dict) and json_value(value)


def is_event(value: Any) -> bool:
    """an event"""  # noqa: D400, D403 - a noun for sentences
    return dataclasses.is_dataclass(value) and fits(type(value))(value)


@cache
def fits(shape: Any) -> Fits:
    """What tells whether a value has a shape: a plain type, a dataclass, a TypedDict, a union."""
    origin, inner = get_origin(shape), get_args(shape)
    if origin is not None:
        return _generic(origin, inner)
    if isinstance(shape, types.FunctionType):
        return shape
    if shape is Any or not isinstance(shape, type) or getattr(shape, "_is_protocol", False):
        return lambda value: True
    if is_typeddict(shape):
        return _typed_dict(shape)
    if dataclasses.is_dataclass(shape) and getattr(shape, "__dataclass_params__").frozen:  # noqa: B009
        return _dataclass(shape)
    if shape is float:
        return lambda value: isinstance(value, int | float)
    return lambda value: isinstance(value, cast(type, shape))


def _generic(origin: Any, inner: tuple[Any, ...]) -> Fits:
    if origin is Literal:
        return lambda value: isinstance(value, str) and value in inner
    if origin in (Union, types.UnionType):
        anything = [fits(each) for each in inner]
        return lambda value: any(one(value) for one in anything)
    if origin is dict or origin is Mapping:
        key, each = map(fits, inner)
        return lambda value: (
            isinstance(value, Mapping)
            and all(key(k) and each(v) for k, v in cast("Mapping[Any, Any]", value).items())
        )
    if origin is Callable:
        return callable
    wanted = (list, tuple) if origin is Sequence else origin
    item = fits(inner[0])
    return lambda value: isinstance(value, wanted) and all(map(item, cast("list[Any]", value)))


def _typed_dict(shape: Any) -> Fits:
    hints = {key: fits(hint) for key, hint in get_type_hints(shape).items()}
    required = frozenset(_required(shape))
    other = json_value

    def typed(value: Any) -> bool:
        return (
            isinstance(value, dict)
            and required <= cast("dict[str, Any]", value).keys()
            and all(hints.get(k, other)(v) for k, v in cast("dict[str, Any]", value).items())
            and all(isinstance(k, str) for k in cast("dict[Any, Any]", value))
        )

    return typed


def _required(shape: Any) -> Iterator[str]:
    """The keys that must be there; the class itself misreads annotations that are kept as text."""
    for key, hint in get_type_hints(shape, include_extras=True).items():
        said = get_origin(hint)
        if said is Required or (said is not NotRequired and shape.__total__):
            yield key


def _dataclass(shape: type) -> Fits:
    hints = [(name, fits(hint)) for name, hint in get_type_hints(shape).items()]
    return lambda value: (
        isinstance(value, shape) and all(good(getattr(value, name)) for name, good in hints)
    )
