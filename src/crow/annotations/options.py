"""The options of an extension: the parameters of its class, as JSON Schema and in words."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import json
import textwrap
import typing
from collections.abc import Iterator, Mapping
from enum import Enum
from functools import lru_cache
from itertools import pairwise
from pathlib import PurePath
from typing import Any

from crow.annotations.docstring import parameter_notes, purpose
from crow.annotations.schema import JSONSchema, Reader, hoist, shape
from crow.core.support.frozen import frozen


@frozen
class Options:
    """The options of an extension's class.

    ``node`` is their schema; ``readers`` make Python values of JSON's, by name.
    """

    node: JSONSchema
    readers: Mapping[str, Reader]

    def read(self, table: Mapping[str, Any]) -> dict[str, Any]:
        """Arguments of a table that fits. Raises ``ValueError`` where a type says more."""
        readers = self.readers
        return {key: readers[key](each) if key in readers else each for key, each in table.items()}


@lru_cache(maxsize=64)
def options_of(cls: type[Any]) -> Options:
    """The options of a class, or of the one that its attribute ``options`` names.

    Each parameter that has a JSON form is one; what has no type takes anything.
    """
    cls = _described_by(cls)
    hints = _hints(cls)
    properties: dict[str, JSONSchema] = {}
    readers: dict[str, Reader] = {}
    open_ended = False
    for name, parameter in inspect.signature(cls).parameters.items():
        if parameter.kind is parameter.VAR_KEYWORD:
            open_ended = True
        if name == "agent" or parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
            continue
        try:
            found = shape(hints.get(name, Any))
        except TypeError:
            continue
        properties[name] = _with_default(found.schema, _default(cls, parameter))
        if found.read is not None:
            readers[name] = found.read
    node = {"type": "object", "properties": properties, "additionalProperties": open_ended}
    return Options(hoist(node), readers)


def documented(cls: type[Any]) -> JSONSchema:
    """The schema of a class's options with what its docstrings say; that takes its source."""
    node = options_of(cls).node
    said = _notes(_described_by(cls))
    notes = {name: {"description": _plain(text)} for name, text in said}
    known = node["properties"].items()
    node = {**node, "properties": {name: {**notes.get(name, {}), **each} for name, each in known}}
    text = purpose(cls.__doc__)
    return {**node, "description": _plain(text)} if text else node


def _described_by(cls: type[Any]) -> type[Any]:
    named = getattr(cls, "options", None)
    return named if inspect.isclass(named) else cls


def _hints(cls: type[Any]) -> dict[str, Any]:
    """Resolved annotations; a name that is imported for type checkers only means anything."""
    made: Any = cls if dataclasses.is_dataclass(cls) else cls.__init__
    unknown: dict[str, Any] = {}
    while True:
        try:
            return typing.get_type_hints(made, localns=unknown, include_extras=True)
        except NameError as error:
            if not error.name or error.name in unknown:
                return {}
            unknown[error.name] = Any
        except (TypeError, AttributeError):
            return {}


def _with_default(schema: JSONSchema, said: JSONSchema) -> JSONSchema:
    """A schema with the default of its value: of a table's entries, each with its own."""
    entries: dict[str, JSONSchema] | None = schema.get("properties")
    if entries is None or not isinstance(said.get("default"), dict):
        return {**schema, **said}
    given: dict[str, Any] = said["default"]
    each = {
        name: _with_default(node, {"default": given[name]} if name in given else {})
        for name, node in entries.items()
    }
    return {**schema, "properties": each}


def _default(cls: type[Any], parameter: inspect.Parameter) -> JSONSchema:
    """The default of a parameter, where it can be written in JSON."""
    fields = {field.name: field for field in _fields(cls)}
    default = parameter.default
    if parameter.name in fields:
        make = fields[parameter.name].default_factory
        default = make() if make is not dataclasses.MISSING else default
    if default is parameter.empty:
        return {}
    try:
        return {"default": json.loads(json.dumps(default, default=_written))}
    except (TypeError, ValueError):
        return {}


def _written(value: Any) -> Any:
    """What stands in JSON for a value that is none. Raises ``TypeError`` where nothing does."""
    match value:
        case PurePath():
            return str(value)
        case Enum():
            return value.value
        case _ if dataclasses.is_dataclass(value) and not isinstance(value, type):
            return dataclasses.asdict(value)
        case set() | frozenset():
            return sorted(typing.cast("set[Any]", value))
        case _:
            raise TypeError(f"{type(value).__name__} has no form in JSON")


def _fields(cls: type[Any]) -> tuple[dataclasses.Field[Any], ...]:
    return dataclasses.fields(cls) if dataclasses.is_dataclass(cls) else ()


def _notes(cls: type[Any]) -> Iterator[tuple[str, str]]:
    """Descriptions by parameter: of docstrings, and of what stands below a field."""
    for each in reversed(cls.__mro__[:-1]):
        yield from parameter_notes(each.__doc__).items()
        yield from parameter_notes(vars(each).get("__init__", each).__doc__).items()
        if dataclasses.is_dataclass(each):
            yield from _below(each)


def _below(cls: type[Any]) -> Iterator[tuple[str, str]]:
    """The text that stands below a field; none where there is no source."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(cls)))
    except (OSError, TypeError, SyntaxError):
        return
    body = typing.cast("ast.ClassDef", tree.body[0]).body
    for field, text in pairwise(body):
        match field, text:
            case ast.AnnAssign(target=ast.Name(name)), ast.Expr(ast.Constant(str(said))):
                yield name, " ".join(said.split())
            case _:
                pass


def _plain(text: str) -> str:
    """A docstring's text for who does not know its marks."""
    return text.replace("``", "`")
