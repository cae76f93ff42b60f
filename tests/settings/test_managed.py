"""Managed settings, switches and precedence: every trap that the protocol has there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from crow.app.rules import can_keep_rules
from crow.project.trust import trust
from crow.settings import Settings, load
from crow.settings.files import chosen, machine, of_machine


def write(path: Path, content: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content), "utf-8")
    return path


def hook(name: str) -> dict[str, Any]:
    return {"Stop": [{"hooks": [{"type": "command", "command": name}]}]}


class Places:
    """A file of each layer; what they say is given as ``user={...}``."""

    def __init__(self, home: Path, top: Path) -> None:
        self.project = top / "project"
        (self.project / ".git").mkdir(parents=True)
        self.managed = top / "claude-code", top / "crow"
        self.files = {
            "user": home / ".claude/settings.json",
            "project": self.project / ".claude/settings.json",
            "local": self.project / ".claude/settings.local.json",
            "managed": self.managed[0] / "managed-settings.json",
            "crows": self.managed[1] / "managed-settings.json",
        }

    def load(
        self, every: Any = None, *, trusted: bool = True, flag: Any = None, **content: Any
    ) -> Settings:
        for name, table in {**(every or {}), **content}.items():
            write(self.files[name], table)
        if trusted:
            trust(self.project)
        file = None if flag is None else json.dumps(flag)
        return load(self.project, file=file, managed=self.managed)


@pytest.fixture
def places(home: Path, tmp_path: Path) -> Places:
    return Places(home, tmp_path)


def commands(settings: Settings) -> list[str]:
    return [table["Stop"][0]["hooks"][0]["command"] for _, table in settings.hooks]


ALL = {name: {"hooks": hook(name)} for name in ("user", "project", "local", "managed", "crows")}


def test_managed_goes_before_the_command_line_before_local_before_project_before_user(
    places: Places,
) -> None:
    settings = places.load(
        user={"env": dict.fromkeys("abcde", "user")},
        project={"env": dict.fromkeys("abcd", "project")},
        local={"env": dict.fromkeys("abc", "local")},
        flag={"env": dict.fromkeys("ab", "flag")},
        managed={"env": {"a": "managed"}},
    )
    assert settings.env == {
        "a": "managed",
        "b": "flag",
        "c": "local",
        "d": "project",
        "e": "user",
    }


def test_hooks_of_all_files_are_merged_and_override_nothing(places: Places) -> None:
    settings = places.load(ALL, flag={"hooks": hook("flag")})
    assert commands(settings) == ["user", "project", "local", "flag", "managed", "crows"]


def test_files_beside_the_managed_one_are_read_by_name_and_are_stronger(places: Places) -> None:
    folder = places.managed[0] / "managed-settings.d"
    write(folder / "20-b.json", {"env": {"A": "20"}, "hooks": hook("20")})
    write(folder / "10-a.json", {"env": {"A": "10", "B": "10"}, "hooks": hook("10")})
    write(folder / ".hidden.json", {"env": {"A": "hidden"}})
    write(folder / "notes.txt", {"env": {"A": "notes"}})
    settings = places.load(managed={"env": {"A": "base", "B": "base", "C": "base"}})
    assert settings.env == {"A": "20", "B": "10", "C": "base"}
    assert commands(settings) == ["10", "20"]


def test_crows_own_managed_settings_are_stronger_and_may_say_more(places: Places) -> None:
    settings = places.load(
        managed={"env": {"A": "claude"}, "model": "opus"},
        crows={"env": {"A": "crow"}, "model": "mine"},
    )
    assert (settings.env, settings.model) == ({"A": "crow"}, "mine")


@pytest.mark.parametrize(
    ("content", "left"),
    [
        ({"user": {"disableAllHooks": True}}, ["managed", "crows"]),
        ({"local": {"disableAllHooks": True}}, ["managed", "crows"]),
        ({"flag": {"disableAllHooks": True}}, ["managed", "crows"]),
        (
            {"user": {"disableAllHooks": True}, "project": {"disableAllHooks": False}},
            ["user", "project", "local", "managed", "crows"],
        ),
        ({"managed": {"disableAllHooks": True}}, []),
        (
            {"user": {"disableAllHooks": True}, "managed": {"disableAllHooks": False}},
            ["user", "project", "local", "managed", "crows"],
        ),
        ({"managed": {"allowManagedHooksOnly": True}}, ["managed", "crows"]),
        (
            {"managed": {"allowManagedHooksOnly": True}, "flag": {"allowManagedHooksOnly": False}},
            ["managed", "crows"],
        ),
        (
            {"user": {"allowManagedHooksOnly": True}},
            ["user", "project", "local", "managed", "crows"],
        ),
    ],
)
def test_switches_turn_off_what_they_may(places: Places, content: Any, left: list[str]) -> None:
    flag = content.pop("flag", None)
    tables = {name: {**table, **content.get(name, {})} for name, table in ALL.items()}
    settings = places.load(tables, flag=flag)
    assert commands(settings) == left
    off = [each.table["Stop"][0]["hooks"][0]["command"] for each in settings.unused_hooks]
    assert sorted([*off, *left]) == sorted(ALL)
    assert all(" in " in each.why for each in settings.unused_hooks)


def test_a_project_that_nobody_trusts_switches_no_hooks_off(places: Places) -> None:
    settings = places.load(
        trusted=False, user={"hooks": hook("user")}, project={"disableAllHooks": True}
    )
    assert commands(settings) == ["user"]


def test_the_mode_without_questions_can_be_switched_off_for_everybody(places: Places) -> None:
    settings = places.load(
        flag={"permissions": {"defaultMode": "bypassPermissions"}},
        managed={"permissions": {"disableBypassPermissionsMode": "disable"}},
    )
    assert settings.permissions.mode is None
    (problem,) = settings.problems
    assert "the mode bypassPermissions is switched off by" in problem


def test_a_managed_file_that_cannot_be_read_is_told_and_its_rules_are_unknown(
    places: Places,
) -> None:
    places.files["managed"].parent.mkdir(parents=True)
    places.files["managed"].write_text("{", "utf-8")
    settings = places.load()
    assert settings.unread == settings.problems
    assert str(places.files["managed"]) in settings.unread[0]


def test_a_variable_names_another_place_only_where_the_machine_has_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, named = tmp_path / "etc", tmp_path / "named"
    assert chosen(own, named=None) == (own,)
    assert chosen(own, named=str(named)) == (named,)
    own.mkdir()
    assert chosen(own, named=str(named)) == (own,)
    monkeypatch.setenv("CROW_MANAGED", str(named))
    assert machine() == chosen(*of_machine(), named=str(named))


NAME = [{"serverName": "a"}]
OTHER = [{"serverName": "b"}]
LISTS = {"allowedMcpServers": NAME, "deniedMcpServers": NAME}


def test_what_is_said_of_servers_is_joined_and_the_administrators_alone_where_they_say_so(
    places: Places,
) -> None:
    assert places.load().allowed_servers is None
    settings = places.load(user=LISTS, project={"allowedMcpServers": OTHER}, managed=LISTS)
    assert settings.allowed_servers is not None
    assert sorted(each["serverName"] for each in settings.allowed_servers) == ["a", "a", "b"]
    alone = {"allowManagedMcpServersOnly": True}
    settings = places.load(user=alone, project={"allowedMcpServers": OTHER}, managed=LISTS)
    assert len(settings.allowed_servers or ()) == 2  # it is not the user's to say
    settings = places.load(user=LISTS, managed={**alone, "allowedMcpServers": OTHER})
    assert settings.allowed_servers == (*OTHER,)
    assert settings.denied_servers == (*NAME,)


def test_a_project_that_nobody_trusts_may_deny_servers_and_allow_none(places: Places) -> None:
    settings = places.load(trusted=False, project=LISTS, user={"allowedMcpServers": OTHER})
    assert settings.allowed_servers == (*OTHER,)
    assert settings.denied_servers == (*NAME,)


def test_where_only_the_administrators_rules_allow_others_still_ask_and_deny(
    places: Places,
) -> None:
    rules = {"allow": ["Bash(a)"], "ask": ["Bash(b)"], "deny": ["Bash(c)"]}
    lock = {"allowManagedPermissionRulesOnly": True, "permissions": {"allow": ["Bash(d)"]}}
    settings = places.load(
        user={"permissions": rules}, project={"permissions": rules}, managed=lock
    )
    said = settings.permissions
    assert [each.text for each in said.allow] == ["Bash(d)"]
    assert {each.text for each in said.ask} == {"Bash(b)"}
    assert {each.text for each in said.deny} == {"Bash(c)"}
    assert not can_keep_rules(settings)
    settings = places.load(user={**lock, "permissions": rules}, managed={})
    assert "Bash(a)" in [each.text for each in settings.permissions.allow]


def test_a_bound_that_makes_no_sense_is_shut(places: Places) -> None:
    nonsense = {
        "allowedMcpServers": "all",
        "allowManagedMcpServersOnly": "yes",
        "allowManagedPermissionRulesOnly": 1,
    }
    user = {"allowedMcpServers": NAME, "permissions": {"allow": ["Bash(a)"]}}
    settings = places.load(user=user, managed=nonsense)
    assert settings.allowed_servers == ()
    assert settings.permissions.allow == ()
    assert sum("allow" in each for each in settings.problems) == 3
