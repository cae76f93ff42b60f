"""An outline of an extension's text: all that it hangs on the loop, read without running it."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Mapping

UNSEEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff"
    "\U000e0000-\U000e007f]"
)
"""Characters that nobody sees, or that let code look other than it runs."""
ADDS: Mapping[str, str] = {
    "Command": "commands",
    "Mode": "modes",
    "PromptSection": "parts of the prompt",
    "Point": "events",
}
"""What is made to be added, by the class that makes it."""
QUIET = frozenset({"crow", "__future__", "typing", "collections", "dataclasses", "re"})
"""Modules that nobody has to know of."""
IMPORTS = "imports"
NOTHING = "it holds no extension: no init_agent, no tool, nothing named like an event"


def fault_of(text: str, name: str, events: Collection[str]) -> str:
    """Why a text can be no extension; empty where it can."""
    if not name.isidentifier() or name.startswith("_"):
        return f"{name}.py cannot be an extension: its name must be one in Python, without _ before"
    for number, line in enumerate(text.split("\n"), 1):
        if UNSEEN.search(line):
            return (
                f"line {number} holds a character that nobody sees: take it out, or write \\u...."
            )
    try:
        found, tree = outline(text, events), ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = f" (line {error.lineno})" if isinstance(error, SyntaxError) else ""
        return f"it is no Python: {getattr(error, 'msg', error)}{line}"
    hangs = {*found} - {IMPORTS} or "init_agent" in text
    if not hangs:
        return NOTHING
    from crow.extensions.authoring.imports import missing

    lacks = next(missing(tree), "")
    return f"it cannot be imported: {lacks}" if lacks else ""


def outline(text: str, events: Collection[str]) -> dict[str, list[str]]:
    """What a text adds, by its sort, and what it imports: names in their sequence."""
    found: dict[str, dict[str, None]] = {}
    for sort, name in _added(ast.parse(text), events):
        found.setdefault(sort, {})[name] = None
    return {sort: [*names] for sort, names in found.items()}


def summary(found: Mapping[str, Collection[str]]) -> str:
    """That in a line."""
    return "; ".join(f"{sort}: {', '.join(names)}" for sort, names in found.items())


def _added(tree: ast.Module, events: Collection[str]) -> Iterator[tuple[str, str]]:
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    for node in [node for body in (tree, *classes) for node in body.body]:
        yield from _defined(node, events)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and _name(node.value) == "hooks" and node.attr in events:
            yield "hooks", node.attr
        elif isinstance(node, ast.Call):
            yield from _called(node, events)
    yield from ((IMPORTS, name) for name in _imported(tree) if name not in QUIET)


def _defined(node: ast.stmt, events: Collection[str]) -> Iterator[tuple[str, str]]:
    """What a function, a method or a class is by its name."""
    if isinstance(node, ast.ClassDef):
        yield from (("tools", name) for name in _tool_of(node))
    elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        if node.name in events:
            yield "hooks", node.name
        elif any(_name(each) == "tool" for each in node.decorator_list):
            yield "tools", node.name


def _called(node: ast.Call, events: Collection[str]) -> Iterator[tuple[str, str]]:
    """What a call hangs: ``hook("x")``, ``register("x", ...)``, ``Command("x", ...)``."""
    first = node.args[0].value if node.args and isinstance(node.args[0], ast.Constant) else None
    called = _name(node.func)
    if called in ("hook", "register") and first in events:
        yield "hooks", str(first)
    elif called in ADDS and isinstance(first, str):
        yield ADDS[called], f"/{first}" if called == "Command" else first


def _tool_of(node: ast.ClassDef) -> Iterator[str]:
    """The name of the tool that a class is."""
    said = {
        target.id: each.value
        for each in node.body
        if isinstance(each, ast.Assign)
        for target in each.targets
        if isinstance(target, ast.Name)
    }
    if "parameters" in said and isinstance(name := said.get("name"), ast.Constant):
        yield str(name.value)


def _imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (each.name.partition(".")[0] for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield (node.module or "").partition(".")[0]


def _name(node: ast.expr) -> str:
    """The last name of what is called or used."""
    match node:
        case ast.Call():
            return _name(node.func)
        case ast.Attribute():
            return node.attr
        case ast.Name():
            return node.id
        case _:
            return ""
