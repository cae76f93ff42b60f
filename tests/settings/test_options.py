"""What extensions can be set to: their classes are the schema, whoever has written them."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.files import write

from crow.annotations.options import documented, options_of
from crow.app import build, startup_warnings
from crow.cli.setting_rows import Row, rows
from crow.core.errors import ExtensionError
from crow.entry_points import entry_points
from crow.project.trust import trust
from crow.settings import load
from crow.settings.schema import expected, whole

ROOT = Path(__file__).parents[2]
WHOLE = whole()["properties"]["extensions"]["properties"]
OWN = {point.name: point for point in entry_points() if point.own}
WEATHER = '''
from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

from crow import Arg


@dataclass
class Town:
    """Where it is."""

    north: float
    east: float = 0.0


@dataclass
class Weather:
    """Tells the weather when somebody asks."""

    place: str = "here"
    """A town."""
    days: Annotated[int, Arg(minimum=1, maximum=7)] = 1
    """How many days ahead."""
    unit: Literal["C", "F"] = "C"
    cache: Path | None = None
    towns: Mapping[str, Town] = field(default_factory=dict)
    hail: bool | list[str] = False
    ask: Callable[[str], str] | None = None
    span: tuple[int, str] = (1, "day")
    missing: object = object()

    def before_run(self, ctx): ...
'''


@pytest.fixture
def weather(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: Any) -> Any:
    """A package with an extension, installed."""
    module = f"weather_{tmp_path.name}"
    folder = tmp_path / "packages"
    write(folder / f"{module}.py", WEATHER)
    info = folder / f"crow_{module}-1.0.dist-info"
    write(info / "METADATA", f"Metadata-Version: 2.1\nName: crow-{module}\nVersion: 1.0\n")
    write(info / "entry_points.txt", f"[crow.extensions]\nweather = {module}:Weather\n")
    monkeypatch.syspath_prepend(str(folder))
    yield module
    sys.modules.pop(module, None)


WRONG = [
    ("limits", {"turns": "many"}, "'extensions.limits.turns' must be a whole number or null"),
    ("limits", {"session_turns": -1}, "'extensions.limits.session_turns' must be at least 0"),
    ("limits", {"seconds": [3]}, "'extensions.limits.seconds' must be a number or null, not [3]"),
    ("limits", {"faults": 0}, "'extensions.limits.faults' must be at least 1, not 0"),
    ("limits", {"turn": 3}, "no setting 'extensions.limits.turn'; did you mean 'turns'?"),
    ("compaction", {"fraction": 0}, "'extensions.compaction.fraction' must be above 0, not 0"),
    ("compaction", {"fraction": 1.5}, "must be at most 1, not 1.5"),
    ("compaction", {"keep_turns": 0}, "must be at least 1, not 0"),
    ("compaction", {"keep_turns": True}, "must be a whole number, not true"),
    ("persistence", {"synchronous": "on"}, 'must be one of normal, full, not "on"'),
    ("idle", {"after": float("nan")}, "'extensions.idle.after' must be a number, not NaN"),
    ("web", {"allow_private": "all"}, 'must be true or false or a list, not "all"'),
    ("web", {"allow_private": [1]}, "'extensions.web.allow_private' holds 1, which is no text"),
    ("web", {"resolve": "x"}, "there is no setting 'extensions.web.resolve'"),
    ("skills", {"plugins": []}, "there is no setting 'extensions.skills.plugins'"),
    ("subagents", {"depth": -1}, "'extensions.subagents.depth' must be at least 0, not -1"),
    ("mcp", {"servers": {"a": 3}}, "'extensions.mcp.servers.a' must be a table, not 3"),
    ("mcp", {"call_timeout": 0}, "'extensions.mcp.call_timeout' must be above 0, not 0"),
    ("background", {"x": 1}, "there is no setting 'extensions.background.x'"),
    ("cost", {"prices": {"m": 3}}, "'extensions.cost.prices.m' must be a table, not 3"),
    ("cost", {"prices": {"m": {"input": 3}}}, "'extensions.cost.prices.m' needs 'output'"),
    ("cost", {"prices": {"m": {"input": 3, "output": "4"}}}, "prices.m.output' must be a number"),
    ("cost", {"prices": {"m": {"input": 3, "output": -4}}}, "must be at least 0, not -4"),
    (
        "cost",
        {"prices": {"m": {"input": 3, "output": 4, "written": 5}}},
        "there is no setting 'extensions.cost.prices.m.written'",
    ),
]


@pytest.mark.parametrize(("name", "table", "complaint"), WRONG)
def test_what_does_not_fit_is_named_with_its_file_and_the_rest_applies(
    home: Path, project: Path, name: str, table: Any, complaint: str
) -> None:
    path = write(home / ".crow/settings.json", {"extensions": {name: table}, "model": "mine"})
    settings = load(project, managed=())
    (line,) = settings.problems
    assert line.startswith(f"{path}: ")
    assert complaint in line
    assert settings.model == "mine"
    agent = build(settings, cwd=project, env={})
    assert list(startup_warnings(settings, agent)) == [line]
    assert name in agent.extensions


@pytest.mark.parametrize("table", [{"quiet": "Bash"}, {"quiet": [3]}, {"allow": ["Bash"]}])
def test_nobody_judges_calls_where_an_option_of_the_judge_does_not_fit(
    home: Path, project: Path, table: Any
) -> None:
    write(home / ".crow/settings.json", {"extensions": {"permissions": table}})
    with pytest.raises(ExtensionError, match=r"cannot be judged: .*extensions\.permissions\."):
        build(cwd=project, env={})


def test_what_a_weaker_file_says_holds_where_the_stronger_one_is_wrong(
    home: Path, project: Path
) -> None:
    user = write(home / ".crow/settings.json", {"limits": {"turns": 5, "seconds": 9}})
    table = {"limits": {"seconds": 3}, "extensions": {"limits": {"turns": "ten"}}}
    own = write(project / ".crow/settings.json", table)
    trust(project)
    settings = load(project, managed=())
    assert settings.extensions["limits"] == {"turns": 5, "seconds": 3}
    assert [str(settings.origins[f"limits.{name}"]) for name in ("turns", "seconds")] == [
        str(user),
        str(own),
    ]
    assert [(str(each.source), each.table) for each in settings.rejected] == [
        (str(own), {"extensions.limits.turns": "ten"})
    ]


def test_a_whole_number_may_be_written_with_a_point(home: Path, project: Path) -> None:
    write(home / ".crow/settings.json", {"extensions": {"truncation": {"limit": 100.0}}})
    limit = build(cwd=project, env={}).extensions["truncation"].limit
    assert (limit, type(limit)) == (100, int)


@pytest.mark.parametrize("name", OWN)
def test_every_option_of_a_built_in_has_a_type_and_a_description(name: str) -> None:
    for option, node in WHOLE[name]["properties"].items():
        assert node.get("description"), option
        assert {"type", "anyOf", "$ref"} & set(node), option


def takes(node: Any) -> str:
    """What an option can be, in words."""
    if "enum" in node:
        return " or ".join(f"`{each}`" for each in node["enum"])
    words = {"minimum": "at least", "exclusiveMinimum": "above", "maximum": "at most"}
    bounds = [f"{word} {node[name]}" for name, word in words.items() if name in node]
    return ", ".join([expected(node), *bounds]) or "anything"


def options_table() -> str:
    """All options of the extensions that come with Crow, as the documentation shows them."""
    lines = ["| option | takes | default | |", "|---|---|---|---|"]
    for name, node in sorted(WHOLE.items()):
        if name == "disable":
            continue
        lines.append(f"| **`{name}`** | | | {node['description']} |")
        for option, each in node["properties"].items():
            default = f"`{json.dumps(each['default'])}`" if "default" in each else ""
            row = f"`{name}.{option}` | {takes(each)} | {default} | {each['description']}"
            lines.append(f"| {row} |")
    return "\n".join(lines)


def test_the_documentation_has_the_options_as_the_classes_have_them() -> None:
    page = (ROOT / "docs/settings.md").read_text("utf-8")
    shown = page.split("## Extensions")[1].split("## Trust")[0]
    assert shown[shown.index("| option |") :].strip() == options_table()


# other people's


@pytest.mark.slow
def test_the_options_of_an_installed_package_are_checked_and_shown_as_those_of_crows_own(
    home: Path, project: Path, weather: str
) -> None:
    table = {"place": "Rome", "days": 9, "cache": "~/x", "unit": "K", "towns": {"a": {"north": 1}}}
    path = write(home / ".crow/settings.json", {"extensions": {"weather": table}})
    settings = load(project, managed=())
    assert settings.problems == (
        f"{path}: 'extensions.weather.days' must be at most 7, not 9",
        f"{path}: 'extensions.weather.unit' must be one of C, F, not \"K\"",
    )
    with_rome = {row.name: row for row in rows(settings, {}) if row.name.startswith("extensions.w")}
    assert with_rome["extensions.weather.place"] == Row(
        "extensions.weather.place", "Rome", str(path)
    )
    assert with_rome["extensions.weather.hail"] == Row(
        "extensions.weather.hail", value=False, state="default"
    )
    agent = build(settings, cwd=project, env={})
    used = agent.extensions["weather"]
    assert (used.place, used.days, used.unit) == ("Rome", 1, "C")
    assert used.cache == home / "x"
    assert used.towns["a"].north == 1
    node = whole()["properties"]["extensions"]["properties"]["weather"]
    assert node["description"] == "Tells the weather when somebody asks."
    assert node["properties"]["days"] == {
        "type": "integer",
        "minimum": 1,
        "maximum": 7,
        "default": 1,
        "description": "How many days ahead.",
    }
    assert "ask" not in node["properties"]


def test_of_a_package_that_is_disabled_nothing_is_imported(
    home: Path, project: Path, weather: str
) -> None:
    table = {"weather": {"days": 9}, "disable": ["weather"]}
    write(home / ".crow/settings.json", {"extensions": table})
    assert load(project, managed=()).problems == ()
    assert weather not in sys.modules


def test_the_options_of_a_file_are_checked_when_it_is_used(home: Path, project: Path) -> None:
    write(home / ".crow/extensions/sky.py", WEATHER)
    path = write(home / ".crow/settings.json", {"extensions": {"sky": {"days": 0, "place": "X"}}})
    settings = load(project, managed=())
    agent = build(settings, cwd=project, env={})
    [line] = startup_warnings(settings, agent)
    assert line == f"{path}: 'extensions.sky.days' must be at least 1, not 0"
    used = next(thing for name, thing in agent.extensions.items() if name.startswith("sky"))
    assert (used.place, used.days) == ("X", 1)


class Plain:
    """Says something.

    Args:
        words: What it says.
    """

    def __init__(
        self, agent: Any = None, words: str = "hi", *, loud=False, **more: int
    ) -> None: ...


def test_the_arguments_of_a_constructor_are_options_too() -> None:
    assert documented(Plain) == {
        "type": "object",
        "description": "Says something.",
        "properties": {
            "words": {"type": "string", "default": "hi", "description": "What it says."},
            "loud": {"default": False},
        },
        "additionalProperties": True,
    }


class Described:
    options = Plain

    def __init__(self, **given: Any) -> None:
        self.given = given


def test_another_class_can_be_the_one_with_the_options() -> None:
    assert options_of(Described).node == options_of(Plain).node


@pytest.mark.parametrize(
    "given, wrong",
    [
        ([1], "must hold 2 values, not [1]"),
        ([1, "day", 2], 'must hold 2 values, not [1, "day", 2]'),
        (["day", 1], 'must hold a whole number there, not ["day", 1]'),
        ([2, "week"], ""),
    ],
)
def test_an_option_of_several_values_has_each_of_them(
    home: Path, project: Path, weather: str, given: Any, wrong: str
) -> None:
    path = write(home / ".crow/settings.json", {"extensions": {"weather": {"span": given}}})
    settings = load(project, managed=())
    told = (f"{path}: 'extensions.weather.span' {wrong}",) if wrong else ()
    assert settings.problems == told
    used = build(settings, cwd=project, env={}).extensions["weather"]
    assert used.span == ((1, "day") if wrong else (2, "week"))


def test_a_default_that_has_no_form_in_json_is_not_shown(project: Path, weather: str) -> None:
    shown = {row.name: row for row in rows(load(project, managed=()), {})}
    assert "object" not in str(shown.get("extensions.weather.missing"))


def test_a_path_has_the_users_home_for_its_tilde(home: Path) -> None:
    class Notes:
        def __init__(self, folder: Path, more: list[Path] | None = None) -> None: ...

    read = options_of(Notes).read({"folder": "~/notes", "more": ["~/a", "b"]})
    assert read == {"folder": home / "notes", "more": [home / "a", Path("b")]}
