"""The fences hold: the direction of imports, the page that is the loop, one version, one lock."""

from __future__ import annotations

import ast
import os
import re
import shutil
import statistics
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import crow
from crow._version import __version__

ROOT = Path(__file__).parent.parent
SRC = ROOT / "src" / "crow"
DECLARED = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
PROJECT = DECLARED["project"]
CONTRACTS = DECLARED["tool"]["importlinter"]["contracts"]
LINT = Path(sys.executable).parent / "lint-imports"


STRANGE_TO_THE_LOOP = (
    r"(?i)permissions?\b|compact|skill|persist|sqlite|\bmcp\b|retry"
    r"|\b(?:bash|edit|glob|grep|write)\b"
)


LOOKED_AT = ast.Import | ast.ImportFrom | ast.FunctionDef | ast.AsyncFunctionDef | ast.Attribute
Nodes = list[ast.AST]


@pytest.fixture(scope="module")
def trees() -> dict[Path, Nodes]:
    """Every module of the package, parsed: the nodes that are looked at."""
    return {path: parsed(path) for path in sorted(SRC.rglob("*.py"))}


def parsed(path: Path) -> Nodes:
    """The nodes of a module that are looked at."""
    nodes = ast.walk(ast.parse(path.read_text("utf-8")))
    return [node for node in nodes if isinstance(node, LOOKED_AT)]


def write(project: Path, module: str, line: str) -> None:
    """Add a line to a module of the copy; a module that is not there yet is made."""
    path = project.joinpath("src", "crow", *module.split("."))
    path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    path.parent.mkdir(parents=True, exist_ok=True)
    (path.parent / "__init__.py").touch()
    with path.open("a", encoding="utf-8") as file:
        file.write(f"\n{line}\n")


WRONG = [  # where, what, the edge that is named, the contract that breaks
    ("core.loop", "import crow.extensions.compaction", "crow.extensions.compaction", "The house"),
    (
        "core.loop",
        "from crow.extensions import permissions",
        "crow.extensions.permissions",
        "The house",
    ),
    ("core.loop", "import httpx2", "httpx2", "The core knows"),
    ("core.session", "from crow.core import loop", "crow.core.loop", "Inside the core"),
    (
        "core.hooks.hook",
        "from crow.core.hooks.registry import registry",
        "crow.core.hooks.registry",
        "Among the hooks",
    ),
    (
        "extensions.compaction",
        "from crow.extensions import limits",
        "crow.extensions.limits",
        "No extension",
    ),
    ("extensions.compaction", "from crow.tools import bash", "crow.tools.bash", "The house"),
    ("terminal.status", "from crow.core import session", "crow.core.session", "The terminal"),
    ("acp.agent", "import acp", "acp", "The library of the protocol"),
    ("acp.server", "import crow.cli", "crow.cli", "The house"),
    ("cli.run", "import crow.testing.script", "crow.testing.script", "The house"),
    ("tools.bash", "from crow import Agent", "crow", "Nobody inside"),
    ("extensions.limits", "from crow.core import loop", "crow.core.loop", "A guest"),
    ("llm.gemini.parts", "from crow.llm.chat import reply", "crow.llm.chat.reply", "No wire"),
]


def lint(project: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [LINT, "--no-logo", "--no-cache"],
        cwd=project,
        env={**os.environ, "PYTHONPATH": str(project / "src"), "COLUMNS": "200"},
        capture_output=True,
        text=True,
    )


def test_each_import_in_the_wrong_direction_breaks_the_build(tmp_path: Path) -> None:
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    shutil.copytree(SRC, tmp_path / "src/crow", ignore=shutil.ignore_patterns("__pycache__"))
    for room in ("extensions.compaction", "extensions.permissions", "extensions.limits"):
        write(tmp_path, room, "")
    for room in ("core.loop", "tools.bash", "acp.server", "cli.run", "testing.script"):
        write(tmp_path, room, "")
    for module, line, _, _ in WRONG:
        write(tmp_path, module, line)

    linted = lint(tmp_path)

    assert linted.returncode == 1, linted.stdout + linted.stderr
    said = sections(linted.stdout)
    assert set(said) == {contract["name"] for contract in CONTRACTS}
    for module, _, edge, contract in WRONG:
        (broken,) = [text for name, text in said.items() if name.startswith(contract)]
        assert re.search(rf"^-\s+crow\.{module} -> {edge} ", broken, re.MULTILINE), (module, edge)


def sections(report: str) -> dict[str, str]:
    """What is said of each broken contract, by its name."""
    _, *parts = re.split(r"^(.+)\n-+\n\n", report.split("Broken contracts")[1], flags=re.MULTILINE)
    return dict(zip(parts[::2], parts[1::2], strict=True))


def test_the_core_imports_the_standard_library_and_itself(trees: dict[Path, Nodes]) -> None:
    strangers = [
        (path.name, name)
        for path, tree in trees.items()
        if path.is_relative_to(SRC / "core")
        for name in imported(tree)
        if name.split(".")[0] not in sys.stdlib_module_names and not name.startswith("crow.core")
    ]
    assert strangers == []


def imported(tree: Nodes) -> Iterator[str]:
    """The absolute names that a module imports, inside functions too."""
    for node in tree:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""


NOUNS = {"background", "commands"}
"""Names of extensions that are words of the core's own."""


def test_the_core_knows_no_extension_by_name() -> None:
    """Strings count, as do names of classes in comments and docstrings."""
    extensions = {path.stem for path in (SRC / "extensions").iterdir()} - {
        "__init__",
        "__pycache__",
    }
    classes = [f"{name.title().replace('_', '')}Hook" for name in sorted(extensions)]
    known = [
        (path.name, said)
        for path in (SRC / "core").rglob("*.py")
        for said in [*strings(path), *re.findall("|".join(classes), path.read_text("utf-8"))]
        if {*re.findall(r"\w+", said)} & {*(extensions - NOUNS), *classes}
    ]
    assert known == []


def strings(path: Path) -> list[str]:
    """The strings in a module that are no docstrings."""
    nodes = [*ast.walk(ast.parse(path.read_text("utf-8")))]
    said = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    return [
        node.value
        for node in nodes
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in said
    ]


def test_no_circle_runs_through_the_files(trees: dict[Path, Nodes]) -> None:
    """Imports for types and inside functions count; `from package import module` enters both."""
    modules = {module_of(path): tree for path, tree in trees.items()}
    arrows = {name: set(entered(tree)) & set(modules) - {name} for name, tree in modules.items()}
    arrows["crow.core.host"].remove("crow.core.agent")  # the types of what hangs there
    try:
        TopologicalSorter(arrows).prepare()
    except CycleError as error:
        _, circle = error.args
        pytest.fail("a circle of imports: " + " -> ".join(reversed(circle)))


def test_a_path_of_a_user_that_does_not_exist_is_a_path(trees: dict[Path, Nodes]) -> None:
    """``Path.expanduser`` raises for it, ``os.path.expanduser`` does not."""
    attributes = [
        (path, node)
        for path, tree in trees.items()
        for node in tree
        if isinstance(node, ast.Attribute) and node.attr == "expanduser"
    ]
    assert [path for path, node in attributes if ast.unparse(node.value) != "os.path"] == []


ROOMS: dict[str, str] = vars(crow)["_HOMES"]


def module_of(path: Path) -> str:
    """The name under which a file is imported."""
    parts = path.relative_to(SRC.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def entered(tree: Nodes) -> Iterator[str]:
    """What a module imports, and what that would be where it is a module itself.

    Through the front door it enters the rooms of the names.
    """
    yield from (name for name in imported(tree) if name != "crow")
    for node in tree:
        if isinstance(node, ast.ImportFrom):
            rooms = ROOMS if node.module == "crow" else {}
            yield from (rooms.get(a.name, f"{node.module}.{a.name}") for a in node.names)


def test_importing_crow_imports_no_third_party() -> None:
    show = "import sys; old = set(sys.modules); import crow; print(*(set(sys.modules) - old))"
    shown = subprocess.run(
        [sys.executable, "-c", show], capture_output=True, text=True, check=True
    ).stdout
    names = {name.split(".")[0] for name in shown.split()}
    assert names - sys.stdlib_module_names == {"crow"}


def test_the_loop_is_a_page_that_knows_nothing_of_what_hangs_on_it(
    trees: dict[Path, Nodes],
) -> None:
    loop = SRC / "core" / "loop.py"
    text = loop.read_text("utf-8")
    functions = [
        node for node in trees[loop] if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    assert len(text.splitlines()) <= 120
    assert max((node.end_lineno or 0) - node.lineno + 1 for node in functions) <= 25
    assert re.findall(STRANGE_TO_THE_LOOP, text) == []


def test_functions_are_short(trees: dict[Path, Nodes]) -> None:
    lengths = [
        (node.end_lineno or 0) - node.lineno + 1
        for tree in trees.values()
        for node in tree
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    assert statistics.median(lengths) <= 10
    assert statistics.quantiles(lengths, n=10)[-1] <= 30


def test_the_version_is_the_one_that_the_package_declares() -> None:
    assert PROJECT["version"] == __version__ == crow.__version__


def test_the_lock_holds_what_the_package_declares_and_public_addresses_only() -> None:
    text = (ROOT / "uv.lock").read_text("utf-8")
    package = next(p for p in tomllib.loads(text)["package"] if p["name"] == PROJECT["name"])
    locked = {
        dependency["name"] + dependency.get("specifier", "")
        for dependency in package["metadata"]["requires-dist"]
        if "extra ==" not in dependency.get("marker", "")
    }
    assert locked == {each.partition(";")[0] for each in PROJECT["dependencies"]}
    assert set(re.findall(r"https?://([^/\"]+)", text)) == {"pypi.org", "files.pythonhosted.org"}
