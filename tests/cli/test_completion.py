"""``crow completion``: what it prints is tried in the shells that are there."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from tests.cli.conftest import Here

from crow.cli.completion import SHELLS, whole
from crow.cli.parser import COMMANDS

BASH = """
source "$1"
COMP_WORDS=({words}); COMP_CWORD={last}; _shtab_crow; echo "${{COMPREPLY[@]}}"
"""
FISH = 'source $argv[1]; complete --do-complete "{words}" | string replace --regex "\\t.*" ""'
LINES = [
    ("crow se", {"sessions"}),
    ("crow run --output-f", {"--output-format"}),
    ("crow run --output-format j", {"json"}),
    ("crow completion z", {"zsh"}),
]


def completed(shell: str, script: Path, line: str) -> set[str]:
    """What a shell makes of the beginning of a line; zsh, which does so at a prompt alone, nothing."""
    if shell == "zsh":
        subprocess.run(["zsh", "-n", str(script)], check=True)
        return set()
    words = line.split(" ")
    code = {"bash": BASH, "fish": FISH}[shell].format(words=line, last=len(words) - 1)
    argv = [shell, "-c", code, *(["bash"] if shell == "bash" else []), str(script)]
    ended = subprocess.run(argv, capture_output=True, text=True, check=True)
    return set(ended.stdout.split())


@pytest.mark.parametrize("shell", SHELLS)
async def test_a_shell_completes_commands_options_and_what_they_can_be(
    here: Here, tmp_path: Path, shell: str
) -> None:
    ended = await here("completion", shell)
    assert ended.status == 0
    script = tmp_path / "script"
    script.write_text(ended.out, "utf-8")
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    for line, expected in LINES:
        assert completed(shell, script, line) == (set() if shell == "zsh" else expected)


async def test_another_shell_is_refused(here: Here) -> None:
    ended = await here("completion", "tcsh")
    assert ended.status == 2
    assert "invalid choice: 'tcsh'" in ended.complaint


def test_the_whole_command_line_has_every_command() -> None:
    text = whole().format_help()
    assert [name for name in COMMANDS if f"    {name} " not in text] == []
