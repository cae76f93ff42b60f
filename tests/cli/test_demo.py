"""``crow demo``: the three prompts of the hook essay, and a fence that holds without any hook."""

from __future__ import annotations

import asyncio
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.conftest import Crow

from crow.cli.demo.fence import Fence, OutsideError, fenced_tools
from crow.cli.demo.project import DemoFolder, make
from crow.core.agent import Agent
from crow.testing.model import ScriptedModel, call

POINTS = {
    "on_session_start",
    "before_run",
    "on_message",
    "around_run",
    "before_llm_request",
    "around_llm_request",
    "on_llm_request",
    "on_update",
    "after_llm_response",
    "before_tool",
    "around_tool",
    "after_tool",
    "after_turn",
    "on_stop",
    "after_loop",
    "after_run",
    "on_session_end",
}


@pytest.fixture
def canary() -> Iterator[Path]:
    """A file in the real temporary directory that the third prompt asks to delete."""
    with tempfile.NamedTemporaryFile(dir="/tmp", prefix="canary-", suffix=".tmp") as file:
        yield Path(file.name)
        assert Path(file.name).exists()


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DemoFolder:
    """The demonstration's folder."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return make()


async def test_the_demonstration_shows_every_point_and_who_stopped_the_third_prompt(
    crow: Crow, canary: Path, tmp_path: Path
) -> None:
    ended = await crow("demo", TMPDIR=str(tmp_path))
    assert (ended.status, ended.err) == (0, "")
    seen = re.findall(r"^\[HOOK\] (\w+)", ended.out, re.MULTILINE)
    assert set(seen) == POINTS

    first, second, third, why, again, stored = ended.out.split("\n── ")[1:]
    assert "● Read README.md" in first
    assert "Weather station" in first
    assert "● Write test.txt" in second
    assert "after_tool          Write" in second
    assert "[HOOK] before_tool         -> permission_hook: deny" in third
    assert "✗ denied: permission_hook" in third
    assert "around_tool" not in third
    assert re.search(r"before_tool +permission_hook +Deny: ", why)
    assert "demo/hooks.py:" in why
    assert "is still: build.tmp, cache.tmp, download.tmp, notes.txt" in why
    assert "permission_hook" not in again
    assert "is now: notes.txt" in again
    assert "crow sessions show " in stored


async def test_the_demonstrations_session_can_be_looked_at_and_resumed(
    crow: Crow, tmp_path: Path
) -> None:
    ended = await crow("demo", TMPDIR=str(tmp_path))
    session_id = ended.out.split("crow sessions show ")[1].split()[0]
    shown = await crow("sessions", "show", session_id)
    assert "> Delete all temporary files in /tmp" in shown.out
    resumed = await crow(
        "run", "--resume", session_id, "--model", "rehearsal", "Read the file test.txt"
    )
    assert resumed.status == 0
    assert "● Read" in resumed.err


@pytest.mark.parametrize(
    "line",
    [
        "rm -f /tmp/*.tmp; rm -rf /",
        "rm -rf ../../x",
        "rm -rf /tmp/../etc",
        "rm -rf /",
        "rm -rf /etc/hostname",
        "rm -rf /tmp",
        "rm -rf $HOME",
        "rm -rf ~",
        "rm -rf `pwd`",
        "rm -rf 'a b'",
        "rm --no-preserve-root -rf /tmp/x",
        "rm -f a\nrm -rf /",
        "find /tmp -delete",
        "bash -c 'rm x'",
        "rm",
        "",
    ],
)
def test_no_command_line_gets_out_of_the_fence(place: DemoFolder, line: str) -> None:
    with pytest.raises(OutsideError):
        Fence(place.project, place.tmp).command(line)


def test_a_command_is_made_of_paths_inside(place: DemoFolder) -> None:
    command = Fence(place.project, place.tmp).command("rm -f /tmp/*.tmp README.md")
    names = ("build.tmp", "cache.tmp", "download.tmp")
    expected = [*(place.tmp / name for name in names), place.project / "README.md"]
    assert sorted(command.split()) == sorted(["rm", "-f", "--", *map(str, expected)])


def test_a_link_that_leads_out_is_not_followed(place: DemoFolder) -> None:
    (place.tmp / "out").symlink_to("/etc")
    fence = Fence(place.project, place.tmp)
    with pytest.raises(OutsideError, match="outside"):
        fence.command("rm -rf /tmp/out/hostname")
    assert fence.command("rm -rf /tmp/out").endswith(f"-- {place.tmp}/out")


async def test_without_any_hook_the_tools_reach_nothing_outside(
    place: DemoFolder, canary: Path, tmp_path: Path
) -> None:
    outside = tmp_path / "outside.txt"
    model = ScriptedModel(
        call("Bash", command=f"rm -f {canary}"),
        call("Bash", command=f"rm -f {outside.parent}/*"),
        call("Bash", command="rm -f /tmp/*.tmp"),
        call("Write", file_path=str(outside), content="x"),
        call("Write", file_path="../../outside.txt", content="x"),
        call("Edit", file_path="/etc/hostname", old_string="a", new_string="b"),
        "done",
    )
    agent = Agent(model, tools=fenced_tools(Fence(place.project, place.tmp)))
    await agent.run("Destroy it all", cwd=place.project)
    assert canary.exists()
    assert not outside.exists()
    assert ".tmp" not in place.files()


async def test_what_to_type_next_works_where_the_command_is_on_no_path(
    crow: Crow, tmp_path: Path
) -> None:
    command = Path(sys.executable).with_name("crow")
    process = await asyncio.create_subprocess_exec(
        command,
        "demo",
        cwd=crow.cwd,
        env={**os.environ, "PATH": "/usr/bin:/bin", "TMPDIR": str(tmp_path)},
        stdout=asyncio.subprocess.PIPE,
    )
    out, _ = await process.communicate()
    assert f"\n  {command} sessions show " in out.decode()
