"""Options that several sub-commands share, and what they make: settings and an agent."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crow.cli.claude_options import (
    choose_tools,
    declare_habits,
    flags_of,
    layers_of,
    merged,
    names_in,
    refuse_unusable,
    switched_off,
)
from crow.cli.output import Output
from crow.cli.parser import UsageError, no_such
from crow.core.support.validation import implementing
from crow.ports.extensions import ModeProvider

if TYPE_CHECKING:
    from crow.core.agent import Agent
    from crow.settings import Settings

ELSEWHERE = frozenset(
    {"Agent", "Cd", "NotebookEdit", "Skill", "Task", "TodoWrite", "WebFetch", "WebSearch"}
)
"""Tools of Claude Code that a rule may name although they are not in use here."""

OUTPUT_MODES = {
    "auto": "nobody judges calls in your place: acceptEdits asks about less, rules allow the rest",
    "json": "--json prints events",
    "rpc": "crow acp speaks with programs",
    "text": "the answer is text anyway",
}
"""Modes of other agents that mean something else, or are not here."""

PLAIN = ("CROW_PLAIN", "ACCESSIBLE")
"""Variables that want lines in the place of a screen."""
UNABLE = ("", "dumb", "unknown")
"""Values of ``TERM`` of terminals in which no cursor moves."""


def declare_place(parser: argparse.ArgumentParser) -> None:
    """Where settings are looked for."""
    parser.add_argument("--cwd", metavar="DIR", default=".", help="work in this directory")
    parser.add_argument("--settings", metavar="FILE", help="one more settings file, or JSON")


def declare_agent(parser: argparse.ArgumentParser) -> None:
    """Add the options that say what the agent is made of."""
    declare_place(parser)
    parser.add_argument(
        *("--model", "-m"), metavar="NAME", help="the model to ask; `rehearsal` needs no key"
    )
    parser.add_argument(
        *("--mode", "--permission-mode"),
        metavar="MODE",
        help="permission mode, such as acceptEdits",
    )
    for name, text in (("allow", "run such calls unasked"), ("deny", "never run such calls")):
        parser.add_argument(
            f"--{name}", metavar="RULE", action="append", default=[], help=f"{text}: 'Bash(ls *)'"
        )
    parser.add_argument(
        "--no-sandbox", action="store_true", help="run commands with all that you may do"
    )
    parser.add_argument(
        "--extension",
        metavar="FILE_OR_PACKAGE",
        action="append",
        default=[],
        help="a Python file, a folder with a pyproject.toml, a module or module:Name",
    )
    declare_habits(parser)


def declare_face(parser: argparse.ArgumentParser) -> None:
    """Let the user choose lines."""
    parser.add_argument(
        *("--plain", "--ax-screen-reader"),
        action="store_true",
        help="line after line, for screen readers: nothing is redrawn",
    )


def is_plain(options: argparse.Namespace) -> bool:
    """True where nothing may be drawn twice: it is wanted so, or the terminal cannot."""
    wanted = options.plain or any(os.environ.get(name) for name in PLAIN)
    return wanted or os.environ.get("TERM", "") in UNABLE or sys.platform == "win32"


def has_screen(options: argparse.Namespace, out: Output) -> bool:
    """True where a screen can be drawn: in the foreground of a terminal that can, and wanted."""
    if not out.is_terminal or is_plain(options):
        return False
    with suppress(OSError, ValueError):
        return os.tcgetpgrp(out.out.fileno()) == os.getpgrp()
    return False


def seconds(text: str) -> float:
    """A time of more than nothing. Raises ``ArgumentTypeError``."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds")
    return value


def directory(options: argparse.Namespace) -> Path:
    """The directory of ``--cwd``. Raises `UsageError` where there is none."""
    path = Path(os.path.expanduser(options.cwd))
    if not path.is_dir():
        raise UsageError(f"there is no directory {options.cwd!r}: --cwd takes one that exists")
    return Path(os.path.abspath(path))  # noqa: PTH100 - links stay as they were written


def settings_of(options: argparse.Namespace) -> Settings:
    """The settings that hold for a command line."""
    from crow.settings import load

    flags: dict[str, Any] = {}
    if model := getattr(options, "model", None):
        flags["model"] = model
    permissions = {
        "allow": [*getattr(options, "allow", ()), *names_in(getattr(options, "allowedTools", ()))],
        "deny": [*getattr(options, "deny", ()), *names_in(getattr(options, "disallowedTools", ()))],
        "defaultMode": getattr(options, "mode", None),
    }
    given = {name: value for name, value in permissions.items() if value}
    if given:
        flags["permissions"] = given
    if getattr(options, "no_sandbox", False):
        flags["sandbox"] = {"enabled": False}
    if extensions := getattr(options, "extensions", None):
        flags["extensions"] = extensions
    if disabled := [*getattr(options, "disable", ()), *switched_off(options)]:
        flags["extensions"] = {**flags.get("extensions", {}), "disable": disabled}
    if hasattr(options, "setting_sources"):
        flags, layers = merged(flags_of(options), flags), layers_of(options)
    else:
        layers = None
    return load(directory(options), file=options.settings, flags=flags, layers=layers)


def refuse_unread(settings: Settings) -> None:
    """Raise for a settings file that cannot be read: its deny rules would not hold."""
    if settings.unread:
        from crow.settings import SettingsError

        raise SettingsError(f"{settings.unread[0]}; mend the file, or move it away")


def agent_of(
    options: argparse.Namespace,
    settings: Settings,
    extensions: Iterable[str] | None = None,
    *,
    reads: bool = False,
) -> Agent:
    """The agent that a command line describes; its variables are in the environment then.

    ``extensions`` stand in the place of those of ``--extension``. ``reads`` is for a command that
    runs no tools, and so works where nobody can judge their calls.
    """
    from crow.app import build, build_to_read, export, live_of

    named = getattr(options, "extension", ()) if extensions is None else extensions
    exported = export(settings.env)
    agent = (build_to_read if reads else build)(settings, cwd=directory(options), extensions=named)
    live_of(agent).updater.exported = exported
    check_rules(options, agent)
    if hasattr(options, "tools"):
        refuse_unusable(options, agent)
        choose_tools(options, agent)
    return agent


def load_agent(options: argparse.Namespace, out: Output, *, reads: bool = False) -> Agent:
    """The agent that the options of `declare_agent` describe; says what is wrong with settings."""
    settings = settings_of(options)
    agent = agent_of(options, settings, reads=reads)
    tell_problems(settings, agent, out)
    return agent


def check_rules(options: argparse.Namespace, agent: Agent) -> None:
    """Hold rules and mode of a command line against what there is."""
    for rule in (*getattr(options, "allow", ()), *getattr(options, "deny", ())):
        name = rule.partition("(")[0].strip()
        known = {*agent.tools, *ELSEWHERE}
        if name not in known and "*" not in name and not name.startswith("mcp__"):
            names = ", ".join(agent.tools)
            raise UsageError(f"{no_such('tool', name, known)} in the rule {rule!r} ({names})")
    mode = getattr(options, "mode", None)
    if mode in OUTPUT_MODES:
        raise UsageError(f"--mode is the permission mode; {OUTPUT_MODES[mode]}")
    if mode:
        used = implementing(agent.extensions.values(), ModeProvider)
        known = {*agent.modes, *(mode.id for each in used for mode in each.modes)}
        if mode not in known:
            raise UsageError(f"{no_such('mode', mode, known)} ({', '.join(sorted(known))})")


def tell_problems(settings: Settings, agent: Agent, out: Output) -> None:
    """Say what is wrong in the settings, and which extensions are broken; sessions do not again."""
    from crow.app import live_of, startup_warnings

    for text in startup_warnings(settings, agent):
        out.error(text)
        live_of(agent).told.add(text)
    if settings.passed_over or settings.claude_model or settings.fallback_model:
        from crow.cli.ignored_settings import new_lines

        for text in new_lines(settings):
            out.note(text)


def tell_news(settings: Settings, out: Output) -> None:
    """Say once what is read of other agents' things, and what is not."""
    from crow.app.plugins import brought_of

    if found := brought_of(settings):
        from crow.project.other_agents.notice import notices

        for text in notices(found):
            out.note(text)
