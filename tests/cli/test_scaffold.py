"""``crow ext new``: what it writes works at once, by its own tests and in use."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.conftest import Crow, Here
from tests.examples.test_examples import install

from crow.cli.scaffold import FILES, filled

RUN = ("run", "--model", "rehearsal")


def outside(folder: Path, *command: str) -> str:
    """What a command says in a new package, as its author would run it with that installed."""
    env = {**os.environ, "PYTHONPATH": str(folder / "src"), "PYTEST_ADDOPTS": ""}
    ended = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


@pytest.mark.slow
async def test_a_new_package_works_at_once(crow: Crow, here: Here, project: Path) -> None:
    ended = await here("ext", "new", "my-guard")
    folder = project / "crow-my-guard"
    written = {path.relative_to(folder) for path in folder.rglob("*") if path.is_file()}
    assert written == {Path(filled(path, "my_guard")) for path in FILES}
    assert ended.status == 0
    assert "crow-my-guard/src/crow_my_guard/__init__.py\n" in ended.out
    assert "ample" not in "".join(
        path.read_text() for path in folder.rglob("*.*") if path.is_file()
    )

    assert "2 passed" in outside(folder, sys.executable, "-m", "pytest", "-q")
    install(folder, folder.parent / "site")
    tests = "-c", "import sys; sys.path.insert(0, '../site')\nimport pytest; pytest.main(['-q'])"
    assert "2 passed" in outside(folder, sys.executable, *tests), "and where it is installed"
    ended = await crow(*RUN, "--extension", "./crow-my-guard", "Run `sudo ls`")
    assert "the command has sudo in it" in ended.out


@pytest.mark.slow
async def test_type_checkers_and_linters_find_nothing_in_a_new_package(
    here: Here, project: Path
) -> None:
    await here("ext", "new", "my-guard")
    folder = project / "crow-my-guard"
    tools = Path(sys.executable).parent
    outside(folder, str(tools / "pyright"), "--pythonpath", sys.executable)
    outside(
        folder,
        str(tools / "ruff"),
        "check",
        "--isolated",
        "--select",
        "E,F,I,UP,B",
        "--line-length=100",
    )
    outside(folder, str(tools / "ruff"), "format", "--isolated", "--check", "--line-length=100")


async def test_a_new_file_is_in_use_where_the_project_is_trusted(here: Here, project: Path) -> None:
    assert (await here("ext", "new", "my-guard", "--file")).status == 0
    folder = project / ".crow" / "extensions"
    assert {each.name for each in folder.iterdir()} == {"my_guard.py", "test_my_guard.py"}
    assert (await here("trust", "-y")).status == 0
    lines = (await here("ext", "list")).out.splitlines()
    assert any(line.startswith("in use") and " my_guard " in line for line in lines)


@pytest.mark.slow
async def test_the_test_of_a_new_file_passes_and_leaves_it_trusted(
    crow: Crow, here: Here, project: Path
) -> None:
    await here("ext", "new", "my-guard", "--file")
    await here("trust", "-y")
    ended = await crow("ext", "test", "my-guard", "--plays", "2")
    assert ended.status == 0, ended.out + ended.err
    assert "2 passed" in ended.out
    outside(project, sys.executable, "-m", "pytest", "-q", ".crow/extensions/test_my_guard.py")
    lines = (await here("ext", "list")).out.splitlines()
    assert any(line.startswith("in use") and " my_guard " in line for line in lines)


@pytest.mark.parametrize(
    "given, wrong",
    [
        ((), "what is it called? crow ext new my-guard"),
        (("My Guard",), "'My Guard' is no name: small letters, digits and hyphens, as in my-guard"),
        (("class",), "'class' is a word of Python's own, and no module can have it: my-class"),
        (("permissions",), "an extension 'permissions' is there already, of crow"),
        (("crow-there",), "{}/crow-there is there already"),
    ],
)
async def test_what_cannot_be_written_is_said_and_nothing_is_written(
    here: Here, project: Path, given: tuple[str, ...], wrong: str
) -> None:
    (project / "crow-there").mkdir()
    ended = await here("ext", "new", *given)
    assert (ended.status, ended.complaint) == (2, wrong.format(project))
    assert sorted(path.name for path in project.iterdir()) == [".git", "README.md", "crow-there"]


async def test_a_folder_whose_package_has_no_extension_is_no_extension(
    here: Here, project: Path
) -> None:
    (project / "other").mkdir()
    (project / "other" / "pyproject.toml").write_text('[project]\nname = "other"\n')
    ended = await here("ext", "list", "--extension", "./other")
    assert ended.status == 1
    assert "its pyproject.toml names 0 in crow.extensions, not one" in ended.out


async def test_a_folder_with_several_extensions_says_how_each_is_used(
    here: Here, project: Path
) -> None:
    (project / "other").mkdir()
    points = '[project.entry-points."crow.extensions"]\none = "other:One"\ntwo = "other:Two"\n'
    (project / "other" / "pyproject.toml").write_text(f'[project]\nname = "other"\n{points}')
    ended = await here("ext", "list", "--extension", "./other")
    assert ended.status == 1
    assert "names 2 in crow.extensions, not one: install it, and use each by its" in ended.out
