"""A program that works in a folder that is full, or that nobody may write to, and says how it was.

``python scarce.py FOLDER full|closed``, in a mount namespace of its own; prints JSON.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

from crow.core.agent import Agent
from crow.core.errors import SessionError
from crow.core.events import Event, Notice
from crow.core.ports.client import NullClient
from crow.extensions import PersistenceHook
from crow.testing import ScriptedModel


class Client(NullClient):
    def __init__(self) -> None:
        self.notices: list[str] = []

    async def update(self, session_id: str, event: Event) -> None:
        if isinstance(event, Notice):
            self.notices.append(event.text)


def mount(*words: object) -> None:
    subprocess.run(["mount", *map(str, words)], check=True)


async def full(folder: Path) -> dict[str, object]:
    """Fill the disk between two prompts, and empty it again."""
    mount("-t", "tmpfs", "-o", "size=1m", "tmpfs", folder)
    hook, client = PersistenceHook(folder / "crow.db"), Client()
    async with Agent(ScriptedModel("a", "c", "d"), hooks=[hook], tools=[]) as agent:
        session = await agent.new_session(client=client)
        await agent.prompt(session, "one")
        fill(folder / "filler")
        prompt = "two " * 3000
        stops = [(await agent.prompt(session, prompt)).stop_reason]
        readable = len((await hook.store.segments(session.id))[0])
        stops.append((await agent.prompt(session, "three")).stop_reason)
        (folder / "filler").unlink()
        stops.append((await agent.prompt(session, "four")).stop_reason)
    same = (await hook.store.load(session.id)).messages == session.messages
    return {"stops": stops, "notices": client.notices, "readable": readable, "same": same}


def fill(path: Path) -> None:
    with path.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(b"\0" * 512)
        except OSError:
            os.fsync(file.fileno())


async def closed(folder: Path) -> dict[str, object]:
    """Take the right to write away after a first session."""
    hook, client = PersistenceHook(folder / "crow.db"), Client()
    async with Agent(ScriptedModel("a"), hooks=[hook], tools=[]) as agent:
        old = (await agent.run("one")).session
    mount("--bind", folder, folder)
    mount("-o", "remount,bind,ro", folder)
    hook = PersistenceHook(folder / "crow.db")
    async with Agent(ScriptedModel("b", "c"), hooks=[hook], tools=[]) as agent:
        stops = [(await agent.prompt(await agent.new_session(client=client), "go")).stop_reason]
        listed = [info.id for info in (await hook.store.sessions())[0]] == [old.id]
        again = await agent.load_session(old.id, client=client)
        same = again.messages == old.messages
        stops.append((await agent.prompt(again, "go")).stop_reason)
        try:
            await hook.store.rename(old.id, "x")
        except SessionError as error:
            client.notices.append(str(error))
    return {"stops": stops, "notices": client.notices, "readable": listed, "same": same}


if __name__ == "__main__":
    work = {"full": full, "closed": closed}[sys.argv[2]]
    print(json.dumps(asyncio.run(work(Path(sys.argv[1])))))
