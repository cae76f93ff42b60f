"""A real model behind a real server, in a process that a test may kill."""

from __future__ import annotations

import json
import select
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Crow, crow, forks, project

__all__ = ["crow", "forks", "project"]

HERE = Path(__file__).parent
PYTHON = HERE.parents[1] / ".real" / "bin" / "python"
WINDOW = 2048
LOADED = 120.0
SHORT = {"max_tokens": 60, "stop": [". ", "! ", "? ", "\n\n", "\n#"]}
"""A sentence is an answer: a model this small does not end by itself."""
LONG = {"max_tokens": 150, "stop": []}


class Model:
    """SmolLM2 on llama.cpp's server; ``start`` returns once it answers, ``kill`` leaves nothing."""

    def __init__(self, log: Path, window: int = WINDOW, slots: int = 2) -> None:
        self.log = log
        self.port = 0
        self._sizes = (str(window * slots), str(slots))
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """What Crow is told."""
        return f"http://127.0.0.1:{self.port}/v1"

    def launch(self, port: int = 0) -> None:
        """Start the process, and wait for nothing."""
        assert PYTHON.exists(), "run `make real`, which installs the model"
        argv = [PYTHON, HERE / "serve.py", str(port), *self._sizes, HERE / "template.jinja"]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log
            )

    def start(self) -> None:
        """Start it, where it was before if it was."""
        self.launch(self.port)
        assert self._process is not None
        assert self._process.stdout is not None
        ready, _, _ = select.select([self._process.stdout], [], [], LOADED)
        line = self._process.stdout.readline().decode() if ready else ""
        assert line.startswith("http"), self.log.read_text()[-2000:]
        self.port = int(line.rpartition(":")[2])

    def kill(self) -> None:
        """End it as a crash would."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Model]:
    """The server that most tests share; two sessions fit."""
    model = Model(tmp_path_factory.mktemp("model") / "log")
    model.start()
    yield model
    model.kill()


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Model]:
    """A server of this test's, not started."""
    model = Model(tmp_path / "log", slots=1)
    yield model
    model.kill()


@pytest.fixture
def model(crow: Crow, served: Model, home: Path) -> Model:
    """The shared server, which the command asks, for short answers."""
    use(crow, served, home)
    return served


def use(crow: Crow, model: Model, home: Path, **params: Any) -> None:
    """Let the command ask a server, with what every request is to have."""
    crow.env |= {"CROW_BASE_URL": model.url, "CROW_MODEL": "smollm2"}
    settings = home / ".crow" / "settings.json"
    settings.parent.mkdir(exist_ok=True)
    settings.write_text(json.dumps({"params": {**SHORT, **params}, "timeouts": {"listen": 60}}))
