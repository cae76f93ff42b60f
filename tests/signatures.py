"""The page of signatures, made from the code: ``python -m tests.signatures`` writes it anew."""

from __future__ import annotations

import ast
import inspect
import itertools
import re
import textwrap
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, get_overloads

DOCS = Path(__file__).parents[1] / "docs"
PAGE = DOCS / "signatures.md"
HEAD = """# Signatures

Every public class and function as it is written: what to give, what comes back, the fields that can be read. What each is for
says the [reference](reference.md). This page is made from the code (`python -m tests.signatures`).
"""


def page() -> str:
    """The whole page."""
    lines = [HEAD]
    for module, names in public():
        shown = [text for name in names if (text := signature(module, name))]
        if shown:
            lines += [f"## `{module}`\n", "<!-- not to be run -->", "```text", *shown, "```\n"]
    return "\n".join(lines)


def public() -> Iterator[tuple[str, list[str]]]:
    """The modules of the reference, and their names in its order."""
    text = (DOCS / "reference.md").read_text("utf-8")
    for part in re.split(r"^## `", text, flags=re.MULTILINE)[1:]:
        yield part.partition("`")[0], re.findall(r"^\| `(\w+)` \|", part, re.MULTILINE)


def signature(module: str, name: str) -> str:
    """A class or a function as it is written, without its body; nothing for anything else."""
    thing: Any = getattr(import_module(module), name)
    if not (inspect.isclass(thing) or inspect.isfunction(thing)):
        return ""
    if not inspect.isclass(thing):
        return (
            "\n".join(_function(_parsed(each)) for each in get_overloads(thing) or [thing]) + "\n"
        )
    node = _parsed(thing)
    hidden = {each.__name__: _parsed(each) for each in inner(thing)}
    told = [each for base in node.bases for each in _bases(base, hidden)]
    bases = ", ".join(map(ast.unparse, told))
    head = f"class {node.name}({bases})" if bases else f"class {node.name}"
    lines = dict.fromkeys(_members(node))
    is_made = any("def __init__(" in line for line in lines)
    for line in (line for each in hidden.values() for line in _members(each)):
        if not (is_made and "def __init__(" in line):
            lines[line] = None
    return "\n".join([head, *lines]) + "\n"


def inner(cls: type[Any]) -> list[type[Any]]:
    """What a class has from Crow's own classes, which no other page shows."""
    known = {name for _, names in public() for name in names}
    mine = [each for each in cls.__mro__[1:] if each.__module__.startswith("crow.")]
    return [each for each in mine if each.__name__ not in known]


def _bases(base: ast.expr, hidden: dict[str, ast.ClassDef]) -> list[ast.expr]:
    """A base, or those of one that no page shows."""
    name = ast.unparse(base)
    return [base] if name not in hidden else hidden[name].bases


def _parsed(thing: Any) -> Any:
    return ast.parse(textwrap.dedent(inspect.getsource(thing))).body[0]


def _typed(node: ast.stmt) -> list[ast.stmt]:
    """A part of a class, as type checkers see it."""
    match node:
        case ast.If(ast.Name("TYPE_CHECKING"), body):
            return body
        case _:
            return [node]


def _members(node: ast.ClassDef) -> list[str]:
    lines: list[str] = []
    body = [*itertools.chain.from_iterable(map(_typed, node.body))]
    functions = [each for each in body if isinstance(each, ast.FunctionDef)]
    marked = {ast.unparse(mark) for each in functions for mark in each.decorator_list}
    for each in body:
        match each:
            case ast.AnnAssign(target=ast.Name(name)) if not name.startswith("_"):
                lines.append(f"    {ast.unparse(each)}")
            case ast.FunctionDef() | ast.AsyncFunctionDef() if _is_shown(each.name):
                marks = {ast.unparse(mark) for mark in each.decorator_list}
                if "property" in marks and each.returns is not None:
                    fixed = "" if f"{each.name}.setter" in marked else "  # to be read"
                    lines.append(f"    {each.name}: {ast.unparse(each.returns)}{fixed}")
                elif not any(mark.endswith((".setter", "overload")) for mark in marks):
                    lines.append(f"    {_function(each)}")
                lines += [*_set_in(each)] if each.name == "__init__" else []
            case _:
                pass
    return lines


def _set_in(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[str]:
    """The fields that a class gets when it is made: those with a type, and its arguments."""
    given = {each.arg: each.annotation for each in [*function.args.args, *function.args.kwonlyargs]}
    for each in function.body:
        match each:
            case ast.AnnAssign(ast.Attribute(ast.Name("self"), name), kind):
                pass
            case ast.Assign([ast.Attribute(ast.Name("self"), name)], ast.Name(value)):
                kind = given.get(value)
            case ast.Assign([ast.Attribute(ast.Name("self"), name)], ast.Call(ast.Name() as kind)):
                kind = kind if kind.id[0].isupper() else None
            case ast.Assign([ast.Attribute(ast.Name("self"), name)], ast.Constant(value)):
                kind = ast.Name(type(value).__name__)
            case _:
                continue
        if kind is not None and not name.startswith("_"):
            yield f"    {name}: {ast.unparse(kind)}"


def _is_shown(name: str) -> bool:
    return name in ("__init__", "__call__") or not name.startswith("_")


def _function(node: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    word = "async def" if isinstance(node, ast.AsyncFunctionDef) else "def"
    args = ast.unparse(node.args)
    args = re.sub(r"^(self|cls)(, |$)", "", args)
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    return f"{word} {node.name}({args}){returns}"


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
