"""Whether Crow costs more beside a bare loop than it did (``make bench-quick``).

The CPU (not the time, which a busy machine makes what it likes) of a start, of a turn and of a
piece of text, each the least of several runs, as a ratio to that of a bare loop over the same HTTP
library in the same run. What was found last stands in ``ratios.json``; a fifth more fails, after
four tries. ``--keep`` writes down what is found now.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from benchmarks.peers.__main__ import server
from benchmarks.peers.agents import load
from benchmarks.peers.measure import Bench

RATIOS = Path(__file__).with_name("ratios.json")
CROW, BARE = "crow-no-sandbox", "bare-httpx2"
ROUNDS, TRIES = 5, 4
SCENES = {"start": {}, "turn": {"turns": 100}, "piece": {"pieces": 10_000}}
WORSE = 1.2


class Costs:
    """The least CPU of each agent in each scene, over all rounds so far."""

    def __init__(self, port: int) -> None:
        self._bench = Bench(port)
        self._peers = load([CROW, BARE])
        self._least: dict[tuple[str, str], float] = {}
        for peer in self._peers:
            peer.prepare(port)

    def measure(self) -> None:
        """Play some rounds more."""
        for _ in range(ROUNDS):
            for name, scene in SCENES.items():
                for peer in self._peers:
                    user = self._bench.run(peer, **scene).user
                    self._least[peer.name, name] = min(
                        user, self._least.get((peer.name, name), user)
                    )

    def ratio(self, name: str) -> float:
        """Crow's cost to the bare loop's; what a start costs is no part of the other scenes'."""
        crow, bare = (
            self._least[agent, name] - (self._least[agent, "start"] if name != "start" else 0)
            for agent in (CROW, BARE)
        )
        return round(crow / bare, 2)


def main(argv: list[str]) -> int:
    kept: dict[str, float] = json.loads(RATIOS.read_text()) if RATIOS.exists() else {}
    with server() as port:
        costs = Costs(port)
        for _ in range(TRIES):
            costs.measure()
            found = {name: costs.ratio(name) for name in SCENES}
            worse = [name for name in found if found[name] > kept.get(name, found[name]) * WORSE]
            for name, ratio in found.items():
                was = kept.get(name, 0)
                print(f"{name:6} {ratio:6.2f} times a bare loop's CPU   (kept {was:.2f})")
            if "--keep" in argv:
                RATIOS.write_text(json.dumps(found, indent=1) + "\n")
                return 0
            if not worse:
                return 0
            print(f"more than a fifth worse: {', '.join(worse)}")
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
