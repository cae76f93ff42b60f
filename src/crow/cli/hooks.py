"""Every hook in the order in which it runs: event, owner, where it is written, its source.

Those of settings files with the file that they stand in, and why one does not run.

crow hooks list [EVENT]
crow hooks test EVENT [--tool NAME] [--input JSON]
crow hooks explain [SESSION] [CALL]     what hooks did to the calls of a stored session
"""

from __future__ import annotations

import argparse
import inspect
import json
from typing import TYPE_CHECKING, Any

from crow.cli.options import agent_of, declare_place, settings_of
from crow.cli.output import Output, one_line
from crow.cli.parser import Parser, UsageError, no_such
from crow.core.agent import Agent
from crow.core.kinds import Hook
from crow.core.points import ELSEWHERE

if TYPE_CHECKING:
    from crow.settings import Settings

ACTIONS = ("list", "test", "explain")


def declare(parser: Parser) -> None:
    """The options of ``crow hooks``."""
    parser.add_argument(
        "action", metavar="ACTION", nargs="?", default="list", help=", ".join(ACTIONS)
    )
    parser.add_argument(
        "words",
        metavar="EVENT|SESSION",
        nargs="*",
        help="list: only this event; explain: the session (else the last one here), and a call",
    )
    parser.add_argument("--tool", metavar="NAME", help="test: the tool that is called")
    parser.add_argument(
        "--input", metavar="JSON", help="test: its arguments; without a tool, the event's fields"
    )
    parser.add_argument(
        "--extension", metavar="FILE_OR_PACKAGE", action="append", default=[], help="with this one"
    )
    parser.add_argument("--json", action="store_true", help="one object a line, for programs")
    declare_place(parser)


def main(options: argparse.Namespace, out: Output) -> int:
    """Run ``crow hooks``."""
    if options.action not in ACTIONS:
        raise UsageError(f"{no_such('action', options.action, ACTIONS)} (crow hooks list)")
    settings = settings_of(options)
    agent = agent_of(options, settings)
    if options.action == "explain":
        from crow.cli.explain import explain

        return explain(agent, options, out)
    if len(options.words) > 1:
        raise UsageError(f"crow hooks {options.action} takes one event")
    options.event = options.words[0] if options.words else None
    if options.action == "test":
        from crow.cli.hook_test import test_hooks

        return test_hooks(agent, options, out)
    return show_all(agent, settings, options, out)


def show_all(agent: Agent, settings: Settings, options: argparse.Namespace, out: Output) -> int:
    """Every hook, or those of one event, and what was left out."""
    event: str | None = options.event
    known = {*agent.hooks.names, *ELSEWHERE}
    if event and event not in known:
        raise UsageError(no_such("event", event, known))
    wanted = agent.hooks[event].point.name if event in agent.hooks.names else event
    for name, slot in agent.hooks.slots.items():
        if slot.entries and wanted in (None, name):
            show_event(name, slot.point.kind, list(slot.entries), options, out)
    show_waiting(agent, options, out)
    show_entries(agent, options, out)
    for text in settings.withheld:
        if not options.json:
            out.line(f"{text}: left out, the project is not trusted (crow trust)", "yellow")
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


def show_entries(agent: Agent, options: argparse.Namespace, out: Output) -> None:
    """The handlers of settings files, and why one never runs."""
    hooks = agent.extensions.get("shell_hooks")
    shown = [entry for entry in getattr(hooks, "entries", ()) if is_wanted(agent, entry, options)]
    if shown and not options.json:
        out.raw(out.styled("hooks of settings files", "bold"))
    for entry in shown:
        about = entry_described(entry)
        if options.json:
            out.verbatim(json.dumps(about))
            continue
        limits = f" ({one_line(entry.matcher)})" if entry.matcher else ""
        place = out.styled(one_line(f"from {entry.source}"), "dim")
        out.raw(f"  {entry.event.name}{limits}  {one_line(str(entry))}  {place}")
        if entry.inactive:
            out.line(f"      never runs: {entry.inactive}", "yellow")


def is_wanted(agent: Agent, entry: Any, options: argparse.Namespace) -> bool:
    """True where no event was named, or the one that an entry is for."""
    name = entry.event.name
    if options.event in (None, name):
        return True
    known = agent.hooks.names
    both = name in known and options.event in known
    return both and agent.hooks[name] is agent.hooks[options.event]


def entry_described(entry: Any) -> dict[str, Any]:
    """A handler of a settings file as a JSON object."""
    return {
        "event": entry.event.name,
        "matcher": entry.matcher,
        "type": entry.kind,
        "handler": str(entry),
        "file": entry.source,
        "if": entry.condition or None,
        "timeout": entry.timeout,
        "on_failure": "block" if entry.blocks else "continue",
        "inactive": entry.inactive or None,
    }
