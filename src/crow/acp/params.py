"""Parameters of a client's messages, read as the protocol's schema has them.

What the schema knows is checked and kept, the rest is left out, and so is what is null.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from types import UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    NotRequired,
    TypedDict,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from crow.acp.jsonrpc import as_object
from crow.core.support.frozen import frozen

Read = Callable[[Any], Any]
"""Returns what a value of JSON stands for. Raises `MismatchError`."""
LENIENT = "lenient"
"""Marks a field that is left out where it makes no sense, as the protocol wants it."""
SOUND = "sound"
"""Marks a list whose elements are left out where they make no sense."""
WORDS: Mapping[Any, tuple[type | tuple[type, ...], str]] = {
    str: (str, "text"),
    int: (int, "a whole number"),
    float: ((int, float), "a number"),
    bool: (bool, "true or false"),
}


@frozen
class Other:
    """Marks an object whose ``tag`` is none of those that are ``known``; all of it is kept."""

    tag: str
    known: tuple[str, ...]


class Extensible(TypedDict):
    """Something of the protocol with room for what only the two ends know."""

    _meta: NotRequired[Annotated[dict[str, Any], LENIENT]]


class MismatchError(ValueError):
    """A value is not what it should be; ``path`` leads to it."""

    def __init__(self, what: str, path: str = "") -> None:
        super().__init__(what)
        self.path = path

    def below(self, key: str | int) -> MismatchError:
        """The same of what has the value under a key."""
        step = f"[{key}]" if isinstance(key, int) else f".{key}"
        return MismatchError(str(self.args[0]), f"{step}{self.path}")

    def __str__(self) -> str:
        return f"{self.path.removeprefix('.')}: {self.args[0]}" if self.path else str(self.args[0])


@cache
def reader(shape: Any) -> Read:
    """What reads values of a shape: a typed dictionary of the schema, and what its fields are."""
    origin, inner = get_origin(shape), get_args(shape)
    if is_typeddict(shape):
        return _object(shape)
    if shape in WORDS:
        return _plain(*WORDS[shape], strict=shape is not bool)
    if origin is Annotated:
        return _marked(inner[0], inner[1])
    if origin is Literal:
        return _literal(inner)
    if origin is list:
        return _list(reader(inner[0]))
    if origin in (Union, UnionType):
        return _union(inner)
    return _plain(dict, "an object") if origin is dict else lambda value: value


def _plain(kind: type | tuple[type, ...], name: str, *, strict: bool = False) -> Read:
    """Reads what is of a Python type; ``strict`` says that a truth is no number."""

    def read(value: Any) -> Any:
        if not isinstance(value, kind) or (strict and isinstance(value, bool)):
            raise MismatchError(f"must be {name}")
        return value

    return read


def _literal(values: tuple[Any, ...]) -> Read:
    def read(value: Any) -> Any:
        if value not in values:
            raise MismatchError(f"must be {' or '.join(map(repr, values))}")
        return value

    return read


def _list(item: Read, *, sound: bool = False) -> Read:
    def read(values: Any) -> list[Any]:
        if not isinstance(values, list):
            raise MismatchError("must be a list")
        found: list[Any] = []
        for number, value in enumerate(cast("list[Any]", values)):
            try:
                found.append(item(value))
            except MismatchError as error:
                if not sound:
                    raise error.below(number) from None
        return found

    return read


def _marked(shape: Any, mark: object) -> Read:
    if isinstance(mark, Other):
        return _other(mark)
    return _list(reader(get_args(shape)[0]), sound=True) if mark == SOUND else reader(shape)


def _other(mark: Other) -> Read:
    def read(value: Any) -> Any:
        tag = as_object(value).get(mark.tag)
        if not isinstance(tag, str) or tag in mark.known:
            raise MismatchError(f"must be an object with a {mark.tag!r}")
        return value

    return read


def _union(shapes: tuple[Any, ...]) -> Read:
    """Reads what fits first; complains as the one whose tag it has does.

    What reads a shape is made when the first one comes: of most of them none ever does.
    """
    tags = {tag: shape for shape in shapes if (tag := _tag(shape))}

    def read(value: Any) -> Any:
        tag = as_object(value).get("type")
        if isinstance(tag, str) and tag in tags:
            return reader(tags[tag])(value)
        for shape in shapes:
            try:
                return reader(shape)(value)
            except MismatchError:
                continue
        raise MismatchError(f"must have a 'type': {', '.join(tags)}" if tags else "fits nothing")

    return read


def _tag(shape: Any) -> str | None:
    """The ``type`` that a typed dictionary demands."""
    hint: Any = get_type_hints(shape).get("type") if is_typeddict(shape) else None
    return get_args(hint)[0] if get_origin(hint) is Literal else None


@frozen
class _Field:
    read: Read
    required: bool
    lenient: bool
    default: Any = None


def _field(hint: Any) -> _Field:
    required = get_origin(hint) is not NotRequired
    shape = hint if required else get_args(hint)[0]
    lenient = get_origin(shape) is Annotated and LENIENT in get_args(shape)
    only = get_args(shape) if get_origin(shape) is Literal and not required else ()
    return _Field(reader(shape), required, lenient, only[0] if len(only) == 1 else None)


def _object(shape: Any) -> Read:
    hints = get_type_hints(shape, include_extras=True)
    fields = {key: _field(hint) for key, hint in hints.items()}

    def read(value: Any) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise MismatchError("must be an object")
        found: dict[str, Any] = {}
        for key, field in fields.items():
            given: Any = cast("dict[str, Any]", value).get(key, field.default)
            if given is None and field.default is None:
                if field.required:
                    raise MismatchError("is missing", f".{key}")
                continue
            try:
                found[key] = field.read(given)
            except MismatchError as error:
                if not field.lenient:
                    raise error.below(key) from None
        return found

    return read
