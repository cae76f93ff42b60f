"""Single files are watched while a session is open, also such as are not there yet."""

from __future__ import annotations

import asyncio
from pathlib import Path

from crow import Agent
from crow.extensions import FileWatcherHook
from crow.keys import WATCHED
from crow.testing import ScriptedModel


class Ear:
    """Hears of changes; `hears` waits for the next one."""

    def __init__(self) -> None:
        self.heard: asyncio.Queue[tuple[str, str]] = asyncio.Queue()

    def on_file_changed(self, file_path: str, event: str) -> None:
        self.heard.put_nowait((Path(file_path).name, event))

    async def hears(self) -> tuple[str, str]:
        async with asyncio.timeout(30):
            return await self.heard.get()


async def test_a_file_in_a_folder_that_is_not_there_yet_is_heard_of(tmp_path: Path):
    ear = Ear()
    hooks = [FileWatcherHook(["new/file"]), ear]
    async with Agent(ScriptedModel(), hooks=hooks, tools=[]) as agent:
        await agent.new_session(tmp_path)
        (tmp_path / "new").mkdir()
        (tmp_path / "new" / "file").touch()
        assert await ear.hears() == ("file", "add")
        (tmp_path / "new" / "file").unlink()
        assert await ear.hears() == ("file", "unlink")


async def test_what_is_to_be_watched_can_change_with_every_prompt(tmp_path: Path):
    ear = Ear()
    hooks = [FileWatcherHook(), ear]
    async with Agent(ScriptedModel("Ok.", "Ok."), hooks=hooks, tools=[]) as agent:
        session = await agent.new_session(tmp_path)
        session.cache[WATCHED] = {str(tmp_path / "a")}
        await agent.run("Go", session=session)
        (tmp_path / "a").touch()
        assert await ear.hears() == ("a", "add")
        session.cache[WATCHED] = {str(tmp_path / "b")}
        await agent.run("Go", session=session)
        (tmp_path / "a").unlink()
        (tmp_path / "b").touch()
        assert await ear.hears() == ("b", "add")


async def test_nothing_is_watched_where_nobody_wants_that(tmp_path: Path):
    async with Agent(ScriptedModel("Ok."), hooks=[FileWatcherHook()], tools=[]) as agent:
        session = await agent.new_session(tmp_path)
        await agent.run("Go", session=session)
        assert "file_watcher" not in session.cache
