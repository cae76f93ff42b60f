"""The sandbox in settings: Claude Code's keys, which file may say what, and how files are joined."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from crow.app.sandbox import sandbox_of
from crow.project.settings import SandboxSettings
from crow.project.trust import trust
from crow.settings import load

MANAGED = "managed-settings.json"


def write(path: Path, sandbox: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"sandbox": sandbox}), "utf-8")
    return path


def told(project: Path, env: dict[str, str] | None = None, **options: Any) -> SandboxSettings:
    return sandbox_of(load(project, **{"managed": (), **options}), env or {})


def test_it_is_on_where_nobody_says_anything(project: Path):
    assert told(project) == SandboxSettings()
    assert SandboxSettings().enabled


@pytest.mark.parametrize("word", ["off", "0", "no", "OFF"])
def test_a_person_switches_it_off_by_the_environment(project: Path, word: str):
    off = told(project, {"CROW_SANDBOX": word})
    assert not off.enabled
    assert off.off == f"CROW_SANDBOX={word}"


def test_a_back_end_is_wanted_by_its_name(project: Path):
    assert told(project, {"CROW_SANDBOX": "landlock"}).backend == "landlock"
    assert told(project, {"CROW_SANDBOX": "on"}).backend is None


@pytest.mark.parametrize(
    "wish", [{"enabled": True}, {"required": True}, {"failIfUnavailable": True}]
)
def test_what_the_administrator_wants_no_variable_switches_off(
    project: Path, tmp_path: Path, wish: dict[str, bool]
):
    write(tmp_path / "etc" / MANAGED, wish)
    assert told(project, {"CROW_SANDBOX": "off"}, managed=(tmp_path / "etc",)).enabled


def test_claude_codes_files_count_as_they_stand(home: Path, project: Path):
    write(
        home / ".claude/settings.json",
        {
            "enabled": True,
            "autoAllowBashIfSandboxed": False,
            "allowUnsandboxedCommands": False,
            "failIfUnavailable": True,
            "excludedCommands": ["docker *"],
            "filesystem": {
                "allowWrite": ["~/.cache/uv/", "/opt/out/**", "./here"],
                "denyWrite": ["/opt/out/kept"],
                "denyRead": ["~/.secret"],
                "allowRead": ["~/.ssh/known_hosts"],
            },
            "network": {"allowedDomains": ["pypi.org"], "deniedDomains": ["evil.pypi.org"]},
            "credentials": {
                "files": [{"path": "~/.npmrc", "mode": "deny"}],
                "envVars": [{"name": "GITHUB_TOKEN", "mode": "mask"}],
            },
        },
    )
    settings = load(project, managed=())
    assert settings.problems == ()
    assert sandbox_of(settings, {}) == SandboxSettings(
        required=True,
        unasked=False,
        escapes=False,
        excluded=("docker *",),
        allow_write=(f"{home}/.cache/uv", "/opt/out", f"{home}/.claude/here"),
        deny_write=("/opt/out/kept",),
        deny_read=(f"{home}/.secret", f"{home}/.npmrc"),
        allow_read=(f"{home}/.ssh/known_hosts",),
        allowed_domains=("pypi.org",),
        denied_domains=("evil.pypi.org",),
        hidden=("GITHUB_TOKEN",),
    )


def test_lists_are_joined_and_of_truths_the_strongest_file_counts(home: Path, project: Path):
    write(home / ".crow/settings.json", {"enabled": False, "excludedCommands": ["docker *"]})
    write(project / ".crow/settings.json", {"enabled": True, "excludedCommands": ["make push"]})
    trust(project)
    joined = told(project)
    assert joined.enabled
    assert joined.excluded == ("make push", "docker *")


def test_a_project_that_is_not_trusted_says_nothing(project: Path):
    write(project / ".claude/settings.json", {"enabled": False, "excludedCommands": ["sh *"]})
    settings = load(project, managed=())
    assert sandbox_of(settings, {}) == SandboxSettings()
    assert [str(each) for each in settings.withheld] == [
        f"{project}/.claude/settings.json: sandbox"
    ]


def test_who_is_strong_and_lets_nothing_out_keeps_projects_from_opening_it(project: Path):
    opening = {
        "enabled": False,
        "excludedCommands": ["sh *"],
        "filesystem": {"allowWrite": ["/"], "allowRead": ["~/.ssh"], "denyRead": ["/opt"]},
        "network": {"allowedDomains": ["*"], "deniedDomains": ["x.org"]},
    }
    write(project / ".crow/settings.local.json", opening)
    trust(project)
    locked = told(project, file='{"sandbox": {"allowUnsandboxedCommands": false}}')
    assert locked == SandboxSettings(escapes=False, deny_read=("/opt",), denied_domains=("x.org",))


def test_the_administrator_may_keep_the_domains_to_themselves(
    home: Path, project: Path, tmp_path: Path
):
    write(home / ".crow/settings.json", {"network": {"allowedDomains": ["mine.org"]}})
    theirs = {"network": {"allowedDomains": ["ours.org"], "allowManagedDomainsOnly": True}}
    write(tmp_path / "etc" / MANAGED, theirs)
    assert told(project, managed=(tmp_path / "etc",)).allowed_domains == ("ours.org",)
    write(home / ".crow/settings.json", theirs)
    assert told(project).allowed_domains == ("ours.org",)
    [alone] = load(project, managed=()).rejected
    assert alone.why == "only the administrator's managed settings can say so"


def test_what_crow_has_no_use_for_is_named_by_config_and_complained_of_by_nobody(
    home: Path, project: Path
):
    write(home / ".claude/settings.json", {"enableWeakerNestedSandbox": True})
    settings = load(project, managed=())
    assert settings.problems == ()
    [left] = settings.rejected
    assert left.table == {"sandbox.enableWeakerNestedSandbox": True}
    assert left.why == "Crow has no use for it, and stays stricter"


def test_what_nobody_knows_is_named_once(home: Path, project: Path):
    path = write(home / ".claude/settings.json", {"allowUnsandboxedCommand": True})
    [problem] = load(project, managed=()).problems
    assert problem.startswith(f"{path}: there is no setting 'sandbox.allowUnsandboxedCommand'")
    assert problem.endswith("did you mean 'allowUnsandboxedCommands'?")
