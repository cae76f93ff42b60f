"""What settings files say, typed: every value with the file that it came from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any, Literal

from crow.core.errors import CrowError
from crow.core.frozen import frozen

if TYPE_CHECKING:
    from crow.settings.files import Memory
    from crow.settings.reading import Reader

Layer = Literal["user", "project", "local", "command line", "managed"]
Dialect = Literal["crow", "claude"]
Table = dict[str, Any]


class SettingsError(CrowError):
    """A settings file that was asked for by name cannot be used."""


@frozen
class Source:
    """Where a setting came from. ``root`` is what its rules' paths that begin with ``/`` mean.

    ``dialect`` says whom the file is written for: of Claude Code's only some keys are taken.
    """

    layer: Layer
    path: str = ""
    root: str = ""
    dialect: Dialect = "crow"

    def __str__(self) -> str:
        return self.path or self.layer


@frozen
class Entry:
    """One entry of a list that all files add to: a permission rule, a directory, a name."""

    text: str
    source: Source


@frozen
class Permissions:
    """The lists of all files joined, the strongest file's first, and the mode to begin with.

    ``excluded`` are no part of the working directories; ``limits`` names the switches that are on,
    such as ``denyInsteadOfPrompting``.
    """

    allow: tuple[Entry, ...] = ()
    ask: tuple[Entry, ...] = ()
    deny: tuple[Entry, ...] = ()
    directories: tuple[Entry, ...] = ()
    trusted: tuple[Entry, ...] = ()
    mode: str | None = None
    excluded: tuple[Entry, ...] = ()
    limits: frozenset[str] = frozenset()


@frozen
class Withheld:
    """What one file of a project wants that its user has not trusted."""

    source: Source
    table: Table = field(default_factory=Table, repr=False)

    @property
    def names(self) -> tuple[str, ...]:
        """The settings, the permission lists by themselves."""
        permissions = tuple(f"permissions.{key}" for key in self.table.get("permissions", ()))
        return (*(key for key in self.table if key != "permissions"), *permissions)

    def __str__(self) -> str:
        return f"{self.source}: {', '.join(self.names)}"


@frozen
class Unused:
    """What of a file does not count, by name; ``why`` says what is against it.

    Of hooks, the events of a file whose hooks a switch turns off.
    """

    source: Source
    table: Table = field(repr=False)
    why: str = ""


@frozen
class Settings:
    """What all settings files and the command line's options say together.

    ``models`` are names to choose from, ``pass_env`` those of variables with keys that programs
    get all the same. ``extensions`` maps names to options; ``hooks`` are the
    tables of every file as they stand there, ``unused_hooks`` those that a switch turns off.
    ``http_urls`` and ``http_variables`` bound what HTTP hooks may ask, None where nothing does;
    ``only_plugins`` lets no hooks run but those of plugins and the administrator. ``plugins`` are
    folders, ``enabled_plugins`` and ``plugin_configs`` say which of those that Claude Code has
    installed are used, and with what options.
    ``origins`` maps a dotted path such as ``extensions.limits.max_turns`` to the file that it came
    from. ``problems`` are lines for a person, ``unread`` those of them about files that could not
    be read at all, whose rules are not known; ``withheld`` is what an untrusted project wanted,
    ``rejected`` what does not fit, or is in ``.claude`` and not for Crow.
    ``values`` and ``lists`` are all of this as it stands in the files, one laid over the other.
    ``files`` are all that were looked for, whether they are there or not; ``reader`` reads them
    again.
    """

    model: str | None = None
    models: tuple[Entry, ...] = ()
    pass_env: tuple[Entry, ...] = ()
    base_url: str | None = None
    api_key: str | None = field(default=None, repr=False)
    headers: Mapping[str, str] = field(default_factory=Table, repr=False)
    params: Mapping[str, Any] = field(default_factory=Table)
    context_window: int | None = None
    providers: Mapping[str, Table] = field(default_factory=Table, repr=False)
    permissions: Permissions = Permissions()
    extensions: Mapping[str, Table] = field(default_factory=Table)
    disabled: tuple[Entry, ...] = ()
    mcp_servers: Mapping[str, Any] = field(default_factory=Table, repr=False)
    env: Mapping[str, str] = field(default_factory=Table, repr=False)
    limits: Mapping[str, Any] = field(default_factory=Table)
    hooks: tuple[tuple[Source, Table], ...] = ()
    unused_hooks: tuple[Unused, ...] = ()
    switches: Mapping[str, bool] = field(default_factory=dict[str, bool])
    only_plugins: bool = False
    http_urls: tuple[str, ...] | None = None
    http_variables: tuple[str, ...] | None = None
    plugins: tuple[Entry, ...] = ()
    enabled_plugins: Mapping[str, bool] = field(default_factory=dict[str, bool])
    plugin_configs: Mapping[str, Table] = field(default_factory=Table, repr=False)
    project: str = ""
    trusted: bool = True
    origins: Mapping[str, Source] = field(default_factory=dict[str, Source])
    sources: tuple[Source, ...] = ()
    values: Mapping[str, Any] = field(default_factory=Table, repr=False, compare=False)
    lists: Mapping[str, tuple[Entry, ...]] = field(
        default_factory=dict[str, tuple[Entry, ...]], repr=False, compare=False
    )
    files: tuple[Source, ...] = field(default=(), repr=False, compare=False)
    reader: Reader | None = field(default=None, repr=False, compare=False)
    memory: Memory | None = field(default=None, repr=False, compare=False)
    problems: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()
    withheld: tuple[Withheld, ...] = ()
    rejected: tuple[Unused, ...] = field(default=(), repr=False, compare=False)
