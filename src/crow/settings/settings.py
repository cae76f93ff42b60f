"""All settings as one object, which knows how to be read again."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any, Protocol

from crow.core.support.frozen import frozen
from crow.settings.files import Memory
from crow.settings.values import Entry, Permissions, Source, Table, Unused, Withheld


class SettingsReader(Protocol):
    """Reads settings, once more when they have changed; ``home`` is the user's folder."""

    @property
    def home(self) -> Path: ...

    def load(self, cwd: str | os.PathLike[str], memory: Memory | None = None) -> Settings: ...


@frozen
class Settings:
    """The settings of all files and of the command line's options together.

    ``claude_model`` is the one of ``.claude``, for where nobody names another. ``effort_level`` is
    for models that are known to think, ``fallback_model`` are those to ask where the first one
    cannot be had, by Claude Code's names or Crow's. ``models`` are names to choose from,
    ``purposes`` models for what is asked beside conversations,
    ``pass_env`` names of variables with keys that programs get all the same. ``extensions`` maps
    names to options; ``hooks`` are the tables of every file as they stand there, ``unused_hooks``
    those that a switch turns off; ``status_line`` is what a terminal's last line is made by.
    ``cleanup_period_days`` is after how many days without use sessions are deleted, None for never.
    ``http_urls`` and ``http_variables`` bound what HTTP hooks may ask, None where nothing does,
    ``has_their_rules`` says that nobody but the administrator allows anything by rules,
    ``allowed_servers``, ``denied_servers`` and ``only_plugin_servers`` which MCP servers are used;
    ``only_plugins`` lets no hooks run but those of plugins and the administrator. ``plugins`` are
    folders, ``enabled_plugins`` and ``plugin_configs`` say which of those that Claude Code has
    installed are used, and with what options.
    ``other_agents`` says whose things are read where they are, which all are unless it is false.
    ``origins`` maps a dotted path such as ``extensions.limits.max_turns`` to the file that it came
    from. ``problems`` are lines for a person, ``unread`` those of them about files that could not
    be read at all, whose rules are not known; ``withheld`` is what an untrusted project wanted,
    ``rejected`` what does not fit, ``passed_over`` what is in ``.claude`` and not for Crow.
    ``values`` and ``lists`` are all of this as it stands in the files, one laid over the other.
    ``files`` are all that were looked for, whether they are there or not; ``reader`` reads them
    again.
    """

    model: str | None = None
    claude_model: str | None = None
    effort_level: str | None = None
    fallback_model: tuple[str, ...] = ()
    models: tuple[Entry, ...] = ()
    pass_env: tuple[Entry, ...] = ()
    purposes: Mapping[str, str] = field(default_factory=dict[str, str])
    base_url: str | None = None
    wire: str | None = None
    api_key: str | None = field(default=None, repr=False)
    api_key_helper: str | None = None
    cleanup_period_days: int | None = None
    headers: Mapping[str, str] = field(default_factory=Table, repr=False)
    params: Mapping[str, Any] = field(default_factory=Table)
    timeouts: Mapping[str, float] = field(default_factory=dict[str, float])
    context_window: int | None = None
    providers: Mapping[str, Table] = field(default_factory=Table, repr=False)
    permissions: Permissions = field(default_factory=Permissions)
    sandbox: Mapping[str, Any] = field(default_factory=Table)
    extensions: Mapping[str, Table] = field(default_factory=Table)
    disabled: tuple[Entry, ...] = ()
    mcp_servers: Mapping[str, Any] = field(default_factory=Table, repr=False)
    env: Mapping[str, str] = field(default_factory=Table, repr=False)
    terminal: Mapping[str, Any] = field(default_factory=Table)
    status_line: Mapping[str, Any] = field(default_factory=Table)
    hooks: tuple[tuple[Source, Table], ...] = ()
    unused_hooks: tuple[Unused, ...] = ()
    switches: Mapping[str, bool] = field(default_factory=dict[str, bool])
    only_plugins: bool = False
    http_urls: tuple[str, ...] | None = None
    http_variables: tuple[str, ...] | None = None
    allowed_servers: tuple[Table, ...] | None = None
    denied_servers: tuple[Table, ...] = ()
    only_plugin_servers: bool = False
    has_their_rules: bool = False
    plugins: tuple[Entry, ...] = ()
    enabled_plugins: Mapping[str, bool] = field(default_factory=dict[str, bool])
    plugin_configs: Mapping[str, Table] = field(default_factory=Table, repr=False)
    other_agents: Mapping[str, bool] = field(default_factory=dict[str, bool])
    project: str = ""
    trusted: bool = True
    origins: Mapping[str, Source] = field(default_factory=dict[str, Source])
    sources: tuple[Source, ...] = ()
    values: Mapping[str, Any] = field(default_factory=Table, repr=False, compare=False)
    lists: Mapping[str, tuple[Entry, ...]] = field(
        default_factory=dict[str, tuple[Entry, ...]], repr=False, compare=False
    )
    files: tuple[Source, ...] = field(default=(), repr=False, compare=False)
    reader: SettingsReader | None = field(default=None, repr=False, compare=False)
    memory: Memory | None = field(default=None, repr=False, compare=False)
    problems: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()
    withheld: tuple[Withheld, ...] = ()
    rejected: tuple[Unused, ...] = field(default=(), repr=False, compare=False)
    passed_over: tuple[Unused, ...] = field(default=(), repr=False, compare=False)

    @property
    def lost_rules(self) -> Iterator[str]:
        """Lines about files whose rules that refuse or ask are not known: they are no lists."""
        for each in self.rejected:
            if not {"permissions", "permissions.deny", "permissions.ask"}.isdisjoint(each.table):
                yield f"{each.source}: {each.why}"

    @property
    def unjudged(self) -> bool:
        """True where the user has switched the permissions off: nobody need judge calls."""
        return any(entry.text == "permissions" for entry in self.disabled)
