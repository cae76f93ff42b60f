"""Measures whole agents and SDKs in one run, and keeps what was found.

``python -m benchmarks.peers`` is what ``make bench-peers`` calls. ``--agents pi,crow`` measures
these, ``--rounds``, ``--turns`` and ``--kinds`` less or more; ``--out FOLDER`` gets ``peers.json``,
``peers.md`` and ``peers.svg``.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.peers import report
from benchmarks.peers.agents import ROOT, Peer, load
from benchmarks.peers.measure import SPARED, Bench, FailedError, Measured

KINDS = ("cold", "acp", "gap", "deltas")
DELTAS = 5_000


@dataclass
class Row:
    """What was found of one agent; medians, times in ms, memory and size in MB."""

    name: str
    about: str
    sdk: bool
    cold: float | None = None
    initialize: float | None = None
    new: float | None = None
    first: float | None = None
    acp: float | None = None
    gaps: dict[str, float] = field(default_factory=dict)
    delta_us: float | None = None
    memory: float | None = None
    request_bytes: int | None = None
    size: float | None = None
    missing: list[str] = field(default_factory=list)


class Peers:
    """All agents of a run, each measured in turn in every round, so that noise meets all alike."""

    def __init__(self, peers: list[Peer], bench: Bench, rounds: int) -> None:
        self.rows = {peer.name: Row(peer.name, peer.about, peer.sdk) for peer in peers}
        self.peers = peers
        self._bench = bench
        self._rounds = rounds

    def rounds(self, kind: str, **scene: int) -> dict[str, list[Measured]]:
        """So many runs of each agent, after one that is thrown away."""
        found: dict[str, list[Measured]] = {peer.name: [] for peer in self.peers}
        play = self._bench.acp if kind == "acp" else self._bench.run
        for number in range(self._rounds + 1):
            for peer in self.peers:
                if not (peer.acp if kind == "acp" else peer.run) or (
                    number and not found[peer.name]
                ):
                    continue
                try:
                    found[peer.name].append(play(peer, **scene))
                except FailedError as failure:
                    self.miss(peer, kind, str(failure))
                    found[peer.name].clear()
        return {name: runs[1:] for name, runs in found.items() if len(runs) > 1}

    def miss(self, peer: Peer, kind: str, why: str) -> None:
        """Note what could not be measured."""
        self.rows[peer.name].missing.append(f"{kind}: {why}")
        print(f"  {peer.name}, {kind}: {why}", file=sys.stderr)

    def cold(self) -> None:
        """From the start of a process to its first request; what that request weighs."""
        for name, runs in self.rounds("cold").items():
            row = self.rows[name]
            row.cold = statistics.median(run.first for run in runs)
            row.request_bytes = runs[0].request_bytes

    def acp(self) -> None:
        """The same, by a client."""
        for name, runs in self.rounds("acp").items():
            row = self.rows[name]
            row.initialize, row.new, row.first = (
                statistics.median(run.phases[each] for run in runs)
                for each in ("initialize", "new", "first")
            )
            row.acp = statistics.median(run.first for run in runs)

    def gap(self, turns: int) -> None:
        """From an answer to the next request, the call of a command between them."""
        for name, runs in self.rounds(f"{turns} turns", turns=turns).items():
            row = self.rows[name]
            row.gaps[str(turns)] = statistics.median(run.gap for run in runs)
            row.memory = max(row.memory or 0, statistics.median(run.memory for run in runs))

    def deltas(self) -> None:
        """CPU for a piece of text, the one for the start taken away."""
        without, many = self.rounds("deltas"), self.rounds("deltas", pieces=DELTAS)
        for name in without.keys() & many.keys():
            cost = min(run.cpu for run in many[name]) - min(run.cpu for run in without[name])
            self.rows[name].delta_us = max(0.0, cost) / DELTAS * 1e6


def options(argv: list[str]) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="make bench-peers", description=__doc__)
    parser.add_argument("--agents", default="", help="names, separated by commas; all by default")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--turns", default="50,400,2000", help="lengths of sessions")
    parser.add_argument("--kinds", default=",".join(KINDS), help="of " + ", ".join(KINDS))
    parser.add_argument("--out", type=Path, default=ROOT / ".peers/results")
    return parser.parse_args(argv)


@contextmanager
def server() -> Iterator[int]:
    """The scripted model in a process of its own; its port."""
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.peers.server"],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    assert process.stdout is not None
    SPARED.add(process.pid)
    try:
        yield int(process.stdout.readline())
    finally:
        process.kill()
        process.wait()


def main(argv: list[str]) -> int:
    wanted = options(argv)
    with server() as port:
        rows = measured(wanted, port)
    found = {"date": f"{datetime.now(UTC):%Y-%m-%d}", "machine": machine()}
    found |= {"rows": [asdict(row) for row in rows]}
    wanted.out.mkdir(parents=True, exist_ok=True)
    (wanted.out / "peers.json").write_text(json.dumps(found, indent=1) + "\n")
    (wanted.out / "peers.md").write_text(report.table(found) + "\n")
    (wanted.out / "peers.svg").write_text(report.plot(found))
    print(report.table(found))
    return 0


def measured(wanted: argparse.Namespace, port: int) -> list[Row]:
    """All rows."""
    peers: list[Peer] = []
    for peer in load([name for name in wanted.agents.split(",") if name]):
        if why := peer.install():
            print(f"  {peer.name} could not be installed: {why}", file=sys.stderr)
            continue
        peer.prepare(port)
        peers.append(peer)
    run = Peers(peers, Bench(port), wanted.rounds)
    steps: dict[str, list[Any]] = {
        "cold": [run.cold],
        "acp": [run.acp],
        "gap": [lambda turns=turns: run.gap(int(turns)) for turns in wanted.turns.split(",")],
        "deltas": [run.deltas],
    }
    for kind in wanted.kinds.split(","):
        for step in steps[kind]:
            step()
    for peer in peers:
        run.rows[peer.name].size = peer.size() or None
    return list(run.rows.values())


def machine() -> str:
    """What it ran on, without its name."""
    system = f"{platform.system()} {platform.machine()}"
    return f"{os.cpu_count()} cores, {system}, Python {platform.python_version()}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
