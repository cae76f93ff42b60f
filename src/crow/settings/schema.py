"""The description of settings: what editors complete by, and what files must fit.

Crow's own settings are described in ``schema.json``, the options of extensions by their classes. A
file is not refused for one wrong entry: what does not fit is named and left out. The JSON Schema
library says only whether the whole fits; it also takes longer to import than Crow takes to start.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, cast

from crow.core.errors import nearest
from crow.core.support.frozen import frozen
from crow.entry_points import EntryPoint, entry_points

PATH = Path(__file__).with_name("schema.json")
Node = Mapping[str, Any]

TYPES: Mapping[str, tuple[type | tuple[type, ...], str]] = {
    "string": (str, "text"),
    "array": (list, "a list"),
    "object": (dict, "a table"),
    "integer": (int, "a whole number"),
    "number": ((int, float), "a number"),
    "boolean": (bool, "true or false"),
    "null": (type(None), "null"),
}
OTHERS = frozenset({"hooks"})
"""What is read elsewhere, with complaints of its own."""


class Dropped:
    """The rest of a value that does not fit."""


DROPPED: Final = Dropped()


def schema() -> dict[str, Any]:
    """The schema of Crow's own settings."""
    return json.loads(PATH.read_text("utf-8"))


def whole() -> dict[str, Any]:
    """The schema with the options of all installed extensions, described; that imports them."""
    from crow.annotations.options import documented
    from crow.annotations.schema import hoist

    found = schema()
    parts = found["properties"]["extensions"]["properties"]
    for point in entry_points():
        cls = loaded(point)
        if cls is not None:
            parts[point.name] = documented(cls)
    limits = parts.get("limits", {})
    found["properties"]["limits"] = {**limits, **found["properties"]["limits"]}
    return hoist(found)


def options_node(name: str) -> Node | None:
    """The schema of the options of an installed extension; None where that is not known."""
    from crow.annotations.options import options_of

    points = [point for point in entry_points() if point.name == name and not point.rival]
    cls = loaded(points[0]) if points else None
    return None if cls is None else options_of(cls).node


def loaded(point: EntryPoint) -> type[Any] | None:
    """The class that an entry point names; None for anything else and for what is broken."""
    try:
        thing = point.load()
    except (Exception, SystemExit):  # noqa: BLE001 - whoever uses it says so
        return None
    return thing if inspect.isclass(thing) else None


def short(value: object) -> str:
    """A value in a line."""
    shown = json.dumps(value, ensure_ascii=False, default=str)
    return shown if len(shown) <= 40 else f"{shown[:37]}..."


def redacted(path: str, value: object, node: Node) -> str:
    """The same without what nobody should see; ``node`` is what should stand there."""
    from crow.settings.secrets import hidden

    wanted = {*types_of(node)}
    counts = bool(wanted) and wanted <= {"integer", "number", "boolean", "null"}
    return short(hidden(path, value, counts=counts))


def near(word: str, known: Any) -> str:
    """A hint at the nearest known word."""
    found = nearest(word, known)
    return f"; did you mean {found!r}?" if found else ""


@frozen
class Sieve:
    """Lets through what fits the schema; ``drop`` is called for everything else.

    It gets the dotted path and the value of what is left out, and a line that says why.
    """

    drop: Callable[[str, Any, str], None]
    whole: Node

    def sift(self, table: Mapping[str, Any], path: str = "") -> dict[str, Any]:
        """A table without what does not fit; ``path`` is its name, empty for a whole file."""
        return self._object(table, self.whole, path)

    def _value(self, value: Any, node: Node, path: str) -> Any:
        node = self._resolved(node, value)
        if not fits_type(value, node):
            text = f"{path!r} must be {expected(node)}, not {redacted(path, value, node)}"
            self.drop(path, value, text)
            return DROPPED
        wrong = _fault(value, node)
        if wrong:
            self.drop(path, value, f"{path!r} {wrong}, not {redacted(path, value, node)}")
            return DROPPED
        if isinstance(value, dict):
            return self._table(cast("dict[str, Any]", value), node, path)
        if isinstance(value, list):
            return self._array(cast("list[Any]", value), node, path)
        is_whole = isinstance(value, float) and "number" not in types_of(node)
        return int(value) if is_whole and types_of(node) else value

    def _table(self, table: dict[str, Any], node: Node, path: str) -> Any:
        """A table inside of another one; it is left out where it lacks something."""
        kept = self._object(table, node, path)
        lacking = [name for name in node.get("required", ()) if name not in kept]
        for name in lacking:
            if name not in table:
                self.drop(path, table, f"{path!r} needs {name!r}")
        return DROPPED if lacking else kept

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
            elif more:
                kept[key] = value
            else:
                self.drop(inner, value, f"there is no setting {inner!r}{near(key, known)}")
        return kept

    def _array(self, values: list[Any], node: Node, path: str) -> list[Any]:
        kept: list[Any] = []
        for value in values:
            items = self._resolved(node.get("items", {}), value)
            if not fits_type(value, items) or _fault(value, items):
                what = expected(items).removeprefix("a ")
                shown = redacted(path, value, items)
                self.drop(path, value, f"{path!r} holds {shown}, which is no {what}")
                continue
            sifted = self._value(value, items, path)
            if sifted is not DROPPED:
                kept.append(sifted)
        return kept

    def _resolved(self, node: Node, value: Any) -> Node:
        """What a node means; of several that of the value's type."""
        reference = node.get("$ref")
        if reference is not None:
            node = self.whole["$defs"][reference.rpartition("/")[2]]
        several = [self._resolved(each, value) for each in node.get("anyOf", ())]
        fitting = (each for each in several if fits_type(value, each))
        return next(fitting, node)


def fits_type(value: Any, node: Node) -> bool:
    """True for a value of one of a node's types."""
    names = types_of(node)
    if isinstance(value, bool):
        return not names or "boolean" in names
    if value != value:  # NaN, which no limit would ever be above
        return not names
    is_whole = isinstance(value, float) and value.is_integer() and "integer" in names
    return not names or is_whole or any(isinstance(value, TYPES[name][0]) for name in names)


def types_of(node: Node) -> tuple[str, ...]:
    """The types that a value can have; none where all are meant."""
    if "anyOf" in node:
        several = [types_of(each) for each in node["anyOf"]]
        return tuple(name for names in several for name in names) if all(several) else ()
    named: Any = node.get("type", ())
    return (named,) if isinstance(named, str) else tuple(named)


def expected(node: Node) -> str:
    """What a value must be, in words."""
    return " or ".join(dict.fromkeys(TYPES[name][1] for name in types_of(node)))


def _unlike(values: list[Any], items: list[Node]) -> str:
    """What is wrong with values each of which has a place and a type of its own."""
    if len(values) != len(items):
        return f"must hold {len(items)} values"
    pairs = zip(values, items, strict=True)
    wrong = (item for value, item in pairs if not fits_type(value, item) or _fault(value, item))
    item = next(wrong, None)
    return "" if item is None else f"must hold {expected(item)} there"


def _fault(value: Any, node: Node) -> str:
    """What beside its type is wrong with a value; empty where nothing is."""
    if "enum" in node and value not in node["enum"]:
        return f"must be one of {', '.join(map(str, node['enum']))}"
    if isinstance(value, str) and node.get("minLength", 0) > len(value):
        return "must not be empty"
    if isinstance(value, list) and "prefixItems" in node:
        return _unlike(cast("list[Any]", value), node["prefixItems"])
    if isinstance(value, int | float) and not isinstance(value, bool):
        if value < node.get("minimum", value):
            return f"must be at least {node['minimum']}"
        if value > node.get("maximum", value):
            return f"must be at most {node['maximum']}"
        if "exclusiveMinimum" in node and value <= node["exclusiveMinimum"]:
            return f"must be above {node['exclusiveMinimum']}"
    return ""
