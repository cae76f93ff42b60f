"""What a ring costs: `true` as a session's command in each back end and ring, beside it bare.

    .venv/bin/python benchmarks/bench_sandbox.py [rounds]

All of it counts: what the rules come to, the launch, the limits, what is looked at afterwards. The
rounds take turns, so that a busy machine is equally busy for each; ``more`` is the median of the
differences within a round, and of the quickest ones. Fails where even the quickest round took 10 ms
more than the quickest bare one: making namespaces waits for every core. ``nice -n -10`` before it
lets commands of root run before most others on a busy machine.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from types import SimpleNamespace
from typing import Any

from crow.extensions.sandbox import SandboxOptions
from crow.extensions.sandbox.finder import Finder
from crow.extensions.sandbox.launcher import RingLauncher
from crow.extensions.sandbox.policy import Ring
from crow.extensions.sandbox.probe import everyone, find_backend
from crow.extensions.sandbox.session import SessionSandbox, Wishes
from crow.process import ChildProcess
from crow.project import SandboxSettings

MOST = 10.0
RINGS: tuple[Ring, ...] = ("reading", "workspace")


async def once(launcher: RingLauncher | None, root: str) -> float:
    """Milliseconds from the start of a command to its end, and what is looked at after it."""
    began = time.perf_counter()
    process = ChildProcess()
    await process.start(["true"], root, dict(os.environ), launcher=launcher)
    await process.wait(10)
    process.close()
    assert process.code == 0
    return (time.perf_counter() - began) * 1000


def kinds(root: str) -> list[tuple[str, Callable[[], RingLauncher | None]]]:
    """The bare command, and every ring of what works here."""
    session: Any = SimpleNamespace(roots=(root,), parent=None, options={})
    session.root = session
    found: list[tuple[str, Callable[[], RingLauncher | None]]] = [("bare", lambda: None)]
    for each in everyone():
        if each.backend is not None:
            wishes = Wishes(SandboxSettings(), None, SandboxOptions())
            sandbox = SessionSandbox(session, wishes, Finder(each.name))
            found += [(f"{each.name}, {ring}", partial(sandbox.launcher, ring)) for ring in RINGS]
    return found


async def measure(rounds: int, root: str) -> bool:
    rows = kinds(root)
    times: list[list[float]] = [[] for _ in rows]
    for number in range(rounds + 1):
        for (_, begin), spent in zip(rows, times, strict=True):
            took = await once(begin(), root)
            if number:  # the first one looks for what there is
                spent.append(took)
    bare = times[0]
    print(f"{'':24}{'median':>9}{'more':>9}{'quickest':>11}{'more':>9}   ms{'times':>9}")
    for (name, _), spent in zip(rows, times, strict=True):
        usual, best = median(spent), min(spent)
        more = median(one - other for one, other in zip(spent, bare, strict=True))
        print(f"{name:24}{usual:9.2f}{more:+9.2f}", end="")
        print(f"{best:11.2f}{best - min(bare):+9.2f}{usual / median(bare):14.1f}")
    return all(min(spent) - min(bare) < MOST for spent in times)


def main() -> int:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 50
    with tempfile.TemporaryDirectory(dir=Path(__file__).parent) as root:
        subprocess.run(["git", "init", "-q", root], check=True)
        is_quick = asyncio.run(measure(rounds, root))
    began = time.perf_counter()
    find_backend()
    print(f"{'found again':24}{(time.perf_counter() - began) * 1000:8.2f} ms")
    return 0 if is_quick else 1


if __name__ == "__main__":
    sys.exit(main())
