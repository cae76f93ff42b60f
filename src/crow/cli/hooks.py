"""Every hook in the order in which it runs: event, owner, where it is written, its source.

crow hooks list [EVENT]
"""

from __future__ import annotations

import argparse
import inspect
import json
from typing import Any

from crow.cli.options import agent_of, declare_place, settings_of
from crow.cli.output import Output, one_line
from crow.cli.parser import Parser, UsageError, no_such
from crow.core.agent import Agent
from crow.core.kinds import Hook


def declare(parser: Parser) -> None:
    """The options of ``crow hooks``."""
    parser.add_argument("action", metavar="ACTION", nargs="?", default="list", help="list")
    parser.add_argument("event", metavar="EVENT", nargs="?", help="only this event")
    parser.add_argument(
        "--extension", metavar="FILE_OR_PACKAGE", action="append", default=[], help="with this one"
    )
    parser.add_argument("--json", action="store_true", help="one object a line, for programs")
    declare_place(parser)


def main(options: argparse.Namespace, out: Output) -> int:
    """Run ``crow hooks``."""
    if options.action != "list":
        raise UsageError(f"{no_such('action', options.action, ['list'])} (crow hooks list)")
    agent = agent_of(options, settings_of(options))
    if options.event and options.event not in agent.hooks.names:
        raise UsageError(no_such("event", options.event, agent.hooks.names))
    wanted = agent.hooks[options.event].point.name if options.event else None
    for event, slot in agent.hooks.slots.items():
        if slot.entries and wanted in (None, event):
            show_event(event, slot.point.kind, list(slot.entries), options, out)
    show_waiting(agent, options, out)
    return 0


def show_event(
    event: str, kind: str, hooks: list[Hook], options: argparse.Namespace, out: Output
) -> None:
    """The hooks of one event."""
    if not options.json:
        out.raw(f"{out.styled(event, 'bold')} {out.styled(f'({kind})', 'dim')}")
    for number, hook in enumerate(hooks, 1):
        about = described(event, number, hook)
        if options.json:
            out.verbatim(json.dumps(about))
            continue
        notes = "".join(f"  {note}" for note in notes_of(hook))
        place = out.styled(one_line(f"{about['file']}  from {hook.owner.source}{notes}"), "dim")
        out.raw(f"  {number:>2}  {one_line(f'{hook.owner.name}: {hook.name}')}  {place}")


def notes_of(hook: Hook) -> list[str]:
    """What is special about a hook."""
    limits = f"tools {', '.join(sorted(hook.tools))}" if hook.tools else ""
    notes = [limits, "judges" if hook.judge else "", f"order {hook.order}" if hook.order else ""]
    notes.append("in the background" if hook.background else "")
    notes.append("" if hook.owner.trusted else "its Allow counts as no opinion")
    return [note for note in notes if note]


def described(event: str, number: int, hook: Hook) -> dict[str, Any]:
    """A hook as a JSON object."""
    return {
        "event": event,
        "number": number,
        "owner": hook.owner.name,
        "hook": hook.name,
        "source": hook.owner.source,
        "file": where(hook),
        "tools": sorted(hook.tools) if hook.tools else None,
        "order": hook.order,
        "timeout": hook.timeout,
    }


def where(hook: Hook) -> str:
    """File and line of a hook."""
    written: Any = hook.function
    written = getattr(written, "__func__", written)
    try:
        file = inspect.getsourcefile(written)
        _, line = inspect.getsourcelines(written)
    except (OSError, TypeError):
        return ""
    return f"{file}:{line}"


def show_waiting(agent: Agent, options: argparse.Namespace, out: Output) -> None:
    """Hooks of events that nobody makes happen."""
    for event, owner, extension in agent.hooks.waiting:
        if options.json:
            about = {"event": event, "owner": owner, "waits_for": extension}
            out.verbatim(json.dumps(about))
        else:
            out.line(f"{event}: {owner} waits; the extension {extension} is not in use", "yellow")
