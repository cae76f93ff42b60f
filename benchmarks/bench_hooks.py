"""What hooks cost, beside the bare Python that would do the same, in the same run.

Each thing is done over and over in short bursts, one thing after another: the least time is what it
costs, the median what it costs on this machine just now. The bare Python beside it says what the
machine is worth: a call of a function in a coroutine, one coroutine around another, a task that
waits once, an async generator around another. ``taskset -c 0`` keeps it where it is.
"""

from __future__ import annotations

import asyncio
import gc
import statistics
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any

from crow import (
    Agent,
    Call,
    Completion,
    Request,
    RunContext,
    ToolContext,
    ToolResult,
    TurnContext,
    tool,
)
from crow.events import TextDelta
from crow.testing import ScriptedModel, call

SECONDS = 12.0
PIECES = 500
TURNS = 20
RESULT = ToolResult("x")
Thing = Callable[[], Awaitable[Any]]


def nothing(ctx: Any) -> None:
    """A hook that does nothing."""


async def inner() -> None:
    """Something to wait for that is over at once."""


async def waits(ctx: Any) -> None:
    await inner()


async def sleeps(ctx: Any) -> None:
    await asyncio.sleep(0)


async def passes(ctx: Any, call_next: Any) -> Any:
    return await call_next()


async def streams(ctx: Any, call_next: Any) -> AsyncGenerator[Any, None]:
    async for piece in call_next():
        yield piece


async def answers(*_: Any) -> Completion:
    return Completion("y")


async def gives(*_: Any) -> ToolResult:
    return RESULT


async def in_pieces(ctx: Any, sink: Any) -> Completion:
    delta = TextDelta("y")
    for _ in range(PIECES):
        await sink(delta)
    return Completion("y" * PIECES)


# what bare Python does


async def bare(hooks: tuple[Callable[[Any], Any], ...]) -> None:
    for hook in hooks:
        hook(None)


async def bare_layer() -> Any:
    return await passes(None, answers)


async def bare_task() -> None:
    await asyncio.create_task(sleeps(None))


async def bare_pieces() -> None:
    async def pieces() -> AsyncGenerator[Any, None]:
        delta = TextDelta("y")
        for _ in range(PIECES):
            yield delta

    async for _ in streams(None, pieces):
        pass


# what is measured


async def fired(
    event: str, *hooks: Any, about: str = "run", operation: tuple[Any, ...] = ()
) -> Thing:
    """Firing a point at which these hooks hang."""
    agent = Agent(tools=())
    for hook in hooks:
        agent.hooks.register(event, hook)
    run = RunContext(agent, await agent.new_session(), "")
    contexts = {
        "run": run,
        "turn": TurnContext(run, Request([{"role": "user", "content": "go"}])),
        "call": ToolContext(run, Call("c", "echo", {"a": 1}, "{}"), None),
    }
    point, ctx = agent.hooks[event], contexts[about]
    return lambda: point.fire(ctx, *operation)


@tool
async def echo(text: str) -> str:
    """Say it."""
    return text


async def turns(hooks: int) -> float:
    """Seconds of a run of some turns with a tool call each, with so many hooks on every point."""
    model = ScriptedModel(*[call("echo", text="a")] * TURNS, "done")
    async with Agent(model, tools=[echo]) as agent:
        for name, point in agent.hooks.points.items():
            for _ in range(hooks if point.point.kind != "wrap" else 0):
                agent.hooks.register(name, lambda ctx: None)
        began = time.perf_counter()
        await agent.run("go")
        return time.perf_counter() - began


async def measure(things: dict[str, tuple[Thing, int, int]]) -> dict[str, list[float]]:
    """Microseconds of each thing, which a burst does so often, and which is so many of a kind."""
    found: dict[str, list[float]] = {name: [] for name in things}
    until = time.perf_counter() + SECONDS
    while time.perf_counter() < until:
        for name, (thing, often, parts) in things.items():
            began = time.perf_counter()
            said = None
            for _ in range(often):
                said = await thing()
            taken = said if isinstance(said, float) else time.perf_counter() - began
            found[name].append(taken / often / parts * 1e6)
        gc.collect()
    return found


async def main() -> None:
    ten = [lambda ctx: None for _ in range(10)]
    around = "around_llm_request"
    things: dict[str, tuple[Thing, int, int]] = {
        "bare: a coroutine that calls a function": (lambda: bare((nothing,)), 50, 1),
        "bare: the same with ten": (lambda: bare((nothing,) * 10), 50, 1),
        "a point without hooks (under 0.5)": (await fired("after_run"), 50, 1),
        "one no-op hook (under 3)": (await fired("after_run", nothing), 50, 1),
        "ten": (await fired("after_run", *ten), 20, 1),
        "a gate that reads the arguments": (
            await fired("before_tool", lambda args: None, about="call"), 20, 1
        ),
        "a hook that waits for what is over at once": (await fired("after_run", waits), 20, 1),
        "bare: a task that waits once": (bare_task, 10, 1),
        "a hook that waits once": (await fired("after_run", sleeps), 10, 1),
        "bare: a coroutine around another": (bare_layer, 50, 1),
        "a wrap around a request (under 10)": (
            await fired(around, passes, about="turn", operation=(answers,)), 200, 1
        ),
        "a wrap around a tool (under 10)": (
            await fired("around_tool", passes, about="call", operation=(gives, None)), 200, 1
        ),
        "a wrap around a run (under 10)": (
            await fired("around_run", passes, operation=(answers,)), 200, 1
        ),
        "bare: a piece through an async generator": (bare_pieces, 1, PIECES),
        "a piece through a wrap that yields it (under 20)": (
            await fired(around, streams, about="turn", operation=(in_pieces,)), 1, PIECES
        ),
        "a piece past a wrap that awaits the whole": (
            await fired(around, passes, about="turn", operation=(in_pieces,)), 1, PIECES
        ),
        "a turn": (lambda: turns(0), 1, TURNS),
        "a turn with ten hooks on every point": (lambda: turns(10), 1, TURNS),
    }  # fmt: skip
    gc.disable()
    found = await measure(things)
    for name, taken in found.items():
        print(f"{name:52} {min(taken):8.2f} us, median {statistics.median(taken):8.2f}")
    without, hooks = found["a turn"], found["a turn with ten hooks on every point"]
    more = min(hooks) - min(without), statistics.median(hooks) - statistics.median(without)
    name = "ten hooks on every point, a turn (under 100)"
    print(f"{name:52} {more[0]:8.0f} us, median {more[1]:8.0f}")


if __name__ == "__main__":
    asyncio.run(main())
