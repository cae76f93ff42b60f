"""Parameters of a client's messages, read as the protocol's schema has them.

What the schema knows is checked and kept, the rest is left out, and so is what is null.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
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

from crow.acp.jsonrpc import Message, as_object
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
    """Marks the tag of an object of a kind that nobody knows yet: all of it is kept."""

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
        return _marked(inner[0], inner[1:])
    if origin is Literal:
        return _literal(inner)
    if origin is list:
        return _list(reader(inner[0]))
    if origin in (Union, UnionType):
        return _union(inner)
    if origin is dict:
        return _plain(dict, "an object") if inner[1] is Any else _table(reader(inner[1]))
    return lambda value: value


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
                found.append(_below(item, value, number))
            except MismatchError:
                if not sound:
                    raise
        return found

    return read


def _table(of: Read) -> Read:
    def read(value: Any) -> Any:
        if not isinstance(value, dict):
            raise MismatchError("must be an object")
        return {key: _below(of, each, key) for key, each in cast("Message", value).items()}

    return read


def _below(read: Read, value: Any, key: str | int) -> Any:
    try:
        return read(value)
    except MismatchError as error:
        raise error.below(key) from None


def _marked(shape: Any, marks: tuple[object, ...]) -> Read:
    if isinstance(marks[0], Other):
        return _other(marks[0])
    return _list(reader(get_args(shape)[0]), sound=True) if SOUND in marks else reader(shape)


def _other(mark: Other) -> Read:
    def read(value: Any) -> Any:
        if not isinstance(value, str) or value in mark.known:
            raise MismatchError(f"must be text, and not {' or '.join(map(repr, mark.known))}")
        return value

    return read


def _union(shapes: tuple[Any, ...]) -> Read:
    """Reads what fits first; complains as the one whose tag it has, or as the only one without.

    What reads a shape is made when the first one comes: of most of them none ever does.
    """
    tags = {tag: shape for shape in shapes if (tag := _tag(shape))}
    untagged = [shape for shape in shapes if shape not in tags.values()]

    def read(value: Any) -> Any:
        tag = as_object(value).get("type")
        if isinstance(tag, str) and tag in tags:
            return reader(tags[tag])(value)
        if not untagged:
            raise MismatchError(f"must have a 'type': {', '.join(tags)}")
        *others, last = untagged
        for one in others:
            with suppress(MismatchError):
                return reader(one)(value)
        return reader(last)(value)

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
    is_open: bool


def _field(hint: Any) -> _Field:
    required = get_origin(hint) is not NotRequired
    shape = hint if required else get_args(hint)[0]
    marks = get_args(shape)[1:] if get_origin(shape) is Annotated else ()
    is_open = any(isinstance(mark, Other) for mark in marks)
    return _Field(reader(shape), required, LENIENT in marks, is_open)


def _object(shape: Any) -> Read:
    hints = get_type_hints(shape, include_extras=True)
    fields = {key: _field(hint) for key, hint in hints.items()}
    is_open = any(field.is_open for field in fields.values())

    def read(value: Any) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise MismatchError("must be an object")
        given = cast("Message", value)
        found = {**given} if is_open else {}
        for key, field in fields.items():
            found.pop(key, None)
            if given.get(key) is None:
                if field.required:
                    raise MismatchError("is missing", f".{key}")
                continue
            try:
                found[key] = _below(field.read, given[key], key)
            except MismatchError:
                if not field.lenient:
                    raise
        return found

    return read
