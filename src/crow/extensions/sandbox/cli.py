"""What confines the commands that run for a model, and what does not.

  crow sandbox        which back end of the operating system, what it holds, why not another
  crow sandbox try    tries to get out of it, against a scratch folder; fails if anything does

There are two rings: reading, for what only reads, and workspace, which writes in the folders that
are worked in.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from crow.cli import Output, UsageError

if TYPE_CHECKING:
    from crow.extensions.sandbox.backend import Backend
    from crow.extensions.sandbox.escapes import Escape
    from crow.extensions.sandbox.policy import Ring
    from crow.extensions.sandbox.probe import Answer
    from crow.extensions.sandbox.stage import Outcome

ACTIONS = ("show", "try")
RINGS: tuple[Ring, ...] = ("reading", "workspace")


def declare(parser: argparse.ArgumentParser) -> None:
    """The options of ``crow sandbox``."""
    parser.add_argument("action", metavar="ACTION", nargs="?", default="show", help="show, or try")
    parser.add_argument("--backend", metavar="NAME", help="bubblewrap, landlock, seatbelt or none")
    parser.add_argument("--all", action="store_true", help="with try: the slow ones, too")
    parser.add_argument("--json", action="store_true", help="as JSON; with try an object a line")


def main(options: argparse.Namespace, out: Output) -> int:
    """Run ``crow sandbox``; 1 where nothing confines, or something came through."""
    from crow.extensions.sandbox.probe import find_backend

    if options.action not in ACTIONS:
        raise UsageError(f"there is no action {options.action!r} (crow sandbox, crow sandbox try)")
    try:
        backend = find_backend(options.backend, anew=True)
    except OSError as error:
        raise UsageError(str(error)) from None
    if options.action == "show":
        return show(backend, options, out)
    if not backend.holds:
        raise UsageError("nothing confines commands here, so there is nothing to try")
    return attempt(backend, options, out)


def show(backend: Backend, options: argparse.Namespace, out: Output) -> int:
    """Say what there is."""
    from crow.extensions.sandbox.probe import everyone

    others = [each for each in everyone() if each.name != backend.name]
    if options.json:
        out.verbatim(json.dumps(_about(backend, others), ensure_ascii=False))
    else:
        _tell(backend, others, out)
    return 0 if backend.holds else 1


def _about(backend: Backend, others: Sequence[Answer]) -> dict[str, Any]:
    return {
        "backend": backend.name,
        "holds": {"workspace": sorted(backend.holds), "reading": sorted(backend.holds_reading)},
        "does_not_hold": list(backend.does_not_hold),
        "others": {each.name: each.why_not or "works" for each in others},
    }


def _tell(backend: Backend, others: Sequence[Answer], out: Output) -> None:
    from crow.extensions.sandbox.backend import GUARANTEES

    if backend.holds:
        out.line(f"Commands are confined by {backend.name}.", "bold")
    else:
        out.line("NO SANDBOX: commands run with all that you may do.", "red", "bold")
    for name, text in GUARANTEES.items():
        if name in backend.holds_reading:
            where = "" if name in backend.holds else "  (in the reading ring)"
            out.raw(f"  {out.styled('holds', 'green')}  {text}{where}")
    for text in backend.does_not_hold if backend.holds else ():
        out.raw(f"  {out.styled('mind', 'yellow')}   {text}")
    for each in others:
        out.line(
            f"{each.name}: {f'no, {each.why_not}' if each.why_not else 'works as well'}", "dim"
        )


def attempt(backend: Backend, options: argparse.Namespace, out: Output) -> int:
    """Try every way out of both rings."""
    from crow.extensions.sandbox.escapes import escapes
    from crow.extensions.sandbox.stage import try_out

    wanted = [each for each in escapes() if options.all or not each.is_slow]
    lost = 0
    for ring in RINGS:
        holds = backend.holds_reading if ring == "reading" else backend.holds
        outcomes = try_out(backend, ring, wanted)
        rows = [(each, verdict(each, holds)) for each in outcomes]
        lost += sum(word == "ESCAPED" for _, word in rows)
        for outcome, word in rows:
            _report(outcome.escape, word, ring, options, out)
        if not options.json:
            count = sum(word == "held" for _, word in rows)
            out.line(f"{backend.name}, {ring} ring: {count} of {len(rows)} held", "bold")
    return 1 if lost else 0


def verdict(outcome: Outcome, holds: frozenset[str]) -> str:
    """``held``, ``ESCAPED``, or ``open`` for what came through and was never promised."""
    if not outcome.came_through:
        return "held"
    return "ESCAPED" if outcome.escape.holds in holds else "open"


def _report(
    escape: Escape, word: str, ring: Ring, options: argparse.Namespace, out: Output
) -> None:
    if options.json:
        about = {"ring": ring, "guarantee": escape.holds, "escape": escape.name}
        out.verbatim(json.dumps({**about, "outcome": word.lower()}, ensure_ascii=False))
        return
    colour = {"held": "green", "open": "yellow"}.get(word, "red")
    out.raw(f"  {out.styled(f'{word:8}', colour)}{escape.holds:11} {out.fit(escape.name, 21)}")  # pyright: ignore[reportArgumentType]
