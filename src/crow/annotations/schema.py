"""JSON Schema from type annotations, and the way back from JSON to Python values."""

from __future__ import annotations

import collections.abc
import dataclasses
import enum
import inspect
import os
import pathlib
import types
import typing
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from crow.annotations import Arg
from crow.core.support.frozen import frozen

JSONSchema = dict[str, Any]
Reader = Callable[[Any], Any]

_PLAIN: dict[Any, str] = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    type(None): "null",
    None: "null",
}
_ARRAYS: dict[Any, Reader | None] = {
    list: None,
    collections.abc.Sequence: None,
    collections.abc.Iterable: None,
    collections.abc.Collection: None,
    set: set,
    frozenset: frozenset,
    collections.abc.Set: set,
}
_FUNCTION: Any = get_origin(Callable[[], Any])
_OBJECTS = (dict, collections.abc.Mapping, collections.abc.MutableMapping)


@frozen
class Shape:
    """A type as JSON Schema; ``read`` makes a Python value of a JSON value, None if it is one."""

    schema: JSONSchema
    read: Reader | None = None
    name: str | None = None


def shape(annotation: Any, above: tuple[Any, ...] = ()) -> Shape:
    """The shape of a type annotation. Raises ``TypeError`` that says what could stand there."""
    if annotation in (Any, object):
        return Shape({})
    if isinstance(annotation, type | None) and annotation in _PLAIN:
        return Shape({"type": _PLAIN[annotation]})
    if annotation in above:
        raise TypeError(f"{_name(annotation)} contains itself; write it as a pydantic model")
    above = (*above, annotation)
    if get_origin(annotation) is not None:
        return _generic(annotation, above)
    return _named(annotation, above)


def _name(annotation: Any) -> str:
    return getattr(annotation, "__name__", None) or str(annotation)


def _generic(annotation: Any, above: tuple[Any, ...]) -> Shape:
    origin, args = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _annotated(args[0], args[1:], above)
    if origin is Literal:
        return Shape(_choice(list(args)))
    if origin in (Union, types.UnionType):
        return _union(annotation, args, above)
    if origin in (typing.Required, typing.NotRequired):
        return shape(args[0], above)
    if origin is tuple:
        return _tuple(args, above)
    if origin in _ARRAYS:
        return _array(shape(args[0], above), _ARRAYS[origin])
    if origin in _OBJECTS and args[0] is str:
        return _mapping(shape(args[1], above))
    return _rich(annotation)


def _named(annotation: Any, above: tuple[Any, ...]) -> Shape:
    if not inspect.isclass(annotation):
        return _rich(annotation)
    if annotation in _ARRAYS:
        return Shape({"type": "array"}, _ARRAYS[annotation])
    if annotation in _OBJECTS:
        return Shape({"type": "object"})
    if issubclass(annotation, enum.Enum):
        return Shape(_choice([member.value for member in annotation]), annotation)
    if issubclass(annotation, pathlib.PurePath):
        return Shape({"type": "string"}, _path_reader(annotation))
    if typing.is_typeddict(annotation):
        return _typed_dict(annotation, above)
    if dataclasses.is_dataclass(annotation):
        return _dataclass(annotation, above)
    return _rich(annotation)


def _path_reader(cls: type[pathlib.PurePath]) -> Reader:
    """Makes a path of a text, with the user's home in the place of ``~``."""
    if not issubclass(cls, pathlib.Path):
        return cls
    return lambda text: cls(os.path.expanduser(text))


def _annotated(inner: Any, notes: tuple[Any, ...], above: tuple[Any, ...]) -> Shape:
    found = shape(inner, above)
    schema, name = dict(found.schema), found.name
    for note in notes:
        match note:
            case str():
                schema["description"] = note
            case Arg():
                more = {
                    "description": note.description or None,
                    "minimum": note.minimum,
                    "maximum": note.maximum,
                    "exclusiveMinimum": note.above,
                }
                schema |= {key: value for key, value in more.items() if value is not None}
                name = note.name or name
            case _:
                return _rich(Annotated[inner, *notes])
    return Shape(schema, found.read, name)


def _choice(values: list[Any]) -> JSONSchema:
    kinds = {_PLAIN.get(type(value)) for value in values}
    if None in kinds:
        raise TypeError(f"{values} cannot be written in JSON; use strings or numbers")
    kind = kinds.pop()
    return {"enum": values} if kinds else {"type": kind, "enum": values}


def _union(annotation: Any, args: tuple[Any, ...], above: tuple[Any, ...]) -> Shape:
    shapes = _distinct([shape(arg, above) for arg in args])
    if len(shapes) == 1:
        return shapes[0]
    schema: JSONSchema = {"anyOf": [each.schema for each in shapes]}
    if all(set(each.schema) == {"type"} for each in shapes):
        schema = {"type": [each.schema["type"] for each in shapes]}
    readers = [each.read for each in shapes if each.read]
    if not readers:
        return Shape(schema)
    if len(shapes) == 2 and type(None) in args:
        read = readers[0]
        return Shape(schema, lambda value: None if value is None else read(value))
    return _rich(annotation)


def _distinct(shapes: list[Shape]) -> list[Shape]:
    """Without those that look like another one that needs no reader: a path beside text."""
    plain = [each.schema for each in shapes if each.read is None]
    return [each for each in shapes if each.read is None or each.schema not in plain]


def _array(item: Shape, make: Reader | None) -> Shape:
    schema: JSONSchema = {"type": "array", "items": item.schema}
    if make is not None:
        schema["uniqueItems"] = True
    read = item.read
    if read is None:
        return Shape(schema, make)

    def read_all(values: list[Any]) -> Any:
        found = [read(value) for value in values]
        return make(found) if make else found

    return Shape(schema, read_all)


def _tuple(args: tuple[Any, ...], above: tuple[Any, ...]) -> Shape:
    if len(args) == 2 and args[1] is ...:
        found = _array(shape(args[0], above), tuple)
        return Shape({**found.schema, "uniqueItems": False}, found.read)
    items = [shape(arg, above) for arg in args]
    schema = {
        "type": "array",
        "prefixItems": [item.schema for item in items],
        "minItems": len(items),
        "maxItems": len(items),
    }

    def read_each(values: list[Any]) -> Any:
        pairs = zip(items, values, strict=True)
        return tuple(item.read(value) if item.read else value for item, value in pairs)

    return Shape(schema, read_each)


def _mapping(value: Shape) -> Shape:
    schema = {"type": "object", "additionalProperties": value.schema}
    read = value.read
    if read is None:
        return Shape(schema)
    return Shape(schema, lambda values: {key: read(each) for key, each in values.items()})


def _typed_dict(annotation: Any, above: tuple[Any, ...]) -> Shape:
    hints = typing.get_type_hints(annotation, include_extras=True)
    fields = {key: shape(hint, above) for key, hint in hints.items()}
    required = [key for key, hint in hints.items() if _is_required(annotation, key, hint)]
    return _object(fields, required, dict)


def _is_required(annotation: Any, key: str, hint: Any) -> bool:
    """A hint says it even where ``__required_keys__`` was made of annotations in quotes."""
    match get_origin(hint):
        case typing.NotRequired:
            return False
        case typing.Required:
            return True
        case _:
            return key in annotation.__required_keys__


def _dataclass(annotation: Any, above: tuple[Any, ...]) -> Shape:
    hints = typing.get_type_hints(annotation, include_extras=True)
    members = [field for field in dataclasses.fields(annotation) if field.init]
    fields = {field.name: shape(hints[field.name], above) for field in members}
    required = [
        field.name
        for field in members
        if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
    ]
    return _object(fields, required, annotation)


def _object(fields: Mapping[str, Shape], required: list[str], make: Callable[..., Any]) -> Shape:
    schema: JSONSchema = {
        "type": "object",
        "properties": {key: field.schema for key, field in fields.items()},
        "required": required,
        "additionalProperties": False,
    }
    readers = {key: field.read for key, field in fields.items() if field.read}
    if make is dict and not readers:
        return Shape(schema)

    def read(values: dict[str, Any]) -> Any:
        return make(
            **{
                key: readers[key](value) if key in readers else value
                for key, value in values.items()
            }
        )

    return Shape(schema, read)


def _rich(annotation: Any) -> Shape:
    if get_origin(annotation) is _FUNCTION:  # spares the import
        raise TypeError("a function has no JSON form")
    from pydantic import TypeAdapter
    from pydantic.errors import PydanticUserError

    try:
        adapter: TypeAdapter[Any] = TypeAdapter(annotation)
        return Shape(adapter.json_schema(), adapter.validate_python)
    except PydanticUserError as error:
        raise TypeError(
            f"{_name(annotation)} has no JSON form; use str, int, float, bool, list, dict, "
            "Literal, an Enum, a TypedDict, a dataclass or a pydantic model"
        ) from error


def hoist(schema: JSONSchema) -> JSONSchema:
    """The schema with every nested ``$defs`` at its root, where ``#/$defs/...`` points."""
    if "$defs" not in str(schema):
        return schema
    found: JSONSchema = {}
    body = _without_defs(schema, found)
    return {**body, "$defs": found} if found else body


def _without_defs(node: Any, found: JSONSchema) -> Any:
    if isinstance(node, list):
        return [_without_defs(item, found) for item in typing.cast("list[Any]", node)]
    if not isinstance(node, dict):
        return node
    entries = typing.cast("JSONSchema", node)
    defs = entries.get("$defs", {})
    found |= {key: _without_defs(value, found) for key, value in defs.items()}
    return {key: _without_defs(value, found) for key, value in entries.items() if key != "$defs"}
