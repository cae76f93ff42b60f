"""``crow ext info``: what an extension added, how it is set, and how it did lately."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.conftest import Crow, calls

from crow.testing.endpoint import Endpoint, answer

GUARD = '''
class Guard:
    """Keeps what is precious.

    And more, that nobody needs in a list.
    """

    def __init__(self, *, precious: str = "gold", limit: int = 3) -> None:
        self.precious, self.limit = precious, limit

    def init_agent(self, agent):
        from crow import Command

        agent.hooks.register("before_tool", self.look, tools={"Read"})
        agent.hooks.register("after_run", self.stumble)
        agent.add_command(Command("hoard", "What there is", lambda ctx: "gold"))

    def look(self, ctx):
        return None

    def stumble(self, ctx):
        raise LookupError("no dragon")
'''


def place(home: Path) -> Path:
    """The extension, where the user's own lie."""
    path = home / ".crow/extensions/guard.py"
    path.parent.mkdir(parents=True)
    path.write_text(GUARD)
    settings = home / ".crow/settings.json"
    settings.write_text(json.dumps({"extensions": {"guard": {"precious": "silver"}}}))
    return path


@pytest.mark.slow
async def test_all_of_one_is_told(crow: Crow, home: Path, endpoint: Endpoint) -> None:
    path = place(home)
    endpoint.play(calls(("Read", {"file_path": "README.md"})), answer("done"))
    assert (await crow("run", "look")).status == 0

    ended = await crow("ext", "info", "guard")

    assert ended.status == 0, ended.err
    lines = [" ".join(line.split()) for line in ended.out.splitlines()]
    assert lines[:2] == ["guard", "Keeps what is precious."]
    assert f"{path}:2" in lines
    assert f"hooks before_tool {path}:18 for Read" in lines
    assert f"after_run {path}:21" in lines
    assert "commands hoard" in lines
    assert any(line.startswith('options precious = "silver" ') for line in lines)
    assert "limit = 3 default" in lines
    assert any(line.startswith("last 20 sessions 2 runs of hooks, ") for line in lines)
    assert f"failed 1 time after_run: LookupError: no dragon ({path}:22)" in lines


async def test_a_program_gets_the_same_as_json(crow: Crow, home: Path, endpoint: Endpoint) -> None:
    place(home)
    endpoint.play(answer("done"))
    assert (await crow("run", "look")).status == 0

    (told,) = (await crow("ext", "info", "guard", "--json")).events

    assert told["options"][0] == {
        "name": "precious",
        "value": "silver",
        "state": "set",
        "source": str(home / ".crow/settings.json"),
    }
    assert [hook["event"] for hook in told["hooks"]] == ["before_tool", "after_run"]
    assert (told["lately"]["runs"], [*told["lately"]["errors"].values()]) == (1, [1])


@pytest.mark.slow
async def test_one_that_does_not_load_is_told_too(crow: Crow, home: Path) -> None:
    place(home).write_text("import nothing_of_this_name\n")
    ended = await crow("ext", "info", "guard")
    assert ended.status == 1
    assert "No module named 'nothing_of_this_name'" in ended.out


@pytest.mark.slow
async def test_a_name_is_found_as_its_package_spells_it(crow: Crow, home: Path) -> None:
    path = place(home).with_name("gold_guard.py")
    path.write_text(GUARD)
    assert f"{path}:18" in (await crow("ext", "info", "gold-guard")).out


@pytest.mark.slow
async def test_an_option_that_does_not_fit_is_no_setting_that_holds(crow: Crow, home: Path) -> None:
    place(home)
    settings = home / ".crow/settings.json"
    wrong = {"guard": {"limit": "many", "preciuos": "x"}, "nobody": {"a": {"b": 1}}}
    settings.write_text(json.dumps({"extensions": wrong}))
    ended = await crow("config")
    assert ended.status == 1
    rows = {line.split()[0]: " ".join(line.split()) for line in ended.out.splitlines()}
    limit, slip = rows["extensions.guard.limit"], rows["extensions.guard.preciuos"]
    assert limit.startswith(f"extensions.guard.limit many {settings} (left out): ")
    assert "a whole number" in limit
    assert "did you mean 'precious'?" in slip
    assert "there is no extension 'nobody'" in rows["extensions.nobody.a.b"]
    told = (await crow("ext", "info", "guard", "--json")).events[0]["options"]
    limits = [(each["state"], each["value"]) for each in told if each["name"] == "limit"]
    assert limits == [("default", 3), ("left out", "many")]


NOTES = """
from dataclasses import dataclass, field


@dataclass
class Limits:
    notes: int = 100
    words: int = 9


class Notes:
    options = Limits

    def __init__(self, notes=0, words=0): ...
    def before_run(self): ...


@dataclass
class Keeper:
    limits: Limits = field(default_factory=lambda: Limits(words=7))

    def before_run(self): ...
"""


async def test_options_of_a_table_have_defaults_and_one_that_is_in_use_is_told(
    crow: Crow, home: Path, tmp_path: Path
) -> None:
    """Of two packages of one name, that is, and not the one that is left out."""
    for package, value in (("first", "notes:Keeper"), ("second", "notes:Notes")):
        entry = tmp_path / f"{package}-1.0.dist-info/entry_points.txt"
        entry.parent.mkdir()
        entry.write_text(f"[crow.extensions]\nkeeper = {value}\n")
    (tmp_path / "notes.py").write_text(NOTES)
    crow.env["PYTHONPATH"] = str(tmp_path)
    (told,) = (await crow("ext", "info", "keeper", "--json")).events
    assert (told["source"], told["error"]) == ("first", "")
    options = {each["name"]: each["value"] for each in told["options"]}
    assert options == {"limits.notes": 100, "limits.words": 7}
    path = home / ".crow/settings.json"
    path.parent.mkdir()
    path.write_text('{"extensions": {"keeper": {"limits": {"notes": 2}}}}')
    (told,) = (await crow("ext", "info", "keeper", "--json")).events
    options = {each["name"]: each["value"] for each in told["options"]}
    assert options == {"limits.notes": 2, "limits.words": 7}


async def test_an_entry_point_that_leads_nowhere_is_told(crow: Crow, tmp_path: Path) -> None:
    entry = tmp_path / "lost-1.0.dist-info/entry_points.txt"
    entry.parent.mkdir()
    entry.write_text("[crow.extensions]\nghost = nothing_of_this_name:Ghost\nshade = json:Shade\n")
    crow.env["PYTHONPATH"] = str(tmp_path)
    found = {each["name"]: each["error"] for each in (await crow("ext", "list", "--json")).events}
    told = "ModuleNotFoundError: No module named 'nothing_of_this_name'"
    assert found["ghost"] == f"{told} (its entry point is nothing_of_this_name:Ghost)"
    assert found["shade"].endswith("has no attribute 'Shade' (its entry point is json:Shade)")
