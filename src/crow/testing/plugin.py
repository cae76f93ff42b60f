"""The pytest plugin: fixtures for tests of agents and extensions.

Loaded in every pytest run where Crow is installed, so it imports nothing of Crow's before a
fixture is used.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pytest

if TYPE_CHECKING:
    from crow.core.agent import Agent
    from crow.core.ports.tool import Tool
    from crow.testing.model import Line, ScriptedModel
    from crow.testing.pilot import Pilot


RECORDINGS = ".crow.jsonl"
"""How the name of a file ends that is collected as a recorded session."""


FACES = ("process", "acp", "pipe")
"""The faces through which a test can use the agent."""


def pytest_configure(config: pytest.Config) -> None:
    """Say what the marks mean."""
    text = f"faces(*names): run this test of `crow` through these faces, of {', '.join(FACES)}"
    config.addinivalue_line("markers", text)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make a test of each face that a test is marked with; without names, of all."""
    mark = metafunc.definition.get_closest_marker("faces")
    if mark is None or "crow" not in metafunc.fixturenames:
        return
    for name in mark.args:
        if name not in FACES:
            raise pytest.UsageError(f"there is no face {name!r}: there are {', '.join(FACES)}")
    metafunc.parametrize("crow", mark.args or FACES, indirect=True)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let a project say how its recordings are played."""
    parser.addini("crow_eval", "options of `crow eval run` for recorded sessions", type="args")


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Take a recorded session for a test."""
    if not file_path.name.endswith(RECORDINGS):
        return None
    from crow.testing.recordings import RecordingFile

    make: Any = RecordingFile
    return make.from_parent(parent, path=file_path)


class Scripted(Protocol):
    """Makes a `ScriptedModel`; the options are the model's."""

    def __call__(self, *script: Line, **options: Any) -> ScriptedModel: ...


class AgentOf(Protocol):
    """Makes an agent that plays a script; its ``llm`` is the `ScriptedModel`.

    Without ``tools`` it has the built-in ones.
    """

    def __call__(
        self, *script: Line, hooks: Iterable[Any] = (), tools: Iterable[Tool] | None = None
    ) -> Agent: ...


class BuildAgent(Protocol):
    """Makes the whole agent, which plays a script; the options are those of `crow.build`."""

    def __call__(self, *script: Line, **options: Any) -> Agent: ...


@pytest.fixture
def scripted() -> Iterator[Scripted]:
    """``scripted("text", call("Read", file_path="a.txt"), ...)`` makes a model that plays that.

    The test fails at its end if a model was asked past its script, or lines of it were left over
    (unless it was made with ``leftover="allow"``).
    """
    from crow.testing.model import ScriptedModel

    models: list[ScriptedModel] = []

    def make(*script: Line, **options: Any) -> ScriptedModel:
        models.append(ScriptedModel(*script, **options))
        return models[-1]

    yield make
    for model in models:
        model.verify()


@pytest.fixture
def agent_of(scripted: Scripted) -> AgentOf:
    """``agent_of("text", hooks=[MyExtension()])`` makes an agent with a `scripted` model.

    ``async with agent_of(...) as agent:`` closes its sessions where extensions hold resources.
    """
    from crow import Agent

    def make(
        *script: Line, hooks: Iterable[Any] = (), tools: Iterable[Tool] | None = None
    ) -> Agent:
        return Agent(llm=scripted(*script), hooks=hooks, tools=tools)

    return make


@pytest.fixture
def build_agent(
    scripted: Scripted, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> BuildAgent:
    """``build_agent("text", hooks=[MyExtension()], cwd=project)`` makes the whole agent, offline.

    It is what `crow.build` makes, permissions and persistence included, with a `scripted` model.
    The home directory is an empty one for as long as the test lasts: no settings and no sessions
    of whoever runs it. There is no sandbox, so that what is asked is the same on every machine;
    ``monkeypatch.delenv("CROW_SANDBOX")`` gives the machine's. ``async with build_agent(...) as
    agent:`` closes what it holds open.
    """
    from crow import build

    home = str(tmp_path_factory.mktemp("home"))
    for name in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(name, home)
    for name in ("CONFIG", "DATA", "STATE", "CACHE"):
        monkeypatch.delenv(f"XDG_{name}_HOME", raising=False)
    monkeypatch.setenv("CROW_SANDBOX", "off")

    def make(*script: Line, **options: Any) -> Agent:
        return build(model=scripted(*script), **options)

    return make


@pytest.fixture
def crow(
    request: pytest.FixtureRequest,
    build_agent: BuildAgent,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Pilot]:
    """``crow.use(MyExtension())``, ``crow.run("Prompt", call("Bash", command="ls"), "Done.")``.

    The whole agent of `build_agent` at work in a folder of its own, and questions about what
    happened, such as ``crow.denied("Bash")``; see `Pilot`. The test fails at its end where the
    model's script or the user's answers were not used up. Marked with ``faces`` it runs in other
    processes as well.
    """
    from crow.testing.pilot import Pilot

    cwd = tmp_path_factory.mktemp("project")
    face = getattr(request, "param", "process")
    if face == "process":
        pilot = Pilot(build_agent, cwd)
    else:
        from crow.testing.faces import FACES as OTHERS

        pilot = OTHERS[face](build_agent, cwd, tmp_path_factory.mktemp("report"))
    yield pilot
    pilot.close()
    pilot.verify()
