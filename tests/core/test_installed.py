"""Extensions of installed packages: found by entry point, isolated, named when broken."""

from __future__ import annotations

from pathlib import Path
from zipfile import ZipFile

import pytest

from crow import Agent
from crow.core.errors import ExtensionError
from crow.core.extensions import Found
from crow.core.verdicts import Ask
from crow.entry_points import entry_points
from crow.testing import ScriptedModel, call

WEATHER = """
from crow.core.verdicts import Allow

class Weather:
    def __init__(self, agent=None, city="Paris"):
        self.city = city

    def before_tool(self, call):
        return Allow()

def broken():
    pass

class Leaves:
    def init_agent(self, agent):
        agent.hooks.register("before_tool", lambda: None)
        raise SystemExit(4)

raise_later = None
"""

OTHERS = ["absent", "broken", "fire", "leaves", "off"]


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder on the path where a package with six entry points is installed."""
    (tmp_path / "weather_package.py").write_text(WEATHER)
    (tmp_path / "on_fire.py").write_text("raise SystemExit('on\\nfire')")
    info = tmp_path / "crow_weather-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: crow-weather\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[crow.extensions]\n"
        "weather = weather_package:Weather\n"
        "absent = weather_package:Absent\n"
        "broken = weather_package:broken\n"
        "fire = on_fire:Thing\n"
        "leaves = weather_package:Leaves\n"
        "off = weather_package:Weather\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


async def test_every_entry_point_is_used_by_itself_and_a_broken_one_is_named(installed):
    agent = Agent(ScriptedModel(leftover="allow"), tools=())
    agent.discover({"weather": {"city": "Rome"}}, disabled=["off"])
    found = {item.name: item for item in agent.found if item.source == "crow-weather"}
    assert list(found) == ["absent", "broken", "fire", "leaves", "off", "weather"]
    assert found["weather"] == Found("weather", "crow-weather", names=("weather",))
    assert found["off"] == Found("off", "crow-weather", disabled=True)
    assert "Absent" in str(found["absent"].error)
    assert "there is no event 'broken'" in str(found["broken"].error)
    assert found["fire"].error == "SystemExit: on fire"
    assert found["leaves"].error == "ExtensionError: the extension leaves failed: SystemExit(4)"
    assert "leaves" not in agent.extensions
    assert agent.extensions["weather"].city == "Rome"


@pytest.mark.parametrize("trusted, asked", [((), 1), (("weather",), 0)])
async def test_the_allow_of_a_discovered_extension_counts_once_it_is_trusted(
    installed, echo, watcher, trusted, asked
):
    agent = Agent(ScriptedModel(call("echo", text="a"), "done"), tools=[echo])
    agent.discover(trusted=trusted, disabled=OTHERS)
    agent.hooks.register("before_tool", lambda ctx: Ask("sure?", default=True), judge=True)
    await agent.run("go", client=watcher)
    assert len(watcher.asked) == asked


def test_an_option_that_does_not_fit_is_named(installed):
    agent = Agent(ScriptedModel(leftover="allow"), tools=())
    agent.discover({"weather": {"town": "Rome"}}, disabled=OTHERS)
    assert [item.error for item in agent.found if item.name == "weather"] == [
        "ExtensionError: the extension weather has no option 'town'; it has city"
    ]


@pytest.mark.parametrize(
    "prepare",
    [
        lambda folder: (folder / "not-a-folder.zip").write_text("a zip file, for all one knows"),
        lambda folder: (folder / "odd.egg-info").mkdir(),
        lambda folder: (folder / "odd.egg-info").write_text("old style: a file"),
        lambda folder: [
            (folder / "odd.dist-info").mkdir(),
            (folder / "odd.dist-info" / "entry_points.txt").mkdir(),
        ],
        lambda folder: [
            (folder / "odd.dist-info").mkdir(),
            (folder / "odd.dist-info" / "entry_points.txt").write_bytes(b"\xff"),
        ],
    ],
)
def test_odd_things_on_the_path_hide_no_extension(
    installed, tmp_path_factory, monkeypatch, prepare
):
    folder = tmp_path_factory.mktemp("odd")
    prepare(folder)
    monkeypatch.syspath_prepend(folder)
    monkeypatch.syspath_prepend(folder / "not-a-folder.zip")
    monkeypatch.syspath_prepend(folder / "missing")
    names = [point.name for point in entry_points() if not point.own]
    assert names == ["absent", "broken", "fire", "leaves", "off", "weather"]


@pytest.mark.parametrize("content", [None, b"[other.group]\na = b:c\n", b"\xff"])
def test_where_no_package_names_the_group_there_is_no_extension(tmp_path, monkeypatch, content):
    (tmp_path / "plain-1.0.dist-info").mkdir()
    if content is not None:
        (tmp_path / "plain-1.0.dist-info" / "entry_points.txt").write_bytes(content)
    monkeypatch.setattr("sys.path", [str(tmp_path)])
    assert entry_points() == []


def test_of_two_packages_of_one_name_the_first_on_the_path_counts(installed, tmp_path, monkeypatch):
    older = tmp_path / "older" / "Crow.Weather-0.9.dist-info"
    older.mkdir(parents=True)
    (older / "entry_points.txt").write_text("[crow.extensions]\nold = weather_package:Weather\n")
    monkeypatch.setattr("sys.path", [str(installed), str(older.parent)])
    assert "old" not in [point.name for point in entry_points()]
    monkeypatch.setattr("sys.path", [str(older.parent), str(installed)])
    assert [(point.name, point.package) for point in entry_points()] == [("old", "crow_weather")]


def test_a_zip_file_on_the_path_is_looked_into(installed, tmp_path, monkeypatch):
    packed = tmp_path / "packed.zip"
    with ZipFile(packed, "w") as archive:
        for path in sorted(installed.rglob("crow_weather-1.0.dist-info/*")):
            archive.write(path, path.relative_to(installed))
        archive.write(installed / "weather_package.py", "weather_package.py")
    monkeypatch.setattr("sys.path", [str(packed)])
    assert [point.package for point in entry_points()] == ["crow-weather"] * 6


def test_what_is_there_on_request_is_used_where_there_are_options(installed):
    listed = installed / "crow_weather-1.0.dist-info" / "entry_points.txt"
    listed.write_text(
        "# what a package offers\n"
        "[crow.extensions.on_request]\nweather = weather_package:Weather [extra]\n"
        "[console_scripts]\nforecast = weather_package:broken\n"
    )
    assert Agent(ScriptedModel("Hi."), tools=()).discover() == []
    agent = Agent(ScriptedModel("Hi."), tools=())
    agent.discover({"weather": {"city": "Rome"}})
    assert agent.extensions["weather"].city == "Rome"


def package(folder: Path, name: str, *names: str, group: str = "crow.extensions") -> None:
    """Install a package whose entry points all name the same class."""
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    listed = "".join(f"{each} = weather_package:Weather\n" for each in names)
    (info / "entry_points.txt").write_text(f"[{group}]\n{listed}")


def test_of_two_packages_with_one_name_the_first_counts_and_the_other_is_told_so(installed):
    package(installed, "another", "weather", "tides")
    agent = Agent(ScriptedModel(leftover="allow"), tools=())
    agent.discover({"weather": {"city": "Rome"}}, disabled=OTHERS)
    errors = {each.source: each.error for each in agent.found if each.name == "weather"}
    assert errors == {
        "another": None,
        "crow-weather": (
            "ExtensionError: the name 'weather' is taken by another: crow-weather needs another one"
        ),
    }
    assert list(agent.extensions) == ["tides", "weather"]
    assert agent.extensions["weather"].city == "Rome"


def test_options_for_what_no_package_brings_are_an_error(installed):
    with pytest.raises(ExtensionError, match="brings the extension 'wether'; did you mean 'wea"):
        Agent(ScriptedModel(), tools=(), entry_points={"wether": {}})


def test_an_agent_uses_what_is_installed_by_one_argument_before_its_hooks(installed, caplog):
    class Own:
        def before_tool(self) -> None: ...

    agent = Agent(
        ScriptedModel(), tools=(), hooks=[Own()], entry_points={"weather": {"city": "Rome"}}
    )
    assert list(agent.extensions) == ["off", "weather", "own"]
    assert agent.extensions["weather"].city == "Rome"
    assert [hook.owner.trusted for hook in agent.hooks.before_tool.entries] == [False, False, True]
    told = [record.getMessage() for record in caplog.records]
    assert "the extension fire of crow-weather is broken: SystemExit: on fire" in told
    assert agent.child().extensions == {}
    assert list(Agent(ScriptedModel(), tools=(), entry_points=True).extensions) == [
        "off",
        "weather",
    ]
    assert Agent(ScriptedModel(), tools=()).extensions == {}


def test_a_name_of_crows_own_is_free_where_nothing_of_that_is_used(installed):
    package(installed, "another", "compaction")
    agent = Agent(ScriptedModel(leftover="allow"), tools=(), entry_points=True)
    assert agent.found[2] == Found("compaction", "another", names=("compaction",)), agent.found
