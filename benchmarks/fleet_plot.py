"""What `fleet_curves` found, as a picture that a browser draws."""

from __future__ import annotations

from collections.abc import Sequence
from math import log10
from typing import Any

STYLE = """<style>text{font:12px sans-serif;fill:#444}.line{fill:none;stroke-width:2}
.axis{stroke:#999}@media(prefers-color-scheme:dark){text{fill:#ccc}}</style>"""
COLOURS = ("#4a5fc1", "#1b8a7a", "#b3541e")
WIDE, HIGH, LEFT, TOP = 360, 230, 46, 40
Line = tuple[str, Sequence[tuple[float, float]]]


def plot(found: Any) -> str:
    """Four diagrams with logarithmic axes."""
    queue, worker = found["queue"], found["worker"]
    diagrams = [
        diagram("Jobs in the queue: ms", [
            ("begin one, p50", points(queue, "queued", "claim_p50")),
            ("a look of watch", points(queue, "queued", "watch")),
            ("submit one", [(r["queued"], r["submit_s"] * 1000 / r["queued"]) for r in queue]),
        ]),
        diagram("Sessions at once on a worker: ms", [
            ("between turns, p50", points(worker, "sessions", "gap_p50")),
            ("between turns, p95", points(worker, "sessions", "gap_p95")),
            ("processor a turn", points(worker, "sessions", "cpu_ms_turn")),
        ]),
        diagram("Sessions at once: database", [
            ("ms a turn", points(worker, "sessions", "database_ms_turn")),
            ("% of one core", [(r["sessions"], 100 * r["database_share"]) for r in worker]),
            ("statements a turn", points(worker, "sessions", "statements_turn")),
        ]),
        diagram("Clients at once: a second", [
            ("appends", points(found["appends"], "together", "appends_s")),
            ("jobs begun and ended", points(found["claims"], "together", "jobs_s")),
        ]),
    ]  # fmt: skip
    placed = "".join(
        f'<g transform="translate({n % 2 * (WIDE + 20)},{n // 2 * (HIGH + 20)})">{each}</g>'
        for n, each in enumerate(diagrams)
    )
    size = f"0 0 {2 * WIDE + 20} {2 * HIGH + 20}"
    return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{size}">{STYLE}{placed}</svg>\n'


def points(rows: Sequence[Any], x: str, y: str) -> list[tuple[float, float]]:
    """Two columns."""
    return [(row[x], row[y]) for row in rows]


def diagram(title: str, lines: Sequence[Line]) -> str:
    """Some lines over the same logarithmic axes, each named where it ends."""
    xs = [log10(x) for _, line in lines for x, _ in line]
    ys = [log10(max(y, 0.01)) for _, line in lines for _, y in line]
    low, high = min(ys), max(ys) + 0.1
    across = (WIDE - LEFT - 20) / max(max(xs) - min(xs), 0.1)
    up = (HIGH - TOP - 24) / max(high - low, 0.1)

    def at(x: float, y: float) -> tuple[float, float]:
        down = (log10(max(y, 0.01)) - low) * up
        return LEFT + (log10(x) - min(xs)) * across, HIGH - 24 - down

    parts = [f'<text x="0" y="12">{title}</text>']
    for number, (name, line) in enumerate(lines):
        colour = COLOURS[number]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in (at(*point) for point in line))
        parts.append(f'<polyline class="line" stroke="{colour}" points="{path}"/>')
        parts.append(f'<rect x="{number * 120}" y="20" width="10" height="10" fill="{colour}"/>')
        parts.append(f'<text x="{number * 120 + 14}" y="29">{name}</text>')
    for x in sorted({x for _, line in lines for x, _ in line}):
        text = f"{x / 1000:g}k" if x >= 1000 else f"{x:g}"
        parts.append(
            f'<text x="{at(x, 1)[0]:.1f}" y="{HIGH - 6}" text-anchor="middle">{text}</text>'
        )
    for power in range(int(low) - 1, int(high) + 1):
        if low <= power <= high:
            y = at(1, 10**power)[1]
            parts.append(
                f'<line class="axis" x1="{LEFT - 4}" x2="{WIDE}" y1="{y:.1f}" y2="{y:.1f}"/>'
            )
            parts.append(
                f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{10**power:g}</text>'
            )
    return "".join(parts)
