"""Tools in the words of the Messages protocol."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from crow.core.messages import ToolSpec
from crow.llm.http.text import is_array, is_object

CHOICES = ("anyOf", "oneOf", "allOf")


def tools_of(tools: Iterable[ToolSpec]) -> list[dict[str, Any]]:
    """The tools as a request has them."""
    return [
        {
            "name": function["name"],
            "description": function["description"],
            "input_schema": schema_of(function["parameters"]),
        }
        for function in (tool["function"] for tool in tools)
    ]


def schema_of(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema of an object without alternatives at its root, which are refused there.

    What one of them has may be given; what all of them want is wanted.
    """
    if not any(name in schema for name in CHOICES):
        return schema if schema.get("type") == "object" else {**schema, "type": "object"}
    plain = {name: value for name, value in schema.items() if name not in CHOICES}
    properties: dict[str, Any] = dict(schema.get("properties") or {})
    required: list[str] = list(schema.get("required") or ())
    for name in CHOICES:
        branches = [each for each in _list(schema.get(name)) if is_object(each)]
        wanted = [set(_list(each.get("required"))) for each in branches]
        for each in branches:
            properties = {**(each.get("properties") or {}), **properties}
        together = set[str].union if name == "allOf" else set[str].intersection
        required += sorted(together(*wanted) - set(required)) if wanted else []
    return {**plain, "type": "object", "properties": properties, "required": required}


def _list(value: Any) -> list[Any]:
    return value if is_array(value) else []


def choice_of(choice: Any, *, parallel: bool) -> dict[str, Any] | None:
    """A choice of tools, in the words of either protocol, as this one has it."""
    match choice:
        case "auto" | "none":
            said: dict[str, Any] | None = {"type": choice}
        case "required" | "any":
            said = {"type": "any"}
        case {"type": "function", "function": {"name": str(name)}}:
            said = {"type": "tool", "name": name}
        case {"type": str()}:
            said = dict(choice)
        case _:
            said = None if parallel else {"type": "auto"}
    if said is None or parallel or said["type"] == "none":
        return said
    return {**said, "disable_parallel_tool_use": True}
