"""The schema of settings: what editors complete by is what files are held to."""

from __future__ import annotations

import inspect
import json
import re
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crow.entry_points import entry_points
from crow.extensions.shell_hooks.event import KNOWN
from crow.extensions.shell_hooks.handler import handlers_of
from crow.project import HookFile
from crow.settings import load
from crow.settings.schema import Sieve, whole

ROOT = Path(__file__).parents[2]
WHOLE = whole()
VALIDATOR = jsonschema_rs.validator_for(WHOLE)
OWN = {point.name: point for point in entry_points() if point.own}


def sifted(table: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    complaints: list[str] = []
    drop = lambda path, value, text: complaints.append(text)  # noqa: E731
    return Sieve(drop, WHOLE).sift(table), complaints


def described(node: Any, path: str) -> list[str]:
    """The settings that nobody has described."""
    without = [] if "description" in node or "$ref" in node else [path]
    for name, inner in node.get("properties", {}).items():
        without += described(inner, f"{path}.{name}")
    return without


def test_the_schema_is_a_schema_and_describes_every_setting() -> None:
    jsonschema_rs.meta.validate(WHOLE)
    assert described(WHOLE, "") == []
    unnamed = ("hookHandler", "hookGroups")
    groups = {name: node for name, node in WHOLE["$defs"].items() if name not in unnamed}
    assert [path for name, node in groups.items() for path in described(node, name)] == []


def test_it_knows_every_event_of_settings_hooks() -> None:
    assert set(WHOLE["properties"]["hooks"]["properties"]) == set(KNOWN)


SPOKEN_OF = {name: point for name, point in OWN.items() if hasattr(point.load(), "options")}


@pytest.mark.parametrize("name", SPOKEN_OF)
def test_a_class_of_options_has_what_its_extension_is_made_with(name: str) -> None:
    cls = SPOKEN_OF[name].load()
    made = inspect.signature(cls).parameters
    for option, parameter in inspect.signature(cls.options).parameters.items():
        if parameter.default is not parameter.empty:
            assert made[option].default == parameter.default, option


SCALARS = (
    st.none() | st.booleans() | st.integers(-2, 300) | st.floats(-1, 2) | st.sampled_from("aBx ")
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2)
    ),
    max_leaves=4,
)


def tables(node: Any) -> st.SearchStrategy[Any]:
    """Values of a node, such as it might be written; unknown names only where all are free."""
    if "$ref" in node:
        node = WHOLE["$defs"][node["$ref"].rpartition("/")[2]]
    known = node.get("properties")
    if not known and node.get("additionalProperties") is False:
        return SCALARS | st.just({})
    if not known:
        return VALUES
    return SCALARS | st.fixed_dictionaries(
        {}, optional={name: tables(each) for name, each in known.items()}
    )


@given(
    st.lists(st.sampled_from([n for n in WHOLE["properties"] if n != "hooks"]), max_size=4).flatmap(
        lambda names: st.fixed_dictionaries({n: tables(WHOLE["properties"][n]) for n in names})
    )
)
def test_what_the_sieve_lets_through_fits_and_what_fits_is_let_through(
    table: dict[str, Any],
) -> None:
    kept, complaints = sifted(table)
    fits = VALIDATOR.is_valid(table)
    assert VALIDATOR.is_valid(kept)
    assert (complaints == []) == fits
    if fits:
        assert kept == table


HANDLER = {"type": "command", "command": "true"}


@pytest.mark.parametrize(
    "hooks",
    [
        {"Stop": [{"hooks": [HANDLER]}]},
        {"Stop": [{"hooks": [HANDLER], "id": 1, "matcher": ""}]},
        {"Stop": [{"hooks": [{**HANDLER, "args": [], "timeout": 1.5, "rewakeMessage": "x"}]}]},
        {"PreToolUse": [{"hooks": [{"type": "http", "url": "http://x", "headers": {"A": "b"}}]}]},
        {"PreToolUse": [{"hooks": [{"type": "mcp_tool", "server": "s", "tool": "t"}]}]},
        {"PreToolUse": [{"hooks": [{"type": "prompt", "prompt": "p", "model": "m"}]}]},
        {"PreToolUse": [{"hooks": [{"type": "agent", "prompt": "p", "if": "Bash"}]}]},
        {"PreToolUs": [{"hooks": [HANDLER]}]},
        {"Stop": {"hooks": [HANDLER]}},
        {"Stop": ["x"]},
        {"Stop": [{"hooks": HANDLER}]},
        {"Stop": [{"matcher": 3, "hooks": []}]},
        {"Stop": [{"hooks": [{"type": "command"}]}]},
        {"Stop": [{"hooks": [{"type": "comand", "command": "x"}]}]},
        {"Stop": [{"hooks": [{**HANDLER, "timeout": 0}]}]},
        {"Stop": [{"hooks": [{**HANDLER, "timeout": "1"}]}]},
        {"Stop": [{"hooks": [{**HANDLER, "args": "x"}]}]},
        {"Stop": [{"hooks": [{**HANDLER, "if": 3}]}]},
        {"PreToolUse": [{"hooks": [{"type": "http"}]}]},
        {"PreToolUse": [{"hooks": [{"type": "mcp_tool", "server": "s"}]}]},
        {"PreToolUse": [{"hooks": [{"type": "prompt", "prompt": ""}]}]},
    ],
)
def test_hooks_that_crow_complains_of_are_those_that_an_editor_underlines(hooks: Any) -> None:
    problems: list[str] = []
    list(handlers_of([HookFile("x", hooks, own=True)], problems))
    assert VALIDATOR.is_valid({"hooks": hooks}) == (problems == []), problems


@pytest.mark.parametrize(
    ("table", "complaint"),
    [
        (
            {"limits": {"turns": "ten"}},
            "'limits.turns' must be a whole number or null, not \"ten\"",
        ),
        ({"limits": {"turns": -1}}, "'limits.turns' must be at least 0, not -1"),
        ({"extensions": {"compaction": {"fraction": 2}}}, "must be at most 1, not 2"),
        (
            {"extensions": {"persistence": {"synchronous": "on"}}},
            "must be one of normal, full, not",
        ),
        ({"mcpServers": {"a": {"type": "smtp"}}}, "'mcpServers.a.type' must be one of stdio, http"),
        ({"providers": {"a": {"bas_url": "x"}}}, "no setting 'providers.a.bas_url'; did you mean"),
        ({"model": ""}, "'model' must not be empty"),
        ({"disableAllHooks": "yes"}, "'disableAllHooks' must be true or false, not \"yes\""),
        ({"hooks": []}, "'hooks' must be a table, not []"),
        ({"permissions": {"disableBypassPermissionsMode": True}}, "must be one of disable"),
    ],
)
def test_an_entry_that_does_not_fit_is_named_with_what_is_expected(
    table: Any, complaint: str
) -> None:
    kept, complaints = sifted(
        {**table, "$schema": "https://example.com/schema.json", "env": {"A": "b"}}
    )
    (line,) = complaints
    assert complaint in line
    assert kept["env"] == {"A": "b"}


def examples() -> list[tuple[str, dict[str, Any]]]:
    """Every settings file that the documentation shows."""
    keys = set(WHOLE["properties"])
    found: list[tuple[str, dict[str, Any]]] = []
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))):
        for block in re.findall(r"```json[c]?\n(.*?)```", page.read_text("utf-8"), re.DOTALL):
            table = json.loads(block)
            if isinstance(table, dict) and set(table) <= keys and "agent_servers" not in table:
                found.append((page.name, table))
    return found


def test_the_documentation_shows_settings() -> None:
    assert {page for page, _ in examples()} >= {"claude-hooks.md", "settings.md"}


@pytest.mark.parametrize(("page", "table"), examples())
def test_every_example_of_the_documentation_fits(
    page: str, table: dict[str, Any], home: Path, tmp_path: Path
) -> None:
    VALIDATOR.validate(table)
    (home / ".crow").mkdir()
    (home / ".crow/settings.json").write_text(json.dumps(table), "utf-8")
    settings = load(tmp_path, managed=())
    assert settings.problems == ()
    problems: list[str] = []
    list(handlers_of([HookFile(str(s), hooks, own=True) for s, hooks in settings.hooks], problems))
    assert problems == []
