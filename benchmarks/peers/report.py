"""What was found, as a table and as a plot."""

from __future__ import annotations

from math import log10
from typing import Any

COLUMNS = {
    "cold": "cold start",
    "initialize": "`initialize`",
    "new": "`session/new`",
    "first": "first prompt",
    "acp": "ACP in all",
    "delta_us": "a delta, us",
    "memory": "MB held",
    "request_bytes": "first request, KB",
    "size": "MB installed",
}


def table(found: Any) -> str:
    """A table in Markdown; times in ms."""
    turns = sorted({each for row in found["rows"] for each in row["gaps"]}, key=int)
    heads = ["", *COLUMNS.values()]
    heads[6:6] = [f"gap at {each}" for each in turns]
    lines = ["| " + " | ".join(heads) + " |", "|---" + "|---:" * (len(heads) - 1) + "|"]
    for row in found["rows"]:
        cells = [cell(row, name) for name in COLUMNS]
        cells[5:5] = [number(row["gaps"].get(each)) for each in turns]
        lines.append("| " + " | ".join([row["name"], *cells]) + " |")
    return "\n".join(lines)


def cell(row: Any, name: str) -> str:
    """One value."""
    value = row[name]
    return number(value / 1000 if name == "request_bytes" and value else value)


def number(value: float | None) -> str:
    """Three digits at most, nothing for what was not measured."""
    if value is None:
        return ""
    return f"{value:.0f}" if value >= 20 else f"{value:.1f}"


STYLE = """<style>text{font:12px sans-serif;fill:#444}
@media(prefers-color-scheme:dark){text{fill:#ccc}}</style>"""
SVG = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 760 {}">{}</svg>\n'
ROW, LEFT, WIDTH = 18, 158, 480


def plot(found: Any) -> str:
    """Bars of the start and of the gap, as a picture that a browser draws."""
    rows = found["rows"]
    starts = {row["name"]: row["cold"] for row in rows}
    editors = {row["name"]: row["acp"] for row in rows}
    gaps = {row["name"]: row["gaps"].get("50") for row in rows}
    diagrams = [
        bars(starts, "From the start of the process to the first request, ms"),
        bars(editors, "The same for an editor: start, session, prompt, ms"),
        bars(gaps, "From an answer to the next request, a command between them, ms"),
    ]
    parts, y = [STYLE], 0
    for height, drawn in diagrams:
        parts.append(f'<g transform="translate(0,{y})">{drawn}</g>')
        y += height
    return SVG.format(y, "".join(parts))


def bars(values: dict[str, float | None], title: str) -> tuple[int, str]:
    """A diagram and its height; the scale is logarithmic, since agents differ by a hundred."""
    known = sorted((value, name) for name, value in values.items() if value)
    if not known:
        return 0, ""
    low, high = known[0][0] / 1.5, known[-1][0] * 1.1
    lines = [f'<text x="10" y="16" font-weight="bold">{title}</text>']
    for at, (value, name) in enumerate(known):
        y = 24 + at * ROW
        width = round(WIDTH * log10(value / low) / log10(high / low))
        colour = "#2b7de9" if name.startswith("crow") else "#b5b5b5"
        lines.append(f'<text x="{LEFT - 8}" y="{y + 12}" text-anchor="end">{name}</text>')
        lines.append(f'<rect x="{LEFT}" y="{y}" width="{width}" height="14" fill="{colour}"/>')
        lines.append(f'<text x="{LEFT + 6 + width}" y="{y + 12}">{number(value)}</text>')
    return 50 + len(known) * ROW, "".join(lines)
