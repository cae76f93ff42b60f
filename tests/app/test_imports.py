"""What an import of an extension runs is what was trusted: no cache, no library, nothing beside it."""

from __future__ import annotations

import importlib.util
import os
import py_compile
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.app.conftest import write

from crow.app import build
from crow.project.trust import is_trusted, trust

BENIGN = "SAID = 'benign'\ndef init_agent(agent): agent.said = SAID\n"
EVIL = "SAID = 'evil!!'\ndef init_agent(agent): agent.said = SAID\n"
HELPED = (
    "import os, sys\n"
    "sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))\n"
    "try:\n    from {module} import SAID\n"
    "finally:\n    del sys.path[0]\n"
    "def init_agent(agent): agent.said = SAID\n"
)


@pytest.fixture(autouse=True)
def nothing_stays() -> Iterator[None]:
    """Leave the interpreter as it was."""
    modules, hooks, path = set(sys.modules), sys.path_hooks[:], sys.path[:]
    yield
    for name in set(sys.modules) - modules:
        if name.partition(".")[0] in {"_helper", "ns", "lib", "tools_of_mine", "_bisect", "beside"}:
            del sys.modules[name]
    sys.path_hooks[:] = hooks
    sys.path[:] = path
    sys.path_importer_cache.clear()


@pytest.fixture
def folder(project: Path) -> Path:
    folder = project / ".crow/extensions"
    folder.mkdir(parents=True)
    return folder


def by_time(source: Path) -> Path:
    """Plant compiled code that Python takes for the source's: same time, same size."""
    return _planted(source, py_compile.PycInvalidationMode.TIMESTAMP)


def by_nothing(source: Path) -> Path:
    """Plant compiled code that says that it need not be compared with the source."""
    return _planted(source, py_compile.PycInvalidationMode.UNCHECKED_HASH)


def by_hash(source: Path) -> Path:
    """Plant compiled code with the hash of the source itself."""
    cache = _planted(source, py_compile.PycInvalidationMode.CHECKED_HASH)
    data = cache.read_bytes()
    cache.write_bytes(data[:8] + importlib.util.source_hash(source.read_bytes()) + data[16:])
    return cache


PLANTS = (by_time, by_nothing, by_hash)


def _planted(source: Path, mode: py_compile.PycInvalidationMode) -> Path:
    cache = Path(importlib.util.cache_from_source(str(source)))
    evil = source.with_name("evil.txt")
    evil.write_text(source.read_text().replace("benign", "evil!!"))
    status = source.stat()
    os.utime(evil, ns=(status.st_atime_ns, status.st_mtime_ns))
    py_compile.compile(str(evil), str(cache), invalidation_mode=mode, doraise=True)
    evil.unlink()
    return cache


def said(project: Path, **options: Any) -> Any:
    """What the extension says of itself when Crow starts; else why it is not in use."""
    agent = build(cwd=project, env={}, **options)
    wrong = [f.error for f in agent.found if f.error and f.source.startswith(str(project))]
    return getattr(agent, "said", wrong)


def is_run_by_python(folder: Path) -> bool:
    """Whether Python itself would run what was planted: else the test shows nothing."""
    code = "import mine; print(mine.SAID)"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=True
    )
    return done.stdout.strip() == "evil!!"


@pytest.mark.parametrize("plant", PLANTS)
def test_compiled_code_beside_an_extension_is_never_run(
    project: Path, folder: Path, plant: Callable[[Path], Path]
) -> None:
    plant(write(folder / "mine.py", BENIGN))
    assert is_run_by_python(folder)
    trust(project)
    assert said(project) == "benign"


@pytest.mark.parametrize("plant", PLANTS)
def test_compiled_code_that_comes_later_is_never_run_and_asked_about(
    project: Path, folder: Path, plant: Callable[[Path], Path]
) -> None:
    write(folder / "mine.py", BENIGN)
    trust(project)
    assert said(project) == "benign"
    assert not list(folder.rglob("*.pyc"))
    assert is_trusted(project)
    plant(folder / "mine.py")
    assert not is_trusted(project)


@pytest.mark.parametrize("plant", PLANTS)
@pytest.mark.parametrize(
    ("module", "file"),
    [("_helper", "_helper.py"), ("_helper", "_helper/__init__.py"), ("ns.inner", "ns/inner.py")],
)
def test_what_an_extension_imports_is_not_taken_from_a_cache(
    project: Path, folder: Path, plant: Callable[[Path], Path], module: str, file: str
) -> None:
    write(folder / "mine.py", HELPED.format(module=module))
    plant(write(folder / file, "SAID = 'benign'\n"))
    trust(project)
    assert said(project) == "benign"
    write(folder / file, "SAID = 'changed'\n")
    assert not is_trusted(project)
    assert said(project) == ["the project is not trusted (crow trust)"]


@pytest.mark.parametrize("plant", PLANTS)
def test_what_is_named_on_the_command_line_is_not_taken_from_a_cache(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plant: Callable[[Path], Path]
) -> None:
    plant(write(tmp_path / "x" / "mine.py", BENIGN))
    assert said(project, extensions=[str(tmp_path / "x/mine.py")]) == "benign"
    plant(write(tmp_path / "y" / "beside.py", BENIGN))
    monkeypatch.chdir(tmp_path / "y")
    assert said(project, extensions=["beside"]) == "benign"


def test_a_compiled_module_without_source_is_part_of_what_is_trusted(
    project: Path, folder: Path
) -> None:
    write(folder / "mine.py", HELPED.format(module="_helper"))
    source = write(folder / "_helper.py", "SAID = 'benign'\n")
    py_compile.compile(str(source), str(folder / "_helper.pyc"), doraise=True)
    source.unlink()
    trust(project)
    assert said(project) == "benign"
    (folder / "_helper.pyc").write_bytes((folder / "_helper.pyc").read_bytes() + b"x")
    assert not is_trusted(project)


def test_a_native_module_is_part_of_what_is_trusted(project: Path, folder: Path) -> None:
    found = importlib.util.find_spec("_bisect")
    assert found is not None
    copy = Path(shutil.copy(str(found.origin), folder))
    write(
        folder / "mine.py",
        "import os, sys\n"
        "known = sys.modules.pop('_bisect', None)\n"
        "sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))\n"
        "import _bisect\n"
        "del sys.path[0]\n"
        "if known: sys.modules['_bisect'] = known\n"
        "def init_agent(agent): agent.said = _bisect.__file__\n",
    )
    trust(project)
    assert said(project) == str(copy)
    with copy.open("ab") as file:
        file.write(b"\0")
    assert not is_trusted(project)


@pytest.mark.parametrize("where", ["vendor", "../vendor"])
def test_a_link_out_of_the_folder_imports_nothing(project: Path, folder: Path, where: str) -> None:
    write(project / where / "inner.py", "SAID = 'benign'\n")
    (folder / "lib").symlink_to(project / where)
    write(folder / "mine.py", HELPED.format(module="lib.inner"))
    trust(project)
    assert "none of the files that this project is trusted for" in str(said(project))


def test_a_linked_file_is_part_of_what_is_trusted(project: Path, folder: Path) -> None:
    target = write(project / "vendor/real.py", "SAID = 'benign'\n")
    (folder / "_helper.py").symlink_to(target)
    write(folder / "mine.py", HELPED.format(module="_helper"))
    trust(project)
    assert said(project) == "benign"
    write(target, "SAID = 'changed'\n")
    assert not is_trusted(project)


def test_code_of_the_project_that_nobody_trusted_is_not_imported(
    project: Path, folder: Path
) -> None:
    write(project / "tools_of_mine/it.py", "SAID = 'unseen'\n")
    write(
        folder / "mine.py",
        f"import sys\nsys.path.append({str(project)!r})\n"
        "from tools_of_mine.it import SAID\ndef init_agent(agent): agent.said = SAID\n",
    )
    trust(project)
    assert "none of the files that this project is trusted for" in str(said(project))


def test_an_archive_is_imported_as_it_was_trusted(project: Path, folder: Path) -> None:
    def pack(place: Path) -> None:
        with zipfile.ZipFile(place, "w") as archive:
            archive.writestr("_helper.py", "SAID = 'benign'\n")

    source = "import sys\nsys.path.insert(0, {!r})\nfrom _helper import SAID\n"
    pack(folder / "all.zip")
    tail = "def init_agent(agent): agent.said = SAID\n"
    write(folder / "mine.py", source.format(str(folder / "all.zip")) + tail)
    trust(project)
    assert said(project) == "benign"
    pack(project / "all.zip")
    del sys.modules["_helper"], sys.path[0]
    write(folder / "mine.py", source.format(str(project / "all.zip")) + tail)
    trust(project)
    assert "No module named '_helper'" in str(said(project))


def test_what_is_swapped_after_the_start_is_not_imported_any_more(
    project: Path, folder: Path
) -> None:
    write(folder / "_helper.py", "SAID = 'benign'\n")
    write(
        folder / "mine.py",
        "import os, sys\nsys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))\n"
        "def later():\n    import _helper\n    return _helper.SAID\n"
        "def init_agent(agent): agent.said = later\n",
    )
    trust(project)
    later = said(project)
    write(folder / "_helper.py", "SAID = 'swapped'\n")
    with pytest.raises(ImportError, match="has changed since this project was trusted"):
        later()


@pytest.mark.slow
def test_tests_beside_an_extension_are_no_extensions_and_take_no_trust_away(
    project: Path, folder: Path
) -> None:
    write(folder / "mine.py", BENIGN)
    write(folder / "test_mine.py", "from mine import SAID\ndef test_it(): assert SAID\n")
    write(folder / "conftest.py", "def init_agent(agent): agent.said = 'from conftest'\n")
    trust(project)
    env = {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}
    pytest_run = [sys.executable, "-m", "pytest", "-q", "test_mine.py"]
    subprocess.run(pytest_run, cwd=folder, env=env, check=True, capture_output=True)
    assert {each.name for each in folder.iterdir()} > {".pytest_cache", "__pycache__"}
    for each in folder.glob("__pycache__/mine.*.pyc"):  # this one Python would import
        assert not is_trusted(project)
        each.unlink()
    assert is_trusted(project)
    agent = build(cwd=project)
    assert [each.name for each in agent.found if str(folder) in each.source] == ["mine"]
    write(folder / "test_mine.py", "import os\n")
    assert not is_trusted(project), "an extension could import it"


@pytest.mark.parametrize(
    "name", [".pytest_cache/lib.py", ".ruff_cache/lib.so", "x/lib-pytest-8.py"]
)
def test_code_is_part_of_what_is_trusted_wherever_it_lies(
    project: Path, folder: Path, name: str
) -> None:
    write(folder / "mine.py", BENIGN)
    trust(project)
    write(folder / name, EVIL)
    assert not is_trusted(project)
