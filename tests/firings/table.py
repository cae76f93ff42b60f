"""The firing table: made of what was heard on each path and of the reasons why the rest is silent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.firings.doors import Fired, Firings
from tests.firings.reasons import EVERYWHERE, REASONS

from crow.core.hooks.points import POINTS, Point
from crow.extensions.commands.builtin import DIRECTORY_ADDED
from crow.extensions.file_watcher import POINT as FILE_CHANGED
from crow.extensions.instructions import POINT as INSTRUCTIONS_LOADED
from crow.extensions.mcp.events import ELICITATION, RESULT
from crow.extensions.plan import COMPLETED, CREATED
from crow.extensions.setup import POINT as SETUP
from crow.extensions.shell_hooks.event import EVENTS
from crow.project.front_matter_event import FRONT_MATTER

PATHS: Mapping[str, str] = {
    "main": "main",
    "sub": "sub-agent",
    "resume": "resumed",
    "load": "loaded",
    "compact": "compacted",
    "command": "command",
    "run": "headless",
    "ACP 1": "v1",
    "ACP 2": "v2",
    "listen": "listen",
    "cancel": "cancelled",
    "fail": "failed",
}
"""The columns, and the paths that were driven."""
EXTENSIONS = (
    SETUP,
    INSTRUCTIONS_LOADED,
    CREATED,
    COMPLETED,
    FRONT_MATTER,
    ELICITATION,
    RESULT,
    FILE_CHANGED,
    DIRECTORY_ADDED,
)
HEARD, INHERITED = "●", "○"
DOCUMENT = Path(__file__).parents[2] / "docs/hooks.md"
BEGIN, END = "<!-- firings -->\n", "<!-- /firings -->\n"
Row = dict[str, str]


def points() -> list[Point]:
    """Every event, in the order of its life."""
    return [*POINTS, *EXTENSIONS]


def rows(fired: Fired) -> dict[str, Row]:
    """The cells by event and column, with nothing in those that are silent."""
    names = [point.name for point in points()]
    found = {name: row(fired, name, *names) for name in names}
    return found | {name: row(fired, name) for name in EVENTS}


def row(fired: Fired, name: str, *own: str) -> Row:
    """The cells of one event: as hooks in Python hear it, those of Claude Code as settings' do."""
    heard = python if name in own else settings
    return {column: heard(fired[path], name) for column, path in PATHS.items() if path in fired}


def python(firings: Firings, name: str) -> str:
    """Whether an extension of the agent's hears it, or only one that sub-agents have as well."""
    if (name, "recorder") in firings:
        return HEARD
    return INHERITED if (name, "inherited") in firings else ""


def settings(firings: Firings, name: str) -> str:
    """Whether a hook in a settings file hears it."""
    return HEARD if (name, "settings") in firings else ""


def reason(name: str, column: str) -> int:
    """The number of the reason why an event is silent on a path; 0 where none is given."""
    for number, where in enumerate(REASONS.values(), 1):
        if name in where.get(column, where.get(EVERYWHERE, "")).split():
            return number
    return 0


def lapses(table: Mapping[str, Row]) -> Iterator[str]:
    """What is wrong with the reasons: one is missing, or says that what fired cannot."""
    for name, cells in table.items():
        for column, cell in cells.items():
            if cell and reason(name, column):
                yield f"{name} fires at {column}, and there is a reason why it cannot"
            if not cell and not reason(name, column):
                yield f"{name} does not fire at {column}, and nobody says why"


def written(fired: Fired) -> str:
    """The table as Markdown, with the reasons below it."""
    table = rows(fired)
    lines = [("event", "in settings files", *PATHS)]
    lines.append(("---", "---", *[":-:"] * len(PATHS)))
    for point in points():
        alike, others = aliases(point, table)
        lines.append((f"`{point.name}`", quoted(alike), *shown(point.name, table)))
        lines += [("", quoted([name]), *shown(name, table)) for name in others]
    known = {name for point in points() for name in point.names}
    lines += [("–", quoted([name]), *shown(name, table)) for name in EVENTS if name not in known]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    told = [f"{number}. {text}" for number, text in enumerate(REASONS, 1)]
    return "\n".join(["", *(laid_out(line, widths) for line in lines), "", *told, "", ""])


def aliases(point: Point, table: Mapping[str, Row]) -> tuple[list[str], list[str]]:
    """The names that a point has in settings files: those that fire where it does, and others."""
    names = [name for name in point.names if name in EVENTS]
    where = [column for column, cell in table[point.name].items() if cell]
    same = [name for name in names if [c for c, cell in table[name].items() if cell] == where]
    return same, [name for name in names if name not in same]


def shown(name: str, table: Mapping[str, Row]) -> list[str]:
    """The cells of a row; the number of the reason in those that are silent."""
    return [cell or str(reason(name, column)) for column, cell in table[name].items()]


def quoted(names: list[str]) -> str:
    """Names as code."""
    return ", ".join(f"`{name}`" for name in names)


def laid_out(line: tuple[str, ...], widths: list[int]) -> str:
    """A line of the table, as wide as all of them."""
    cells = [cell.ljust(width) for cell, width in zip(line, widths, strict=True)]
    return f"| {' | '.join(cells)} |"


def in_document() -> str:
    """The table that the documentation has."""
    return DOCUMENT.read_text("utf-8").partition(BEGIN)[2].partition(END)[0]


def write(table: str) -> None:
    """Put a table into the documentation."""
    text = DOCUMENT.read_text("utf-8")
    before, rest = text.split(BEGIN)
    DOCUMENT.write_text(f"{before}{BEGIN}{table}{END}{rest.split(END)[1]}", "utf-8")


def documented() -> dict[str, Row]:
    """The cells that the documentation has, by event and column."""
    lines = [line for line in in_document().splitlines() if line.startswith("|")]
    head, _, *body = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    found: dict[str, Row] = {}
    for event, alike, *cells in body:
        fields = dict(zip(head[2:], cells, strict=True))
        for name in f"{event}, {alike}".replace("`", "").split(", "):
            found[name] = fields
    return {name: fields for name, fields in found.items() if name not in ("", "–")}
