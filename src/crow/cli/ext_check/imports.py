"""Imports of an extension that are Crow's own affair: they may be gone with any version."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from importlib import import_module

from crow.cli.ext_check.finding import Finding
from crow.core.errors import nearest

PUBLIC = (
    "crow",
    "crow.hooks",
    "crow.errors",
    "crow.storage",
    "crow.ports",
    "crow.dataclasses",
    "crow.events",
    "crow.messages",
    "crow.keys",
    "crow.tools",
    "crow.project",
    "crow.process",
    "crow.cli",
    "crow.extensions",
    "crow.fleet",
    "crow.testing",
)
"""The modules of which ``docs/reference.md`` lists what they export."""
REFERENCE = "docs/reference.md lists what there is"


def private(tree: ast.AST, path: str) -> Iterator[Finding]:
    """Imports of what no public module exports, with the one that does, or the nearest name."""
    for node in ast.walk(tree):
        match node:
            case ast.ImportFrom(module=str(module), level=0) if _is_ours(module):
                for each in node.names:
                    if not is_public(module, each.name):
                        what, do = f"{module}.{each.name}", instead(module, each.name)
                        yield Finding(f"{what} is no public name of Crow", do, path, node.lineno)
            case ast.Import():
                for each in node.names:
                    if _is_ours(each.name) and each.name not in PUBLIC:
                        what = f"{each.name} is no public module of Crow"
                        yield Finding(what, instead(each.name, ""), path, node.lineno)
            case _:
                pass


def is_public(module: str, name: str) -> bool:
    """True for what a public module exports, and for one itself."""
    if f"{module}.{name}" in PUBLIC:
        return True
    return module in PUBLIC and (name in ("*", "__version__") or name in _exported(module))


def instead(module: str, name: str) -> str:
    """What to write in its place."""
    for public in PUBLIC:
        if name in _exported(public):
            return f"write from {public} import {name}"
    known = _exported(module) if module in PUBLIC else ()
    near = nearest(name, known) if name else None
    return f"did you mean {near}?" if near else REFERENCE


def _exported(module: str) -> list[str]:
    return import_module(module).__all__


def _is_ours(module: str) -> bool:
    return module.partition(".")[0] == "crow"
