"""Writes `crow.acp.schema`, `crow.acp.outgoing` and those of version 2 from the official schema.

That is in the npm package ``@agentclientprotocol/sdk``, which ``make test ARGS='-m node'`` installs. Run
``.venv/bin/python -m tests.acp.write_types`` when it is a newer one; a test says so.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Container, Iterator
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import crow.acp

HOME = Path(crow.acp.__file__).parent
SDK = Path(__file__).parent / "node/node_modules/@agentclientprotocol/sdk"
IN_HEAD = '''"""Parameters of a client's messages in version {number} of the protocol.

Written by ``tests/acp/write_types.py`` from the official schema, drafts and all; `crow.acp.params`
reads them.
"""

from typing import Annotated, Any, Literal, NotRequired, TypeAlias

from crow.acp.params import {marks}
'''
OUT_HEAD = '''"""The messages of the agent in version {number} of the protocol: updates, requests, and answers.

Written by ``tests/acp/write_types.py`` from the official schema, drafts and all. For type
checkers only: nothing imports it at run time.
"""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypeAlias, TypedDict


class Extensible(TypedDict):
    _meta: NotRequired[dict[str, Any]]
'''
OWN_NAMES = frozenset({"SessionConfigOptionCategory", "LlmProtocol"})
"""Enumerations of which Crow has members of its own, as the schema allows for all of them."""
COMBINED = ("anyOf", "oneOf")
PLAIN = {"null": "None", "string": "str", "integer": "int", "number": "float", "boolean": "bool"}
BY_HAND = "initialize"
"""The method whose parameters are read before anything is loaded."""
MARKS = {"LENIENT": "x-deserialize-default-on-error", "SOUND": "x-deserialize-skip-invalid-items"}
"""The marks of `crow.acp.params`, and the schema's words for them."""
NULLABLE = "x-deserialize-default-on-null"
Node = dict[str, Any]


class Source:
    """The definitions that messages need, as source of typed dictionaries."""

    head = OUT_HEAD

    def __init__(self, definitions: dict[str, Node]) -> None:
        self._all = definitions
        self._done: dict[str, str] = {}
        self._members: dict[str, list[str]] = {}
        for name, node in definitions.items():
            if self.is_wanted(name, node):
                self._define(name)

    def is_wanted(self, name: str, node: Node) -> bool:
        """True for parameters of the client's methods, and for results of the agent's."""
        sides = {"client": False, "agent": True}
        return sides.get(node.get("x-side", "")) is name.endswith("Response")

    def __str__(self) -> str:
        return "\n\n".join(self._done.values())

    def _define(self, name: str) -> None:
        if name not in self._members and is_made(self._all[name]):
            self._members[name] = []
            self._members[name] = self._made(name, self._all[name])

    def _made(self, name: str, node: Node) -> list[str]:
        """Define a name; the classes that it stands for."""
        alternatives = self._alternatives(node)
        if not alternatives:
            self._class(name, ["Extensible"], node)
            return [name]
        bases: list[str] = []
        if node.get("properties"):
            bases = [f"{name}Fields"]
            told = {key for each in alternatives for key in each.get("properties", {})}
            self._class(bases[0], ["Extensible"], node, told)
        made = [each for one in alternatives for each in self._variants(name, one, bases)]
        self._done[name] = f"{name}: TypeAlias = {' | '.join(made)}\n"
        return made

    def _variants(self, name: str, node: Node, bases: list[str]) -> Iterator[str]:
        """One alternative, for every combination of what it consists of."""
        parts = [reference(node)] if "$ref" in node else list(map(reference, node.get("allOf", ())))
        for part in parts:
            self._define(part)
        if not parts and not node.get("properties"):
            yield from () if bases else ["dict[str, Any]"]
            return
        tag = camel("_".join(tags(node)[:1]) or ("" if parts else node.get("title", "")))
        for chosen in product(*(self._members[part] for part in parts)):
            if len(chosen) == 1 and not bases and not node.get("properties"):
                yield chosen[0]
                continue
            ends = [one.removeprefix(part) for one, part in zip(chosen, parts, strict=True)]
            made = f"{name}{tag or ''.join(chosen)}{''.join(ends) if tag else ''}"
            made = f"{made}Variant" if made in self._all else made
            self._class(made, [*chosen, *bases] or ["Extensible"], node)
            yield made

    def _class(
        self, name: str, bases: list[str], node: Node, elsewhere: Container[str] = ()
    ) -> None:
        """Define a class, without the fields that are told ``elsewhere``."""
        lines: list[str] = []
        for key, field in node.get("properties", {}).items():
            shape = self._field(field, required=key in node.get("required", ()))
            if key != "_meta" and key not in elsewhere:
                lines.append(f"{key}: {shape}")
        body = "\n".join(f"    {line}" for line in lines) or "    pass"
        self._done[name] = f"class {name}({', '.join(bases)}):\n{body}\n"

    def _alternatives(self, node: Node) -> list[Node]:
        return alternatives_of(node)

    def _is_open(self, name: str, node: Node) -> bool:
        del node
        return name in OWN_NAMES

    def _field(self, node: Node, *, required: bool) -> str:
        shape = self._shape(node)
        return shape if required else f"NotRequired[{shape}]"

    def _shape(self, node: Node) -> str:
        match node:
            case {"$ref": _}:
                return self._named(reference(node))
            case {"allOf": [one]}:
                return self._shape(one)
            case {"const": _} | {"enum": _}:
                return literal(values(node))
            case {"anyOf": several} | {"oneOf": several}:
                return " | ".join(dict.fromkeys(map(self._shape, several)))
            case {"type": list(kinds)}:
                return " | ".join(self._shape({**node, "type": kind}) for kind in kinds)
            case {"type": "array" | "object"}:
                return self._collection(node)
            case _:
                return PLAIN.get(node.get("type", ""), "Any")

    def _collection(self, node: Node) -> str:
        match node:
            case {"items": items}:
                return f"list[{self._shape(items)}]"
            case {"additionalProperties": dict(of)}:
                return f"dict[str, {self._shape(of)}]"
            case _:
                return "dict[str, Any]"

    def _named(self, name: str) -> str:
        node = self._all[name]
        if is_made(node):
            self._define(name)
            return name
        if self._is_open(name, node):
            return "str"
        if found := [value for each in alternatives_of(node) for value in values(each)]:
            return literal(found)
        return self._shape(node)


class Incoming(Source):
    """The definitions that an agent reads by, with marks on what it lets pass.

    What may be null may be missing: some clients leave it out.
    """

    head = IN_HEAD

    def is_wanted(self, name: str, node: Node) -> bool:
        """True for parameters of the agent's methods."""
        is_method = node.get("x-side") == "agent" and node["x-method"] != BY_HAND
        return is_method and not name.endswith("Response")

    def _alternatives(self, node: Node) -> list[Node]:
        return [*alternatives_of(node), *unknown_of(node)]

    def _is_open(self, name: str, node: Node) -> bool:
        """True for an enumeration in which any other word may stand, too."""
        return any(
            each.get("type") == "string" and not values(each) for each in alternatives_of(node)
        )

    def _field(self, node: Node, *, required: bool) -> str:
        marks = [mark for mark, word in MARKS.items() if node.get(word)]
        shape = self._shape(node).replace(" | None", "")
        shape = f"Annotated[{', '.join([shape, *marks])}]" if marks else shape
        return super()._field({"own": shape}, required=required and NULLABLE not in node)

    def _shape(self, node: Node) -> str:
        match node:
            case {"own": shape}:
                return shape
            case {"known": known}:
                return f"Annotated[str, Other({tuple(known)!r})]"
            case _:
                return super()._shape(node)


def is_made(node: Node) -> bool:
    """True for what becomes a typed dictionary, or several."""
    shapes = [each for name in COMBINED for each in node.get(name, ())]
    return any("$ref" in one or "allOf" in one or "properties" in one for one in (node, *shapes))


def alternatives_of(node: Node) -> list[Node]:
    """What something can be, without what nobody knows yet; those that differ in tags as one."""
    found: list[Node] = []
    for each in (each for name in COMBINED for each in node.get(name, ()) if "not" not in each):
        before = found[-1] if found else {}
        if is_tag(each) and is_tag(before):
            (key,) = each["required"]
            found[-1] = {**before, "properties": {key: {"enum": [*tags(before), *tags(each)]}}}
        else:
            found.append(each)
    return found


def unknown_of(node: Node) -> Iterator[Node]:
    """What something can be that nobody knows yet: its tag is none of those that are known."""
    for each in (each for name in COMBINED for each in node.get(name, ()) if "not" in each):
        known = {tag for one in each["not"]["anyOf"] for tag in tags(one)}
        (key,) = each["not"]["anyOf"][0]["required"]
        yield {**each, "properties": {**each["properties"], key: {"known": sorted(known)}}}


def is_tag(node: Node) -> bool:
    """True for an alternative that is nothing but the word that tells it from the others."""
    return bool(tags(node)) and "allOf" not in node and len(node["properties"]) == 1


def tags(node: Node) -> list[str]:
    """The words that tell an alternative from the others."""
    return [value for field in node.get("properties", {}).values() for value in values(field)]


def values(node: Node) -> list[Any]:
    """The values of a constant or an enumeration."""
    return node.get("enum", [node["const"]] if "const" in node else [])


def literal(found: list[Any]) -> str:
    """The type of these values."""
    return f"Literal[{', '.join(map(repr, found))}]"


def reference(node: Node) -> str:
    """The name of the definition that something refers to."""
    return node["$ref"].rpartition("/")[2]


def camel(word: str) -> str:
    """A word of the protocol as a part of a name."""
    return "".join(part.capitalize() for part in word.split("_"))


@cache
def definitions(version: int) -> dict[str, Node]:
    """What the official schema defines, drafts and all."""
    text = (SDK / f"schema/v{version}/schema.unstable.json").read_text("utf-8")
    return json.loads(text)["$defs"]


WANTED = {
    HOME / "schema.py": (1, Incoming),
    HOME / "outgoing.py": (1, Source),
    HOME / "v2/schema.py": (2, Incoming),
    HOME / "v2/outgoing.py": (2, Source),
}


def source(path: Path) -> str:
    """The module that is to be at a path, formatted."""
    version, kind = WANTED[path]
    body = str(kind(definitions(version)))
    marks = ", ".join(mark for mark in (*MARKS, "Extensible", "Other") if mark in body)
    return formatted(f"{kind.head.format(number=version, marks=marks)}\n\n{body}\n", path)


def formatted(text: str, path: Path) -> str:
    """The source of the module at a path, as all others are written."""
    ruff = str(Path(sys.executable).parent / "ruff")
    for command in (["check", "--fix-only", "--quiet"], ["format"]):
        args = [ruff, *command, "--stdin-filename", str(path), "-"]
        text = subprocess.run(args, input=text, capture_output=True, text=True, check=True).stdout
    return text


def main() -> None:
    """Write all."""
    for path in WANTED:
        path.write_text(source(path), "utf-8")


if __name__ == "__main__":
    main()
