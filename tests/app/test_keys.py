"""The keys that Crow uses itself: no command, hook, server or search has them, unless one says so."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.app.conftest import Room, write
from tests.app.test_imports import PLANTS

from crow.core.ports.client import Terminal
from crow.llm.presets import KEY_NAMES
from crow.project.trust import is_trusted, trust
from crow.testing import call

OWN = "MY_OWN_GATEWAY"
TOKEN = "CROW_ACP_TOKEN"
DUMP = "env > {0}.new; mv {0}.new {0}"


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every key that there is, and one of something else."""
    for name in (*KEY_NAMES, OWN, TOKEN, "GITHUB_TOKEN"):
        monkeypatch.setenv(name, f"secret-{name}")


@pytest.fixture
def seen(tmp_path: Path) -> Path:
    folder = tmp_path / "seen"
    folder.mkdir()
    return folder


def settled(home: Path, seen: Path, **more: Any) -> None:
    """The user's settings, with hooks and a server that tell what they find."""
    hook = {"type": "command", "command": DUMP.format(seen / "hook")}
    late = {"type": "command", "command": DUMP.format(seen / "late"), "async": True}
    spawned = {"type": "command", "command": "sh", "args": ["-c", DUMP.format(seen / "spawned")]}
    write(
        home / ".crow/settings.json",
        {
            "permissions": {"allow": ["Bash"]},
            "providers": {"mine": {"base_url": "http://127.0.0.1:9/v1", "api_key_env": OWN}},
            "hooks": {"PreToolUse": [{"hooks": [hook, late, spawned]}]},
            "mcpServers": {"it": {"command": "sh", "args": ["-c", DUMP.format(seen / "server")]}},
            **more,
        },
    )


def wait(seen: Path, *names: str) -> str:
    """A command that ends when these files are there."""
    return "; ".join(f"until [ -e {seen / name} ]; do sleep 0.02; done" for name in names)


async def test_no_program_that_is_started_finds_a_key(
    home: Path, room: Room, seen: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settled(home, seen)
    rg = write(seen / "bin/rg", f"#!/bin/sh\n{DUMP.format(seen / 'search')}\n")
    rg.chmod(0o755)
    monkeypatch.setenv("PATH", f"{seen / 'bin'}:/usr/bin:/bin")
    names = ("hook", "late", "spawned", "server", "later")
    await room.do(
        call("Bash", command=DUMP.format(seen / "now")),
        call("Bash", command=DUMP.format(seen / "later"), run_in_background=True),
        call("Grep", pattern="x"),
        call("Bash", command=wait(seen, *names)),
    )
    for name in (*names, "now"):
        told = (seen / name).read_text()
        assert not [key for key in (*KEY_NAMES, OWN, TOKEN) if f"secret-{key}" in told], name
        assert "PATH=" in told
        assert ("GITHUB_TOKEN" in told) is (name != "server")
    search = seen / "search"
    assert not search.exists() or "secret-" not in search.read_text()


async def test_a_key_is_handed_on_where_the_user_says_so(
    home: Path, room: Room, seen: Path
) -> None:
    env = {"KEY": "${GEMINI_API_KEY}"}
    server = {"command": "sh", "args": ["-c", DUMP.format(seen / "server")], "env": env}
    settled(home, seen, pass_env=["OPENAI_API_KEY"], mcpServers={"it": server})
    await room.do(
        call("Bash", command=DUMP.format(seen / "now")),
        call("Bash", command=wait(seen, "hook", "late", "server")),
    )
    for name in ("now", "hook", "late"):
        told = (seen / name).read_text()
        assert "OPENAI_API_KEY=secret-OPENAI_API_KEY" in told
        assert "ANTHROPIC" not in told
    assert "KEY=secret-GEMINI_API_KEY" in (seen / "server").read_text()


async def test_a_change_of_what_is_handed_on_counts_at_once(
    home: Path, room: Room, seen: Path
) -> None:
    settled(home, seen)
    assert "secret" not in str(await room.do(call("Bash", command="env | grep OPENAI_API")))
    settled(home, seen, pass_env=["OPENAI_API_KEY"])
    assert "secret" in str(await room.do(call("Bash", command="env | grep OPENAI_API")))
    settled(home, seen)
    assert "secret" not in str(await room.do(call("Bash", command="env | grep OPENAI_API")))


async def test_a_project_that_is_not_trusted_is_handed_no_key(room: Room, home: Path) -> None:
    write(home / ".crow/settings.json", {"permissions": {"allow": ["Bash"]}})
    write(room.project / ".crow/settings.json", {"pass_env": ["OPENAI_API_KEY"]})
    assert "secret-OPENAI" not in str(await room.do(call("Bash", command="env")))


class Screens:
    """A client's terminals, which only note what they are asked."""

    def __init__(self) -> None:
        self.env: dict[str, str] = {}

    async def create(
        self, command: str, args: Sequence[str], *, cwd: str, env: Mapping[str, str], limit: int
    ) -> Terminal:
        self.env = dict(env)
        raise OSError("there is none")


async def test_a_terminal_of_the_clients_gets_its_keys_emptied(home: Path, room: Room) -> None:
    write(home / ".crow/settings.json", {"permissions": {"allow": ["Bash"]}})
    screens = Screens()
    room.person.terminals = screens
    await room.do(call("Bash", command="true"))
    assert screens.env == dict.fromkeys({*KEY_NAMES, TOKEN}, "")


async def test_compiled_code_beside_a_hooks_helper_is_not_run(
    room: Room, home: Path, tmp_path: Path
) -> None:
    hooks = room.project / ".claude/hooks"
    for number, plant in enumerate(PLANTS):
        write(hooks / f"guard{number}.py", f"import helper{number}\n")
        evil = f"x='benign'\nif x == 'evil' + '!!': open({str(tmp_path / 'ran')!r}, 'w')\n"
        plant(write(hooks / f"helper{number}.py", evil))
    commands = [f"{sys.executable} $CLAUDE_PROJECT_DIR/.claude/hooks/guard{n}.py" for n in range(3)]
    handlers = [{"type": "command", "command": command} for command in commands]
    table = {"hooks": {"PreToolUse": [{"hooks": handlers}]}}
    write(room.project / ".claude/settings.json", table)
    write(home / ".crow/settings.json", {"permissions": {"allow": ["Bash"]}})
    trust(room.project)
    assert "hello" in str(await room.do(call("Bash", command="echo hello")))
    assert not (tmp_path / "ran").exists()
    assert is_trusted(room.project)
    alone = await asyncio.create_subprocess_exec(sys.executable, str(hooks / "guard0.py"))
    await alone.wait()
    assert (tmp_path / "ran").exists()
