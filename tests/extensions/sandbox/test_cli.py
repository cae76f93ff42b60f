"""``crow sandbox``: what confines commands, what does not, and whether it does."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from tests.extensions.sandbox.conftest import backend

from crow.extensions.sandbox.backend import GUARANTEES
from crow.extensions.sandbox.probe import everyone


def crow(*line: str, wanted: str = "on") -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "crow", "sandbox", *line]
    env = {**os.environ, "CROW_SANDBOX": wanted}
    return subprocess.run(argv, capture_output=True, text=True, timeout=100, env=env)


@pytest.mark.slow
def test_it_says_what_holds_what_does_not_and_why_not_another() -> None:
    best = next((each for each in everyone() if each.backend is not None), None)
    told = crow()
    if best is None or best.backend is None:
        assert told.returncode == 1
        assert told.stdout.startswith("NO SANDBOX")
        return
    assert told.returncode == 0
    lines = told.stdout.splitlines()
    assert lines[0] == f"Commands are confined by {best.name}."
    assert f"  holds  {GUARANTEES['write']}" in lines
    assert all(f"  mind   {text}" in lines for text in best.backend.does_not_hold)
    assert "seatbelt: no, it is for macOS" in lines


def test_it_says_so_to_programs() -> None:
    found = backend("landlock")
    about = json.loads(crow("--backend", "landlock", "--json").stdout)
    assert about["backend"] == "landlock"
    assert set(about["holds"]["workspace"]) == found.holds
    assert set(about["holds"]["reading"]) == found.holds_reading
    assert set(about["others"]) == {"bubblewrap", "seatbelt"}


@pytest.mark.slow
def test_no_sandbox_is_loud_and_nothing_is_tried_against_it() -> None:
    told = crow("--backend", "none")
    assert (told.returncode, told.stdout.splitlines()[0][:10]) == (1, "NO SANDBOX")
    tried = crow("try", "--backend", "none")
    assert tried.returncode == 2
    assert "nothing confines commands here" in tried.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("wanted", "line", "why"),
    [
        ("none", (), "CROW_SANDBOX=none is set."),
        ("off", (), "It is switched off (CROW_SANDBOX=off)."),
        ("on", ("--no-sandbox",), "It is switched off (command line)."),
        ("jail", (), "The sandbox jail does not work here: there is none of this name "),
    ],
)
def test_what_holds_here_is_what_settings_and_environment_want(
    wanted: str, line: tuple[str, ...], why: str
) -> None:
    told = crow(*line, wanted=wanted)
    first, second = told.stdout.splitlines()[:2]
    assert (told.returncode, first[:10]) == (1, "NO SANDBOX")
    assert second.startswith(why)
    about = json.loads(crow(*line, "--json", wanted=wanted).stdout)
    assert about["backend"] == "none"
    assert why[1:-1] in about["why"] + "."


@pytest.mark.slow
def test_where_it_is_required_and_there_is_none_no_command_runs() -> None:
    required = ("--settings", '{"sandbox": {"required": true}}')
    told = crow(*required, wanted="none")
    assert told.returncode == 1
    assert told.stdout.splitlines()[0] == "NO SANDBOX: sandbox.required is set, so no command runs."
    assert json.loads(crow(*required, "--json", wanted="none").stdout)["required"] is True


@pytest.mark.parametrize("line", [("escape",), ("--backend", "jail")])
def test_what_is_not_there_is_said_in_a_line(line: tuple[str, ...]) -> None:
    told = crow(*line)
    assert told.returncode == 2
    assert told.stderr.startswith("crow: ")
    assert len(told.stderr.splitlines()) == 1


@pytest.mark.slow
def test_it_tries_to_get_out() -> None:
    backend("landlock")
    told = crow("try", "--backend", "landlock", "--json")
    rows = [json.loads(line) for line in told.stdout.splitlines()]
    assert told.returncode == 0
    assert {row["outcome"] for row in rows} == {"held", "open"}
    assert {row["ring"] for row in rows} == {"reading", "workspace"}
    assert len(rows) > 280
