"""Pictures of a terminal: what stands on its screen as an SVG, and the words of one."""

from __future__ import annotations

import html
import io
import os
import re
from pathlib import Path

from rich.console import Console
from rich.text import Text

PICTURES = Path(__file__).parents[2] / "docs" / "pictures"
WRITES = os.environ.get("CROW_PICTURES") == "write"
CODE = """<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg" xml:space="preserve">
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace;
  font-size: {char_height}px; line-height: {line_height}px; white-space: pre; }}
.{unique_id}-title {{ font-size: 18px; font-family: system-ui, sans-serif; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" /></clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""
"""What rich makes a picture of, without the font that it would fetch from the network."""
ID = re.compile(r"\b[0-9a-f]{8}\b")
TOOK = re.compile(r" (?:· )?[\d.]+ (?:s|ms|min)\b")
"""What is there where something took its time, and is no part of what a picture shows."""


def picture(name: str, screen: str, replaced: dict[str, str], width: int) -> str:
    """The SVG of a screen with its colours; ``replaced`` are words that are each machine's own."""
    for word, other in replaced.items():
        screen = screen.replace(word, other)
    lines = ID.sub("1a2b3c4d", screen).rstrip().splitlines()
    console = Console(record=True, width=width, file=io.StringIO(), force_terminal=True)
    console.print(Text.from_ansi("\n".join(lines)), soft_wrap=True)
    told = console.export_svg(title="crow", code_format=CODE, unique_id=f"crow-{name}")
    return "".join(f"{line.rstrip()}\n" for line in told.splitlines() if line.strip())


def words(svg: str) -> list[str]:
    """What can be read in a picture, from the top to the bottom."""
    texts = re.findall(
        r'<text class="[^"]*-matrix|<text[^>]* y="([\d.]+)"[^>]*>([^<]*)</text>', svg
    )
    rows: dict[float, str] = {}
    for height, text in texts:
        if height:
            row = float(height)
            rows[row] = rows.get(row, "") + html.unescape(text).replace("\xa0", " ")
    return [TOOK.sub("", text).strip() for _, text in sorted(rows.items()) if text.strip()]


def keep(name: str, svg: str) -> bool:
    """Write the picture where that is wanted; else tell whether the one that is kept says the same."""
    path = PICTURES / f"{name}.svg"
    if WRITES:
        path.parent.mkdir(exist_ok=True)
        path.write_text(svg, "utf-8")
    return WRITES or words(svg) == words(path.read_text("utf-8"))
