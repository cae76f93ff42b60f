"""A menu below the editor: a window of the choices, around what is chosen now."""

from __future__ import annotations

from prompt_toolkit.buffer import CompletionState

from crow.terminal.palette import Look, Palette
from crow.text import clean, one_line, shorten

ROWS = 8


def menu_lines(state: CompletionState, width: int, palette: Palette) -> list[str]:
    """The lines of the menu: names, and what they are."""
    at = state.complete_index or 0
    first = max(0, min(at - ROWS // 2, len(state.completions) - ROWS))
    shown = state.completions[first : first + ROWS]
    names = [clean(each.display_text) for each in shown]
    wide = min(max(map(len, names), default=0), width // 2)
    lines: list[str] = []
    for number, (name, each) in enumerate(zip(names, shown, strict=True), first):
        look: Look = "reverse" if number == state.complete_index else "bold"
        about = shorten(one_line(each.display_meta_text), max(0, width - wide - 4))
        shown_name = palette(f"{shorten(name, wide):{wide}}", look)
        lines.append(f"  {shown_name}  {palette(about, 'dim')}")
    return lines
