"""The tools that a request offers, whatever its protocol, and a call of the shell among them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

SHELL = re.compile(r"bash|shell|exec|terminal|command|^cmd$", re.IGNORECASE)
OTHER = re.compile(r"output|kill|stop|stdin|list|skill|send|task", re.IGNORECASE)
COMMANDS = ("command", "cmd", "script", "commands", "shell_command", "input")


@dataclass(frozen=True)
class Call:
    """A call of a tool."""

    id: str
    name: str
    args: dict[str, Any]


def offered(body: Any) -> list[dict[str, Any]]:
    """The functions of a request: ``name`` and ``schema``."""
    found: list[dict[str, Any]] = []
    for tool in body.get("tools") or ():
        for row in tool.get("functionDeclarations") or [tool.get("function") or tool]:
            if "name" in row:
                schema = next(
                    (
                        row[key]
                        for key in ("input_schema", "parametersJsonSchema", "parameters")
                        if row.get(key)
                    ),
                    {},
                )
                found.append({"name": row["name"], "schema": schema})
    return found


def shell_call(tools: list[dict[str, Any]], command: str, number: int) -> Call | None:
    """A call that runs a command, with all that the tool's schema requires."""
    names = [
        tool for tool in tools if SHELL.search(tool["name"]) and not OTHER.search(tool["name"])
    ]
    if not names:
        return None
    tool = names[0]
    properties = tool["schema"].get("properties", {})
    wanted = list(tool["schema"].get("required", ()))
    if not set(COMMANDS) & set(wanted):
        wanted += [name for name in COMMANDS if name in properties][:1]
    args = {name: value_for(name, properties.get(name, {}), command) for name in wanted}
    return Call(f"call_{number:06}", tool["name"], args)


def value_for(name: str, schema: dict[str, Any], command: str) -> Any:
    """A value that a parameter takes."""
    kind = schema.get("type") or "string"
    kind = (kind[0] if isinstance(kind, list) else kind).lower()
    if name in COMMANDS:
        return ["bash", "-c", command] if kind == "array" else command
    if schema.get("enum"):
        return schema["enum"][0]
    made: dict[str, Any] = {"boolean": False, "array": [], "object": {}, "integer": 10_000}
    return made.get(kind, 10_000 if kind == "number" else "Say something")
