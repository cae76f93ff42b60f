"""A tool's input schema, judged before any model sees it; nothing is fetched for it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from jsonschema_rs import Validator

LARGEST = 64 * 1024
DEEPEST = 32
TOP = ("enum", "const", "$ref")
BRANCHES = ("allOf", "anyOf", "oneOf")
UNTOLD = frozenset({*BRANCHES, "not", "if", "then", "else", "$schema", "$id"})
"""What no endpoint of a model takes at the top of a schema; arguments are held against it here."""
_KEY = re.compile(r"[A-Za-z0-9_.-]{1,64}")


def fault(schema: object) -> str | None:
    """Why models or endpoints would not take a schema; None where nothing is wrong with it."""
    if not isinstance(schema, dict):
        return "its input schema is no object"
    whole = cast("dict[str, Any]", schema)
    wrong = _fault_of_size(whole) or _fault_at_top(whole) or _fault_of_references(whole)
    return wrong or _fault_of_meaning(whole)


def model_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema as models are told of it; what only branches of it know of may be left out."""
    shown = {key: value for key, value in schema.items() if key not in UNTOLD}
    properties: dict[str, Any] = {}
    for each in (each for key in BRANCHES for each in _tables(schema.get(key))):
        for more in _tables([each.get("properties")]):
            properties |= more
    for own in _tables([schema.get("properties", {})]) if properties else ():
        shown["properties"] = {**properties, **own}
    return shown


def _tables(value: object) -> Iterator[dict[str, Any]]:
    for each in cast("list[object]", value) if isinstance(value, list) else ():
        if isinstance(each, dict):
            yield cast("dict[str, Any]", each)


def _fault_of_size(schema: dict[str, Any]) -> str | None:
    try:
        size = len(json.dumps(schema))
    except (RecursionError, ValueError):
        return "its input schema is no JSON"
    if size > LARGEST:
        return f"its input schema has {size} characters; {LARGEST} are allowed"
    if _depth(schema) > DEEPEST:
        return f"its input schema is nested more than {DEEPEST} deep"
    return None


def _depth(value: object) -> int:
    level: list[Any] = [value]
    depth = 0
    while level and depth <= DEEPEST:
        depth += 1
        level = [inner for outer in level for inner in _inside(outer)]
    return depth


def _inside(value: object) -> list[Any]:
    if isinstance(value, dict):
        return list(cast("dict[str, Any]", value).values())
    return cast("list[Any]", value) if isinstance(value, list) else []


def _fault_at_top(schema: dict[str, Any]) -> str | None:
    if schema.get("type") != "object":
        return f"its input schema is of type {schema.get('type')!r}, not 'object'"
    found = [key for key in TOP if key in schema]
    if found:
        return f"its input schema has {found[0]!r} at its top"
    properties = model_schema(schema).get("properties", {})
    if not isinstance(properties, dict):
        return "'properties' of its input schema is no object"
    odd = [key for key in cast("dict[str, Any]", properties) if not _KEY.fullmatch(key)]
    return f"its argument {odd[0][:80]!r} has no usable name" if odd else None


def _fault_of_references(schema: dict[str, Any]) -> str | None:
    """References must lead to another place of the same schema, and never back."""
    try:
        _follow(schema, schema, (), set())
    except ValueError as error:
        return str(error)
    return None


def _follow(root: dict[str, Any], value: object, path: tuple[str, ...], done: set[str]) -> None:
    for reference in _references(value):
        if reference in path:
            raise ValueError(f"its input schema is recursive ({reference[:80]})")
        if len(path) > DEEPEST:
            raise ValueError(f"its input schema refers more than {DEEPEST} deep")
        if reference not in done:
            _follow(root, _target(root, reference), (*path, reference), done)
            done.add(reference)


def _references(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        told = cast("dict[str, Any]", value)
        for key in ("$ref", "$dynamicRef", "$recursiveRef"):
            found = told.get(key)
            if isinstance(found, str):
                yield found
    for inner in _inside(cast(object, value)):
        yield from _references(inner)


def _target(root: dict[str, Any], reference: str) -> object:
    if not reference.startswith("#/") and reference != "#":
        raise ValueError(f"its input schema refers to {reference[:80]!r}, outside of itself")
    value: Any = root
    for step in reference.split("/")[1:]:
        key = step.replace("~1", "/").replace("~0", "~")
        if not isinstance(value, dict) or key not in value:
            raise ValueError(f"its input schema refers to {reference[:80]!r}, which is not there")
        value = cast("dict[str, Any]", value)[key]
    return cast(object, value)


def _fault_of_meaning(schema: dict[str, Any]) -> str | None:
    try:
        compiled(schema)
    except ValueError as error:
        return f"its input schema is invalid: {' '.join(str(error).split())[:200]}"
    return None


def compiled(schema: dict[str, Any], *, formats: bool = False) -> Validator:
    """A validator that fetches nothing. Raises ``ValueError`` for a schema that is none.

    ``formats`` of texts are held against what they name, or no more than told.
    """
    import jsonschema_rs

    return jsonschema_rs.validator_for(schema, offline=True, validate_formats=formats or None)


def mismatch(validator: Validator, args: dict[str, Any]) -> str | None:
    """What is wrong with arguments, in a line; None where they fit."""
    try:
        problems = [
            f"{'.'.join(map(str, error.instance_path)) or 'arguments'}: {error.message[:200]}"
            for error in validator.iter_errors(args)
        ]
    except ValueError as error:
        return f"the arguments are not JSON: {error}"
    return "; ".join(problems[:3]) or None
