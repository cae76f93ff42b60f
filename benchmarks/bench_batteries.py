"""What all built-in extensions cost: a turn at any age of the session, and the start.

A turn is the time between the end of a model's answer and the next request, with one call of the
tool Read, the database on disk, and a model that answers at once in ten pieces. The bare agent has
the same tools and no extension. The start is that of a process, until a session is ready.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncGenerator
from pathlib import Path

from crow.app import build
from crow.core.agent import Agent
from crow.core.events import TextDelta
from crow.core.messages import Message
from crow.core.ports.llm import Completion, Delta, Request
from crow.core.tools import Call
from crow.settings import load
from crow.tools import builtin

AGES = (10, 100, 500, 1000, 2000)
TURNS = 60
ROUNDS = 3
STARTS = 7
TEXT = "x" * 300
LIMITS = (2.0, 400.0)
START = """
import asyncio, sys
from crow.app import build
async def main():
    agent = build(cwd=sys.argv[1])
    await agent.new_session(sys.argv[1])
    print("ready", flush=True)
asyncio.run(main())
"""


class Reader:
    """A model that reads one file after another, and keeps when it was asked and had answered."""

    model = "reader"
    context_window = 10_000_000

    def __init__(self) -> None:
        self.left = 0
        self.made = 0
        self.answered = 0.0
        self.gaps: list[float] = []

    async def stream(self, request: Request) -> AsyncGenerator[Delta | Completion, None]:
        if self.answered:
            self.gaps.append(time.perf_counter() - self.answered)
        self.left -= 1
        self.made += 1
        raw = f'{{"file_path": "{self.made % 20}.txt"}}'
        args = {"file_path": f"{self.made % 20}.txt"}
        calls = (Call(f"call_{self.made}", "Read", args, raw),) if self.left else ()
        for start in range(0, len(TEXT), 30):
            yield TextDelta(TEXT[start : start + 30], request.message_id)
        usage = {"input_tokens": 900, "output_tokens": 100, "total_tokens": 1000}
        self.answered = time.perf_counter()
        yield Completion(TEXT, calls, finish="tool_calls" if calls else "stop", usage=usage)  # type: ignore[arg-type]


def history(turns: int) -> list[Message]:
    """A conversation of so many turns."""
    messages: list[Message] = [{"role": "user", "content": "Read it all."}]
    for number in range(turns):
        function = {"name": "Read", "arguments": '{"file_path": "1.txt"}'}
        call = {"id": f"old_{number}", "type": "function", "function": function}
        messages += [
            {"role": "assistant", "content": TEXT, "tool_calls": [call]},  # type: ignore[list-item]
            {"role": "tool", "tool_call_id": f"old_{number}", "content": f"{number} {TEXT}"},
        ]
    return [*messages, {"role": "assistant", "content": "Done."}]


async def turn(agent: Agent, model: Reader, project: Path, age: int) -> float:
    """Milliseconds for a turn, the median, in a new session that has such a history."""
    session = await agent.new_session(project, messages=history(age))
    model.left, model.answered, model.gaps = TURNS, 0.0, []
    reply = await agent.run("Go on", session=session)
    assert reply.stop_reason == "end_turn", reply.detail
    await agent.close_session(session)
    return statistics.median(model.gaps) * 1000


async def turns(project: Path) -> dict[int, tuple[float, float]]:
    """For every age, what a turn costs with none and with all: the medians of the rounds."""
    model = Reader()
    flags = {"limits": {"turns": 10**6}}
    async with (
        Agent(model, tools=builtin()) as bare,
        build(load(project, flags=flags), cwd=project) as full,
    ):
        full.llm = model
        measured: dict[int, tuple[float, float]] = {}
        for age in AGES:
            rounds = [
                (await turn(bare, model, project, age), await turn(full, model, project, age))
                for _ in range(ROUNDS)
            ]
            none, all_ = zip(*rounds, strict=True)
            measured[age] = statistics.median(none), statistics.median(all_)
        print(f"extensions: {', '.join(full.extensions)}")
        return measured


def start(project: Path) -> float:
    """Milliseconds from the start of a process to a session that is ready, the median."""
    taken: list[float] = []
    for _ in range(STARTS):
        began = time.perf_counter()
        process = subprocess.Popen(
            [sys.executable, "-c", START, str(project)], stdout=subprocess.PIPE, text=True
        )
        with process:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            taken.append((time.perf_counter() - began) * 1000)
    return statistics.median(taken)


def main() -> int:
    """Measure, and say what is too slow."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ.update(HOME=folder, CROW_MODEL="m", CROW_BASE_URL="http://127.0.0.1:9/v1")
        project = Path(folder, "project")
        (project / ".git").mkdir(parents=True)
        (project / "AGENTS.md").write_text("Be careful.\n")
        for number in range(20):
            (project / f"{number}.txt").write_text(f"{number} {TEXT}\n" * 3)
        print(f"{'turns of history':>18} {'none':>9} {'all':>9} {'more':>9}")
        measured = asyncio.run(turns(project))
        for age, (none, all_) in measured.items():
            print(f"{age:>18} {none:>6.2f} ms {all_:>6.2f} ms {all_ - none:>6.2f} ms")
        ready = start(project)
        print(f"start to a ready session: {ready:.0f} ms")
    slow = max(all_ - none for none, all_ in measured.values()) > LIMITS[0] or ready > LIMITS[1]
    if slow:
        print(f"too slow: at most {LIMITS[0]} ms a turn, {LIMITS[1]:.0f} ms to start")
    return int(slow)


if __name__ == "__main__":
    sys.exit(main())
