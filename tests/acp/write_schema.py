"""Writes `crow.acp.schema` and `crow.acp.v2.schema` from the official library, which tests have.

Run ``.venv/bin/python -m tests.acp.write_schema`` when the library is a newer one; a test says so.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import crow.acp

if TYPE_CHECKING:
    from pydantic import BaseModel

HOME = Path(crow.acp.__file__).parent
HEAD = '''"""Parameters of a client's messages in version {number} of the protocol.

Written by ``tests/acp/write_schema.py`` from the official library; `crow.acp.params` reads them.
"""

from typing import Annotated, Any, Literal, TypeAlias, TypedDict

from typing import NotRequired

from crow.acp.params import {marks}
'''
WANTED = {1: HOME / "schema.py", 2: HOME / "v2" / "schema.py"}
LIBRARY = {1: "acp.schema", 2: "acp.experimental.v2.schema"}
ROOTS = {
    1: """AuthenticateRequest LogoutRequest NewSessionRequest LoadSessionRequest
        ResumeSessionRequest ForkSessionRequest ListSessionsRequest CloseSessionRequest
        DeleteSessionRequest PromptRequest SetSessionModeRequest CancelNotification
        SetSessionConfigOptionSelectRequest SetSessionConfigOptionBooleanRequest""",
    2: """LoginAuthRequest LogoutAuthRequest NewSessionRequest ResumeSessionRequest
        ForkSessionRequest ListSessionsRequest CloseSessionRequest DeleteSessionRequest
        PromptRequest CancelSessionNotification""",
}
PLAIN = {"null": "None", "string": "str", "integer": "int", "number": "float", "boolean": "bool"}
META = "_meta: NotRequired[Annotated[dict[str, Any], LENIENT]]"
"""What everything has that is `crow.acp.params.Extensible`."""
LENIENT = {"use_default_on_error_validator": "Lenient", "skip_invalid_items_validator": "Sound"}


class Source:
    """The models of one version of the protocol, as source of typed dictionaries."""

    def __init__(self, models: ModuleType, roots: list[str]) -> None:
        self._models = models
        self._tagged: set[str] = set()
        self._done: dict[str, str] = {}
        schemas = [self._model(name).model_json_schema(by_alias=True) for name in roots]
        for node in schemas:
            self._tagged |= set(_tagged(node))
        for name, node in zip(roots, schemas, strict=True):
            for each, definition in node.get("$defs", {}).items():
                self._define(each, definition, node["$defs"])
            self._define(name, node, node.get("$defs", {}))

    def __str__(self) -> str:
        return "\n\n".join(self._done.values())

    def _model(self, name: str) -> type[BaseModel]:
        return getattr(self._models, name)

    def _define(self, name: str, node: Any, known: Any) -> None:
        """Add a definition, behind those that it needs."""
        if name in self._done:
            return
        for needed in _references(node):
            self._define(needed, known[needed], known)
        reserved: Any = getattr(self._model(name), "_reserved_tags", {})
        if name in reserved:
            tag, taken = reserved[name]
            tags = ", ".join(map(repr, sorted(taken)))
            self._done[name] = (
                f"{name}: TypeAlias = Annotated[dict[str, Any], Other({tag!r}, ({tags},))]"
            )
        else:
            fields = [*self._fields(name, node)]
            base = "Extensible" if META in fields else "TypedDict"
            body = "\n".join(f"    {line}" for line in fields if line != META) or "    pass"
            self._done[name] = f"class {name}({base}):\n{body}\n"

    def _fields(self, name: str, node: Any) -> Iterator[str]:
        required = node.get("required", [])
        marks = self._marks(name)
        for key, field in node.get("properties", {}).items():
            shape = self._shape(field)
            for mark in marks.get(key, ()):
                shape = f"Annotated[{shape}, {mark}]"
            is_tag = name in self._tagged and "const" in field
            yield f"{key}: {shape if key in required or is_tag else f'NotRequired[{shape}]'}"

    def _marks(self, name: str) -> dict[str, list[str]]:
        """What the library forgives in each field: ``LENIENT`` of its validators."""
        model = self._model(name)
        names = {field: info.alias or field for field, info in model.model_fields.items()}
        found: dict[str, list[str]] = {}
        for key, validator in model.__pydantic_decorators__.field_validators.items():
            mark = (
                "Lenient"
                if key == "_use_meta_default_on_error"
                else LENIENT[key.rstrip("_0123456789")]
            )
            for field in validator.info.fields:
                if field in names:
                    found.setdefault(names[field], []).append(mark.upper())
        return found

    def _shape(self, node: Any) -> str:
        match node:
            case {"$ref": where}:
                return where.rpartition("/")[2]
            case {"const": _} | {"enum": _}:
                return f"Literal[{', '.join(map(repr, node.get('enum', [node.get('const')])))}]"
            case {"anyOf": shapes} | {"oneOf": shapes}:
                found = dict.fromkeys(self._shape(each) for each in shapes)
                found.pop("None", None)
                return "str" if "str" in found else " | ".join(found)
            case {"type": "array", "items": items}:
                return f"list[{self._shape(items)}]"
            case {"type": "object"}:
                return "dict[str, Any]"
            case _:
                return PLAIN.get(node.get("type"), "Any")


def _references(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"].rpartition("/")[2]
        for key, each in node.items():
            if key != "$defs":
                yield from _references(each)
    elif isinstance(node, list):
        for each in node:
            yield from _references(each)


def _tagged(node: Any) -> Iterator[str]:
    """The definitions that only their tag tells apart."""
    if isinstance(node, dict):
        mapping = (
            node.get("discriminator", {}).get("mapping", {})
            if isinstance(node.get("discriminator"), dict)
            else {}
        )
        yield from (where.rpartition("/")[2] for where in mapping.values())
        for each in node.values():
            yield from _tagged(each)
    elif isinstance(node, list):
        for each in node:
            yield from _tagged(each)


def models(version: int) -> ModuleType:
    """The library's module for a version; importing it takes a second."""
    return import_module(LIBRARY[version])


def source(version: int) -> str:
    """The module for a version, formatted."""
    body = str(Source(models(version), ROOTS[version].split()))
    marks = ", ".join(mark for mark in ("LENIENT", "SOUND", "Extensible", "Other") if mark in body)
    return formatted(f"{HEAD.format(number=version, marks=marks)}\n\n{body}\n", WANTED[version])


def formatted(text: str, path: Path) -> str:
    """The source of the module at a path, as all others are written."""
    for command in (["check", "--fix-only", "--quiet"], ["format"]):
        ruff = [
            Path(sys.executable).parent / "ruff",
            *command,
            "--stdin-filename",
            path,
            "-",
        ]
        text = subprocess.run(ruff, input=text, capture_output=True, text=True, check=True).stdout
    return text


def main() -> None:
    """Write both."""
    for version, path in WANTED.items():
        path.write_text(source(version), "utf-8")


if __name__ == "__main__":
    main()
