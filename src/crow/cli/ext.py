"""Every extension that was looked for: in use, left out, disabled or broken, and its source.

Plugins are listed behind them with what they bring, each thing by its whole name.

crow ext list
crow ext new NAME           write a new one here that works at once: a package with tests
crow ext new NAME --file    the same as one file of this project
crow ext info NAME          all of one: its hooks, tools, options, what it took and where it failed
crow ext add PACKAGE        put one beside Crow: from an index, a git URL or a folder
crow ext remove NAME        take its package away
crow ext update [NAME]      have the latest version of its package, or of all
crow ext check PATH         what is wrong with one, with the line and what to do
crow ext test PATH          its own tests, and plays that are made up: prompts, cancels, reloads
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from crow.app import UNTRUSTED
from crow.app.composer import FOLDER, Composer
from crow.app.plugins import plugins_of
from crow.cli.extension_commands import left_out
from crow.cli.line_client import counted
from crow.cli.options import agent_of, declare_place, directory, settings_of
from crow.cli.output import Output
from crow.cli.parser import Parser, UsageError, no_such
from crow.core.agent import Agent
from crow.core.extensions import Found
from crow.core.hooks.hook import Hook
from crow.core.support.validation import implementing
from crow.ports.extensions import PluginReader
from crow.project.plugins import Plugin
from crow.settings import Settings
from crow.text import one_line

if TYPE_CHECKING:
    from crow.cli.ext_check.finding import Finding


def declare(parser: Parser) -> None:
    """The options of ``crow ext``."""
    parser.add_argument(
        "action", metavar="ACTION", nargs="?", default="list", help=", ".join(ACTIONS)
    )
    parser.add_argument("name", metavar="NAME", nargs="?", help="its name, or its file or folder")
    parser.add_argument("--file", action="store_true", help="new: one file, in .crow/extensions")
    parser.add_argument(
        "--extension", metavar="FILE_OR_PACKAGE", action="append", default=[], help="try this one"
    )
    parser.add_argument("--editable", action="store_true", help="add: a folder, used as it stands")
    parser.add_argument(
        "--plays", metavar="N", type=int, default=50, help="test: how many plays (default: 50)"
    )
    parser.add_argument("--seed", metavar="N", type=int, default=0, help="test: other ones")
    parser.add_argument("--json", action="store_true", help="one object a line, for programs")
    declare_place(parser)


def main(options: argparse.Namespace, out: Output) -> int:
    """Run ``crow ext``."""
    if options.action not in ACTIONS:
        raise UsageError(f"{no_such('action', options.action, ACTIONS)} (crow ext --help)")
    return ACTIONS[options.action](options, out)


FINE = "nothing is wrong with it"


def list_all(options: argparse.Namespace, out: Output) -> int:
    """Say what became of each extension and plugin; 1 where one is broken."""
    settings = settings_of(options)
    agent = tried(options, settings)
    width = max((len(found.name) for found in agent.found), default=0)
    for found in agent.found:
        if options.json:
            out.verbatim(json.dumps(described(found, agent)))
        else:
            show(found, agent, width, out)
    plugins, problems = plugins_of(settings)
    for plugin in plugins:
        brought = {what: list(names) for what, names in contents(agent, plugin)}
        if options.json:
            table = {"name": plugin.id, "state": "in use", "source": str(plugin.root), **brought}
            out.verbatim(json.dumps(table))
        else:
            show_plugin(plugin, brought, out)
    if not options.json:
        for text in (*settings.problems, *problems, *left_out()):
            out.error(text)
    return 1 if problems or any(found.error for found in agent.found) else 0


def write_new(options: argparse.Namespace, out: Output) -> int:
    """Write a new extension, and say what can be done with it."""
    from crow.cli import scaffold

    if not options.name:
        raise UsageError("what is it called? crow ext new my-guard")
    name, place = scaffold.name_of(options.name), directory(options)
    if options.file:
        path, test = (each.relative_to(place) for each in scaffold.write_file(name, place))
        told = {
            f"crow ext test {path}": "its tests, and plays: no key, no network",
            f"crow ext check {path}": "what is wrong with it, its types as well",
            "crow trust": "let this project's extensions run",
            "crow ext list": "see it there",
        }
        out.line(str(path))
        out.line(str(test))
    else:
        for path in scaffold.write_package(name, place):
            out.line(str(path.relative_to(place)))
        folder = scaffold.filled("crow-sample", name)
        told = {
            f'crow run --extension ./{folder} "Run sudo ls"': "try it",
            f"cd {folder} && uv run pytest": "its tests: no key, no network",
            f"crow ext add --editable ./{folder}": "use it beside Crow, in every project",
            f"{folder}/README.md": "says what it does: change that with the code",
        }
    width = max(map(len, told))
    for command, what in told.items():
        out.line(f"  {command:{width}}   {what}", "dim")
    return 0


def tried(options: argparse.Namespace, settings: Settings) -> Agent:
    """The agent, with what ``--extension`` names as far as it can be used."""
    agent = agent_of(options, settings, (), reads=True)
    composer = Composer(agent, settings)
    for spec in options.extension:
        composer.try_named(spec)
    return agent


def show_info(options: argparse.Namespace, out: Output) -> int:
    """Say what one extension is; 1 where it is broken."""
    from crow.cli.ext_info import info

    named(options)
    settings = settings_of(options)
    return info(tried(options, settings), settings, options, out)


def manage(options: argparse.Namespace, out: Output) -> int:
    """Have the environment of Crow changed by who made it."""
    from crow.cli import ext_packages

    if options.action != "update":
        named(options)
    return getattr(ext_packages, options.action)(options, out)


def check(options: argparse.Namespace, out: Output) -> int:
    """Say what is wrong with an extension, a line each; 1 where anything is."""
    from crow.cli.ext_check.checks import check

    return report(check(placed(options)), options, out)


def test(options: argparse.Namespace, out: Output) -> int:
    """Run an extension's tests, and live with it; 1 where something is wrong."""
    from crow.cli.ext_check.tests import lives, run_tests

    spec = placed(options)
    failed = run_tests(spec, out)
    out.note(f"{counted(options.plays, 'play')} of it, with the seed {options.seed}")
    return report(lives(spec, options.plays, options.seed), options, out, failed) or failed


def named(options: argparse.Namespace) -> str:
    """The extension that is meant. Raises `UsageError` without one."""
    if not options.name:
        what = {"info": "my_guard", "remove": "my_guard", "add": "crow-my-guard"}
        raise UsageError(
            f"which one? crow ext {options.action} {what.get(options.action, 'my_guard.py')}"
        )
    return options.name


def placed(options: argparse.Namespace) -> str:
    """The extension that is meant; one of the project's or the user's files has a name as well."""
    spec = named(options)
    if Path(os.path.expanduser(spec)).exists():
        return spec
    folders = (directory(options) / FOLDER, Path.home() / FOLDER)
    files = (folder / f"{spec.replace('-', '_')}.py" for folder in folders)
    return next((str(path) for path in files if path.is_file()), spec)


def report(
    findings: Iterable[Finding], options: argparse.Namespace, out: Output, failed: int = 0
) -> int:
    """Say what was found as it comes; 1 where it is anything. Its tests may have ``failed``."""
    count = 0
    for finding in findings:
        count += 1
        if options.json:
            out.verbatim(json.dumps(finding.table))
        else:
            out.line(str(finding))
    if not options.json:
        fine = "its tests failed, and nothing else was found" if failed else FINE
        out.note(counted(count, "finding") if count else fine)
    return 1 if count else 0


def contents(agent: Agent, plugin: Plugin) -> Iterator[tuple[str, Iterable[str]]]:
    """What a plugin brings: the sort of thing, and its names."""
    for extension in implementing(agent.extensions.values(), PluginReader):
        yield from extension.brought_by(plugin).items()
    yield "servers", plugin.servers
    yield "hooks", dict.fromkeys(event for _, table in plugin.hooks for event in table)


def show_plugin(plugin: Plugin, brought: Mapping[str, list[str]], out: Output) -> None:
    """A plugin in a line, and a line for each sort of thing that it brings."""
    source = out.styled(one_line(str(plugin.root)), "dim")
    out.raw(f"{out.styled('in use  ', 'green')}  {one_line(plugin.id)}  {source}")
    for what, names in brought.items():
        if names:
            out.line(f"          {what}: {one_line(', '.join(names))}", "dim")


def state(found: Found) -> str:
    """What became of an extension, in a word."""
    if found.disabled:
        return "disabled"
    if found.error == UNTRUSTED:
        return "left out"
    return "broken" if found.error else "in use"


def show(found: Found, agent: Agent, width: int, out: Output) -> None:
    """One extension in a line, its error in another."""
    word = state(found)
    colour = {"in use": "green", "broken": "red"}.get(word, "yellow")
    mark = out.styled(f"{word:8}", colour)  # pyright: ignore[reportArgumentType]
    hung = len(hooks_of(found, agent))
    hooks = f", {counted(hung, 'hook')}" if hung else ""
    also = f", as {', '.join(found.names)}" if found.names not in ((), (found.name,)) else ""
    source = out.styled(one_line(f"{found.source}{hooks}{also}"), "dim")
    out.raw(f"{mark}  {one_line(found.name):{width}}  {source}")
    for text in found.problems:
        out.line(f"          {one_line(text)}", "yellow")
    if found.error:
        out.line(f"          {one_line(found.error)}", colour)  # pyright: ignore[reportArgumentType]


def described(found: Found, agent: Agent) -> dict[str, object]:
    """An extension as a JSON object."""
    return {
        "name": found.name,
        "state": state(found),
        "source": found.source,
        "error": found.error,
        "problems": found.problems,
        "names": found.names,
        "hooks": sorted({hook.event for hook in hooks_of(found, agent)}),
    }


def hooks_of(found: Found, agent: Agent) -> list[Hook]:
    """The hooks that an extension has hung, whatever others are called."""
    owners = [owner for owner in agent.hooks.owners if owner.name in found.names]
    return [hook for owner in owners for hook in agent.hooks.of(owner) if hook.event]


ACTIONS: Mapping[str, Callable[[argparse.Namespace, Output], int]] = {
    "list": list_all,
    "new": write_new,
    "info": show_info,
    "add": manage,
    "remove": manage,
    "update": manage,
    "check": check,
    "test": test,
}
