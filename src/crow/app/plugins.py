"""The plugins in use, and what else people bring along that they have for other agents."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from crow.app.extension_loader import in_a_line
from crow.app.rules import place_of
from crow.project.home import state_directory
from crow.project.settings import HookFile, HookSettings, ServerPolicy
from crow.settings import Settings, Source

if TYPE_CHECKING:
    from crow.project.other_agents import Brought
    from crow.project.plugins import Plugin

FOLDER = Path(".crow", "plugins")
KEPT = Path(".claude", "plugins", "data")
"""Where what Claude Code has installed keeps its data."""
OTHERS = ("codex", "opencode", "pi", "cursor")
THEIRS = (".codex", ".config/opencode", ".opencode", ".pi", ".cursor")
"""Where other agents keep things in a home."""
NAMED = (("CODEX_HOME", "."), ("XDG_CONFIG_HOME", "opencode"), ("PI_CODING_AGENT_DIR", "."))
"""The variables that name other places for them, and the folder there."""
OFF, ONLY = "disableAllHooks", "allowManagedHooksOnly"


def plugins_of(settings: Settings) -> tuple[list[Plugin], list[str]]:
    """The plugins that are used, and what is wrong with others, a line each.

    Those of a project that is not trusted are none of them.
    """
    places = [*_places(settings)]
    if not places:
        return [], [*_gone(settings)]
    from crow.project.plugins import MANIFEST, PluginError, listed, read

    plugins: dict[Path, Plugin] = {}
    problems: list[str] = []
    for id_, root, data in places:
        try:
            bare = data == Path.home() / KEPT and not (root / MANIFEST).exists()
            said = listed(Path.home(), id_) if bare else {}
            plugin = read(root, id_=id_, configured=settings.plugin_configs, data=data, said=said)
        except (PluginError, OSError) as error:
            problems.append(f"the plugin {id_ or root} is left out: {in_a_line(error)}")
            continue
        if settings.enabled_plugins.get(plugin.id) is not False:
            plugins.setdefault(root.resolve(), plugin)
    return list(plugins.values()), [*problems, *_gone(settings)]


def _gone(settings: Settings) -> Iterator[str]:
    """A line for each plugin that was added and does not lie there: what it guards is unguarded."""
    home = Path.home()
    for folder, id_ in added(home).items():
        from crow.project.plugins import is_plugin

        root = home / FOLDER / folder
        if settings.enabled_plugins.get(id_) is not False and not is_plugin(root):
            name = id_.rpartition("@")[0]
            yield f"the plugin {id_} is gone from {root}: crow plugin remove {name} forgets it"


def _places(settings: Settings) -> Iterator[tuple[str, Path, Path]]:
    """Ids, where they are known, with the folders and where data is kept."""
    home, data = Path.home(), state_directory() / "plugins"
    if any(settings.enabled_plugins.values()):
        from crow.project.plugins import installed

        for id_, root in installed(home, settings.enabled_plugins, settings.project):
            yield id_, root, home / KEPT
    for entry in settings.plugins:
        yield "", Path(place_of(entry)), data
    ids = added(home)
    projects = [Path(settings.project)] if settings.project and settings.trusted else []
    for base in dict.fromkeys([home, *projects]):
        folder = base / FOLDER
        for root in sorted(folder.glob("*")) if folder.is_dir() else ():
            from crow.project.plugins import is_plugin

            # a link of a project's leads to what nobody looks at when it is trusted
            if is_plugin(root) and (base == home or not root.is_symlink()):
                yield ids.get(root.name, "") if base == home else "", root, data


def added(home: Path) -> Mapping[str, str]:
    """The ids of the plugins that ``crow plugin add`` has put into the user's folder, by theirs."""
    if not home.joinpath(FOLDER, "installed.json").is_file():
        return {}
    from crow.project.marketplaces import Installed

    return Installed(home).ids()


def may_hook(settings: Settings, plugin: Plugin) -> bool:
    """True where no switch turns a plugin's hooks off; the administrator's plugins are theirs."""
    enabled = settings.origins.get(f"enabledPlugins.{plugin.id}")
    theirs = enabled is not None and enabled.layer == "managed"
    if settings.switches.get(OFF):
        return theirs and settings.origins[OFF].layer != "managed"
    only = settings.switches.get(ONLY, False) and settings.origins[ONLY].layer == "managed"
    return theirs or not only


def hooks_of(settings: Settings, plugins: list[Plugin]) -> HookSettings:
    """The tables of hooks, those of settings files before those of plugins, and their bounds."""
    written = settings.hooks
    files = [HookFile(str(source), table, own=is_crows(source)) for source, table in written]
    for plugin in plugins:
        if may_hook(settings, plugin):
            files += [HookFile(str(path), table, plugin=plugin) for path, table in plugin.hooks]
    return HookSettings(
        tuple(files), may_bring(settings), settings.http_urls, settings.http_variables
    )


def is_crows(source: Source) -> bool:
    """True for a settings file of Crow's own; what is in ``.claude`` is written for Claude Code."""
    return source.dialect == "crow" and source.layer != "command line"


def may_bring(settings: Settings) -> bool:
    """True where skills and sub-agents may bring hooks: no switch is against it."""
    switches = settings.switches
    only = switches.get(ONLY, False) and settings.origins[ONLY].layer == "managed"
    return not (switches.get(OFF, False) or only or settings.only_plugins)


def servers_of(plugins: list[Plugin]) -> dict[str, object]:
    """The MCP servers of plugins, each named with its plugin."""
    return {
        f"plugin:{plugin.name}:{name}": server
        for plugin in plugins
        for name, server in plugin.servers.items()
    }


def server_policy_of(settings: Settings) -> ServerPolicy:
    """Which MCP servers the settings let be used."""
    only = settings.only_plugin_servers
    return ServerPolicy(settings.allowed_servers, settings.denied_servers, only)


def described_servers(settings: Settings, plugins: list[Plugin]) -> dict[str, object]:
    """The MCP servers of plugins and settings: only the administrator's where nobody else may."""
    own = settings.mcp_servers
    if settings.only_plugin_servers:
        by = {name: settings.origins.get(f"mcpServers.{name}") for name in own}
        own = {name: own[name] for name, each in by.items() if each and each.layer == "managed"}
    return {**servers_of(plugins), **own}


def brought_of(
    settings: Settings, *, trusted: bool | None = None, project: Path | None = None
) -> Sequence[Brought]:
    """What people have for other agents, as far as a project is ``trusted``: as the settings say.

    Most have nothing: that costs a look for each folder, and nothing more is imported.
    """
    home, project = Path.home(), project or Path(settings.project or os.devnull)
    if not any(map(os.path.exists, _places_of_others(home, project))):
        return ()
    from crow.project.other_agents import AgentFolders, brought_along

    wanted = [name for name in OTHERS if name in others_of(settings)]
    is_one = str(project) != os.devnull and project != home
    place = AgentFolders(home, project if is_one else None)
    is_trusted = settings.trusted if trusted is None else trusted
    return brought_along(place, wanted, trusted=is_trusted)


def instructions_of(settings: Settings, project: Path) -> list[Path]:
    """The files of instructions that a user and a project have for other agents."""
    found = brought_of(settings, trusted=False, project=project)
    return [each.path for each in found if each.kind == "instructions"]


def others_of(settings: Settings) -> frozenset[str]:
    """The agents whose things are read where they are."""
    return frozenset(OTHERS) - {name for name, on in settings.other_agents.items() if not on}


def _places_of_others(home: Path, project: Path) -> Iterable[str]:
    """Where something could be; a list, for every start looks."""
    from crow.project.trust import FOREIGN, FOREIGN_FILES

    return [
        *[f"{home}/{name}" for name in THEIRS],
        *[f"{project}/{name}" for name in (*FOREIGN, *FOREIGN_FILES)],
        *[f"{os.environ[name]}/{folder}" for name, folder in NAMED if name in os.environ],
    ]
