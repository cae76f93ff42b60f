"""The description of settings, ``schema.json``: what editors complete by, and what files must fit.

A file is not refused for one wrong entry: what does not fit is named and left out. The JSON Schema
library says only whether the whole fits; it also takes longer to import than Crow takes to start.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, cast

from crow.core.errors import nearest
from crow.core.frozen import frozen

PATH = Path(__file__).with_name("schema.json")
Node = Mapping[str, Any]

TYPES: Mapping[str, tuple[type | tuple[type, ...], str]] = {
    "string": (str, "text"),
    "array": (list, "a list"),
    "object": (dict, "a table"),
    "integer": (int, "a number"),
    "number": ((int, float), "a number"),
    "boolean": (bool, "true or false"),
    "null": (type(None), "null"),
}
OTHERS = frozenset({"hooks"})
"""What is read elsewhere, with complaints of its own."""
OPEN = frozenset({"extensions", "limits"})
"""Where names that the schema does not have are for the extension to refuse."""


class Dropped:
    """What is left of a value that does not fit."""


DROPPED: Final = Dropped()


def text() -> str:
    """The schema as it is published."""
    return PATH.read_text("utf-8")


def schema() -> dict[str, Any]:
    """The schema."""
    return json.loads(text())


def short(value: object) -> str:
    """A value in a line."""
    shown = json.dumps(value, ensure_ascii=False, default=str)
    return shown if len(shown) <= 40 else f"{shown[:37]}..."


def told(path: str, value: object) -> str:
    """The same without what nobody should see."""
    from crow.settings.secrets import hidden

    return short(hidden(path, value))


def near(word: str, known: Any) -> str:
    """A hint at the nearest known word."""
    found = nearest(word, known)
    return f"; did you mean {found!r}?" if found else ""


@frozen
class Sieve:
    """Lets through what fits the schema; ``complain`` gets a line for everything else.

    ``drop`` gets the dotted path and the value of what is left out, and that line.
    """

    complain: Callable[[str], None]
    whole: Node
    drop: Callable[[str, Any, str], None] | None = None

    def sift(self, table: Mapping[str, Any]) -> dict[str, Any]:
        """A settings file without what does not fit."""
        return self._object(table, self.whole, "")

    def _value(self, value: Any, node: Node, path: str) -> Any:
        node = self._resolved(node)
        if not fits_type(value, node):
            self._refuse(path, value, f"{path!r} must be {expected(node)}, not {told(path, value)}")
            return DROPPED
        wrong = _fault(value, node)
        if wrong:
            self._refuse(path, value, f"{path!r} {wrong}, not {told(path, value)}")
            return DROPPED
        if isinstance(value, dict):
            return self._object(cast("dict[str, Any]", value), node, path)
        if isinstance(value, list):
            return self._array(cast("list[Any]", value), node, path)
        return value

    def _object(self, table: Mapping[str, Any], node: Node, path: str) -> dict[str, Any]:
        known: Node = node.get("properties", {})
        more = node.get("additionalProperties", True)
        kept: dict[str, Any] = {}
        for key, value in table.items():
            inner = f"{path}.{key}" if path else key
            if path in OTHERS:
                kept[key] = value
            elif key in known or isinstance(more, dict):
                sifted = self._value(value, known.get(key, more), inner)
                if sifted is not DROPPED:
                    kept[key] = sifted
            elif more or path.partition(".")[0] in OPEN:
                kept[key] = value
            else:
                self._refuse(inner, value, f"there is no setting {inner!r}{near(key, known)}")
        return kept

    def _array(self, values: list[Any], node: Node, path: str) -> list[Any]:
        items = self._resolved(node.get("items", {}))
        kept: list[Any] = []
        for value in values:
            if fits_type(value, items) and not _fault(value, items):
                kept.append(value)
            else:
                text = f"{path!r} holds {told(path, value)}, which is no text"
                self._refuse(path, value, text)
        return kept

    def _refuse(self, path: str, value: Any, text: str) -> None:
        self.complain(text)
        if self.drop is not None:
            self.drop(path, value, text)

    def _resolved(self, node: Node) -> Node:
        reference = node.get("$ref")
        if reference is None:
            return node
        return self.whole["$defs"][reference.rpartition("/")[2]]


def fits_type(value: Any, node: Node) -> bool:
    """True for a value of one of a node's types."""
    names = types_of(node)
    if isinstance(value, bool):
        return not names or "boolean" in names
    is_whole = isinstance(value, float) and value.is_integer() and "integer" in names
    return not names or is_whole or any(isinstance(value, TYPES[name][0]) for name in names)


def types_of(node: Node) -> tuple[str, ...]:
    """The types that a value can have; none where all are meant."""
    named: Any = node.get("type", ())
    return (named,) if isinstance(named, str) else tuple(named)


def expected(node: Node) -> str:
    """What a value must be, in words."""
    return " or ".join(TYPES[name][1] for name in types_of(node))


def _fault(value: Any, node: Node) -> str:
    """What beside its type is wrong with a value; empty where nothing is."""
    if "enum" in node and value not in node["enum"]:
        return f"must be one of {', '.join(map(str, node['enum']))}"
    if isinstance(value, str) and node.get("minLength", 0) > len(value):
        return "must not be empty"
    if isinstance(value, int | float) and not isinstance(value, bool):
        if value < node.get("minimum", value):
            return f"must be at least {node['minimum']}"
        if value > node.get("maximum", value):
            return f"must be at most {node['maximum']}"
        if "exclusiveMinimum" in node and value <= node["exclusiveMinimum"]:
            return f"must be above {node['exclusiveMinimum']}"
    return ""
