"""Built-ins are found as anybody's package is: one that is not installed is missed by nobody."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import pytest

from crow.entry_points import entry_points

SRC = Path(__file__).parents[2] / "src" / "crow"
OWN = {point.name: point for point in entry_points() if point.own}
Run = Callable[..., subprocess.CompletedProcess[str]]


SLOW = "blocked everything"
"""What is said where modules of a copy are compiled by whoever comes first."""
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
    said = [line for line in ended.stderr.splitlines() if SLOW not in line]
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


SHUT = [("run", "--model", "rehearsal", "hi"), ("permissions", "list"), ("mcp", "list")]
OPEN = [("sessions", "list"), ("hooks", "list"), ("config",)]


@pytest.mark.slow
def test_where_the_package_of_the_permissions_is_damaged_what_runs_no_tool_works(
    installation: Path, crow: Run
) -> None:
    (installation / "crow" / "extensions" / "permissions").unlink()
    damaged = (
        "crow-acp is damaged: crow.extensions.permissions, which it names, is missing; install it "
        "again (uv tool install --reinstall crow-acp, pip install --force-reinstall crow-acp)"
    )
    for argv in SHUT:
        ended = crow(*argv)
        assert (ended.returncode, ended.stdout) == (1, "")
        [said] = ended.stderr.splitlines()
        assert said.endswith(f": {damaged}")
    for argv in OPEN:
        assert crow(*argv).returncode == 0
    ended = crow("ext", "list")
    assert damaged in ended.stdout
    assert "in use    persistence" in ended.stdout


def move_out(installation: Path, name: str) -> str:
    """Make a package of its own of an extension; the name of its module."""
    group = OWN[name].group
    module = OWN[name].value.partition(":")[0]
    guest = f"guest_{name}"
    told = installation / "crow_acp-9.dist-info" / "entry_points.txt"
    commands = re.findall(rf"^\w+ = {module}\b.*cli$", told.read_text("utf-8"), re.MULTILINE)
    points = [f"[{group}]", f"{name} = {OWN[name].value}", "[crow.commands]", *commands]
    source = SRC.joinpath(*module.split(".")[1:])
    if source.is_dir():
        copies = Path(shutil.copytree(source, installation / guest)).rglob("*.py")
    else:
        copies = [Path(shutil.copy(source.with_suffix(".py"), installation / f"{guest}.py"))]
    for path in filter(Path.is_file, copies):
        path.write_text(path.read_text("utf-8").replace(module, guest), "utf-8")
    take_out(installation, name)
    info = installation / f"{guest}-1.0.dist-info"
    info.mkdir()
    (info / "entry_points.txt").write_text("\n".join(points).replace(module, guest), "utf-8")
    return guest


OPTIONS: dict[str, dict[str, Any]] = {
    "container": {"start": "true", "exec": "env"},
    "structured_output": {"schema": {"type": "object"}},
}
"""What some cannot be made without."""
PROMPTS = {"structured_output": ('Call StructuredOutput {"a": 1}', '{"a": 1}')}
"""What shows that it is at work, and by what."""


def about(crow: Run, name: str) -> dict[str, Any]:
    """What an extension has hung, wherever its code lies."""
    ended = crow("ext", "info", name, "--json")
    assert ended.returncode == 0, ended.stderr
    told = json.loads(ended.stdout)
    hooks = [{**each, "at": ""} for each in told["hooks"]]
    return {**told, "hooks": hooks, "source": "", "package": "", "file": "", "lately": ""}


@pytest.mark.parametrize("name", [name for name in OWN if name != "fleet"])
@pytest.mark.slow
def test_any_one_of_them_works_in_a_package_of_its_own(
    installation: Path, crow: Run, home: Path, name: str
) -> None:
    (home / ".crow").mkdir()
    settings = {
        "extensions": {name: OPTIONS.get(name, {})},
        "permissions": {"trusted": [name]},
        "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "true"}]}]},
    }
    (home / ".crow" / "settings.json").write_text(json.dumps(settings))
    before = about(crow, name)
    guest = move_out(installation, name)
    every = [json.loads(line) for line in crow("ext", "--json").stdout.splitlines()]
    [mine] = [each for each in every if each["name"] == name]
    assert (mine["state"], mine["source"], mine["error"]) == ("in use", guest, None)
    assert about(crow, name) == before
    prompt, answer = PROMPTS.get(name, ("Read the file test.txt", "What stands here."))
    ended = crow("run", "--quiet", "--model", "rehearsal", prompt)
    assert name != "hook_log" or "[HOOK] after_run" in ended.stderr
    said = [line for line in ended.stderr.splitlines() if not re.search(rf"{SLOW}|^.HOOK. ", line)]
    assert (ended.returncode, said) == (0, [])
    assert answer in ended.stdout
    for argv in COMMANDS.get(name, ()):
        assert crow(*argv).returncode == 0


@pytest.mark.parametrize("name", ["permissions", "mcp", "skills"])
@pytest.mark.slow
def test_one_that_is_in_a_package_of_its_own_is_made_with_all_settings_too(
    installation: Path, crow: Run, name: str
) -> None:
    move_out(installation, name)
    options = ("--model", "rehearsal", "--deny", "Read(test.txt)")
    ended = crow("run", *options, "Read the file test.txt")
    assert "What stands here." not in ended.stdout
    assert "Read(test.txt)" in ended.stdout + ended.stderr
    if name == "permissions":
        ended = crow("permissions", "check", "Read(test.txt)", "--deny", "Read(test.txt)")
        assert ended.stdout.startswith("deny  ")
