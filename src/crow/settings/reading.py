"""Reading all settings files that hold in a directory, each laid over the weaker ones."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, cast

from crow.core.frozen import frozen
from crow.project.trust import is_trusted, project_of, state_file
from crow.settings.files import (
    DROP_INS,
    Memory,
    asked_for,
    machine,
    merge,
    parse,
    parse_file,
    places,
    shared_rules,
    stamp,
    why,
)
from crow.settings.settings import Settings
from crow.settings.values import (
    Entry,
    Permissions,
    SettingsError,
    Source,
    Table,
    Unused,
    Withheld,
)

STRICT = "strictPluginOnlyCustomization"
HTTP_LISTS = ("allowedHttpHookUrls", "httpHookAllowedEnvVars")
SERVER_LISTS = ("allowedMcpServers", "deniedMcpServers")
ONLY_THEIRS = "allowManagedMcpServersOnly"
THEIR_RULES = "allowManagedPermissionRulesOnly"
SHUT: Mapping[str, Any] = {SERVER_LISTS[0]: [], ONLY_THEIRS: True, THEIR_RULES: True}
"""What bounds others, and what it means where it makes no sense."""
PLUGINS = ("enabledPlugins", "pluginConfigs")
KEY_HELPER = "apiKeyHelper"
STATUS = "statusLine"
CLEANUP = "cleanupPeriodDays"
EFFORT, FALLBACK = "effortLevel", "fallbackModel"
CLAUDE_MODEL = "claudeModel"
"""What ``model`` of ``.claude`` is called here: it counts where nobody names another."""
OPTIONS: Mapping[str, tuple[str, str]] = {
    "agent": ("subagents", "main"),
    "attribution": ("system_prompt", "attribution"),
    "claudeMdExcludes": ("instructions", "exclude"),
    "disabledMcpjsonServers": ("mcp", "off"),
    "language": ("system_prompt", "language"),
    "outputStyle": ("output_styles", "style"),
}
"""Keys that are options of extensions: of which, and what they are called there."""
CLAUDES = frozenset(
    {
        *("permissions", "sandbox", "env", "hooks", STATUS, STRICT, KEY_HELPER, CLEANUP),
        *HTTP_LISTS,
        *SERVER_LISTS,
        ONLY_THEIRS,
        THEIR_RULES,
        *PLUGINS,
        *OPTIONS,
        *("model", EFFORT, FALLBACK),
    }
)
"""What is taken from ``.claude``: an endpoint named there is not meant for Crow."""
SWITCHES = ("disableAllHooks", "allowManagedHooksOnly")
"""True or false: no hooks of settings files but the administrator's; the second is only theirs."""
RULES = ("allow", "ask", "deny")
LISTS = (*RULES, "additionalDirectories", "workingDirectoriesExclude", "trusted")
BYPASS = "bypassPermissions"
NO_BYPASS = "disableBypassPermissionsMode"
LIMITS = (
    "denyInsteadOfPrompting",
    "blockReadsOutsideWorkingDirectories",
    "blockWritesOutsideWorkingDirectories",
    NO_BYPASS,
)
PLAIN = (
    "model",
    "purposes",
    "base_url",
    "wire",
    "api_key",
    "headers",
    "params",
    "timeouts",
    "context_window",
    "providers",
)
TABLES = ("extensions", "env", "terminal")


class Layer(NamedTuple):
    """The options that one file has for an extension; ``path`` is where they stand in it."""

    source: Source
    path: tuple[str, ...]
    table: Table


@dataclass
class MergedSettings:
    """What has been read so far, weakest first."""

    values: Table = field(default_factory=Table)
    origins: dict[str, Source] = field(default_factory=dict[str, Source])
    lists: dict[str, list[Entry]] = field(default_factory=dict[str, list[Entry]])
    hooks: list[tuple[Source, Table]] = field(default_factory=list[tuple[Source, Table]])
    servers: dict[str, list[tuple[Source, list[Table]]]] = field(
        default_factory=dict[str, "list[tuple[Source, list[Table]]]"]
    )
    switches: dict[str, tuple[bool, Source]] = field(default_factory=dict[str, tuple[bool, Source]])
    sources: list[Source] = field(default_factory=list[Source])
    problems: list[str] = field(default_factory=list[str])
    unread: list[str] = field(default_factory=list[str])
    withheld: list[Withheld] = field(default_factory=list[Withheld])
    rejected: list[Unused] = field(default_factory=list[Unused])
    passed_over: list[Unused] = field(default_factory=list[Unused])
    options: dict[str, list[Layer]] = field(default_factory=dict[str, "list[Layer]"])

    @cached_property
    def schema(self) -> Table:
        """What files must fit; read when there is a file."""
        from crow.settings.schema import schema

        return schema()

    def read(self, source: Source, memory: Memory) -> Table:
        """What a file says; what it said before, or nothing, where it cannot be read."""
        try:
            return memory.read(source.path)
        except (OSError, ValueError, SettingsError) as error:
            known = memory.good.get(source.path)
            after = "" if known is None else "; what it said before still holds"
            self.complain(source, f"{why(error)}{after}")
            if known is None:
                self.unread.append(self.problems[-1])
            return known or {}

    def take(self, source: Source, table: Mapping[str, Any], *, trusted: bool) -> None:
        """Put one file's settings over those of the weaker ones."""
        self.sources.append(source)
        checked = self._checked(source, table)
        if "env" in checked:
            checked["env"] = {name: in_shell(each) for name, each in checked["env"].items()}
        if not trusted:
            checked = self._harmless(source, checked)
        permissions = dict(checked.pop("permissions", {}))
        for name in LISTS:
            self._extend(f"permissions.{name}", permissions.pop(name, ()), source)
        self._take_options(source, checked)
        self._take_lists(source, checked)
        if "sandbox" in checked:
            checked["sandbox"] = self._sandbox(source, dict(checked["sandbox"]))
        for name in SWITCHES:
            if name in checked:
                self.switches[name] = checked.pop(name), source
        if "hooks" in checked:
            self.hooks.append((source, checked.pop("hooks")))
        checked.pop("$schema", None)
        self._merge(source, {**checked, "permissions": permissions, "extensions": {}})

    def _merge(self, source: Source, table: Table) -> None:
        def mark(path: str) -> None:
            self.origins[path] = source

        merge(self.values, table, mark)

    def _take_options(self, source: Source, table: Table) -> None:
        """Take out what is for extensions; `settle_options` puts it back."""
        extensions = dict(table.pop("extensions", {}))
        self._extend("extensions.disable", extensions.pop("disable", ()), source)
        layers = [Layer(source, ("extensions", name), each) for name, each in extensions.items()]
        if "limits" in table:
            layers.append(Layer(source, ("limits",), table.pop("limits")))
        for layer in layers:
            self.options.setdefault(layer.path[-1], []).append(layer)

    def settle_options(self) -> None:
        """Hold the options of extensions against their classes, when all files are read.

        So nothing is imported that some file disables.
        """
        if not self.options:
            return
        from crow.settings.schema import Sieve, options_node

        disabled = {entry.text for entry in self.listed("extensions.disable")}
        for name, layers in self.options.items():
            node = None if name in disabled else options_node(name)
            for source, path, options in layers:
                table = options
                if node is not None:
                    table = Sieve(self._drop(source), node).sift(options, ".".join(path))
                for part in reversed(path):
                    table = {part: table}
                self._merge(source, table)

    def _take_lists(self, source: Source, table: Table) -> None:
        """Take the lists out that all files add to."""
        for name in ("models", "pass_env"):
            self._extend(name, table.pop(name, ()), source)
        self._extend("plugins", self._plugins(source, table), source)
        for name in HTTP_LISTS:
            if name in table:  # an empty list says more than none
                self._extend(name, table.pop(name), source)
        for name in SERVER_LISTS:
            if name in table:
                self.servers.setdefault(name, []).append((source, table.pop(name)))

    def _sandbox(self, source: Source, table: Table) -> Table:
        """Take out what is said of the sandbox in lists, and what does not count."""
        from crow.settings.sandbox import left_out, lists_of

        for name, entries in lists_of(table):
            self._extend(f"sandbox.{name}", entries, source)
        for path, value, why_not in left_out(table, source):
            self.rejected.append(Unused(source, {path: value}, why_not))
        return table

    def hooks_by_force(self) -> tuple[list[tuple[Source, Table]], list[Unused]]:
        """The tables of hooks that no switch turns off, and the others."""
        on: list[tuple[Source, Table]] = []
        off: list[Unused] = []
        for source, table in self.hooks:
            switch = next(self._against(source), "")
            if switch:
                off.append(Unused(source, table, switch))
            else:
                on.append((source, table))
        return on, off

    def _against(self, source: Source) -> Iterator[str]:
        """The switches that turn a file's hooks off; the administrator's only their own does."""
        for name in SWITCHES:
            is_on, by = self.switches.get(name, (False, source))
            theirs, own = by.layer == "managed", source.layer == "managed"
            counts = not own and (theirs or name == SWITCHES[0])
            if is_on and (counts or (own and theirs and name == SWITCHES[0])):
                yield f"{name} in {by}"
        if self.only_plugins("hooks") and source.layer != "managed":
            yield f"{STRICT} in {self.origins[STRICT]}"

    @property
    def status_line(self) -> Table:
        """What runs for the last line of the terminal; nothing where a switch turns hooks off."""
        by = self.origins.get(f"{STATUS}.command")
        return {} if by is None or next(self._against(by), "") else self.values[STATUS]

    def only_plugins(self, what: str) -> bool:
        """True where the administrator wants hooks, or servers, from nobody but plugins."""
        value = self.values.get(STRICT)
        wanted = value is True or (isinstance(value, list) and what in value)
        return wanted and self._is_theirs(STRICT)

    def is_locked(self, name: str) -> bool:
        """True where the administrator wants nobody else to allow something."""
        return self.values.get(name) is True and self._is_theirs(name)

    def allow_rules(self) -> tuple[Entry, ...]:
        """The rules of all files that allow, or the administrator's alone."""
        entries = self.listed("permissions.allow")
        alone = self.is_locked(THEIR_RULES)
        return tuple(each for each in entries if not alone or each.source.layer == "managed")

    def _is_theirs(self, name: str) -> bool:
        by = self.origins.get(name)
        return by is not None and by.layer == "managed"

    @property
    def shown(self) -> dict[str, tuple[Entry, ...]]:
        """The lists of tables, as texts."""
        return {
            name: tuple(Entry(json.dumps(one), source) for source, each in lists for one in each)
            for name, lists in self.servers.items()
        }

    @property
    def allowed_servers(self) -> tuple[Table, ...] | None:
        """The entries for MCP servers of all files, or the administrator's; None for no bound."""
        alone = self.is_locked(ONLY_THEIRS)
        lists = [
            each
            for source, each in self.servers.get(SERVER_LISTS[0], ())
            if not alone or source.layer == "managed"
        ]
        return tuple(chain.from_iterable(lists)) if lists else None

    @property
    def denied_servers(self) -> tuple[Table, ...]:
        """The entries of all files for servers that are not used."""
        return tuple(chain.from_iterable(each for _, each in self.servers.get(SERVER_LISTS[1], ())))

    def _checked(self, source: Source, table: Mapping[str, Any]) -> Table:
        """What of a table fits the schema; other keys of Claude Code's are passed over."""
        foreign = source.dialect == "claude"
        if foreign:
            self._pass_over(source, table)
            table = {key: table[key] for key in table if key in CLAUDES or key in SWITCHES}
            if isinstance(table.get("permissions"), dict):
                permissions: Table = table["permissions"]
                known = self.schema["properties"]["permissions"]["properties"]
                own = {key: permissions[key] for key in permissions if key in known}
                table = {**table, "permissions": own}
        from crow.settings.schema import Sieve

        if not OPTIONS.keys().isdisjoint(table):
            from crow.settings.foreign import as_options

            table = as_options({**table}, OPTIONS)
        checked = Sieve(self._drop(source), self.schema).sift(table)
        checked |= {name: shut for name, shut in SHUT.items() if name in table.keys() - checked}
        if FALLBACK in checked:  # the extension is used where there is a table for it
            checked.setdefault("extensions", {}).setdefault("fallback", {})
        if foreign and "model" in checked:
            checked[CLAUDE_MODEL] = checked.pop("model")
        if CLEANUP in checked and source.layer in ("project", "local"):
            del checked[CLEANUP]
            self.complain(
                source, f"{CLEANUP!r} is not a project's to say: it is about all sessions"
            )
        if foreign and KEY_HELPER in checked:  # it is for Claude
            checked["providers"] = {"anthropic": {KEY_HELPER: checked.pop(KEY_HELPER)}}
        return checked

    def _drop(self, source: Source) -> Callable[[str, Any, str], None]:
        """Name what of a file does not fit, and keep it for whoever asks."""

        def drop(path: str, value: Any, text: str) -> None:
            self.complain(source, text)
            self.rejected.append(Unused(source, {path: value}, text))

        return drop

    def _pass_over(self, source: Source, table: Mapping[str, Any]) -> None:
        """Keep what of Claude Code's file is not for Crow, for whoever asks."""
        kept = {*CLAUDES, *SWITCHES, "$schema"}
        rest = {key: value for key, value in table.items() if key not in kept}
        if not rest:
            return
        from crow.settings.foreign import instead

        for why_not, keys in instead(rest):
            self.passed_over.append(Unused(source, {key: rest[key] for key in keys}, why_not))

    def _plugins(self, source: Source, table: Table) -> list[str]:
        """The folders of plugins that a file names; a project's are in places that are watched."""
        named: list[str] = table.pop("plugins", [])
        if named and source.layer in ("project", "local"):
            self.complain(source, "'plugins' are not a project's to name: they go to .crow/plugins")
            return []
        return named

    def _harmless(self, source: Source, table: Table) -> Table:
        """What may be taken from a project that nobody has trusted."""
        permissions: Table = table.get("permissions", {})
        kept = {key: value for key, value in permissions.items() if key in ("deny", "ask")}
        rest = {key: value for key, value in permissions.items() if key not in kept}
        told = ("permissions", "$schema", *SERVER_LISTS[1:])
        others = {key: table[key] for key in table if key not in told}
        if others or rest:
            self.withheld.append(Withheld(source, {**others, "permissions": rest}))
        denied = {key: table[key] for key in SERVER_LISTS[1:] if key in table}
        return {"permissions": kept, **denied}

    def _extend(self, name: str, entries: Any, source: Source) -> None:
        fresh = [Entry(text, source) for text in dict.fromkeys(entries)]
        self.lists.setdefault(name, [])[:0] = fresh

    def complain(self, source: Source, text: str) -> None:
        """Keep a line for a person."""
        self.problems.append(f"{source}: {text}")

    def listed(self, name: str) -> tuple[Entry, ...]:
        """A list that all files add to."""
        return tuple(self.lists.get(name, ()))

    def texts(self, name: str) -> tuple[str, ...] | None:
        """The texts of such a list; None where no file has it."""
        return None if name not in self.lists else tuple(entry.text for entry in self.lists[name])


def load(
    cwd: str | os.PathLike[str] = ".",
    *,
    file: str | None = None,
    flags: Mapping[str, Any] | None = None,
    home: Path | None = None,
    managed: tuple[Path, ...] | None = None,
    layers: frozenset[str] | None = None,
) -> Settings:
    """The settings that hold in a directory.

    ``file`` is one more settings file (or a JSON object), ``flags`` are the command line's options
    in the shape of a settings file. With ``layers`` only these of ``user``, ``project`` and
    ``local`` are read, and the managed ones. Raises `SettingsError` where ``file`` cannot be read;
    what is wrong in the others is said in ``problems``.
    """
    return Reader(file, flags or {}, home or Path.home(), managed, layers).load(cwd)


@frozen
class Reader:
    """Reads settings, once more when they have changed; the fields are `load`'s."""

    file: str | None
    flags: Mapping[str, Any]
    home: Path
    managed: tuple[Path, ...] | None
    layers: frozenset[str] | None = None

    def load(self, cwd: str | os.PathLike[str], memory: Memory | None = None) -> Settings:
        """The settings that hold in a directory.

        What ``memory`` knows of files that are broken now still holds. Raises `SettingsError`.
        """
        memory = memory or Memory()
        project = project_of(Path(cwd).absolute(), self.home)
        managed = machine() if self.managed is None else self.managed
        own = self._counting(list(places(project, self.home, managed)))
        memory.stamps.clear()
        for path in (state_file(), *(folder / DROP_INS for folder in managed)):
            memory.stamps[str(path)] = stamp(str(path))
        merged = MergedSettings()
        found = [(each, merged.read(each, memory)) for each in own if memory.look(each.path)]
        # Asked when all is read: what was read is what is trusted.
        trusted = project == self.home or is_trusted(project)
        shared = shared_rules(project, self.home)
        for source, table in found:
            if shared is not None and source.path == str(shared):
                is_safe = trusted and is_trusted(shared.parent.parent)
                merged.take(source, _rules_alone(table), trusted=is_safe)
            elif source.layer != "managed":
                safe = trusted or source.layer not in ("project", "local")
                merged.take(source, table, trusted=safe)
        own += self._take_command_line(merged, project, memory)
        for source, table in found:
            if source.layer == "managed":
                merged.take(source, table, trusted=True)
        merged.settle_options()
        settings = _settings(merged, project, own, trusted=trusted)
        return replace(settings, reader=self, memory=memory)

    def _counting(self, places: list[Source]) -> list[Source]:
        """Those of the layers that count."""
        if self.layers is None:
            return places
        layers = {*self.layers, "managed"}
        return [each for each in places if each.layer in layers]

    def _take_command_line(
        self, merged: MergedSettings, project: Path, memory: Memory
    ) -> Iterator[Source]:
        """What ``--settings`` and the options say; the file among them."""
        if self.file is not None:
            more = asked_for(self.file)
            yield more
            merged.take(more, _asked_for(more, self.file, merged, memory), trusted=True)
        if self.flags:
            merged.take(Source("command line", root=str(project)), self.flags, trusted=True)


def _rules_alone(table: Table) -> Table:
    """What worktrees of one repository share: what was allowed, and what is asked or refused."""
    permissions = table.get("permissions")
    if not isinstance(permissions, dict):
        return {}
    rules = cast(Table, permissions)
    return {"permissions": {name: rules[name] for name in RULES if name in rules}}


def _asked_for(source: Source, file: str, merged: MergedSettings, memory: Memory) -> Table:
    """What the file of ``--settings`` says. Raises `SettingsError` where it was never readable."""
    if not source.path:
        try:
            return parse(file)
        except (ValueError, SettingsError) as error:
            raise SettingsError(f"--settings: {why(error)}") from None
    known = memory.known(source.path)
    memory.stamps[source.path] = stamp(source.path)
    if known is not None:
        return merged.read(source, memory)
    try:
        memory.good[source.path] = table = parse_file(Path(source.path))
    except (OSError, ValueError, SettingsError) as error:
        raise SettingsError(f"{file}: {why(error)}") from None
    return table


def _settings(
    merged: MergedSettings, project: Path, files: list[Source], *, trusted: bool
) -> Settings:
    values = merged.values
    permissions = Permissions(
        merged.allow_rules(),
        merged.listed("permissions.ask"),
        merged.listed("permissions.deny"),
        merged.listed("permissions.additionalDirectories"),
        merged.listed("permissions.trusted"),
        _mode(merged),
        merged.listed("permissions.workingDirectoriesExclude"),
        frozenset(name for name in LIMITS if values.get("permissions", {}).get(name)),
    )
    given = {key: values[key] for key in (*PLAIN, *TABLES) if key in values}
    if "limits" in values:  # another way to write extensions.limits, which says more
        own = given.get("extensions", {})
        both = {**values["limits"], **own.get("limits", {})}
        given["extensions"] = {**own, "limits": both}
    hooks, unused = merged.hooks_by_force()
    if "sandbox" in values:
        from crow.settings.sandbox import flat

        given["sandbox"] = flat(values["sandbox"], merged.lists)
    return Settings(
        **given,
        permissions=permissions,
        models=merged.listed("models"),
        api_key_helper=values.get(KEY_HELPER),
        cleanup_period_days=values.get(CLEANUP),
        claude_model=values.get(CLAUDE_MODEL),
        effort_level=values.get(EFFORT),
        fallback_model=tuple(values.get(FALLBACK, ())),
        pass_env=merged.listed("pass_env"),
        disabled=merged.listed("extensions.disable"),
        mcp_servers=values.get("mcpServers", {}),
        status_line=merged.status_line,
        hooks=tuple(hooks),
        unused_hooks=tuple(unused),
        switches={name: value for name, (value, _) in merged.switches.items()},
        only_plugins=merged.only_plugins("hooks"),
        allowed_servers=merged.allowed_servers,
        denied_servers=merged.denied_servers,
        only_plugin_servers=merged.only_plugins("mcp"),
        has_their_rules=merged.is_locked(THEIR_RULES),
        http_urls=merged.texts(HTTP_LISTS[0]),
        http_variables=merged.texts(HTTP_LISTS[1]),
        plugins=merged.listed("plugins"),
        enabled_plugins=values.get("enabledPlugins", {}),
        plugin_configs=values.get("pluginConfigs", {}),
        other_agents=values.get("other_agents", {}),
        project=str(project),
        trusted=trusted,
        origins=merged.origins | {name: by for name, (_, by) in merged.switches.items()},
        sources=tuple(merged.sources),
        values=values,
        lists={name: tuple(entries) for name, entries in merged.lists.items()} | merged.shown,
        files=tuple(files),
        problems=tuple(merged.problems),
        unread=tuple(merged.unread),
        withheld=tuple(merged.withheld),
        rejected=tuple(merged.rejected),
        passed_over=tuple(merged.passed_over),
    )


def in_shell(value: str | float) -> str:
    """A variable's value as text; JSON's numbers and truths as a shell has them."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _mode(merged: MergedSettings) -> str | None:
    """The mode to begin with; the one without questions only from those who may choose it."""
    table = merged.values.get("permissions", {})
    mode: str | None = table.get("defaultMode")
    by = merged.origins.get("permissions.defaultMode")
    if mode != BYPASS or by is None:
        return mode
    if table.get(NO_BYPASS) is not None:
        off = merged.origins[f"permissions.{NO_BYPASS}"]
        merged.complain(by, f"the mode {BYPASS} is switched off by {off}; it is left out")
        return None
    if by.layer in ("project", "local"):
        merged.complain(by, f"a project cannot choose the mode {BYPASS}; it is left out")
        return None
    return mode
