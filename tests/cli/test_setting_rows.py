"""Every setting with its value and its file, as ``crow config`` shows it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from crow.cli.setting_rows import Row, rows
from crow.project.trust import trust
from crow.settings import load
from crow.settings.schema import whole as whole_schema


def write(path: Path, content: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content), "utf-8")
    return path


def shown(project: Path, **options: Any) -> list[Row]:
    env = options.pop("env", {})
    return list(rows(load(project, managed=(), **options), env))


def leaves(node: Any, whole: Any, path: str) -> list[str]:
    """The settings that a schema has, but for tables whose names are free."""
    if "$ref" in node:
        node = whole["$defs"][node["$ref"].rpartition("/")[2]]
    inner = node.get("properties")
    if not inner:
        return [path]
    return [leaf for name in inner for leaf in leaves(inner[name], whole, f"{path}.{name}")]


@pytest.mark.slow
def test_every_setting_that_the_schema_has_is_shown_with_its_default(project: Path) -> None:
    whole = whole_schema()
    known = [
        leaf
        for name, node in whole["properties"].items()
        for leaf in ([name] if name == "hooks" else leaves(node, whole, name))
        if name != "$schema" and not leaf.startswith("extensions.limits.")
    ]
    found = shown(project)
    assert [row.name for row in found] == known
    assert {row.state for row in found} == {"default"}
    assert Row("limits.turns", 200, "", "default") in found


def test_of_a_list_every_entry_has_its_own_file(home: Path, project: Path) -> None:
    user = write(home / ".claude/settings.json", {"permissions": {"deny": ["Bash"]}})
    local = write(project / ".crow/settings.local.json", {"permissions": {"deny": ["Edit"]}})
    found = [row for row in shown(project) if row.name == "permissions.deny"]
    assert [(row.value, row.source) for row in found] == [("Edit", str(local)), ("Bash", str(user))]


@pytest.mark.slow
def test_what_is_left_out_is_shown_with_the_reason(home: Path, project: Path) -> None:
    table = {"hooks": {"Stop": []}, "env": {"A": "b"}, "disableAllHooks": True}
    path = write(project / ".crow/settings.json", table)
    user = write(home / ".crow/settings.json", {"hooks": {"Stop": []}, "model": "mine"})

    def left_out() -> list[tuple[str, str, str]]:
        found = shown(project, env={"CROW_MODEL": "theirs"})
        assert Row("model", "theirs", "CROW_MODEL in the environment") in found
        return [(r.name, r.source, r.reason) for r in found if r.state == "left out"]

    model = ("model", str(user), "CROW_MODEL goes before it")
    untrusted = "the project is not trusted (crow trust)"
    named = ("hooks.Stop", "env.A", "disableAllHooks")
    assert left_out() == [model, *((name, str(path), untrusted) for name in named)]
    trust(project)
    assert Row("disableAllHooks", value=True, source=str(path)) in shown(project)
    switch = f"disableAllHooks in {path}"
    assert left_out() == [
        model,
        ("hooks.Stop", str(user), switch),
        ("hooks.Stop", str(path), switch),
    ]


def test_a_mode_that_a_project_may_not_choose_is_shown_as_left_out(project: Path) -> None:
    write(project / ".crow/settings.json", {"permissions": {"defaultMode": "bypassPermissions"}})
    trust(project)
    found = {row.state: row for row in shown(project) if row.name == "permissions.defaultMode"}
    assert found["default"].value == "default"
    assert found["left out"].value == "bypassPermissions"


@pytest.mark.slow
def test_what_is_rejected_or_passed_over_is_shown_with_the_reason(
    home: Path, project: Path
) -> None:
    theirs = {"model": "opus", "outputStyle": {"command": "x --token SECRET"}, "$schema": "x"}
    claude = write(home / ".claude/settings.json", theirs)
    table = {"context_window": "big", "env": {"A": None, "B": 1}, "permissions": {"deny": [3]}}
    own = write(home / ".crow/settings.json", table)
    found = [row for row in shown(project) if row.state == "left out"]
    assert [(row.name, row.value, row.source) for row in found] == [
        ("model", "opus", str(claude)),
        ("context_window", "big", str(own)),
        ("env.A", None, str(own)),
        ("permissions.deny", 3, str(own)),
        ("extensions.output_styles.style", {"command": "x --token (hidden)"}, str(claude)),
    ]
    reasons = [row.reason for row in found]
    none = "there is no key for it (crow login), or it is no model of Anthropic's"
    assert reasons[:2] == [none, "'context_window' must be a whole number, not \"big\""]
    assert "must be text" in reasons[4]
    assert "SECRET" not in reasons[4]
    assert Row("env.B", "1", str(own)) in shown(project)


@pytest.mark.slow
def test_a_switch_of_the_administrators_has_no_effect_from_anybody_else(
    home: Path, project: Path, tmp_path: Path
) -> None:
    table = {"allowManagedHooksOnly": True, "strictPluginOnlyCustomization": ["hooks"]}
    user = write(home / ".claude/settings.json", table)
    why = "only the administrator's managed settings can say so"
    found = [row for row in shown(project) if row.name in table]
    assert [(row.source, row.state, row.reason) for row in found] == [
        (str(user), "left out", why)
    ] * 2
    managed = write(tmp_path / "managed/managed-settings.json", table)
    found = list(rows(load(project, managed=(managed.parent,)), {}))
    states = [(row.source, row.state) for row in found if row.name in table]
    assert states == [(str(managed), "set")] * 2
