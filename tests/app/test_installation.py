"""Built-ins are found as anybody's package is: one that is not installed is missed by nobody."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import distribution
from pathlib import Path

import pytest

from crow.entry_points import entry_points

SRC = Path(__file__).parents[2] / "src" / "crow"
OWN = {point.name: point for point in entry_points() if point.own}
Run = Callable[..., subprocess.CompletedProcess[str]]


SOME = {"persistence", "mcp", "shell_hooks", "system_prompt"}
"""Those that are taken out in every run; the others are when the slow tests run."""


@pytest.fixture
def installation(tmp_path: Path) -> Path:
    """What is installed once more, which counts before that; its rooms are links to the others."""
    site = tmp_path / "site"
    for folder in (SRC, SRC / "extensions"):
        (copy := site / "crow" / folder.relative_to(SRC)).mkdir(parents=True)
        for each in folder.iterdir():
            if each.name not in {"extensions", "__pycache__"}:
                (copy / each.name).symlink_to(each)
    info = site / "crow_acp-9.dist-info"
    info.mkdir()
    text = distribution("crow-acp").read_text("entry_points.txt")
    assert text is not None
    (info / "entry_points.txt").write_text(text)
    return site


@pytest.fixture
def crow(installation: Path, tmp_path: Path) -> Run:
    """Run the command of that installation in a project."""
    project = tmp_path / "project"
    (project / ".git").mkdir(parents=True)
    (project / "test.txt").write_text("What stands here.")

    def run(*argv: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "crow", *argv]
        env = {**os.environ, "PYTHONPATH": str(installation)}
        return subprocess.run(
            command, cwd=project, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True
        )

    return run


def take_out(installation: Path, name: str) -> None:
    """Leave nothing of an extension: neither its code nor what says that it is there."""
    room, inside, *_ = OWN[name].value.partition(":")[0].split(".")[1:]
    home = installation / "crow" / room
    home = home / inside if room == "extensions" else home
    (home if home.is_dir() else home.with_suffix(".py")).unlink()
    listed = installation / "crow_acp-9.dist-info" / "entry_points.txt"
    lines = listed.read_text().splitlines(keepends=True)
    listed.write_text("".join(line for line in lines if not line.startswith(f"{name} = ")))


@pytest.mark.parametrize(
    "name",
    [
        name if name in SOME else pytest.param(name, marks=pytest.mark.slow)
        for name in OWN
        if name != "permissions"
    ],
)
@pytest.mark.variants(2)
def test_any_one_of_them_can_be_taken_out_and_the_rest_answers(
    installation: Path, crow: Run, name: str
) -> None:
    take_out(installation, name)
    ended = crow("run", "--quiet", "--model", "rehearsal", "Read the file test.txt")
    slow = "blocked everything"  # modules of the copy are compiled by whoever comes first
    said = [line for line in ended.stderr.splitlines() if slow not in line]
    assert (ended.returncode, said) == (0, [])
    assert "What stands here." in ended.stdout


COMMANDS = {
    "mcp": [("mcp", "list")],
    "sandbox": [("config",)],
    "shell_hooks": [("hooks", "test", "Stop")],
    "presence": [("sessions",)],
}
"""What of the command line asks an extension by itself."""


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.slow
def test_commands_say_that_theirs_is_not_there(installation: Path, crow: Run, name: str) -> None:
    take_out(installation, name)
    for argv in COMMANDS[name]:
        ended = crow(*argv)
        if ended.returncode:
            [said] = ended.stderr.splitlines()
            assert said == f"crow: the extension {name} is not installed, whose command this is"
        else:
            assert ended.stderr == ""


@pytest.mark.slow
def test_without_the_permissions_nothing_runs_but_where_the_user_has_disabled_them(
    installation: Path, crow: Run, home: Path
) -> None:
    take_out(installation, "permissions")
    ended = crow("run", "--model", "rehearsal", "Read the file test.txt")
    assert ended.returncode != 0
    assert "the permissions cannot be judged: they are not installed" in ended.stderr
    (home / ".crow").mkdir()
    (home / ".crow" / "settings.json").write_text('{"extensions": {"disable": ["permissions"]}}')
    assert crow("run", "--model", "rehearsal", "Read the file test.txt").returncode == 0
    ended = crow("permissions", "check", "Bash(ls)")
    [said] = ended.stderr.splitlines()
    assert (ended.returncode, ended.stdout) == (2, "")
    assert said.startswith("crow: there is no command 'permissions'")


@pytest.mark.parametrize("name", ["permissions", "mcp", "skills"])
@pytest.mark.slow
def test_one_that_is_in_a_package_of_its_own_is_made_with_all_settings_too(
    installation: Path, crow: Run, name: str
) -> None:
    lines = (installation / "crow_acp-9.dist-info" / "entry_points.txt").read_text().splitlines()
    named = (line for line in lines if line.startswith(("[crow.", f"{name} = ")))
    listed = "\n".join(named)
    shutil.copytree(SRC / "extensions" / name, installation / f"guest_{name}")
    for path in (installation / f"guest_{name}").rglob("*.py"):
        path.write_text(path.read_text().replace(f"crow.extensions.{name}", f"guest_{name}"))
    take_out(installation, name)
    info = installation / f"guest_{name}-1.0.dist-info"
    info.mkdir()
    (info / "entry_points.txt").write_text(
        listed.replace(f"crow.extensions.{name}", f"guest_{name}")
    )
    every = [json.loads(line) for line in crow("ext", "--json").stdout.splitlines()]
    [mine] = [each for each in every if each["name"] == name]
    assert (mine["state"], mine["source"], mine["error"]) == ("in use", f"guest_{name}", None)
    options = ("--model", "rehearsal", "--deny", "Read(test.txt)")
    ended = crow("run", *options, "Read the file test.txt")
    assert "What stands here." not in ended.stdout
    assert "Read(test.txt)" in ended.stdout + ended.stderr
    if name == "permissions":
        ended = crow("permissions", "check", "Read(test.txt)", "--deny", "Read(test.txt)")
        assert ended.stdout.startswith("deny  ")
