"""The report on a fleet's results: one HTML page that needs nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

from crow.fleet.job_filter import table

STYLE = """
:root { color-scheme: light dark; font: 15px/1.45 system-ui, sans-serif; }
body { margin: 2rem auto; max-width: 70rem; padding: 0 1rem; }
details { border-top: 1px solid rgb(128 128 128 / 30%); padding: .5rem 0; }
summary { cursor: pointer; } summary b { display: inline-block; min-width: 6rem; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; }
.failed b, .stopped b { color: light-dark(#b3261e, #ff8a80); }
.done b { color: light-dark(#1b6e34, #7fd99a); }
"""


def page(rows: Sequence[dict[str, Any]]) -> str:
    """The page of some jobs that have ended."""
    cost = sum(row["cost"] for row in rows)
    states: dict[str, int] = {}
    for row in rows:
        states[row["state"]] = states.get(row["state"], 0) + 1
    counted = ", ".join(f"{number} {state}" for state, number in sorted(states.items()))
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>Results</title>'
        '<meta name="viewport" content="width=device-width">'
        f"<style>{STYLE}</style><h1>Results</h1><p>{escape(counted or 'nothing')}; ${cost:.2f}</p>"
        f"{''.join(map(_entry, rows))}</html>\n"
    )


def _entry(row: dict[str, Any]) -> str:
    outcome = table(row["outcome"])
    text = str(outcome.get("text") or outcome.get("detail") or "")
    prompt = str(row["task"]["prompt"])
    about = f"{row['turns']} turns, ${row['cost']:.2f}, {outcome.get('branch') or row['id']}"
    return (
        f'<details class="{escape(row["state"])}"><summary><b>{escape(row["state"])}</b> '
        f"{escape(prompt.partition(chr(10))[0][:120])}</summary><p>{escape(about)}</p>"
        f"<h2>Task</h2><pre>{escape(prompt)}</pre><h2>Answer</h2><pre>{escape(text)}</pre></details>"
    )
