"""The head of every page in docs/events, made from the table of points; the rest is written."""

from __future__ import annotations

import inspect
from pathlib import Path

from crow import AgentHook, RunContext, TurnContext
from crow.core.hooks.points import COMMON, POINTS, Point

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "events"
END = "<!-- what stands above is made from the table of events: python -m tests.events -->\n"
KINDS = {
    "gate": "hooks judge, and the strictest verdict stands. One that fails denies.",
    "fold": "each hook gets what the one before has left. What a hook that fails did is undone.",
    "watch": "all hooks run. One that fails is logged, and changes nothing.",
    "wrap": "hooks nest around it. The error of one is the operation's, with the hook's name.",
    "continue": "all reasons to go on become one message. One that fails keeps nothing going.",
}
COUNTS = (
    "`input_tokens`, `output_tokens`, `total_tokens`, `cached_tokens` and so on, `cost` where known"
)
TOKENS = {
    "request": f"[tokens of this request](../hooks.md#what-was-used): {COUNTS}; None where nobody said",
    "run": f"[tokens of the run so far](../hooks.md#what-was-used): {COUNTS}",
}
NAMES = ", ".join(f"`{name}`" for name in COMMON)
TAIL = f"""
A hook names those that it wants, and any of {NAMES};
or it takes the [context](../hooks.md#the-context), `ctx`. It has [60 seconds](../hooks.md#time-order-trace) of its own.
"""


def head(point: Point) -> str:
    """What the table says of an event, as Markdown."""
    method = getattr(AgentHook, point.name)
    signature = inspect.signature(method)
    aliases = [name for name in point.names if name != point.name]
    reverse = " The last registered hook runs first." if point.reverse else ""
    rows = {
        "fires": _cells(point.name)[1],
        "kind": f"[{point.kind}](../hooks.md#kinds): {KINDS[point.kind]}{reverse}",
        "a plain answer": _cells(point.name)[3],
        "answers": f"`{signature.return_annotation!s}`".replace("|", "\\|"),
        "other names": ", ".join(f"`{name}`" for name in aliases) or "–",
        "context": f"`crow.{point.context.__name__}`",
    }
    table = [f"| {name} | {text} |" for name, text in rows.items()]
    lines = [
        f"# {point.name}",
        "",
        inspect.getdoc(method) or "",
        "",
        table[0],
        "|---|---|",
        *table[1:],
    ]
    lines += ["", "| argument | type | |", "|---|---|---|"]
    for name, parameter in signature.parameters.items():
        if name == "self" or (name in COMMON and name not in point.fields):
            continue
        others = [
            f"`{other}`" for other, same in point.other_names.items() if same == name != other
        ]
        notes = ["may be changed"] * (name in point.changes)
        notes += ["goes on to the next hook, or to what is wrapped"] * (name == "call_next")
        notes += [TOKENS[name_of_usage(point)]] * (name == "usage")
        notes += [f"also {', '.join(others)}"] * bool(others)
        kind = str(parameter.annotation).replace("|", "\\|")
        lines.append(f"| `{name}` | `{kind}` | {'; '.join(notes)} |")
    if "usage" not in point.fields and point.context is RunContext:
        lines.append(f"| `ctx.usage` | `Usage` | of the context only; {TOKENS['run']} |")
    return "\n".join(lines) + "\n" + TAIL + END


def name_of_usage(point: Point) -> str:
    """Whose tokens a hook gets there."""
    return "request" if point.context is TurnContext else "run"


def _cells(event: str) -> list[str]:
    """The row of an event in docs/hooks.md."""
    page = (ROOT / "docs" / "hooks.md").read_text()
    row = next(line for line in page.splitlines() if line.startswith(f"| `{event}` |"))
    return [cell.strip() for cell in row.split("|")[1:-1]]


def write() -> None:
    """Write the head of every page, and leave what stands below it as it is."""
    for point in POINTS:
        file = FOLDER / f"{point.name}.md"
        written = file.read_text().partition(END)[2] if file.exists() else "\n"
        file.write_text(head(point) + written)
