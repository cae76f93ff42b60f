"""The protocol's official TypeScript library and JSON schema, where they are installed."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

FOLDER = Path(__file__).with_name("node")
SDK = FOLDER / "node_modules/@agentclientprotocol/sdk"
INSTALLING = 40


@pytest.fixture(scope="session")
def node(request: pytest.FixtureRequest) -> str:
    """The program `node`, with the library at hand; asked for by name, it is installed first."""
    program, npm = shutil.which("node"), shutil.which("npm")
    if program is None or npm is None:
        pytest.skip("Node and npm are not installed: the official TypeScript client is not tried")
    is_wanted = "node" in str(request.config.getoption("markexpr")) or bool(os.environ.get("CI"))
    if not SDK.is_dir() and is_wanted:
        install(npm)
    if not SDK.is_dir():
        pytest.skip("the TypeScript library is not installed: make test ARGS='-m node'")
    return program


def install(npm: str) -> None:
    """Install what the lock says; skip where that takes too long or fails."""
    try:
        subprocess.run([npm, "ci"], cwd=FOLDER, check=True, capture_output=True, timeout=INSTALLING)
    except (OSError, subprocess.SubprocessError) as error:
        shutil.rmtree(FOLDER / "node_modules", ignore_errors=True)
        pytest.skip(f"the TypeScript library cannot be installed: {error}")


@pytest.fixture(autouse=True)
def official_schema(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hold what every fake editor receives against the official schema, where it is there."""
    if SDK.is_dir():
        monkeypatch.setenv("CROW_ACP_SCHEMA", str(SDK / "schema/v1"))


@pytest.fixture(autouse=True)
def no_local_models(monkeypatch: pytest.MonkeyPatch) -> None:
    """The models that run on this machine are not those of the tests."""
    monkeypatch.setenv("OLLAMA_HOST", "127.0.0.1:9")
