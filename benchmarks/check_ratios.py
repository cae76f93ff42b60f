"""Whether Crow does more beside a bare loop than it did (``make bench-quick``).

The calls of functions that a turn and a piece of text take, as a ratio to those of a bare loop over
an HTTP library in the same run: they are the same on a busy machine, which times and CPU are not.
What was found last stands in ``ratios.json``; a fifth more fails. ``--keep`` writes down what is
found now.
"""

from __future__ import annotations

import json
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from benchmarks.peers.__main__ import server
from benchmarks.peers.agents import Peer, load
from benchmarks.peers.measure import Bench

RATIOS = Path(__file__).with_name("ratios.json")
COUNT = Path(__file__).with_name("count_calls.py")
CROW, BARE = "crow-no-sandbox", "bare-httpx2"
FEW = 10
SCENES = {"turn": ("turns", 60), "piece": ("pieces", 5_000)}
WORSE = 1.2


def calls(bench: Bench, peer: Peer, **scene: int) -> int:
    """The calls of one run."""
    with tempfile.NamedTemporaryFile("r") as file:
        script = peer.run[1:] if peer.run[0] == "{crow_python}" else peer.run
        counted = replace(peer, run=["{crow_python}", str(COUNT), file.name, *script])
        bench.run(counted, **scene)
        return int(file.read())


def ratio(bench: Bench, crow: Peer, bare: Peer, what: str, many: int) -> float:
    """Crow's calls for one more of something, to the bare loop's."""
    ours, theirs = (
        calls(bench, peer, **{what: many}) - calls(bench, peer, **{what: FEW})
        for peer in (crow, bare)
    )
    print(
        f"{what}: {ours / (many - FEW):,.1f} calls each, a bare loop {theirs / (many - FEW):,.1f}"
    )
    return round(ours / theirs, 2)


def main(argv: list[str]) -> int:
    kept: dict[str, float] = json.loads(RATIOS.read_text()) if RATIOS.exists() else {}
    peers = {peer.name: peer for peer in load([CROW, BARE])}
    crow, bare = peers[CROW], peers[BARE]
    with server() as port:
        bench = Bench(port)
        for peer in (crow, bare):
            peer.prepare(port)
        bench.run(crow)  # what is looked up once is no part of it
        found = {name: ratio(bench, crow, bare, *scene) for name, scene in SCENES.items()}
    for name, now in found.items():
        print(f"{name:6} {now:6.2f} times a bare loop's calls   (kept {kept.get(name, 0):.2f})")
    if "--keep" in argv:
        RATIOS.write_text(json.dumps(found, indent=1) + "\n")
        return 0
    worse = [name for name in found if found[name] > kept.get(name, found[name]) * WORSE]
    if worse:
        print(f"more than a fifth worse: {', '.join(worse)}")
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
