"""Imports of a text that cannot be had, found without running it: nobody agreed to that yet."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from difflib import get_close_matches
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

OURS = "crow"
"""Whose modules may be imported to look into them."""


def missing(tree: ast.Module) -> Iterator[str]:
    """What is imported where the text is loaded and is not there, each with its line.

    What stands in a function, a condition or a ``try`` is not looked at: it may never be reached,
    or is prepared for that.
    """
    for node in _at_loading(tree.body):
        match node:
            case ast.Import():
                for each in node.names:
                    if fault := _module_fault(each.name):
                        yield f"{fault} (line {node.lineno})"
            case ast.ImportFrom(module=str(module), level=0):
                names = [each.name for each in node.names if each.name != "*"]
                if fault := _module_fault(module) or _name_fault(module, names):
                    yield f"{fault} (line {node.lineno})"
            case ast.ImportFrom(level=level) if level:
                yield f"a single file has no package to import from (line {node.lineno})"
            case _:
                pass


def _at_loading(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    for node in body:
        yield node
        if isinstance(node, ast.ClassDef):
            yield from _at_loading(node.body)


def _module_fault(name: str) -> str:
    """What is wrong with a module; of others' only the package is looked for, and not run."""
    package = name.partition(".")[0]
    try:
        found = name in sys.modules or find_spec(name if package == OURS else package) is not None
    except (ImportError, ValueError):
        found = False
    return "" if found else f"there is no module {name!r}"


def _name_fault(module: str, names: list[str]) -> str:
    """What is wrong with names of a module that is in use already, or Crow's."""
    known = sys.modules.get(module)
    if module.partition(".")[0] == OURS:
        known = known or import_module(module)
    if not isinstance(known, ModuleType):
        return ""
    for name in names:
        if not (hasattr(known, name) or _is_module(f"{module}.{name}", known)):
            near = get_close_matches(name, [each for each in dir(known) if each[0] != "_"], 1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            return f"cannot import name {name!r} from {module!r}{hint}"
    return ""


def _is_module(name: str, package: ModuleType) -> bool:
    """True for a module of a package that is imported, so that nothing runs to find it."""
    return hasattr(package, "__path__") and find_spec(name) is not None
