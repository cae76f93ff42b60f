"""The front door: what is public is a list, is documented, and is all that anybody is shown."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import crow
from crow.cli.ext_check.imports import PUBLIC

ROOT = Path(__file__).parent.parent
SRC = ROOT / "src"
NAMES = """
Agent AgentHook Allow Answer Arg Ask Call Client Command CommandContext CompactContext Completion
ConfigContext Context Continue CrowError CwdContext Deny ErrorContext HookRegistry LLM Message
MessageContext Mode NotificationContext NullClient PromptSection Reply Request RequestContext
RunContext Session SessionContext Stop Tool ToolContext ToolEnvironment ToolResult TurnContext UI
UpdateContext Usage Verdict WorktreeContext build hook run_agent tool
"""


def file_of(module: str) -> Path:
    path = SRC.joinpath(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def parsed(module: str) -> ast.Module:
    return ast.parse(file_of(module).read_text("utf-8"))


def imports(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Every name that is imported from a module of Crow's; the module itself has the name ``*``."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "crow":
            yield from ((str(node.module), alias.name) for alias in node.names)
        elif isinstance(node, ast.Import):
            found = (alias.name for alias in node.names if alias.name.split(".")[0] == "crow")
            yield from ((name, "*") for name in found)


def is_public(module: str, name: str) -> bool:
    if module not in PUBLIC:
        return False
    return name in ("*", "__version__") or name in import_module(module).__all__


def test_the_door_is_this_list_and_another_name_is_a_decision():
    assert sorted(crow.__all__) == NAMES.split()


@pytest.mark.parametrize("module", PUBLIC)
def test_type_checkers_find_what_is_there(module: str):
    public = import_module(module)
    seen = {name: room for room, name in imports(parsed(module)) if room != "crow._lazy"}
    for name in public.__all__:
        assert name in dir(public)
        thing = getattr(public, name)
        if name in seen:
            assert thing is getattr(import_module(seen[name]), name)
        elif inspect.isclass(thing) or inspect.isfunction(thing):
            assert thing.__module__ == module
    if hasattr(public, "__getattr__"):
        assert set(seen) - {"__version__"} == set(public.__all__)
        with pytest.raises(AttributeError, match="nothing_of_this_name"):
            public.nothing_of_this_name  # noqa: B018


@pytest.mark.slow
def test_a_type_checker_refuses_names_that_are_not_there(tmp_path: Path):
    lines = [f"from {module} import nosuchthing" for module in PUBLIC]
    path = tmp_path / "program.py"
    path.write_text("\n".join(["# pyright: strict", *lines]), "utf-8")
    pyright = Path(sys.executable).with_name("pyright")
    argv = [pyright, "--pythonpath", sys.executable, str(path)]
    said = subprocess.run(argv, capture_output=True, text=True, check=False).stdout
    refused = re.findall(r':(\d+):\d+ - error: "nosuchthing" is unknown import symbol', said)
    assert [*map(int, refused)] == [line + 2 for line in range(len(PUBLIC))], said


def test_importing_it_imports_nothing_else():
    show = "import sys, crow; print(*(name for name in sys.modules if name.startswith('crow')))"
    shown = subprocess.run([sys.executable, "-c", show], capture_output=True, text=True, check=True)
    assert set(shown.stdout.split()) == {"crow", "crow._version"}


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("FIRST", "it is in crow.hooks"),
        ("ModelError", "it is in crow.errors"),
        ("Key", "it is in crow.keys"),
        ("ModeProvider", "it is in crow.ports"),
        ("Sesion", "did you mean 'Session'?"),
    ],
)
def test_a_name_that_is_elsewhere_is_told_with_its_place(name: str, hint: str):
    with pytest.raises(ImportError, match=re.escape(hint)):
        exec(f"from crow import {name}")


def blocks(page: Path) -> Iterator[str]:
    """The Python of a page."""
    found = re.findall(
        r"^ *```python\n(.*?)^ *```", page.read_text("utf-8"), re.MULTILINE | re.DOTALL
    )
    return map(textwrap.dedent, found)


PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
SHOWN = [*sorted((ROOT / "examples").rglob("*.py")), *sorted((ROOT / "typecheck").rglob("*.py"))]


@pytest.mark.parametrize("path", [*PAGES, *SHOWN], ids=lambda path: str(path.relative_to(ROOT)))
def test_whoever_is_shown_something_needs_nothing_that_is_not_public(path: Path):
    sources = blocks(path) if path.suffix == ".md" else [path.read_text("utf-8")]
    inner = [each for code in sources for each in imports(ast.parse(code)) if not is_public(*each)]
    assert inner == []


MYPY = [
    "--strict",
    "--no-warn-return-any",
    "--allow-untyped-defs",
    "--allow-incomplete-defs",
    "--allow-untyped-calls",
]


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_mypy_takes_what_pyright_takes(tmp_path: Path):
    """Of what authors write; where pyright is to complain, mypy may as well."""
    files = [path for path in SHOWN if path.parent.parent == ROOT]
    options = [*MYPY, "--disable-error-code=empty-body", "--no-error-summary"]
    command = [sys.executable, "-m", "mypy", *options, "--cache-dir", str(tmp_path), *files]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert not done.stderr
    for line in done.stdout.splitlines():
        place = re.match(r"(.+?):(\d+): error: ", line)
        if place is not None:
            about = Path(ROOT, place[1]).read_text("utf-8").splitlines()[int(place[2]) - 1]
            assert "pyright: ignore" in about, line


def guests() -> list[str]:
    """The extensions, all of which are held to the door."""
    found = (path.stem for path in (SRC / "crow" / "extensions").iterdir())
    return [f"crow.extensions.{name}" for name in sorted(found) if not name.startswith("_")]


@pytest.mark.parametrize("guest", guests())
def test_a_guest_imports_what_is_public(guest: str):
    path = file_of(guest)
    files = path.parent.rglob("*.py") if path.name == "__init__.py" else [path]
    for file in files:
        for module, name in imports(ast.parse(file.read_text("utf-8"))):
            own = module == guest or module.startswith(f"{guest}.")
            assert own or is_public(module, name), f"{file.name} imports {name} from {module}"


def documented(module: str, name: str) -> str:
    """A public name's docstring, which may stand below an assignment."""
    thing = getattr(import_module(module), name)
    if inspect.isclass(thing) or inspect.isfunction(thing):
        return inspect.getdoc(thing) or ""
    home = next((room for room, each in imports(parsed(module)) if each == name), module)
    return below(parsed(home), name)


def first_sentence(text: str) -> str:
    return " ".join(re.split(r"(?<=\.)\s", text, maxsplit=1)[0].split())


def below(tree: ast.Module, name: str) -> str:
    """The text below the assignment of a name."""
    for node, after in zip(tree.body, tree.body[1:], strict=False):
        targets: list[Any] = [getattr(node, "target", None), *getattr(node, "targets", ())]
        named = name in [getattr(target, "id", None) for target in targets]
        if named and isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
            return str(after.value.value)
    return ""


@pytest.mark.parametrize("module", PUBLIC)
def test_the_reference_has_every_name_with_the_first_sentence_of_its_docstring(module: str):
    page = (ROOT / "docs" / "reference.md").read_text("utf-8")
    section = page.split(f"## `{module}`\n")[1].split("\n## ")[0]
    rows = dict(re.findall(r"^\| `(\w+)` \| (.*) \|$", section, re.MULTILINE))
    names = import_module(module).__all__
    texts = {name: documented(module, name) for name in names}
    assert rows == {name: first_sentence(text) for name, text in texts.items()}
    assert [name for name, text in texts.items() if not text or "crow.core" in text] == []


def test_the_page_of_signatures_is_what_the_code_says():
    from tests.signatures import PAGE, page

    assert PAGE.read_text("utf-8") == page(), "python -m tests.signatures"
