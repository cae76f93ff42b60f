"""Clients that run on Node and the protocol's JSON schema, where they are installed."""

from __future__ import annotations

import ast
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from tests.npm import Packages

from crow import Agent
from crow.extensions import PersistenceHook
from crow.testing import ScriptedModel

FOLDER = Path(__file__).with_name("node")
SDK = FOLDER / "node_modules/@agentclientprotocol/sdk"
LIBRARIES = Packages(
    FOLDER, "the library of clients", 40, ("@agentclientprotocol/sdk", "acpx/dist/cli.js")
)
"""What the lock in ``node`` names."""


@pytest.fixture(scope="session")
def node(request: pytest.FixtureRequest) -> str:
    """The program `node`, with the libraries at hand; asked for by name, they are installed first."""
    return LIBRARIES.node(request)


@pytest.fixture(scope="session")
def routes() -> frozenset[str]:
    """The methods of version 1 that the agent answers, as its table names them."""
    source = import_module("crow.acp.routes").__file__
    assert source is not None
    tables = [
        node
        for node in ast.parse(Path(source).read_text("utf-8")).body
        if isinstance(node, ast.FunctionDef) and node.name in ("routes", "shared")
    ]
    nodes = [node for table in tables for node in ast.walk(table)]
    keys = [key for node in nodes if isinstance(node, ast.Dict) for key in node.keys]
    return frozenset(str(key.value) for key in keys if isinstance(key, ast.Constant))


@pytest.fixture(autouse=True)
def official_schema(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hold what every fake editor receives against the official schema, where it is there."""
    if LIBRARIES.are_there:
        monkeypatch.setenv("CROW_ACP_SCHEMA", str(SDK / "schema/v1"))


@pytest.fixture(autouse=True)
def no_local_models(monkeypatch: pytest.MonkeyPatch) -> None:
    """The models that run on this machine are not those of the tests."""
    monkeypatch.setenv("OLLAMA_HOST", "127.0.0.1:9")


def stored(tmp_path: Path, model: ScriptedModel, *hooks: Any, **options: Any) -> Agent:
    """An agent whose sessions outlive it."""
    return Agent(llm=model, hooks=[PersistenceHook(tmp_path / "crow.db"), *hooks], **options)
