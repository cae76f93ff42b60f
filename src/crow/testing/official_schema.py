"""The protocol's official JSON schema, held against an agent's messages, where somebody has it.

The variable ``CROW_ACP_SCHEMA`` names the folder: ``schema/v1`` of the npm package
``@agentclientprotocol/sdk``; the draft's is beside it.
"""

from __future__ import annotations

import json
import os
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jsonschema_rs import Draft202012Validator

VARIABLE = "CROW_ACP_SCHEMA"
FILES = ("schema.json", "schema.unstable.json")
"""What is stable, and all that there is; a method is looked for in this order."""

Message = dict[str, Any]


def fault(message: Message, method: str | None, version: int = 1) -> str | None:
    """What is wrong with an agent's message; ``method`` is the one that a response is for."""
    named = os.environ.get(VARIABLE)
    if not named:
        return None
    folder = str(Path(named).with_name(f"v{version}"))
    if "method" in message:
        return _fault(folder, message["method"], "client", message.get("params"))
    if "error" in message:
        return _complaint(validator(folder, FILES[0], "Error"), message["error"])
    return _fault(folder, method or "", "response", message.get("result"))


def _fault(folder: str, method: str, side: str, value: Any) -> str | None:
    """The complaint of the stable part, unless all that there is has none."""
    found = definition(folder, method, side)
    if found is None:
        return None
    complaint = _complaint(validator(folder, *found), value)
    whole = validator(folder, FILES[-1], found[1])
    return complaint and _complaint(whole, value) and complaint


def _complaint(checked: Draft202012Validator, value: Any) -> str | None:
    wrong = next(iter(checked.iter_errors(value)), None)
    if wrong is None:
        return None
    return f"the official schema refuses it: {wrong.message} at {list(wrong.instance_path)}"


@lru_cache
def definition(folder: str, method: str, side: str) -> tuple[str, str] | None:
    """The file and the name of what describes a method's parameters or its response."""
    for file in FILES:
        for name, each in definitions(folder, file).items():
            is_response = name.endswith("Response")
            ours = "response" if is_response and each.get("x-side") == "agent" else ""
            of = ours if is_response else each.get("x-side")
            if each.get("x-method") == method and of in (side, "protocol"):
                return file, name
    return None


@lru_cache
def definitions(folder: str, file: str) -> Message:
    """Everything that a file defines."""
    return json.loads(Path(folder, file).read_text("utf-8"))["$defs"]


@lru_cache
def validator(folder: str, file: str, name: str) -> Draft202012Validator:
    """What holds values against one definition."""
    import jsonschema_rs

    schema = {"$ref": f"#/$defs/{name}", "$defs": definitions(folder, file)}
    return jsonschema_rs.Draft202012Validator(schema)
