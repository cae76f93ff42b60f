"""The sandbox's part of a settings file: lists are joined, the rest is overlaid."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

from crow.settings.values import Source, Table

LISTS = (
    "excludedCommands",
    "filesystem.allowWrite",
    "filesystem.denyWrite",
    "filesystem.denyRead",
    "filesystem.allowRead",
    "network.allowedDomains",
    "network.deniedDomains",
    "credentials.files",
    "credentials.envVars",
)
"""What all files add to."""
UNUSED = (
    "filesystem.disabled",
    "network.strictAllowlist",
    "network.allowUnixSockets",
    "network.allowAllUnixSockets",
    "network.allowLocalBinding",
    "network.allowMachLookup",
    "network.httpProxyPort",
    "network.socksProxyPort",
    "network.tlsTerminate",
    "ignoreViolations",
    "enableWeakerNestedSandbox",
    "enableWeakerNetworkIsolation",
    "allowNestedUserNamespaces",
    "allowAppleEvents",
    "bwrapPath",
    "socatPath",
    "ripgrep",
)
"""What Claude Code has and Crow does not; none of it makes a sandbox stricter than Crow's."""
MANAGED = ("filesystem.allowManagedReadPathsOnly", "network.allowManagedDomainsOnly")
NO_USE = "Crow has no use for it, and stays stricter"
NOT_MANAGED = "only the administrator's managed settings can say so"


def lists_of(table: Table) -> Iterator[tuple[str, list[str]]]:
    """The lists, by their dotted names, as texts; they are taken out of the table."""
    for name in LISTS:
        value = taken(table, name)
        if isinstance(value, list):
            yield name, [_text(each) for each in cast("list[Any]", value)]


def left_out(table: Table, source: Source) -> Iterator[tuple[str, Any, str]]:
    """What does not count: name, value and why; it is taken out of the table."""
    for name in UNUSED:
        if (value := taken(table, name)) is not None:
            yield f"sandbox.{name}", value, NO_USE
    for name in MANAGED:
        if source.layer != "managed" and (value := taken(table, name)) is not None:
            yield f"sandbox.{name}", value, NOT_MANAGED


def flat(table: Mapping[str, Any], lists: Mapping[str, Any]) -> Table:
    """All that is said, by dotted names: values as they are, lists as their entries."""
    found: Table = {}
    for name, value in table.items():
        if isinstance(value, dict):
            inner = flat(cast(Table, value), {})
            found |= {f"{name}.{each}": one for each, one in inner.items()}
        else:
            found[name] = value
    listed = {f"sandbox.{name}": name for name in LISTS}
    return {**found, **{listed[key]: tuple(lists[key]) for key in listed if key in lists}}


def taken(table: Table, name: str) -> Any:
    """What stands in a table under a dotted name, and does no longer; None where nothing did."""
    *folders, last = name.split(".")
    for folder in folders:
        inner = table.get(folder)
        if not isinstance(inner, dict):
            return None
        table[folder] = table = dict(cast(Table, inner))
    return table.pop(last, None)


def _text(entry: str | Mapping[str, str]) -> str:
    """A path, or the name of a variable, whether it stands by itself or in a table."""
    return entry if isinstance(entry, str) else entry.get("path") or entry["name"]
