"""The picture of the loop in docs/pictures, drawn from the table of points.

Where a point stands is said here; in which order, of which kind and what else it is called the
table says.
"""

from __future__ import annotations

from html import escape

from crow.core.hooks.points import POINTS

COLOURS = {
    "gate": ("#b42318", "#fef3f2"),
    "fold": ("#175cd3", "#eff8ff"),
    "watch": ("#475467", "#f2f4f7"),
    "wrap": ("#6941c6", "#f4f3ff"),
    "continue": ("#067647", "#ecfdf3"),
}
PROMPT = ("before_command", "before_run", "on_message")
REQUEST = ("before_llm_request", "around_llm_request", "on_llm_request", "after_llm_response")
CALL = ("before_tool", "on_permission", "around_tool", "after_tool")
END = ("after_loop", "after_run")
ALONE = {"around_run", "after_turn", "on_stop", "on_session_start", "on_session_end"}
FONT = 'font-family="ui-monospace, Menlo, Consolas, monospace" font-size="14"'
ROW, WIDTH = 34, 208


def drawn() -> str:
    """The picture, as SVG."""
    known = {*PROMPT, *REQUEST, *CALL, *END, *ALONE}
    beside = [point.name for point in POINTS if point.name not in known]
    turn = 150 + ROW * max(len(REQUEST), len(CALL))  # where the calls of a turn end
    height = turn + 166
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1040 {height}" {FONT}>',
        "<title>The loop of Crow with its events</title>",
        box(1, 1, 1038, height - 2, "#ffffff", "#d0d5dd"),
        pill("on_session_start", 24, 20),
        *column("a prompt", PROMPT, 24, 92),
        box(270, 58, 500, turn + 44, "#fcfcfd", COLOURS["wrap"][0]),
        pill("around_run", 290, 45),
        box(290, 90, 460, turn - 34, "#ffffff", "#98a2b3"),
        text(308, 112, "a turn, again and again while the model calls tools", "#475467"),
        *column("its request", REQUEST, 308, 136),
        *column("each call", CALL, 524, 136),
        pill("after_turn", 416, turn + 16),
        pill("on_stop", 416, turn + 66),
        arrow(236, 118, 266, 118),
        *column("the end", END, 24, turn + 22),
        arrow(266, turn + 68, 236, turn + 68),
        pill("on_session_end", 24, height - 46),
        *column("whenever it happens", beside, 808, 92),
    ]
    parts += [
        item
        for number, kind in enumerate(COLOURS)
        for item in (
            box(290 + 98 * number, height - 36, 12, 12, COLOURS[kind][1], COLOURS[kind][0], 3),
            text(308 + 98 * number, height - 25, kind, COLOURS[kind][0]),
        )
    ]
    return "\n".join([*parts, "</svg>", ""])


def column(title: str, names: tuple[str, ...] | list[str], x: int, y: int) -> list[str]:
    """Events below each other, in the order of the table, below a title."""
    order = [point.name for point in POINTS if point.name in names]
    pills = [pill(name, x, y + 16 + ROW * number) for number, name in enumerate(order)]
    return [text(x, y + 4, title, "#475467"), *pills]


def pill(name: str, x: int, y: int) -> str:
    """An event, in the colour of its kind; its page is behind it."""
    [point] = [each for each in POINTS if each.name == name]
    ink, paper = COLOURS[point.kind]
    tip = ", ".join([point.kind, *point.names][: 1 + len(point.names)])
    return "\n".join(
        [
            f"<g><title>{escape(tip)}</title>",
            box(x, y, WIDTH, 26, paper, ink, 13),
            text(x + 14, y + 18, name, ink),
            "</g>",
        ]
    )


def box(x: int, y: int, width: int, height: int, fill: str, stroke: str, radius: int = 10) -> str:
    """A rectangle."""
    size = f'x="{x}" y="{y}" width="{width}" height="{height}" rx="{radius}"'
    return f'<rect {size} fill="{fill}" stroke="{stroke}"/>'


def text(x: int, y: int, words: str, colour: str) -> str:
    """A line of text."""
    return f'<text x="{x}" y="{y}" fill="{colour}">{escape(words)}</text>'


def arrow(x: int, y: int, to_x: int, to_y: int) -> str:
    """A line from left to right or back, with a tip."""
    back = -6 if to_x > x else 6
    line = f"M{x} {y}L{to_x} {to_y}m{back} -4l{-back} 4l{back} 4"
    return f'<path d="{line}" fill="none" stroke="#475467" stroke-width="1.5"/>'
