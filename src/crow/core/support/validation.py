"""Validation of a value against an annotation, all the way down, or against a JSON schema."""

from __future__ import annotations

import dataclasses
import json
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import (
    Any,
    Literal,
    NotRequired,
    Required,
    TypeGuard,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from crow.core.support.frozen import KeptDict, is_frozen

Fits = Callable[[Any], bool]
P = TypeVar("P")
V = TypeVar("V")
NO_SHAPES: Mapping[str, Any] = types.MappingProxyType({})
MEMBERS: dict[object, tuple[tuple[str, bool], ...]] = {}
"""The members of protocols that were asked for, and whether each is called."""
SHOWN = 60
MODULES = r"(?:\w+\.)+(?=\w)"


def check(name: str, value: object, shape: Any) -> None:
    """Raise ``TypeError`` where a value has not the shape, which is a type or a function."""
    if not fits(shape)(value):
        name, value, shape = _inmost(name, value, shape)
        which = f", which has no {lacking[0]}" if (lacking := _lacking(value, shape)) else ""
        raise TypeError(f"{name} must be {_told(shape)}, not {short(value)}{which}")


def short(value: object) -> str:
    """A value as a part of a sentence."""
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001 - somebody else's code
        text = ""
    if not text or type(value).__repr__ is object.__repr__:
        return f"an instance of {type(value).__qualname__}"
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."


def _inmost(name: str, value: Any, shape: Any) -> tuple[str, Any, Any]:
    """The innermost part that is wrong, by name; the whole where that cannot be told."""
    if get_origin(shape) in (Union, types.UnionType):
        kinds = [each for each in get_args(shape) if _is_kind(value, each)]
        return _inmost(name, value, kinds[0]) if len(kinds) == 1 else (name, value, shape)
    for part, each, inner in _parts(name, value, shape):
        if not fits(inner)(each):
            return _inmost(part, each, inner)
    return name, value, shape


def _is_kind(value: Any, shape: Any) -> bool:
    if getattr(shape, "_is_protocol", False):
        return fits(shape)(value)
    kind = dict if is_typeddict(shape) else get_origin(shape) or shape
    kind = (list, tuple) if kind is Sequence else kind
    return isinstance(kind, type | tuple) and isinstance(value, cast(type, kind))


def _parts(name: str, value: Any, shape: Any) -> Iterator[tuple[str, Any, Any]]:
    """What a value is made of: the name, the value and the shape of each part."""
    if not _is_kind(value, shape):
        return
    if is_typeddict(shape):
        hints = get_type_hints(shape)
        yield from ((f"{name}[{k!r}]", v, hints.get(k, json_value)) for k, v in value.items())
    elif dataclasses.is_dataclass(shape):
        for field, hint in get_type_hints(shape).items():
            yield f"{name}.{field}", getattr(value, field), hint
    elif inner := get_args(shape):
        is_map = isinstance(value, Mapping)
        pairs: Iterable[Any] = cast(Any, value.items() if is_map else enumerate(value))
        yield from ((f"{name}[{pair[0]!r}]", pair[1], inner[is_map]) for pair in pairs)


def refuse_no_lists(**options: object) -> None:
    """Raise ``TypeError`` for what is no list, also for texts and tables, which would be taken."""
    for option, given in options.items():
        if isinstance(given, str) or not isinstance(given, Iterable):
            raise TypeError(f"{option} takes a list: [{given!r}]")
        if isinstance(given, Mapping):
            hint = f"what is set stands in settings={{{option!r}: {{...}}}}"
            raise TypeError(f"{option} takes a list: {hint}")


class Checked(dict[str, V]):
    """An object whose values have a shape, whoever puts them there; ``shapes`` are single keys'."""

    __slots__ = ("name", "shape", "shapes")

    def __init__(
        self, name: str, values: Mapping[str, V], shape: Any, shapes: Mapping[str, Any] = NO_SHAPES
    ) -> None:
        self.name = name
        self.shape = shape
        self.shapes = shapes
        super().__init__()
        if values:
            self.update(values)

    def __setitem__(self, key: str, value: V) -> None:
        check(f"a key of {self.name}", key, str)
        check(f"{self.name}[{key!r}]", value, self.shapes.get(key, self.shape))
        super().__setitem__(key, value)

    def update(self, *others: Any, **more: V) -> None:
        """Put several values."""
        for key, value in dict[str, V](*others, **more).items():
            self[key] = value

    def setdefault(self, key: str, default: Any = None) -> Any:
        """The value of a key, put there if need be."""
        if key not in self:
            self[key] = default
        return self[key]

    def __ior__(self, other: Any) -> Any:
        self.update(other)
        return self

    def __reduce__(self) -> Any:
        return dict, (dict(self),)


def _told(shape: Any) -> str:
    if isinstance(shape, types.FunctionType):
        return str(shape.__doc__)
    if isinstance(shape, type) and get_origin(shape) is None:
        return shape.__name__
    import re

    return re.sub(MODULES, "", str(shape))


def implements(thing: object, protocol: Callable[..., P]) -> TypeGuard[P]:
    """True where an object has all members of a protocol, whatever it is an instance of.

    A method that is None is none, and a property that raises ``AttributeError`` is none either;
    what else it raises is raised. ``isinstance`` is slow at that before Python 3.12, and since then
    does not see what an object has from another one by ``__getattr__``, as one has that stands for
    another. (For type checkers a protocol is what makes its objects: as a ``type`` mypy takes
    concrete classes alone.)
    """
    for name, is_called in MEMBERS.get(protocol) or _asked(protocol):
        if is_called:
            if getattr(thing, name, None) is None:
                return False
        elif not hasattr(thing, name):
            return False
    return True


def implementing(things: Iterable[object], protocol: Callable[..., P]) -> list[P]:
    """Those of some objects that have all members of a protocol; see `implements`."""
    [(name, is_called), *others] = MEMBERS.get(protocol) or _asked(protocol)
    if is_called:
        found: list[Any] = [each for each in things if getattr(each, name, None) is not None]
    else:
        found = [each for each in things if hasattr(each, name)]
    return [each for each in found if implements(each, protocol)] if others else found


def first_implementing(things: Iterable[object], protocol: Callable[..., P]) -> P | None:
    """The first object that has all members of a protocol; None where none has."""
    return next(iter(implementing(things, protocol)), None)


def members_of(protocol: Any) -> tuple[str, ...]:
    """The names that a protocol asks for, those of the protocols that it extends among them."""
    return tuple([name for name, _ in MEMBERS.get(protocol) or _asked(protocol)])


def _asked(protocol: Any) -> tuple[tuple[str, bool], ...]:
    names: dict[str, bool] = {}
    for each in cast("type[object]", protocol).__mro__:
        own = vars(each)
        if "_is_protocol" in own:
            for name in (*own, *own.get("__annotations__", ())):
                names.setdefault(name, isinstance(own.get(name), types.FunctionType))
    known = MEMBERS[protocol] = tuple([each for each in names.items() if each[0][0] != "_"])
    return known


def _lacking(value: object, shape: Any) -> list[str]:
    """What a protocol asks for that a value has not, where any of it is there."""
    if not getattr(shape, "_is_protocol", False):
        return []
    lacking = [name for name in members_of(shape) if not hasattr(value, name)]
    return lacking if len(lacking) < len(members_of(shape)) else []


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
    if shape is Any or not isinstance(shape, type):
        return lambda value: True
    if getattr(shape, "_is_protocol", False):
        members = members_of(shape)
        return lambda value: all(hasattr(value, name) for name in members)
    if is_typeddict(shape):
        return _typed_dict(shape)
    if is_frozen(shape):
        return _dataclass(shape)
    if shape is float:
        return lambda value: isinstance(value, int | float)
    return lambda value: isinstance(value, shape)


def _generic(origin: Any, inner: tuple[Any, ...]) -> Fits:
    if origin is Literal:
        return lambda value: isinstance(value, str) and value in inner
    if origin in (Union, types.UnionType):
        return lambda value: bool([each for each in inner if fits(each)(value)])
    if origin is dict or origin is Mapping:
        key, each = map(fits, inner)
        return lambda value: (
            isinstance(value, Mapping)
            and all(key(k) and each(v) for k, v in cast("Mapping[Any, Any]", value).items())
        )
    if origin is Callable:
        return callable
    wanted = (list, tuple) if origin is Sequence else origin
    return _list(wanted, inner[0])


def _list(wanted: Any, shape: Any) -> Fits:
    def all_fit(value: Any) -> bool:
        if not isinstance(value, wanted):
            return False
        unknown = _unknown(value, shape)
        return not unknown or all(map(fits(shape), unknown))

    return all_fit


def _unknown(values: list[Any], shape: Any) -> list[Any]:
    """Those that were not found to fit before; thousands are asked before every request."""
    return [each for each in values if type(each) is not KeptDict or each.fits is not shape]


def _typed_dict(shape: Any) -> Fits:
    hints, required = dict[str, Fits](), set[str]()
    for key, hint in get_type_hints(shape, include_extras=True).items():
        said = get_origin(hint)
        if said is Required or (said is not NotRequired and shape.__total__):
            required.add(key)  # the class itself misreads annotations that are kept as text
        hints[key] = fits(get_args(hint)[0] if said in (Required, NotRequired) else hint)
    other, look_up = json_value, hints.get

    def typed(value: Any) -> bool:
        whole: Any = value  # a cast takes its time, and so does each step of a generator
        return (
            isinstance(value, dict)
            and required <= whole.keys()
            and not [
                k for k, v in whole.items() if not isinstance(k, str) or not look_up(k, other)(v)
            ]
        )

    def known(value: Any) -> bool:
        if not isinstance(value, KeptDict):
            return typed(value)
        if value.fits is not shape:
            if not typed(value):
                return False
            value.fits = shape
        return True

    return known


def _dataclass(shape: type) -> Fits:
    hints = [(name, fits(hint)) for name, hint in get_type_hints(shape).items()]
    return lambda value: (
        isinstance(value, shape)
        and not [name for name, good in hints if not good(getattr(value, name))]
    )


TYPES: dict[str, type | tuple[type, ...]] = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "array": list,
    "object": dict,
    "null": type(None),
}


def mismatch(schema: dict[str, Any], args: dict[str, Any]) -> str | None:
    """What is plainly wrong with arguments: a key that is missing or of the wrong type."""
    properties: dict[str, Any] = schema.get("properties", {})
    for key in schema.get("required", ()):
        if key not in args:
            return f"{key!r} is missing"
    for key, value in args.items():
        if key not in properties:
            if schema.get("additionalProperties", True) is False:
                return f"there is no {key!r}; there are: {', '.join(properties)}"
        elif not has_type(properties[key], value):
            return f"{key!r} must be {properties[key]['type']}, not {json.dumps(value)[:60]}"
    return None


def has_type(schema: dict[str, Any] | bool, value: Any) -> bool:
    """True where a value has the plain type that a schema names, or the schema names none."""
    named: Any = schema.get("type") if isinstance(schema, dict) else None
    names: list[str] = [named] if isinstance(named, str) else named or []
    if isinstance(value, bool):
        return not names or "boolean" in names
    return not names or any(isinstance(value, TYPES.get(name, object)) for name in names)
