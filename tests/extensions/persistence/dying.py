"""A program that works on a session and is killed: at its n-th write, or at a random moment.

``python dying.py FOLDER writes|some-writes|moments COUNT SEED`` works COUNT times, each time in a process of its
own and on a database of its own, FOLDER/N/crow.db, or on that of DYING_STORE. What the process told its client is kept in
FOLDER/N/heard.jsonl; with DYING_STORE all work on that. The first one, FOLDER/whole, is not killed. Stops early where there is no n-th write.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import apsw

from crow.core.agent import Agent
from crow.core.events import Event, TextDelta, ToolEnded, ToolPending
from crow.core.hooks.contexts import TurnContext
from crow.core.ports.client import NullClient
from crow.extensions import PersistenceHook
from crow.testing import ScriptedModel, call
from crow.tools import tool


class Teller(NullClient):
    """A client at the other end of a pipe: what is written there was heard."""

    def __init__(self, pipe: int) -> None:
        self.pipe = pipe

    def tell(self, *words: object) -> None:
        os.write(self.pipe, (json.dumps(words) + "\n").encode())

    async def update(self, session_id: str, event: Event) -> None:
        match event:
            case TextDelta(text, message_id):
                self.tell("text", message_id, text)
            case ToolPending(call):
                self.tell("call", call.id)
            case ToolEnded(call, outcome, result):
                self.tell("result", call.id, outcome, result.text, asdict(result)["data"])
            case _:
                pass


class Compact:
    """Leaves the beginning of the conversation behind, once."""

    async def after_turn(self, ctx: TurnContext) -> None:
        if len(ctx.session.messages) > 10 and ctx.session.segment == 0:
            await ctx.compact(ctx.session.messages[-3:], "it worked")


class State:
    """Changes the session's state with every turn."""

    async def after_turn(self, state: dict[str, int]) -> None:
        state["turns"] = state.get("turns", 0) + 1


@tool
async def wait(seconds: float) -> dict[str, float]:
    """Wait."""
    await asyncio.sleep(seconds)
    return {"waited": seconds}


SCRIPT: tuple[Any, ...] = (
    ["I will ", "wait ", "twice", call("wait", seconds=0.0), call("wait", seconds=0.01)],
    call("wait", seconds=0.001),
    ["That ", "was ", "long"],
    ["Again: ", call("wait", seconds=0.002)],
    call("wait", seconds=0.0),
    "And done",
    "Yes",
)


async def work(db: Path | str, client: Teller) -> None:
    agent = Agent(
        ScriptedModel(*SCRIPT), hooks=[PersistenceHook(db), Compact(), State()], tools=[wait]
    )
    session = await agent.new_session(client=client)
    client.tell("session", session.id)
    for prompt in ("wait a moment", "wait again", "ready?"):
        reply = await agent.prompt(session, prompt)
        client.tell("reply", reply.text)
    await agent.close()


def live(folder: Path, pipe: int, before: Callable[[], object]) -> None:
    kept = before()
    asyncio.run(work(os.environ.get("DYING_STORE") or folder / "crow.db", Teller(pipe)))
    del kept


def run(
    folder: Path, before: Callable[[], object], kill_after: float | None = None
) -> float | None:
    """Work in a process of its own; the seconds from its first word on, None where it was killed."""
    folder.mkdir()
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        live(folder, writing, before)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        heard = pipe.readline()
        started = time.perf_counter()
        if kill_after is not None:
            time.sleep(kill_after)
            os.kill(child, signal.SIGKILL)
        heard += pipe.read()
    (folder / "heard.jsonl").write_bytes(heard)
    _, status = os.waitpid(child, 0)
    return None if status else time.perf_counter() - started


class Killing(apsw.VFS):
    """Files whose n-th write, counted over all of them, is never made."""

    def __init__(self, fatal: int) -> None:
        self.left = fatal
        self.base = apsw.vfs_names()[0]
        super().__init__("killing", self.base, makedefault=True)

    def xOpen(self, name, flags):  # type: ignore[no-untyped-def]
        return KillingFile(self, name, flags)


class KillingFile(apsw.VFSFile):
    """A file of `Killing`."""

    def __init__(self, vfs, name, flags) -> None:  # type: ignore[no-untyped-def]
        self.vfs = vfs
        super().__init__(vfs.base, name, flags)

    def xWrite(self, data, offset):  # type: ignore[no-untyped-def]
        self.vfs.left -= 1
        if self.vfs.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().xWrite(data, offset)


def numbers(how: str, count: int) -> list[int]:
    """Which writes: the first sixty, and every fifth after those where not all are wanted."""
    if how == "some-writes":
        return [*range(1, 61), *range(65, count, 5)]
    return [*range(1, count + 1)]


def main(folder: Path, how: str, count: int, seed: int) -> None:
    chance = random.Random(seed)
    lasting = run(folder / "whole", lambda: None)
    assert lasting is not None
    for number in numbers(how, count):
        here = folder / str(number)
        if how == "moments":
            run(here, lambda: None, chance.uniform(0, lasting))
        elif run(here, lambda: Killing(number)) is not None:  # noqa: B023
            break


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
