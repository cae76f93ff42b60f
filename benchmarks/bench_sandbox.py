"""What a ring costs: `true` in each back end and ring against the bare command, in one run.

    .venv/bin/python benchmarks/bench_sandbox.py [rounds]

The rounds take turns, so that a busy machine is equally busy for each; ``times`` is a ring's median
to that of the bare command. Fails where even the quickest round took 10 ms more than the quickest
bare one: making namespaces waits for every core. ``chrt -r 5`` before it lets commands of root run
before all else on a busy machine.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from crow.extensions.sandbox.backend import Backend, Unconfined
from crow.extensions.sandbox.policy import Policy, Ring
from crow.extensions.sandbox.probe import everyone, find_backend
from crow.extensions.sandbox.protected import all_secrets, protected_paths
from crow.extensions.sandbox.stage import Confined
from crow.process import ChildProcess

MOST = 10.0
RINGS: tuple[Ring, ...] = ("reading", "workspace")


async def once(backend: Backend, policy: Policy) -> float:
    """Milliseconds from the start of a command to its end, and what is looked at after it."""
    began = time.perf_counter()
    process = ChildProcess()
    launcher = Confined(backend, policy)
    await process.start(["true"], policy.roots[0], dict(os.environ), launcher=launcher)
    await process.wait(10)
    process.close()
    assert process.code == 0
    return (time.perf_counter() - began) * 1000


async def measure(rounds: int, root: str) -> bool:
    read_only, masked = protected_paths(root), [*all_secrets()]
    policies = [Policy(ring, (root,), read_only=read_only, masked=tuple(masked)) for ring in RINGS]
    backends = [each.backend for each in everyone() if each.backend is not None]
    rows = [
        (Unconfined(), policies[0]),
        *((one, policy) for one in backends for policy in policies),
    ]
    times: list[list[float]] = [[] for _ in rows]
    for _ in range(rounds):
        for (backend, policy), spent in zip(rows, times, strict=True):
            spent.append(await once(backend, policy))
    bare = times[0]
    print(f"{'':24}{'median':>9}{'more':>9}{'quickest':>11}{'more':>9}   ms{'times':>9}")
    for (backend, policy), spent in zip(rows, times, strict=True):
        name = "bare" if backend.name == "none" else f"{backend.name}, {policy.ring}"
        usual, best = median(spent), min(spent)
        print(f"{name:24}{usual:9.2f}{usual - median(bare):+9.2f}", end="")
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
