"""Tools as a Gemini model gets them: names of its characters, JSON Schema that it follows."""

from __future__ import annotations

import re
from hashlib import sha256
from typing import Any

from crow.core.messages import ToolSpec
from crow.llm.http.text import is_array, is_object

LONGEST = 64
FIT = re.compile(r"[A-Za-z_][A-Za-z0-9_.:-]{0,63}")
UNFIT = re.compile(r"[^A-Za-z0-9_-]")
NAMED = frozenset({"properties", "patternProperties", "$defs", "definitions"})
NESTED = frozenset(
    {"items", "additionalProperties", "prefixItems", "anyOf", "oneOf", "allOf", "not"}
)


def name_for(name: str) -> str:
    """The name under which a tool is declared: its own where that can be."""
    if FIT.fullmatch(name):
        return name
    mark = sha256(name.encode("utf-8", "replace")).hexdigest()[:8]
    return f"_{UNFIT.sub('_', name)[: LONGEST - 10]}_{mark}"


def declarations(tools: list[ToolSpec]) -> list[Any]:
    """All tools as one ``Tool``."""
    return [{"functionDeclarations": [_declaration(each) for each in tools]}]


def _declaration(tool: ToolSpec) -> dict[str, Any]:
    function = tool["function"]
    declared: dict[str, Any] = {
        "name": name_for(function["name"]),
        "description": function.get("description", ""),
    }
    parameters = function.get("parameters") or {}
    if set(parameters) - {"type", "properties", "required", "$schema", "additionalProperties"} or (
        parameters.get("properties")
    ):
        declared["parametersJsonSchema"] = schema_for(parameters)
    return declared


def schema_for(schema: Any) -> Any:
    """JSON Schema with ``enum`` in the place of ``const``, which is not looked at."""
    if is_array(schema):
        return [schema_for(each) for each in schema]
    if not is_object(schema):
        return schema
    return dict(_keyword(key, value) for key, value in schema.items() if key != "$schema")


def _keyword(key: str, value: Any) -> tuple[str, Any]:
    if key == "const":
        return "enum", [value]
    if key in NAMED and is_object(value):
        return key, {name: schema_for(each) for name, each in value.items()}
    return key, schema_for(value) if key in NESTED else value
