"""A command means what it says: no variable of Crow's own makes a shell understand it otherwise."""

from __future__ import annotations

import subprocess

import pytest

from crow import Agent
from crow.core.secrets import STEERING


@pytest.mark.parametrize(
    ("name", "value", "command"),
    [
        ("BASH_ENV", "{}/startup", "ls kept"),
        ("CDPATH", "{}/elsewhere", "cd place && cat file"),
        ("GLOBIGNORE", "kept*", "echo k*"),
        ("EXECIGNORE", "*/cat", "cat kept"),
        ("SHELLOPTS", "noglob", "echo k*"),
        ("BASHOPTS", "nullglob", "echo nothing*"),
        ("PS4", "$(echo pwned >&2)", "set -x; true"),
    ],
)
def test_no_variable_changes_what_a_judged_command_does(
    tmp_path, monkeypatch, name, value, command
):
    (tmp_path / "startup").write_text("ls() { echo pwned; }\n")
    for folder, text in (("place", "here"), ("elsewhere/place", "there")):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "file").write_text(text)
    (tmp_path / "kept").write_text("kept")

    def printed(env: dict[str, str]) -> str:
        argv = ["bash", "-c", command]
        done = subprocess.run(argv, cwd=tmp_path, env=env, capture_output=True, check=False)
        return (done.stdout + done.stderr).decode()

    before = printed(Agent().environment())
    monkeypatch.setenv(name, value.format(tmp_path))
    assert printed(Agent().environment()) == before
    assert name in STEERING
