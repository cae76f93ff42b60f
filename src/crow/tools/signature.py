"""A function's signature as what a tool takes: its parameters, and their JSON Schema."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable
from typing import Any, TypeAlias

from crow.annotations.docstring import parameter_notes
from crow.annotations.schema import Reader, hoist, shape
from crow.core.support.frozen import frozen

Filled: TypeAlias = "tuple[str, str, Reader | None]"
"""A parameter of a function, the argument that fills it, and what makes a Python value of that."""

_CONTEXTS = ("ToolEnvironment", "ToolContext")


@frozen
class Parameter:
    """A parameter that the model fills."""

    name: str
    key: str
    schema: dict[str, Any]
    read: Reader | None
    required: bool


def signature_of(
    function: Callable[..., Any], scope: dict[str, Any]
) -> tuple[dict[str, Any], list[Filled], str | None]:
    """What the model is told, what it fills, and the name of what receives the context."""
    hints = _hints(function, scope)
    notes = parameter_notes(function.__doc__)
    parameters: list[Parameter] = []
    context: str | None = None
    for name, parameter in inspect.signature(function).parameters.items():
        if name == "ctx" or _is_context(hints.get(name)):
            context = name
        else:
            parameters.append(_parameter(function, parameter, hints, notes))
    filled: list[Filled] = [(each.name, each.key, each.read) for each in parameters]
    return _schema(parameters), filled, context


def _is_context(hint: Any) -> bool:
    return getattr(hint, "__name__", "") in _CONTEXTS and isinstance(hint, type)


def _parameter(
    function: Callable[..., Any],
    parameter: inspect.Parameter,
    hints: dict[str, Any],
    notes: dict[str, str],
) -> Parameter:
    where = f"tool {getattr(function, '__name__', function)!s}: parameter {parameter.name!r}"
    if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
        raise TypeError(f"{where} cannot be given by name; write an ordinary parameter")
    if parameter.name not in hints:
        raise TypeError(f"{where} has no type; annotate it, for example {parameter.name}: str")
    try:
        found = shape(hints[parameter.name])
    except TypeError as error:
        raise TypeError(f"{where}: {error}") from error
    schema = dict(found.schema)
    if parameter.name in notes:
        schema.setdefault("description", notes[parameter.name])
    required = parameter.default is parameter.empty
    if not required and parameter.default and isinstance(parameter.default, str | int | float):
        schema["default"] = parameter.default
    read = found.read or (int if schema.get("type") == "integer" else None)  # 2.0 is one in JSON
    return Parameter(parameter.name, found.name or parameter.name, schema, read, required)


def _hints(function: Callable[..., Any], scope: dict[str, Any]) -> dict[str, Any]:
    """Resolved annotations; a context may be imported for type checkers only."""
    scope = dict(scope)
    while True:
        try:
            return typing.get_type_hints(function, localns=scope, include_extras=True)
        except NameError as error:
            if not error.name or error.name in scope:
                raise
            if not _only_contexts_use(error.name, function):
                raise TypeError(
                    f"tool {function.__name__}: the annotation {error.name} is not known where the "
                    "function is defined; import it outside of TYPE_CHECKING"
                ) from error
            scope[error.name] = type(error.name, (), {})


def _only_contexts_use(missing: str, function: Callable[..., Any]) -> bool:
    """True where a name that cannot be resolved stands at nothing that the model fills."""
    if missing in _CONTEXTS:
        return True
    users = [name for name, note in function.__annotations__.items() if missing in str(note)]
    return set(users) <= {"ctx", "return"}


def _schema(parameters: list[Parameter]) -> dict[str, Any]:
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {each.key: each.schema for each in parameters},
        "additionalProperties": False,
    }
    required = [each.key for each in parameters if each.required]
    if required:
        schema["required"] = required
    return hoist(schema)
