"""Public hook collections and plugins, from clones of theirs that somebody has put into a folder."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.wild.entries import GIT, Call, Entry, Reply, Run

from crow.testing import FakeEditor
from crow.testing.endpoint import USAGE, Endpoint, Response, delta, stream

ROOT = Path(__file__).parents[2]
CLONES = Path(os.environ.get("CROW_WILD", ROOT / ".wild"))
"""Where clones lie, each as OWNER/NAME."""
CROW = str(Path(sys.executable).with_name("crow"))
TOOLS = "Bash,Edit,Write,Read,Skill,Agent,WebSearch,EnterPlanMode"
LIMIT = 90
INSTALLERS = ("description", "supportingFiles")
"""What is for the program that copies hooks, and does not come into settings."""


class Ended:
    """What a command left."""

    def __init__(self, status: int | None, out: bytes, err: bytes) -> None:
        self.status = status
        self.out = out.decode()
        self.err = err.decode()


class Place:
    """A home and a project of somebody who brings an entry along."""

    def __init__(self, home: Path, endpoint: Endpoint) -> None:
        self.home = home
        self.project = home / "project"
        self.endpoint = endpoint

    async def crow(self, *argv: str, feed: str | None = None, **env: str) -> Ended:
        """Run the command in the project."""
        process = await asyncio.create_subprocess_exec(
            CROW,
            *argv,
            cwd=self.project,
            env=self.env(env),
            stdin=asyncio.subprocess.DEVNULL if feed is None else asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            async with asyncio.timeout(LIMIT):
                out, err = await process.communicate(None if feed is None else feed.encode())
        finally:
            if process.returncode is None:
                process.kill()
        return Ended(process.returncode, out, err)

    def env(self, more: dict[str, str]) -> dict[str, str]:
        """The environment of the command."""
        own = {"CROW_BASE_URL": self.endpoint.url, "CROW_MODEL": "scripted", "CROW_API_KEY": "k"}
        npm = {"npm_config_cache": str(CLONES / ".npm"), "npm_config_update_notifier": "false"}
        return {**os.environ, **own, **npm, **more}

    async def prepare(self, entry: Entry, clone: Path) -> None:
        """Install an entry as its README says."""
        for origin, to in entry.copies.items():
            copy(clone / origin, self.at(to))
        for name, text in entry.files.items():
            path = self.at(name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        settings = settings_of(entry, clone)
        if settings:
            path = self.project / ".claude" / "settings.json"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(settings))
        if GIT not in entry.first:
            (self.project / ".git").mkdir()
        for command in entry.first:
            self.shell(command)
        for plugin in entry.plugins:
            ended = await self.crow("plugin", "add", "--yes", str(clone / plugin))
            assert ended.status == 0, ended.err
        if settings or (self.project / ".claude").exists():
            ended = await self.crow("trust", "--yes")
            assert ended.status == 0, ended.err

    def at(self, name: str) -> Path:
        """A path of the project, or of the home."""
        return self.home / name[2:] if name.startswith("~/") else self.project / name

    def shell(self, command: str) -> None:
        """Run a command of the installation in the project."""
        subprocess.run(
            command, shell=True, cwd=self.project, check=True, capture_output=True, timeout=300
        )

    async def run(self, run: Run, **more: str) -> Ended:
        """Prompt, and play what the model says."""
        env = {**run.env, **more}
        env = {name: text.replace("$EVENTS", more["EVENTS"]) for name, text in env.items()}
        self.endpoint.play(*[response(each) for each in run.replies])
        if run.person:
            return await self.ask(run, env)
        if run.then:
            lines = "".join(map(asked, (run.prompt, *run.then)))
            return await self.crow(*STREAM, *ALLOWED, *run.argv, feed=lines, **env)
        return await self.crow("-p", run.prompt, *ALLOWED, *run.argv, **env)

    async def ask(self, run: Run, env: dict[str, str]) -> Ended:
        """Prompt in an editor, whose person answers."""
        editor = FakeEditor(permissions=[run.person])
        async with editor.spawned(CROW, "acp", env=self.env(env), cwd=self.project):
            session = await editor.new_session(str(self.project))
            await editor.prompt(session, run.prompt)
        return Ended(0, b"", b"")


ALLOWED = ("--allowedTools", TOOLS)
STREAM = ("-p", "--verbose", "--input-format", "stream-json", "--output-format", "stream-json")


def asked(prompt: str) -> str:
    """A prompt as a program sends it."""
    message = {"role": "user", "content": prompt}
    return json.dumps({"type": "user", "message": message}) + "\n"


def copy(origin: Path, to: Path) -> None:
    """Copy a file or a folder."""
    to.parent.mkdir(parents=True, exist_ok=True)
    if origin.is_dir():
        shutil.copytree(origin, to, dirs_exist_ok=True)
    else:
        shutil.copy(origin, to)


def settings_of(entry: Entry, clone: Path) -> dict[str, Any]:
    """The settings of an entry: a table, or a file of theirs, which may have a description."""
    if isinstance(entry.settings, dict):
        return entry.settings
    table = json.loads((clone / entry.settings).read_text()) if entry.settings else {}
    return {key: value for key, value in table.items() if key not in INSTALLERS}


def response(reply: Reply) -> Response:
    """What the model says: a text, or calls."""
    if isinstance(reply, str):
        return stream(reply, delta(finish="stop"), USAGE)
    wanted: Sequence[Call] = [reply] if isinstance(reply, Call) else reply
    parts = [
        {
            "index": index,
            "id": f"call_{index}_{each.name}_{os.urandom(3).hex()}",
            "type": "function",
            "function": {"name": each.name, "arguments": json.dumps(each.args)},
        }
        for index, each in enumerate(wanted)
    ]
    return stream(delta(tool_calls=parts), delta(finish="tool_calls"), USAGE)


def clone_of(repository: str) -> Path:
    """The clone of a repository, or a skip that says where it would have to lie."""
    clone = CLONES / repository
    if not clone.is_dir():
        pytest.skip(f"needs a clone of github.com/{repository} in {CLONES / repository}")
    return clone


@pytest.fixture
async def place(home: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Place]:
    """A home in which Claude Code has been, with a project."""
    monkeypatch.setenv("PATH", f"{os.environ['PATH']}:{ROOT / '.uv/bin'}")
    (home / ".claude").mkdir()
    (home / "project").mkdir()
    async with Endpoint() as endpoint:
        yield Place(home, endpoint)
