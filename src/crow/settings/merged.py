"""All settings files that were read, each laid over the weaker ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from functools import cached_property
from typing import Any, NamedTuple

from crow.core.support.frozen import entity
from crow.settings.files import Memory, merge, why
from crow.settings.values import Entry, SettingsError, Source, Table, Unused, Withheld

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


class Layer(NamedTuple):
    """The options that one file has for an extension; ``path`` is where they stand in it."""

    source: Source
    path: tuple[str, ...]
    table: Table


@entity
class MergedSettings:
    """The settings that have been read so far, weakest first."""

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


def in_shell(value: str | float) -> str:
    """A variable's value as text; JSON's numbers and truths as a shell has them."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
