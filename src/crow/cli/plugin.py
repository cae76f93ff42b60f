"""Plugins in Claude Code's shape: have them, look at them, renew them and take them away.

  crow plugin                    the plugins in use, and where they are from
  crow plugin add SOURCE         a folder, a repository's URL, owner/repository, or NAME@MARKETPLACE
  crow plugin update [NAME]      as it is there now
  crow plugin remove NAME
  crow plugin enable NAME        disable NAME lets it lie
  crow plugin market             the marketplaces; with NAME its plugins
  crow plugin market add SOURCE  a folder or a repository; market remove NAME forgets it

What a plugin would run is shown before anything of it is used, and asked about (-y does not ask).
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

from crow.cli.output import Output
from crow.cli.parser import Parser, UsageError, no_such
from crow.cli.stdin import somebody_is_there
from crow.cli.trust import confirmed
from crow.project.files import write_atomically
from crow.project.marketplaces import (
    Installed,
    Marketplaces,
    Origin,
    check_plugin,
    complete,
    digest,
    fetch,
    read_table,
)
from crow.project.plugins import PARTS, STYLES, Plugin, PluginError, read
from crow.text import one_line

SETTINGS = Path(".crow", "settings.json")
TAKES = {
    "list": (0, 0),
    "add": (1, 1),
    "update": (0, 1),
    "remove": (1, 1),
    "enable": (1, 1),
    "disable": (1, 1),
    "market": (0, 2),
}
"""How many words stand behind each action."""
SAME = {"install": "add", "i": "add", "uninstall": "remove", "marketplace": "market"}
"""Actions by the names that they have in Claude Code."""


def declare(parser: Parser) -> None:
    """The options of ``crow plugin``."""
    parser.add_argument("action", metavar="ACTION", nargs="?", default="list")
    parser.add_argument("words", metavar="SOURCE|NAME", nargs="*")
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask")
    parser.add_argument("-s", "--scope", choices=("user",), help="whose they are: yours alone")
    parser.add_argument("--json", action="store_true", help="of lists: one object a line")


def main(options: argparse.Namespace, out: Output) -> int:
    """Run ``crow plugin``."""
    given: str = options.action
    action = SAME.get(given, given)
    options.action = action
    words = options.words
    if action not in TAKES:
        from crow.cli.migration_hints import action as elsewhere

        unknown = f"{no_such('action', action, TAKES)} ({', '.join(TAKES)})"
        raise UsageError(elsewhere("plugin", action) or unknown)
    least, most = TAKES[action]
    if not least <= len(words) <= most:
        raise UsageError(f"crow plugin {action} takes {'no name' if not most else 'one name'}")
    return ACTIONS[action](options, out)


def listing(options: argparse.Namespace, out: Output) -> int:
    """The plugins in use."""
    from crow.app.plugins import plugins_of
    from crow.settings import load

    installed = Installed()
    known, settings = installed.known, load(Path.cwd())
    plugins, problems = plugins_of(settings)
    for plugin in plugins:
        about = known.get(plugin.id, {})
        origin = Origin(**about["origin"]) if about else Origin(folder=str(plugin.root))
        changed = bool(about) and installed.has_changed(plugin.id)
        if options.json:
            row = {"id": plugin.id, "root": str(plugin.root), "origin": origin.table}
            out.verbatim(json.dumps({**row, "changed": changed, **brought(plugin)}))
            continue
        pin = f" at {origin.commit[:12]}" if origin.commit else ""
        out.line(f"{plugin.id}  {one_line(str(origin))}{pin}{'  changed here' if changed else ''}")
        out.line(f"  {', '.join(counted(plugin)) or 'nothing'}", "dim")
    off = [id_ for id_, on in settings.enabled_plugins.items() if on is False and id_ in known]
    for id_ in off if not options.json else ():
        out.line(f"{id_}  disabled", "dim")
    lying = {plugin.id for plugin in plugins} | {*known}
    absent = [id_ for id_, on in settings.enabled_plugins.items() if on and id_ not in lying]
    for id_ in absent if not options.json else ():
        origin = settings.origins.get(f"enabledPlugins.{id_}")
        out.line(f"{id_}  not installed{f', though enabled by {origin}' if origin else ''}", "dim")
    for problem in problems:
        out.error(problem)
    if not (plugins or off or absent or options.json):
        out.line("no plugins; crow plugin add SOURCE has one")
    return 0


def brought(plugin: Plugin) -> dict[str, Any]:
    """What a plugin brings, as JSON."""
    return {"hooks": list(hooks_in(plugin)), "servers": list(plugin.servers), **parts_of(plugin)}


def parts_of(plugin: Plugin) -> dict[str, int]:
    """How many skills, commands, agents and output styles a plugin has."""
    return {part: sum(1 for _ in files_in(plugin, part)) for part in (*PARTS, STYLES)}


def files_in(plugin: Plugin, part: str) -> Iterator[Path]:
    """The files of skills, commands or agents."""
    for place in plugin.parts.get(part, ()):
        pattern = "**/SKILL.md" if part == "skills" else "**/*.md"
        yield from place.glob(pattern) if place.is_dir() else [place]


def counted(plugin: Plugin) -> Iterator[str]:
    """What a plugin brings, in a few words."""
    numbers = {"hooks": len(list(hooks_in(plugin))), "servers": len(plugin.servers)}
    for name, number in {**numbers, **parts_of(plugin)}.items():
        if number:
            yield f"{number} {name if number > 1 else name[:-1]}"


def hooks_in(plugin: Plugin) -> Iterator[str]:
    """The hooks of a plugin: when, and what runs."""
    for _, table in plugin.hooks:
        for event, groups in table.items():
            for group in listed(groups):
                for handler in listed(group.get("hooks")):
                    run = handler.get("command") or handler.get("url") or handler.get("prompt")
                    yield one_line(f"{event}: {run or handler.get('type')}")


def listed(value: object) -> list[dict[str, Any]]:
    """The tables in a list; nothing where that is none."""
    every = cast("list[object]", value) if isinstance(value, list) else []
    return [cast("dict[str, Any]", each) for each in every if isinstance(each, dict)]


def runs(plugin: Plugin) -> Iterator[str]:
    """What of a plugin would run, a line each, and what it brings beside."""
    for text in hooks_in(plugin):
        yield f"hook   {text}"
    for name, server in plugin.servers.items():
        told = server.get("url") or " ".join([server.get("command", ""), *server.get("args", ())])
        yield one_line(f"server {name}: {told.replace(str(plugin.root), '${CLAUDE_PLUGIN_ROOT}')}")
    for name in plugin.languages:
        yield one_line(f"language server {name}: Crow starts none")
    for part, number in parts_of(plugin).items():
        if number:
            yield f"{part}: {number}"


def check_use(plugin: Plugin) -> None:
    """Raise `PluginError` for a plugin that would change nothing."""
    if plugin.languages and not list(counted(plugin)):
        names = one_line(", ".join(plugin.languages))
        raise PluginError(f"it brings language servers alone ({names}), and Crow starts none")


def add(options: argparse.Namespace, out: Output) -> int:
    """Have a plugin."""
    (text,) = options.words
    name, _, market = text.rpartition("@")
    markets = Marketplaces()
    if name and (theirs := markets.claudes().get(market)):
        market, _ = markets.add(theirs)
    if name and market in markets.known:
        return take(markets.origin(name, market), name, market, options, out)
    return take(Origin.of(text), "", "", options, out)


def take(
    origin: Origin,
    name: str,
    market: str,
    options: argparse.Namespace,
    out: Output,
    before: Plugin | None = None,
) -> int:
    """Fetch a plugin, show what it would run, and use it where the person says so."""
    with TemporaryDirectory() as scratch:
        copy = Path(scratch, name or Path(origin.path or origin.folder or origin.url).stem)
        pinned = fetch(origin, copy)
        if market:
            complete(copy, Marketplaces().entry(name, market))
        check_plugin(copy)
        if before is not None and digest(copy) == Installed().known[before.id]["digest"]:
            out.line(f"{before.id} is as it is there")
            return 0
        plugin = read(copy, id_=f"{name}@{market}" if market else "", configured={}, data=copy)
        check_use(plugin)
        show(plugin, pinned, before, out)
        if not options.yes and not somebody_is_there():
            raise UsageError("there is nobody to ask (crow plugin add --yes does not ask)")
        if not options.yes and not confirmed(out, "Use it?"):
            out.line("not used")
            return 1
        id_ = Installed().put(copy, plugin.name, market, pinned)
    out.line(f"{id_} is in use")
    return 0


def show(plugin: Plugin, origin: Origin, before: Plugin | None, out: Output) -> None:
    """What a plugin would run; of one that is there already what is different."""
    pin = f" at {origin.commit[:12]}" if origin.commit else ""
    out.line(f"{plugin.name} from {one_line(str(origin))}{pin} would bring:")
    now, known = list(runs(plugin)), set(runs(before)) if before else set[str]()
    for line in now or ["nothing"]:
        out.line(f"{'+ ' if before and line not in known else '  '}{line}")
    for line in sorted(known - {*now}):
        out.line(f"- {line}")


def id_of(name: str) -> str:
    """The id of a plugin that was added. Raises `UsageError`."""
    known = Installed().known
    found = [id_ for id_ in known if name in (id_, id_.rpartition("@")[0])]
    if not found:
        raise UsageError(no_such("plugin", name, [id_.rpartition("@")[0] for id_ in known]))
    return found[0]


def update(options: argparse.Namespace, out: Output) -> int:
    """Have plugins as they are where they are from."""
    installed, markets = Installed(), Marketplaces()
    wanted = [id_of(options.words[0])] if options.words else list(installed.known)
    status = 0
    for id_ in wanted:
        about = installed.known[id_]
        name, _, market = id_.rpartition("@")
        if market in markets.known:
            market, _ = markets.add(unpinned(markets.known[market]))
            origin = markets.origin(name, market)
        else:
            market, origin = "", unpinned(Origin(**about["origin"]))
        root = installed.folder / str(about["folder"])
        before = read(root, id_=id_, configured={}, data=root)
        status = max(status, take(origin, name, market, options, out, before))
    return status


def unpinned(origin: Origin) -> Origin:
    """Where the newest is."""
    return Origin(origin.folder, origin.url, origin.path, origin.ref)


def remove(options: argparse.Namespace, out: Output) -> int:
    """Take a plugin away, and what the user's settings say of it."""
    id_ = id_of(options.words[0])
    Installed().remove(id_)
    note(id_, None)
    out.line(f"{id_} is removed")
    return 0


def switch(options: argparse.Namespace, out: Output) -> int:
    """Let a plugin count, or lie."""
    id_, on = id_of(options.words[0]), options.action == "enable"
    note(id_, on)
    out.line(f"{id_} is {'enabled' if on else 'disabled'}")
    return 0


def note(id_: str, on: bool | None) -> None:
    """Have the user's settings say of a plugin whether it is on; nothing of it for None."""
    path = Path.home() / SETTINGS
    table = read_table(path)
    if path.exists() and not table and on is not None:
        raise PluginError(f"{path} cannot be read: mend it first")
    said: object = table.get("enabledPlugins")
    before = cast("dict[str, Any]", said) if isinstance(said, dict) else {}
    others = {key: value for key, value in before.items() if key != id_}
    enabled = others if on is None else {**others, id_: on}
    if enabled == before:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps({**table, "enabledPlugins": enabled}, indent=2)
    write_atomically(path, f"{text}\n")


def list_markets(markets: Marketplaces, out: Output) -> None:
    """The marketplaces, and where they are from."""
    for name, origin in markets.known.items():
        pin = f" at {origin.commit[:12]}" if origin.commit else ""
        out.line(f"{name}  {one_line(str(origin))}{pin}")
    for name, origin in (theirs := markets.claudes()).items():
        out.line(f"{name}  {one_line(str(origin))}  of Claude Code's")
    if not (markets.known or theirs):
        out.line("no marketplaces; crow plugin market add SOURCE has one")


def market(options: argparse.Namespace, out: Output) -> int:
    """Marketplaces: list, add, remove, and what one of them has."""
    markets = Marketplaces()
    match options.words:
        case [] | ["list"]:
            list_markets(markets, out)
        case ["add", source]:
            name, number = markets.add(Origin.of(source))
            out.line(f"{name} has {number} plugins; crow plugin add NAME@{name} has one of them")
        case ["remove" | "rm", name]:
            if not markets.remove(name):
                raise UsageError(no_such("marketplace", name, markets.known))
            out.line(f"{name} is forgotten; its plugins stay")
        case [name]:
            if theirs := markets.claudes().get(name):
                name, _ = markets.add(theirs)
            for plugin, entry in markets.entries(name).items():
                about = one_line(str(entry.get("description") or ""))
                out.line(out.fit(f"{plugin}@{name}  {about}"))
        case _:
            raise UsageError("crow plugin market [NAME | add SOURCE | remove NAME]")
    return 0


ACTIONS = {
    "list": listing,
    "add": add,
    "update": update,
    "remove": remove,
    "enable": switch,
    "disable": switch,
    "market": market,
}
