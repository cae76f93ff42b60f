"""Static checks of an extension: names almost like events, calls that block."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from crow.cli.ext_check.finding import Finding
from crow.cli.ext_check.imports import private
from crow.core.errors import nearest
from crow.core.hooks.discovery import intended
from crow.core.hooks.registry import HookRegistry

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
BROUGHT = re.compile(r"\bself\b(?!, )(?!\.agent = )")
"""A mention of itself where it tells the agent of something."""
LIKE_AN_EVENT = re.compile(r"(before|after|around|on)_\w+")
BLOCKING: Mapping[str, str] = {
    "time.sleep": "await asyncio.sleep(...)",
    "subprocess.run": "await asyncio.create_subprocess_exec(...)",
    "subprocess.call": "await asyncio.create_subprocess_exec(...)",
    "subprocess.check_call": "await asyncio.create_subprocess_exec(...)",
    "subprocess.check_output": "await asyncio.create_subprocess_exec(...)",
    "os.system": "await asyncio.create_subprocess_shell(...)",
    "urllib.request.urlopen": "await asyncio.to_thread(...), or an async client",
    "socket.create_connection": "await asyncio.open_connection(...)",
    **dict.fromkeys(
        [
            f"{module}.{verb}"
            for module in ("requests", "httpx")
            for verb in ("get", "post", "put", "patch", "delete", "request")
        ],
        "an async client, or await asyncio.to_thread(...)",
    ),
    "input": "await ctx.ui.ask(...)",
}
"""What keeps everybody waiting in an async function, and what to write in its place."""


def read_files(place: Path) -> Iterator[Finding]:
    """What is wrong in a file, or in all files of a package."""
    paths = [place] if place.is_file() else sorted(place.rglob("*.py"))
    events = HookRegistry().names
    for path in paths:
        parts = path.relative_to(place).parts if path != place else ()
        if any(part.startswith((".", "test")) or part == "site-packages" for part in parts):
            continue
        try:
            tree = ast.parse(path.read_bytes(), str(path))
        except (OSError, SyntaxError, ValueError):
            continue  # said by who loads it
        yield from _misnamed(tree, str(path), events)
        yield from _misregistered(tree, str(path), events)
        yield from _lost(tree, str(path), events)
        yield from _blocking(tree, str(path))
        yield from private(tree, str(path))


def _misnamed(tree: ast.Module, path: str, events: Collection[str]) -> Iterator[Finding]:
    """Functions and methods that are called almost as an event."""
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    for node in (*tree.body, *(each for cls in classes for each in cls.body)):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if node.name in events or node.decorator_list:
            continue
        like = nearest(node.name, events) if LIKE_AN_EVENT.fullmatch(node.name) else None
        if (near := like or intended(node.name, events)) is None:
            continue
        what = f"{node.name} hangs nowhere: there is no such event"
        yield Finding(what, f"did you mean {near}?", path, node.lineno)


def _misregistered(tree: ast.Module, path: str, events: Collection[str]) -> Iterator[Finding]:
    """Texts in ``hook("...")`` and ``register("...")`` that are almost an event."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(
                func=ast.Name("hook") | ast.Attribute(attr="hook" | "register" | "register_hook"),
                args=[ast.Constant(str(event)), *_],
            ) if event not in events and (near := nearest(event, events)):
                yield Finding(
                    f"there is no event {event!r}", f"did you mean {near}?", path, node.lineno
                )
            case _:
                pass


def _lost(tree: ast.Module, path: str, events: Collection[str]) -> Iterator[Finding]:
    """Classes in Flask's style of which the agent they are made with hears nothing."""
    for node in tree.body:
        if not isinstance(node, ast.ClassDef):
            continue
        methods = {each.name: each for each in node.body if isinstance(each, FUNCTIONS)}
        made, init = methods.get("__init__"), methods.get("init_agent")
        if made is None or init is None or not methods.keys() & {*events, "lifespan"}:
            continue
        if ".init_agent(" in ast.unparse(made) and not BROUGHT.search(ast.unparse(init)):
            what = f"{node.name}(agent) hangs nothing: its init_agent tells the agent of nothing"
            yield Finding(what, "let it call agent.use(self)", path, init.lineno)


def _blocking(tree: ast.Module, path: str) -> Iterator[Finding]:
    """Calls in async functions that keep everybody waiting."""
    names = _imported(tree)
    for function in ast.walk(tree):
        if isinstance(function, ast.AsyncFunctionDef):
            for node in _own(function):
                called = _called(node.func, names) if isinstance(node, ast.Call) else ""
                if called in BLOCKING:
                    what = f"{called} in the async {function.name} keeps everybody waiting"
                    line = getattr(node, "lineno", function.lineno)
                    yield Finding(what, f"use {BLOCKING[called]}", path, line)


def _own(function: ast.AST) -> Iterator[ast.AST]:
    """All of a function but what is in functions inside it, which may run in a thread."""
    for child in ast.iter_child_nodes(function):
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield child
            yield from _own(child)


def _imported(tree: ast.Module) -> dict[str, str]:
    """What names stand for that were imported."""
    names: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names |= {each.asname or each.name: f"{node.module}.{each.name}" for each in node.names}
        elif isinstance(node, ast.Import):
            names |= {each.asname: each.name for each in node.names if each.asname}
    return names


def _called(node: ast.expr, names: Mapping[str, str]) -> str:
    """The whole name of what is called."""
    if isinstance(node, ast.Name):
        return names.get(node.id, node.id)
    if isinstance(node, ast.Attribute):
        return f"{_called(node.value, names)}.{node.attr}"
    return ""
