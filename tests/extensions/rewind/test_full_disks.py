"""Rewind on disks that are full or read-only: small ones are mounted for it, where that is allowed."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from tests.core.conftest import Watcher

from crow import Agent
from crow.extensions.rewind import RewindHook
from crow.testing import ScriptedModel, call

pytestmark = pytest.mark.slow

OLD = "old " * 20_000


class Disk:
    """A file system of its own in memory, of so many kilobytes."""

    def __init__(self, path: Path, size: int) -> None:
        self.path = path
        path.mkdir()
        self._do("mount", "-t", "tmpfs", "-o", f"size={size}k", "none", str(path))

    def _do(self, *command: str) -> None:
        try:
            subprocess.run(command, check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError) as error:
            pytest.skip(f"nothing can be mounted here: {error}")

    def fill(self) -> None:
        """Let nothing more fit."""
        with suppress(OSError), (self.path / "filler").open("wb", buffering=0) as file:
            while True:
                file.write(bytes(4096))

    def free(self) -> None:
        """Let it be as it was."""
        (self.path / "filler").unlink(missing_ok=True)

    def close(self) -> None:
        """Take it away, whoever still has it open."""
        subprocess.run(["umount", "-l", str(self.path)], check=False)


@pytest.fixture
def watcher() -> Watcher:
    return Watcher()


@pytest.fixture
def disks(tmp_path: Path) -> Generator[tuple[Disk, Disk]]:
    """Where a session works, and where rewind keeps things."""
    if sys.platform != "linux" or shutil.which("mount") is None:
        pytest.skip("needs Linux, and to mount")
    made: list[Disk] = []
    try:
        made.extend(Disk(tmp_path / name, 700) for name in ("work", "kept"))
        yield made[0], made[1]
    finally:
        for disk in made:
            disk.close()


class Scene:
    """A file was replaced by a session; somebody goes back."""

    def __init__(self, disks: tuple[Disk, Disk], client: Any) -> None:
        self.work, self.kept = disks
        self.file = self.work.path / "a.txt"
        self.file.write_text(OLD)
        self.hook = RewindHook(directory=self.kept.path / "rewind")
        path = str(self.file)
        script = [call("Read", file_path=path), call("Write", file_path=path, content="new")]
        self.agent = Agent(ScriptedModel(*script, "Done."), hooks=[self.hook])
        self.client, self.since = client, time.time() - 1

    async def edited(self) -> None:
        """Let the session replace the file."""
        self.session = await self.agent.new_session(self.work.path, client=self.client)
        reply = await self.agent.prompt(self.session, "Write it anew")
        assert (reply.text, self.file.read_text()) == ("Done.", "new")

    async def back(self) -> Any:
        """Go back."""
        plan = await self.hook.plan_rewind(self.session, self.since)
        return await self.hook.carry_out_rewind(self.session, plan)


async def test_what_does_not_fit_stays_as_it_is_and_comes_back_once_there_is_room(
    disks: Any, watcher: Any
) -> None:
    scene = Scene(disks, watcher)
    async with scene.agent:
        await scene.edited()
        scene.work.fill()
        outcome = await scene.back()
        assert outcome.failed == ((str(scene.file), "No space left on device"),)
        assert scene.file.read_text() == "new"
        assert sorted(each.name for each in scene.work.path.iterdir()) == ["a.txt", "filler"]
        scene.work.free()
        assert (await scene.back()).failed == ()
    assert scene.file.read_text() == OLD


async def test_nothing_is_changed_where_what_is_there_cannot_be_kept(
    disks: Any, watcher: Any
) -> None:
    scene = Scene(disks, watcher)
    async with scene.agent:
        await scene.edited()
        scene.kept.fill()
        with pytest.raises(OSError, match="database or disk is full"):
            await scene.back()
        assert scene.file.read_text() == "new"
        scene.kept.free()
        assert (await scene.back()).failed == ()
    assert scene.file.read_text() == OLD


async def test_a_session_works_on_and_is_told_where_nothing_can_be_kept(
    disks: Any, watcher: Any
) -> None:
    scene = Scene(disks, watcher)
    scene.kept.fill()
    async with scene.agent:
        await scene.edited()
    said = [event.text for event in watcher.events if type(event).__name__ == "Notice"]
    assert any("nothing can be taken back" in text and "disk is full" in text for text in said)
