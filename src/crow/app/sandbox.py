"""The sandbox as the settings of all files want it, and the person who starts Crow."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from crow.app.rules import place_of
from crow.core.support.frozen import frozen
from crow.project.settings import SandboxSettings
from crow.settings import Entry, Settings

VARIABLE = "CROW_SANDBOX"
OFF = frozenset({"0", "off", "no", "false"})
ON = frozenset({"", "1", "on", "yes", "true"})
WIDENING = frozenset(
    {
        "enabled",
        "excludedCommands",
        "filesystem.allowWrite",
        "filesystem.allowRead",
        "network.allowedDomains",
    }
)
"""What a project's files cannot say where somebody stronger lets no command run outside."""
ONLY_MANAGED = {
    "filesystem.allowRead": "allowManagedReadPathsOnly",
    "network.allowedDomains": "allowManagedDomainsOnly",
}


def sandbox_of(settings: Settings, env: Mapping[str, str] = os.environ) -> SandboxSettings:
    """What the settings say of the sandbox; ``CROW_SANDBOX=off`` beats all but the administrator.

    Any other word in that variable names the back end that is wanted, such as ``landlock``.
    Where ``allowUnsandboxedCommands`` is false on the command line or in managed settings, the
    files of a project cannot widen anything.
    """
    asked = env.get(VARIABLE, "").lower()
    wanted = SandboxSettings(
        backend=None if asked in OFF | ON else asked,
        passed=tuple(entry.text for entry in settings.pass_env),
    )
    said = _Said(settings)
    if off := said.off(env):
        wanted = replace(wanted, enabled=False, off=off)
    return replace(wanted, **said.fields) if settings.sandbox else wanted


@frozen
class _Said:
    """The entries of the files, one by one."""

    settings: Settings

    def value(self, name: str) -> Any:
        """What the strongest file says; None where none does, or none that may."""
        return None if self._is_void(name, self._layer(name)) else self.settings.sandbox.get(name)

    def entries(self, name: str) -> Iterator[Entry]:
        """The entries of a list that count."""
        folder = name.partition(".")[0]
        only = name in ONLY_MANAGED and self.value(f"{folder}.{ONLY_MANAGED[name]}") is True
        for entry in self.settings.sandbox.get(name, ()):
            layer = entry.source.layer
            if not self._is_void(name, layer) and (layer == "managed" or not only):
                yield entry

    def words(self, name: str) -> tuple[str, ...]:
        """The entries of a list, as they are written."""
        return tuple(entry.text for entry in self.entries(name))

    def paths(self, name: str) -> tuple[str, ...]:
        """The entries of a list, absolute, without what says that all in a folder is meant."""
        return tuple(
            place_of(Entry(entry.text.removesuffix("/**").rstrip("/") or "/", entry.source))
            for entry in self.entries(name)
        )

    @property
    def fields(self) -> dict[str, Any]:
        """The fields of the `SandboxSettings` that files have a say in."""
        return {
            "required": bool(self.value("required") or self.value("failIfUnavailable")),
            "unasked": self.value("autoAllowBashIfSandboxed"),
            "escapes": self.value("allowUnsandboxedCommands") is not False,
            "excluded": self.words("excludedCommands"),
            "allow_write": self.paths("filesystem.allowWrite"),
            "deny_write": self.paths("filesystem.denyWrite"),
            "deny_read": self.paths("filesystem.denyRead") + self.paths("credentials.files"),
            "allow_read": self.paths("filesystem.allowRead"),
            "allowed_domains": self.words("network.allowedDomains"),
            "denied_domains": self.words("network.deniedDomains"),
            "hidden": self.words("credentials.envVars"),
            "hooks": self.value("hooks") is True,
            "servers": self.value("mcpServers") is True,
        }

    def off(self, env: Mapping[str, str]) -> str:
        """Who has switched the sandbox off; empty where nobody has who may."""
        asked = env.get(VARIABLE, "")
        wanted = self.value("enabled")
        if wanted is False:
            return str(self.settings.origins["sandbox.enabled"])
        if asked.lower() not in OFF:
            return ""
        theirs = "managed" in (
            self._layer("enabled") if wanted else "",
            self._layer("required") if self.value("required") else "",
            self._layer("failIfUnavailable") if self.value("failIfUnavailable") else "",
        )
        return "" if theirs else f"{VARIABLE}={asked}"

    def _is_void(self, name: str, layer: str) -> bool:
        """True for what a project says although somebody has locked the sandbox."""
        if name not in WIDENING or layer not in ("project", "local"):
            return False
        locked = self.value("allowUnsandboxedCommands") is False
        return locked and self._layer("allowUnsandboxedCommands") in ("command line", "managed")

    def _layer(self, name: str) -> str:
        source = self.settings.origins.get(f"sandbox.{name}")
        return source.layer if source else ""
