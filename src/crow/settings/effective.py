"""The settings of all files together, as one typed object: who may switch what off."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from crow.settings.files import Memory
from crow.settings.merged import (
    CLAUDE_MODEL,
    CLEANUP,
    EFFORT,
    FALLBACK,
    HTTP_LISTS,
    KEY_HELPER,
    ONLY_THEIRS,
    SERVER_LISTS,
    STATUS,
    STRICT,
    SWITCHES,
    THEIR_RULES,
    MergedSettings,
)
from crow.settings.settings import Settings, SettingsReader
from crow.settings.values import Entry, Permissions, Source, Table, Unused

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


def settings_of(
    merged: MergedSettings,
    project: Path,
    files: list[Source],
    *,
    trusted: bool,
    reader: SettingsReader,
    memory: Memory,
) -> Settings:
    """All settings of files that hold in a project."""
    values = merged.values
    hooks, unused = _hooks_by_force(merged)
    return Settings(
        **_given(merged),
        models=merged.listed("models"),
        api_key_helper=values.get(KEY_HELPER),
        cleanup_period_days=values.get(CLEANUP),
        claude_model=values.get(CLAUDE_MODEL),
        effort_level=values.get(EFFORT),
        fallback_model=tuple(values.get(FALLBACK, ())),
        pass_env=merged.listed("pass_env"),
        disabled=merged.listed("extensions.disable"),
        mcp_servers=values.get("mcpServers", {}),
        status_line=_status_line(merged),
        hooks=tuple(hooks),
        unused_hooks=tuple(unused),
        switches={name: value for name, (value, _) in merged.switches.items()},
        only_plugins=_only_plugins(merged, "hooks"),
        allowed_servers=_allowed_servers(merged),
        denied_servers=_denied_servers(merged),
        only_plugin_servers=_only_plugins(merged, "mcp"),
        has_their_rules=_is_locked(merged, THEIR_RULES),
        reader=reader,
        memory=memory,
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
        lists={name: tuple(entries) for name, entries in merged.lists.items()} | _shown(merged),
        files=tuple(files),
        problems=tuple(merged.problems),
        unread=tuple(merged.unread),
        withheld=tuple(merged.withheld),
        rejected=tuple(merged.rejected),
        passed_over=tuple(merged.passed_over),
    )


def _given(merged: MergedSettings) -> dict[str, Any]:
    """What is a field of the same name; rules and mode among that, and what limits them."""
    values = merged.values
    limits = values.get("permissions", {})
    permissions = Permissions(
        _allow_rules(merged),
        merged.listed("permissions.ask"),
        merged.listed("permissions.deny"),
        merged.listed("permissions.additionalDirectories"),
        merged.listed("permissions.trusted"),
        _mode(merged),
        merged.listed("permissions.workingDirectoriesExclude"),
        frozenset(name for name in LIMITS if limits.get(name)),
    )
    given: dict[str, Any] = {"permissions": permissions}
    for key in (*PLAIN, *TABLES):
        if key in values:
            given[key] = values[key]
    if "limits" in values:  # another way to write extensions.limits, which says more
        own = given.get("extensions", {})
        both = {**values["limits"], **own.get("limits", {})}
        given["extensions"] = {**own, "limits": both}
    if "sandbox" in values:
        from crow.settings.sandbox import flat

        given["sandbox"] = flat(values["sandbox"], merged.lists)
    return given


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


def _hooks_by_force(merged: MergedSettings) -> tuple[list[tuple[Source, Table]], list[Unused]]:
    """The tables of hooks that no switch turns off, and the others."""
    on: list[tuple[Source, Table]] = []
    off: list[Unused] = []
    for source, table in merged.hooks:
        switch = next(_against(merged, source), "")
        if switch:
            off.append(Unused(source, table, switch))
        else:
            on.append((source, table))
    return on, off


def _against(merged: MergedSettings, source: Source) -> Iterator[str]:
    """The switches that turn a file's hooks off; the administrator's only their own does."""
    for name in SWITCHES:
        is_on, by = merged.switches.get(name, (False, source))
        theirs, own = by.layer == "managed", source.layer == "managed"
        counts = not own and (theirs or name == SWITCHES[0])
        if is_on and (counts or (own and theirs and name == SWITCHES[0])):
            yield f"{name} in {by}"
    if _only_plugins(merged, "hooks") and source.layer != "managed":
        yield f"{STRICT} in {merged.origins[STRICT]}"


def _status_line(merged: MergedSettings) -> Table:
    """What runs for the last line of the terminal; nothing where a switch turns hooks off."""
    by = merged.origins.get(f"{STATUS}.command")
    return {} if by is None or next(_against(merged, by), "") else merged.values[STATUS]


def _only_plugins(merged: MergedSettings, what: str) -> bool:
    """True where the administrator wants hooks, or servers, from nobody but plugins."""
    value = merged.values.get(STRICT)
    wanted = value is True or (isinstance(value, list) and what in value)
    return wanted and _is_theirs(merged, STRICT)


def _is_locked(merged: MergedSettings, name: str) -> bool:
    """True where the administrator wants nobody else to allow something."""
    return merged.values.get(name) is True and _is_theirs(merged, name)


def _allow_rules(merged: MergedSettings) -> tuple[Entry, ...]:
    """The rules of all files that allow, or the administrator's alone."""
    entries = merged.listed("permissions.allow")
    alone = _is_locked(merged, THEIR_RULES)
    return tuple(each for each in entries if not alone or each.source.layer == "managed")


def _is_theirs(merged: MergedSettings, name: str) -> bool:
    by = merged.origins.get(name)
    return by is not None and by.layer == "managed"


def _shown(merged: MergedSettings) -> dict[str, tuple[Entry, ...]]:
    """The lists of tables, as texts."""
    return {
        name: tuple(Entry(json.dumps(one), source) for source, each in lists for one in each)
        for name, lists in merged.servers.items()
    }


def _allowed_servers(merged: MergedSettings) -> tuple[Table, ...] | None:
    """The entries for MCP servers of all files, or the administrator's; None for no bound."""
    alone = _is_locked(merged, ONLY_THEIRS)
    lists = [
        each
        for source, each in merged.servers.get(SERVER_LISTS[0], ())
        if not alone or source.layer == "managed"
    ]
    return tuple(chain.from_iterable(lists)) if lists else None


def _denied_servers(merged: MergedSettings) -> tuple[Table, ...]:
    """The entries of all files for servers that are not used."""
    return tuple(chain.from_iterable(each for _, each in merged.servers.get(SERVER_LISTS[1], ())))
