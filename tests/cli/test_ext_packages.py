"""``crow ext add|remove|update``: the installers that put Crow there, real ones, and their words."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Crow, Here

from crow.cli import UsageError
from crow.cli.ext_packages import Environment, Package, asked_for, environment, installed, written

ROOT = Path(__file__).parents[2]
GREETING = '''
class Greeting:
    """Greets at the start."""

    def before_run(self, ctx):
        ctx.inject_context("hello")
'''


def wheel(folder: Path, version: str, code: str = GREETING, *, name: str = "crow_greeting") -> Path:
    """A package with an extension, as an index would give it."""
    folder.mkdir(exist_ok=True)
    info, path = f"{name}-{version}.dist-info", folder / f"{name}-{version}-py3-none-any.whl"
    files = {
        f"{name}.py": code,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    if code:
        points = f"[crow.extensions]\ngreeting = {name}:Greeting\n"
        files[f"{info}/entry_points.txt"] = points
    files[f"{info}/RECORD"] = "".join(f"{file},,\n" for file in [*files, f"{info}/RECORD"])
    with zipfile.ZipFile(path, "w") as archive:
        for file, text in files.items():
            archive.writestr(file, text)
    return path


class Installed:
    """Crow where an installer has put it, offline: ``(status, out, err)`` of each command."""

    def __init__(self, python: Path, tmp_path: Path, **env: str) -> None:
        self.python = python
        self.links = tmp_path / "index"
        self.links.mkdir()
        kept = {key: value for key, value in os.environ.items() if not key.startswith("CROW")}
        home = tmp_path / "home"
        home.mkdir()
        self.env = {**kept, "HOME": str(home), **env}

    def __call__(self, *argv: str) -> tuple[int, str, str]:
        done = subprocess.run(
            [self.python, "-P", "-m", "crow", "ext", *argv],
            env=self.env,
            capture_output=True,
            text=True,
            timeout=120,
        )
        return done.returncode, done.stdout, done.stderr


@pytest.fixture
def pip(tmp_path: Path) -> Installed:
    """An environment that ``python -m venv`` made, with Crow in it as it is here."""
    where = tmp_path / "env"
    subprocess.run([sys.executable, "-m", "venv", where], check=True)
    site = next(where.glob("lib/python*/site-packages"))
    (site / "crow.pth").write_text(f"{sysconfig.get_path('purelib')}\n{ROOT / 'src'}\n")
    index = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path / "index")}
    return Installed(where / "bin/python", tmp_path, **index)


@pytest.fixture
def uv_tool(tmp_path: Path) -> Installed:
    """What ``uv tool install crow-acp`` makes, from the wheel of this very tree."""
    uv = shutil.which("uv") or shutil.which("uv", path=str(ROOT / ".uv/bin"))
    if uv is None:
        pytest.skip("no uv")
    subprocess.run([uv, "build", "-q", "--wheel", "-o", tmp_path / "dist", ROOT], check=True)
    made = {
        "UV_TOOL_DIR": str(tmp_path / "tools"),
        "UV_TOOL_BIN_DIR": str(tmp_path / "bin"),
        "UV_FIND_LINKS": str(tmp_path / "index"),
        "UV_CACHE_DIR": subprocess.check_output([uv, "cache", "dir"], text=True).strip(),
        "PATH": f"{Path(uv).parent}{os.pathsep}{os.environ['PATH']}",
    }
    (whl,) = (tmp_path / "dist").glob("*.whl")
    install = [uv, "tool", "install", "-q", "--python", sys.executable, str(whl)]
    made_here = Installed(tmp_path / "tools/crow-acp/bin/python", tmp_path, **made, UV_OFFLINE="1")
    if subprocess.run(install, env={**os.environ, **made}, check=False).returncode:
        pytest.skip("there is no index to install Crow's libraries from")
    return made_here


@pytest.mark.slow
@pytest.mark.parametrize("sort", ["pip", "uv_tool"])
def test_a_package_comes_is_renewed_and_goes(sort: str, request: pytest.FixtureRequest) -> None:
    crow: Installed = request.getfixturevalue(sort)
    wheel(crow.links, "1.0")
    status, out, err = crow("add", "crow-greeting")
    assert (status, out) == (0, "in use  greeting  of crow_greeting\n"), err
    assert crow("info", "greeting")[1].startswith("greeting  crow_greeting 1.0\n")
    assert crow("update")[:2] == (0, "crow_greeting  1.0, as before\n")

    wheel(crow.links, "2.0")
    assert crow("update", "greeting")[:2] == (0, "crow_greeting  1.0 -> 2.0\n")

    wheel(crow.links, "1.0", "", name="crow_other")
    status, out, err = crow("add", str(crow.links / "crow_other-1.0-py3-none-any.whl"))
    assert (status, out) == (1, "")
    assert "brings no extension: nothing in it is named in crow.extensions" in err

    status, out, err = crow("add", "crow-nobody-has-written")
    assert (status, out) == (1, "")
    assert crow("list")[0] == 0, "and Crow is as it was"

    assert crow("remove", "greeting")[:2] == (0, "crow_greeting is gone\n")
    assert "greeting" not in crow("list")[1]
    assert crow("update")[1:] == ("", "no package has brought an extension\n")


BACKEND = """
import zipfile

def build_wheel(folder, config_settings=None, metadata_directory=None):
    info, name = "crow_greeting-1.0.dist-info", "crow_greeting-1.0-py3-none-any.whl"
    files = {
        "crow_greeting.py": open("crow_greeting.py").read(),
        f"{info}/METADATA": "Metadata-Version: 2.1\\nName: crow_greeting\\nVersion: 1.0\\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n",
        f"{info}/entry_points.txt": "[crow.extensions]\\ngreeting = crow_greeting:Greeting\\n",
    }
    files[f"{info}/RECORD"] = "".join(f"{file},,\\n" for file in [*files, f"{info}/RECORD"])
    with zipfile.ZipFile(f"{folder}/{name}", "w") as archive:
        for file, text in files.items():
            archive.writestr(file, text)
    return name
"""
"""Builds the package with what Python has, so that no index is needed."""
PROJECT = """
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]

[project]
name = "crow_greeting"
version = "1.0"
"""


def commit(repository: Path, code: str) -> str:
    """Commit a package with this code; the commit's number."""
    repository.mkdir(exist_ok=True)
    for name, text in {
        "backend.py": BACKEND, "pyproject.toml": PROJECT, "crow_greeting.py": code
    }.items():  # fmt: skip
        (repository / name).write_text(text, "utf-8")
    who = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    for argv in (["init", "-q"], ["add", "-A"], [*who, "commit", "-qm", "change"]):
        subprocess.run(["git", *argv], cwd=repository, check=True)
    told = subprocess.check_output(["git", "rev-parse", "HEAD"], cwd=repository, text=True)
    return told.strip()[:7]


@pytest.mark.slow
@pytest.mark.parametrize("sort", ["pip", "uv_tool"])
def test_a_repository_is_renewed_though_its_version_stays(
    sort: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    crow: Installed = request.getfixturevalue(sort)
    repository = tmp_path / "repository"
    first = commit(repository, GREETING)
    status, out, err = crow("add", repository.as_uri())
    assert (status, out) == (0, "in use  greeting  of crow_greeting\n"), err
    assert crow("update")[:2] == (0, f"crow_greeting  1.0 of {first}, as before\n")

    second = commit(repository, GREETING.replace("hello", "good evening"))
    assert crow("update", "greeting")[:2] == (
        0,
        f"crow_greeting  1.0 of {first} -> 1.0 of {second}\n",
    )
    site = next(Path(crow.python).parents[1].glob("lib/python*/site-packages"))
    assert "good evening" in (site / "crow_greeting.py").read_text("utf-8")


@pytest.mark.slow
def test_one_that_does_not_load_is_named_with_its_error(pip: Installed) -> None:
    wheel(pip.links, "1.0", "import nothing_of_this_name\nclass Greeting: ...\n")
    status, out, err = pip("add", "crow-greeting")
    assert (status, out) == (1, "broken  greeting  of crow_greeting\n")
    assert "No module named 'nothing_of_this_name'" in err
    assert pip("remove", "crow-greeting")[0] == 0


@pytest.mark.parametrize(
    "text, means",
    [
        ("crow-guard", "crow-guard"),
        ("crow-guard>=2", "crow-guard>=2"),
        ("https://github.com/a/b", "git+https://github.com/a/b"),
        ("https://example.org/a/b.git@v1", "git+https://example.org/a/b.git@v1"),
        ("git@example.org:a/b.git", "git+ssh://git@example.org/a/b.git"),
        ("ssh://git@example.org/a/b.git", "git+ssh://git@example.org/a/b.git"),
        ("git+https://example.org/a", "git+https://example.org/a"),
        ("file:///srv/a/b.git", "git+file:///srv/a/b.git"),
        ("file:///srv/a/b.git@v1", "git+file:///srv/a/b.git@v1"),
        ("file:///srv/a/b-1-py3-none-any.whl", "file:///srv/a/b-1-py3-none-any.whl"),
        (
            "https://example.org/crow_guard-1-py3-none-any.whl",
            "https://example.org/crow_guard-1-py3-none-any.whl",
        ),
        ("crow-guard @ https://example.org/g.zip", "crow-guard @ https://example.org/g.zip"),
    ],
)
def test_what_a_person_writes_is_what_an_installer_takes(text: str, means: str) -> None:
    assert asked_for(text) == means


def test_a_folder_and_what_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "guard").mkdir()
    with pytest.raises(UsageError, match=r"guard is no package: there is no pyproject\.toml"):
        asked_for("guard")
    (tmp_path / "guard/pyproject.toml").touch()
    assert asked_for("guard") == str(tmp_path / "guard")
    (tmp_path / "one.py").touch()
    with pytest.raises(UsageError, match=r"put one\.py into ~/\.crow/extensions"):
        asked_for("one.py")
    with pytest.raises(UsageError, match=r"there is no \./gone"):
        asked_for("./gone")


@pytest.mark.parametrize(
    "kept, means",
    [
        ({"name": "a"}, "a"),
        ({"name": "a", "specifier": ">=2"}, "a>=2"),
        ({"name": "a", "extras": ["x", "y"]}, "a[x,y]"),
        ({"name": "a", "path": "/w/a.whl"}, "a @ file:///w/a.whl"),
        ({"name": "a", "directory": "/w/a b"}, "a @ file:///w/a%20b"),
        ({"name": "a", "url": "https://h/a.whl"}, "a @ https://h/a.whl"),
        ({"name": "a", "git": "https://h/a"}, "a @ git+https://h/a"),
        (
            {"name": "a", "git": "https://h/a?subdirectory=in&rev=v1#0123abc"},
            "a @ git+https://h/a@v1#subdirectory=in",
        ),
    ],
)
def test_what_was_beside_a_tool_of_uv_stays_there(kept: dict[str, Any], means: str) -> None:
    assert written(kept) == means


def test_where_nothing_can_be_put_beside_crow_it_is_said_what_can(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def at(prefix: Path, *files: str) -> Environment:
        prefix.mkdir(parents=True, exist_ok=True)
        for file in files:
            (prefix / file).write_text("{}")
        monkeypatch.setattr("sys.prefix", str(prefix))
        return environment()

    with pytest.raises(UsageError, match=r"uvx --with NAME crow-acp for once"):
        at(tmp_path / "cache/archive-v0/x")
    with pytest.raises(UsageError, match=r"uv add NAME puts a package beside it"):
        at(tmp_path / "project/.venv", "../uv.lock")
    assert at(tmp_path / "piped", "pipx_metadata.json").sort == "pipx"
    assert at(tmp_path / "tools", "uv-receipt.toml").sort == "uv tool"
    assert at(tmp_path / "env").sort in ("uv", "pip")
    monkeypatch.setattr("sys.base_prefix", str(tmp_path / "env"))
    (tmp_path / "EXTERNALLY-MANAGED").touch()
    monkeypatch.setattr("sysconfig.get_path", lambda name: str(tmp_path))  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    with pytest.raises(UsageError, match=r"this Python is the system's"):
        at(tmp_path / "env")


def test_each_installer_is_asked_in_its_own_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("pipx", "uv"):
        (tmp_path / name).touch(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "uv-receipt.toml").write_text(
        '[tool]\nrequirements = [{ name = "crow-acp", extras = ["otel"] }, '
        '{ name = "crow-guard", editable = "/g" }, { name = "crow-other", specifier = ">1" }]\n'
    )
    guard = Package("crow_guard", "1", "/g", editable=True)
    pipx, tool = Environment("pipx", tmp_path), Environment("uv tool", tmp_path)
    assert pipx.add("x", editable=False)[1:] == ["inject", "crow-acp", "x"]
    assert pipx.remove(guard)[1:] == ["uninject", "crow-acp", "crow_guard"]
    assert pipx.update(guard)[1:4] == ["runpip", "crow-acp", "install"]
    assert tool.add("x", editable=True)[-7:] == [
        *("crow-acp[otel]", "--with-editable", "/g", "--with", "crow-other>1"),
        *("--with-editable", "x"),
    ]
    assert tool.remove(guard)[-3:] == ["crow-acp[otel]", "--with", "crow-other>1"]
    monkeypatch.setenv("PATH", "")
    with pytest.raises(UsageError, match=r"installed with pipx, and pipx is not on the PATH"):
        pipx.remove(guard)


async def test_a_file_is_no_package_and_where_it_lies_is_said(here: Here, crow: Crow) -> None:
    file = crow.cwd / ".crow" / "extensions" / "a_b.py"
    file.parent.mkdir(parents=True)
    file.write_text("def before_tool(ctx): ...")
    ended = await here("ext", "remove", "a_b")
    assert ended.complaint == f"a_b is no package but {file}: delete that, and it is gone"


@pytest.mark.parametrize(
    "argv, complaint",
    [
        (["add"], "which one? crow ext add crow-my-guard"),
        (["info"], "which one? crow ext info my_guard"),
        (["remove", "permissions"], 'permissions comes with Crow: "disabled": ["permissions"] in'),
        (["update", "guard"], "there is no package 'guard' (crow ext list)"),
        (["info", "permission"], "did you mean 'permissions'? (crow ext list)"),
    ],
)
async def test_what_cannot_be_done_is_said_in_a_line(
    here: Here, argv: list[str], complaint: str
) -> None:
    ended = await here("ext", *argv)
    assert ended.status == 2
    assert complaint in ended.complaint


def test_a_package_knows_what_it_was_installed_from() -> None:
    own = installed("crow-acp")
    assert (own.editable, own.spec) == (True, str(ROOT))
    assert installed("pytest").spec == "pytest"
