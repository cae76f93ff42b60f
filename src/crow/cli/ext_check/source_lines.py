"""Source lines of an extension's parts: of a hook, an option, a section, a tool."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

from crow.core.agent import Agent
from crow.core.hooks.hook import Hook, place_of

Place: TypeAlias = tuple[str, int]
NOWHERE: Place = ("", 0)
DEFINED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def hooks(agent: Agent, names: Iterable[str]) -> list[Hook]:
    """The hooks that extensions of these names have hung."""
    wanted = {*names}
    owners = [owner for owner in agent.hooks.owners if owner.name in wanted]
    return [hook for owner in owners for hook in agent.hooks.of(owner)]


def place_of_hook(hook: Hook) -> Place:
    """File and line of its function."""
    path, _, line = place_of(hook.function).rpartition(":")
    return (path, int(line)) if path else NOWHERE


def line_of_field(cls: type[Any], name: str) -> Place:
    """Where a class has a field, or its ``__init__`` a parameter, of this name."""
    try:
        path, first = inspect.getsourcefile(cls) or "", inspect.getsourcelines(cls)[1]
    except (OSError, TypeError):
        return NOWHERE
    for node in ast.walk(_parsed(path)):
        if isinstance(node, ast.ClassDef) and first in _lines_of(node):
            for each in node.body:
                if (line := _declared(each, name)) is not None:
                    return path, line
    return NOWHERE


def _lines_of(node: ast.ClassDef) -> range:
    """The lines of a class's head, with its decorators."""
    return range(
        min([node.lineno, *(each.lineno for each in node.decorator_list)]), node.lineno + 1
    )


def _declared(node: ast.stmt, name: str) -> int | None:
    match node:
        case ast.AnnAssign(target=ast.Name(id)) if id == name:
            return node.lineno
        case ast.FunctionDef(name="__init__", args=given):
            every = (*given.posonlyargs, *given.args, *given.kwonlyargs)
            return next((each.lineno for each in every if each.arg == name), None)
        case _:
            return None


def where_called(files: Iterable[str], names: Iterable[str], argument: object = None) -> Place:
    """The first call of one of these, with this as its first argument or one by name."""
    wanted = {*names}
    for path, node in _nodes(files):
        if isinstance(node, ast.Call) and _name(node.func) in wanted:
            given = [*node.args[:1], *(each.value for each in node.keywords)]
            texts = [each.value for each in given if isinstance(each, ast.Constant)]
            if argument is None or argument in texts:
                return path, node.lineno
    return NOWHERE


def where_defined(files: Iterable[str], name: str) -> Place:
    """The function or class of this name."""
    for path, node in _nodes(files):
        if isinstance(node, DEFINED) and node.name == name:
            return path, node.lineno
    return NOWHERE


def where_kept(files: Iterable[str], key: str) -> Place:
    """The line that puts something under a key: ``state["key"] = ...``."""
    for path, node in _nodes(files):
        match node:
            case ast.Assign(targets=[ast.Subscript(slice=ast.Constant(at))]) if at == key:
                return path, node.lineno
            case ast.Call(func=ast.Attribute(attr="setdefault"), args=[ast.Constant(at), *_]) if (
                at == key
            ):
                return path, node.lineno
            case _:
                pass
    return NOWHERE


def _nodes(files: Iterable[str]) -> Iterator[tuple[str, ast.AST]]:
    for path in files:
        yield from ((path, node) for node in ast.walk(_parsed(path)))


def _parsed(path: str) -> ast.Module:
    try:
        return ast.parse(Path(path).read_bytes(), path)
    except (OSError, SyntaxError, ValueError):
        return ast.Module([], [])


def _name(node: ast.expr) -> str:
    match node:
        case ast.Attribute():
            return node.attr
        case ast.Name():
            return node.id
        case _:
            return ""
