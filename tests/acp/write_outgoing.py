"""Writes `crow.acp.outgoing` and `crow.acp.v2.outgoing` from the official schema.

That is in the npm package ``@agentclientprotocol/sdk``, which ``make test ARGS='-m node'`` installs. Run
``.venv/bin/python -m tests.acp.write_outgoing`` when it is a newer one; a test says so.
"""

from __future__ import annotations

import json
from collections.abc import Container, Iterator
from itertools import product
from pathlib import Path
from typing import Any

from tests.acp.write_schema import HOME, PLAIN, formatted

SDK = Path(__file__).parent / "node/node_modules/@agentclientprotocol/sdk"
WANTED = {1: HOME / "outgoing.py", 2: HOME / "v2/outgoing.py"}
HEAD = '''"""The messages of the agent in version {number} of the protocol: updates, requests, and answers.

Written by ``tests/acp/write_outgoing.py`` from the official schema, drafts and all. For type
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
Node = dict[str, Any]


class Source:
    """The definitions that an agent's messages need, as source of typed dictionaries."""

    def __init__(self, definitions: dict[str, Node]) -> None:
        self._all = definitions
        self._done: dict[str, str] = {}
        self._members: dict[str, list[str]] = {}
        for name, node in definitions.items():
            if is_sent(name, node):
                self._define(name)

    def __str__(self) -> str:
        return "\n\n".join(self._done.values())

    def _define(self, name: str) -> None:
        if name not in self._members and is_made(self._all[name]):
            self._members[name] = []
            self._members[name] = self._made(name, self._all[name])

    def _made(self, name: str, node: Node) -> list[str]:
        """Define a name; the classes that it stands for."""
        alternatives = alternatives_of(node)
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
        tag = "".join(map(camel, tags(node)[:1]))
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
        required = node.get("required", [])
        lines: list[str] = []
        for key, field in node.get("properties", {}).items():
            shape = self._shape(field)
            if key != "_meta" and key not in elsewhere:
                lines.append(f"{key}: {shape if key in required else f'NotRequired[{shape}]'}")
        body = "\n".join(f"    {line}" for line in lines) or "    pass"
        self._done[name] = f"class {name}({', '.join(bases)}):\n{body}\n"

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
        if name in OWN_NAMES:
            return "str"
        if found := [value for each in alternatives_of(node) for value in values(each)]:
            return literal(found)
        return self._shape(node)


def is_sent(name: str, node: Node) -> bool:
    """True for parameters of the client's methods, and for results of the agent's."""
    sides = {"client": False, "agent": True}
    return sides.get(node.get("x-side", "")) is name.endswith("Response")


def is_made(node: Node) -> bool:
    """True for what becomes a typed dictionary, or several."""
    shapes = [each for name in COMBINED for each in node.get(name, ())]
    return any("$ref" in one or "allOf" in one or "properties" in one for one in (node, *shapes))


def alternatives_of(node: Node) -> list[Node]:
    """What something can be, without what nobody knows yet; those that differ in tags as one."""
    found: list[Node] = []
    for each in (each for name in COMBINED for each in node.get(name, ()) if "not" not in each):
        before = found[-1] if found else {}
        if tags(each) and tags(before) and "allOf" not in each and "allOf" not in before:
            (key,) = each["required"]
            found[-1] = {**before, "properties": {key: {"enum": [*tags(before), *tags(each)]}}}
        else:
            found.append(each)
    return found


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


def source(version: int) -> str:
    """The module for a version, formatted."""
    text = (SDK / f"schema/v{version}/schema.unstable.json").read_text("utf-8")
    body = str(Source(json.loads(text)["$defs"]))
    return formatted(f"{HEAD.format(number=version)}\n\n{body}\n", WANTED[version])


def main() -> None:
    """Write both."""
    for version, path in WANTED.items():
        path.write_text(source(version), "utf-8")


if __name__ == "__main__":
    main()
