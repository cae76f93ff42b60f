"""The sandbox of commands that run for a model here: what it holds, and what it does not.

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

from crow.cli import Output, UsageError, declare_agent, load_agent
from crow.project import SandboxSettings

if TYPE_CHECKING:
    from crow.extensions.sandbox.backend import Backend
    from crow.extensions.sandbox.escapes import Escape
    from crow.extensions.sandbox.policy import Ring
    from crow.extensions.sandbox.probe import ProbeResult
    from crow.extensions.sandbox.testbed import Outcome

ACTIONS = ("show", "try")
RINGS: tuple[Ring, ...] = ("reading", "workspace")
BARE = "NO SANDBOX: commands run with all that you may do."
REFUSED = "NO SANDBOX: sandbox.required is set, so no command runs."


def declare(parser: argparse.ArgumentParser) -> None:
    """The options of ``crow sandbox``."""
    parser.add_argument("action", metavar="ACTION", nargs="?", default="show", help="show, or try")
    parser.add_argument("--backend", metavar="NAME", help="bubblewrap, landlock, seatbelt or none")
    parser.add_argument("--all", action="store_true", help="with try: the slow ones, too")
    parser.add_argument("--json", action="store_true", help="as JSON; with try an object a line")
    declare_agent(parser)


def main(options: argparse.Namespace, out: Output) -> int:
    """Run ``crow sandbox``; 1 where nothing confines, or something came through."""
    from crow.extensions.sandbox.backend import Unconfined
    from crow.extensions.sandbox.finder import Finder

    if options.action not in ACTIONS:
        raise UsageError(f"there is no action {options.action!r} (crow sandbox, crow sandbox try)")
    settings = _settings(options, out)
    wanted = options.backend or settings.backend
    if options.action == "try":
        return attempt(_confining(wanted), options, out)
    finder = Finder(wanted, anew=True)
    off = "" if options.backend or settings.enabled else f"it is switched off ({settings.off})"
    backend = Unconfined() if off else finder.find()
    if options.backend not in (None, backend.name):
        raise UsageError(finder.why)
    why = "" if backend.holds else off or finder.why
    return show(backend, why, options, out, is_required=settings.required and not off)


def _confining(wanted: str | None) -> Backend:
    """The back end to attack."""
    from crow.extensions.sandbox.probe import find_backend

    try:
        backend = find_backend(wanted, anew=True)
    except OSError as error:
        raise UsageError(str(error)) from None
    if not backend.holds:
        raise UsageError("nothing confines commands here, so there is nothing to try")
    return backend


def _settings(options: argparse.Namespace, out: Output) -> SandboxSettings:
    """What settings, environment and options say of the sandbox in this project."""
    from crow.extensions.sandbox import SandboxHook

    used = load_agent(options, out).extensions.values()
    hook = next((each for each in used if isinstance(each, SandboxHook)), None)
    disabled = SandboxSettings(enabled=False, off="the extension is disabled")
    return disabled if hook is None else hook.settings


def show(
    backend: Backend,
    why: str,
    options: argparse.Namespace,
    out: Output,
    *,
    is_required: bool = False,
) -> int:
    """Say what there is, and why there is nothing; without any no command runs if required."""
    from crow.extensions.sandbox.probe import everyone

    others = [each for each in everyone() if each.name != backend.name]
    if options.json:
        about = _about(backend, why, others) | {"required": is_required}
        out.verbatim(json.dumps(about, ensure_ascii=False))
    else:
        _tell(backend, why, others, out, REFUSED if is_required else BARE)
    return 0 if backend.holds else 1


def _about(backend: Backend, why: str, others: Sequence[ProbeResult]) -> dict[str, Any]:
    return {
        "backend": backend.name,
        **({"why": why} if why else {}),
        "holds": {"workspace": sorted(backend.holds), "reading": sorted(backend.holds_reading)},
        "does_not_hold": list(backend.does_not_hold),
        "others": {each.name: each.why_not or "works" for each in others},
    }


def _tell(
    backend: Backend, why: str, others: Sequence[ProbeResult], out: Output, bare: str
) -> None:
    from crow.extensions.sandbox.backend import GUARANTEES

    if backend.holds:
        out.line(f"Commands are confined by {backend.name}.", "bold")
    else:
        out.line(bare, "red", "bold")
        if why:
            out.line(f"{why[0].upper()}{why[1:]}.")
    for name, text in GUARANTEES.items():
        if name in backend.holds_reading:
            where = "" if name in backend.holds else "  (in the reading ring)"
            out.raw(f"  {out.styled('holds', 'green')}  {text}{where}")
    for text in backend.does_not_hold if backend.holds else ():
        out.raw(f"  {out.styled('mind', 'yellow')}   {text}")
    works = "works as well" if backend.holds else "works"
    for each in others:
        out.line(f"{each.name}: {f'no, {each.why_not}' if each.why_not else works}", "dim")


def attempt(backend: Backend, options: argparse.Namespace, out: Output) -> int:
    """Try every way out of both rings."""
    from crow.extensions.sandbox.escapes import escapes
    from crow.extensions.sandbox.testbed import try_out

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
