"""What storing costs: a message beside a bare insert, a streamed piece, a turn at any age.

A bare insert is one row in one transaction through the same library, in WAL mode. A turn is a
request, one tool call and its result, with a model that answers at once.
"""

from __future__ import annotations

import asyncio
import statistics
import tempfile
import time
from collections.abc import AsyncGenerator
from pathlib import Path

import apsw

from crow.core.agent import Agent
from crow.core.events import TextDelta
from crow.core.hooks.context import Context
from crow.core.messages import user
from crow.core.ports.llm import Completion, Delta, Request
from crow.core.tools import Call
from crow.extensions import PersistenceHook
from crow.tools import tool

TEXT = "x" * 300
AGES = (10, 400, 2000)
TURNS = 100


class Caller:
    """A model that calls a tool until it has had its turns."""

    model = "caller"
    context_window = None

    def __init__(self) -> None:
        self.left = 0
        self.made = 0

    async def stream(self, request: Request) -> AsyncGenerator[Delta | Completion, None]:
        self.left -= 1
        self.made += 1
        calls = (Call(f"call_{self.made}", "nothing", {}, "{}"),) if self.left else ()
        yield Completion(TEXT, calls, usage={"input_tokens": 1, "total_tokens": 1})


@tool
async def nothing() -> str:
    """Do nothing."""
    return TEXT


def bare(folder: Path, number: int = 500) -> float:
    """Seconds for one row."""
    connection = apsw.Connection(str(folder / "bare.db"))
    connection.execute("PRAGMA journal_mode = wal; PRAGMA synchronous = normal").fetchall()
    connection.execute(
        "CREATE TABLE IF NOT EXISTS log (id INTEGER PRIMARY KEY, session, seq, data)"
    )
    started = time.perf_counter()
    for index in range(number):
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("INSERT INTO log (session, seq, data) VALUES (1, ?, ?)", (index, TEXT))
        connection.execute("COMMIT")
    return (time.perf_counter() - started) / number


async def prompt(ctx: Context, number: int = 500) -> float:
    """Seconds for one prompt, which waits for the database."""
    started = time.perf_counter()
    for _ in range(number):
        await ctx.append(user(TEXT))
    return (time.perf_counter() - started) / number


async def message(ctx: Context, number: int = 500) -> float:
    """Seconds for one message of the model's, until all of them are in the database."""
    started = time.perf_counter()
    for _ in range(number):
        await ctx.append({"role": "assistant", "content": TEXT})
    if ctx.agent.store is not None:
        await ctx.agent.store.sessions(limit=1)
    return (time.perf_counter() - started) / number


async def piece(ctx: Context, number: int = 2000) -> float:
    """Seconds for one streamed piece of text, durable."""
    started = time.perf_counter()
    for _ in range(number):
        await ctx.emit(TextDelta("some words "))
    return (time.perf_counter() - started) / number


async def turns(agent: Agent, *ages: int) -> list[float]:
    """Seconds of work, all threads, for a turn at each age of a session; the best of five."""
    model = agent.llm
    assert isinstance(model, Caller)
    session = await agent.new_session()

    async def take(number: int) -> float:
        model.left = number
        started = time.process_time()
        await agent.prompt(session, "go")
        return (time.process_time() - started) / number

    seconds: list[float] = []
    for age in ages:
        missing = age - len(session.messages) // 2
        if missing > 0:
            await take(missing)
        seconds.append(min([await take(TURNS // 5) for _ in range(5)]))
    return seconds


async def load(store: PersistenceHook, number: int = 100_000) -> float:
    """Seconds to load a session of so many messages."""
    async with Agent(Caller(), hooks=[store], tools=[]) as agent:
        session = await agent.new_session()
        session.messages += [user(f"{index} {TEXT}") for index in range(number)]
    started = time.perf_counter()
    await store.store.load(session.id)
    return time.perf_counter() - started


async def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        async with (
            Agent(Caller(), hooks=[PersistenceHook(folder / "crow.db")], tools=[nothing]) as agent,
            Agent(Caller(), tools=[nothing]) as forgetful,
        ):
            ctx = Context(agent, await agent.new_session())
            plain = Context(forgetful, await forgetful.new_session())
            rows = [
                (bare(folder), await message(ctx), await prompt(ctx), await message(plain))
                for _ in range(5)
            ]
            row, stored, asked, kept = map(statistics.median, zip(*rows, strict=True))
            print(f"bare insert      {row * 1e6:6.0f} us")
            print(f"stored message   {stored * 1e6:6.0f} us   ratio {(stored - kept) / row:.1f}")
            print(f"stored prompt    {asked * 1e6:6.0f} us   ratio {(asked - kept) / row:.1f}")
            streamed = [(await piece(ctx), await piece(plain)) for _ in range(5)]
            shown, only_shown = (
                statistics.median(column) for column in zip(*streamed, strict=True)
            )
            print(f"streamed piece   {(shown - only_shown) * 1e6:6.0f} us more than unstored")
            with_store, without = await turns(agent, *AGES), await turns(forgetful, *AGES)
            for age, long, short in zip(AGES, with_store, without, strict=True):
                print(f"turn at {age:5}    {long * 1e6:6.0f} us   unstored {short * 1e6:5.0f} us")
            more = [long - short for long, short in zip(with_store, without, strict=True)]
            print(f"flat: storing at {AGES[-1]} turns costs {more[-1] / more[0]:.2f} times as much")
        seconds = await load(PersistenceHook(folder / "long.db"))
        print(f"load 100,000     {seconds * 1e3:6.0f} ms")


if __name__ == "__main__":
    asyncio.run(main())
