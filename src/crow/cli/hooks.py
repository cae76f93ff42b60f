"""Every hook in the order in which it runs: event, owner, where it is written, its source.

Those of settings files with the file that they stand in, and why one does not run.

crow hooks list [EVENT]
crow hooks test EVENT [--tool NAME] [--input JSON]
crow hooks explain [SESSION] [CALL]     what hooks did to the calls of a stored session
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from crow.app.startup_warnings import of_extensions
from crow.cli.hook_sources import SETTINGS_HOOKS, handler_described, handlers_of, twin_of, where
from crow.cli.options import agent_of, declare_place, settings_of
from crow.cli.output import Output
from crow.cli.parser import Parser, UsageError, no_such
from crow.core.agent import Agent
from crow.core.hooks.hook import Hook
from crow.core.hooks.hook_point import HookPoint
from crow.text import one_line

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
    agent = agent_of(options, settings, reads=options.action != "test")
    if options.action == "explain":
        from crow.cli.explain import explain

        return explain(agent, options, out)
    if len(options.words) > 1:
        raise UsageError(f"crow hooks {options.action} takes one event")
    options.event = options.words[0] if options.words else None
    for text in of_extensions(agent.extensions):
        out.error(text)
    if options.action == "test":
        from crow.cli.hook_test import test_hooks

        return test_hooks(agent, options, out)
    return show_all(agent, settings, options, out)


def show_all(agent: Agent, settings: Settings, options: argparse.Namespace, out: Output) -> int:
    """Every hook, or those of one event, and what was left out."""
    event: str | None = options.event
    known = {*agent.hooks.names, *agent.hooks.announced()}
    if event and event not in known:
        raise UsageError(no_such("event", event, known))
    wanted = agent.hooks[event].point.name if event in agent.hooks.names else event
    handlers = [each for each in handlers_of(agent) if is_wanted(agent, each, options)]
    for name, hook_point in agent.hooks.points.items():
        if hook_point.entries and wanted in (None, name):
            handlers = show_event(agent, hook_point, handlers, options, out)
    show_waiting(agent, options, out)
    if handlers and not options.json:
        out.raw(out.styled("hooks of settings files that do not run", "bold"))
    for handler in handlers:
        show_handler(agent, handler, options, out)
    for source, name, why in left_out(settings):
        if event in (None, name):
            show_left_out(source, name, why, options, out)
    return 0


def left_out(settings: Settings) -> Iterator[tuple[str, str, str]]:
    """Hooks of settings files that do not hang at all: file, event and the reason."""
    for each in settings.unused_hooks:
        yield from ((str(each.source), name, each.why) for name in each.table)
    for withheld in settings.withheld:
        why = "the project is not trusted (crow trust)"
        yield from ((str(withheld.source), name, why) for name in withheld.table.get("hooks", ()))


def show_left_out(
    source: str, event: str, why: str, options: argparse.Namespace, out: Output
) -> None:
    """A line for the hooks of an event in a file that do not count."""
    if options.json:
        out.verbatim(json.dumps({"event": event, "source": source, "inactive": why}))
    else:
        out.line(f"{one_line(source)}: hooks of {one_line(event)} are left out: {why}", "yellow")


def show_event(
    agent: Agent,
    hook_point: HookPoint[Any, Any],
    handlers: list[Any],
    options: argparse.Namespace,
    out: Output,
) -> list[Any]:
    """The hooks of one event, each with the handlers that it runs; the handlers that are left."""
    event = hook_point.point.name
    if not options.json:
        out.raw(f"{out.styled(event, 'bold')} {out.styled(f'({hook_point.point.kind})', 'dim')}")
    for number, hook in enumerate(hook_point.entries, 1):
        show_hook(event, number, hook, options, out)
        if hook.owner.name == SETTINGS_HOOKS:
            names = {other.name for other in hook_point.entries if other.owner is hook.owner} - {
                hook.name
            }
            run = [each for each in handlers if runs_in(agent, each, hook_point, names)]
            handlers = [each for each in handlers if each not in run]
            for handler in run:
                show_handler(agent, handler, options, out, indent=8)
    return handlers


def show_hook(
    event: str, number: int, hook: Hook, options: argparse.Namespace, out: Output
) -> None:
    """A line for a hook."""
    about = described(event, number, hook)
    if options.json:
        out.verbatim(json.dumps(about))
        return
    notes = "".join(f"  {note}" for note in notes_of(hook))
    place = out.styled(one_line(f"{about['file']}  from {hook.owner.source}{notes}"), "dim")
    out.raw(f"  {number:>2}  {one_line(f'{hook.owner.name}: {hook.name}')}  {place}")


def runs_in(agent: Agent, handler: Any, hook_point: HookPoint[Any, Any], others: set[str]) -> bool:
    """True where a handler's event happens at a point, and no other hook there is named like it."""
    event = handler.event.name
    happens = (
        not handler.inactive and event in agent.hooks.names and agent.hooks[event] is hook_point
    )
    return happens and event not in others


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


def show_waiting(agent: Agent, options: argparse.Namespace, out: Output) -> None:
    """Hooks of events that nobody makes happen."""
    for event, owner, extension in agent.hooks.waiting:
        if options.json:
            about = {"event": event, "owner": owner, "waits_for": extension}
            out.verbatim(json.dumps(about))
        else:
            out.line(f"{event}: {owner} waits; the extension {extension} is not in use", "yellow")


def show_handler(
    agent: Agent, handler: Any, options: argparse.Namespace, out: Output, indent: int = 2
) -> None:
    """A line for a handler of a settings file, and why it never runs, or not by itself."""
    twin = twin_of(agent, handler)
    if options.json:
        told = {"runs_with": twin.source} if twin else {}
        out.verbatim(json.dumps(handler_described(handler) | told))
        return
    limits = f" ({one_line(handler.matcher)})" if handler.matcher else ""
    place = out.styled(one_line(f"from {handler.source}"), "dim")
    out.raw(f"{'':{indent}}{handler.event.name}{limits}  {one_line(str(handler))}  {place}")
    if handler.inactive:
        out.line(f"{'':{indent}}    never runs: {handler.inactive}", "yellow")
    elif twin:
        told = one_line(f"runs once, with the one of {twin.source}")
        out.line(f"{'':{indent}}    {told}", "dim")


def is_wanted(agent: Agent, handler: Any, options: argparse.Namespace) -> bool:
    """True where no event was named, or the one that a handler is for."""
    name = handler.event.name
    if options.event in (None, name):
        return True
    known = agent.hooks.names
    both = name in known and options.event in known
    return both and agent.hooks[name] is agent.hooks[options.event]
