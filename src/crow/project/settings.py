"""The settings of a project as extensions see them, beside their own table."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

from crow.core.support.frozen import frozen

if TYPE_CHECKING:
    from crow.core.extensions import Found
    from crow.core.session import Session
    from crow.project.other_agents.item import Brought
    from crow.project.plugins import Plugin

Behaviour = Literal["allow", "ask", "deny"]


class SettingsRule(NamedTuple):
    """A permission rule: ``source`` names the file, ``root`` is what ``/`` means in it."""

    text: str
    source: str
    root: str | None = None


@frozen
class Rules:
    """The permissions of all files, the strongest file's first.

    ``directories`` are absolute; ``switches`` names those that are on, such as
    ``denyInsteadOfPrompting``; ``excluded`` are no part of the working directories.
    """

    allow: tuple[SettingsRule, ...] = ()
    ask: tuple[SettingsRule, ...] = ()
    deny: tuple[SettingsRule, ...] = ()
    mode: str = "default"
    directories: tuple[str, ...] = ()
    switches: frozenset[str] = frozenset()
    excluded: tuple[str, ...] = ()


@frozen
class HookFile:
    """The ``hooks`` table of one file.

    ``own`` marks the files of Crow's own. ``once`` says that the ``once`` of its handlers counts.
    ``plugin`` is the one that brought it, ``skill`` the folder of a skill whose front matter it is.
    """

    path: str
    table: Mapping[str, Any]
    own: bool = False
    once: bool = False
    plugin: Plugin | None = None
    skill: str = ""


@frozen
class HookSettings:
    """The hooks of settings files, those of plugins behind them, and what bounds hooks.

    ``front_matter`` says that skills and sub-agents may bring some. ``urls`` are patterns for the
    servers that may be asked, ``variables`` the names of those that headers may have, None where
    there is no bound.
    """

    files: tuple[HookFile, ...] = ()
    front_matter: bool = True
    urls: tuple[str, ...] | None = None
    variables: tuple[str, ...] | None = None


@frozen
class SandboxSettings:
    """The settings of the sandbox that hold; paths are absolute.

    ``required`` refuses to run commands bare. ``unasked`` says whether commands that stay inside
    need no question, None where nobody has said so; ``escapes`` that the model may ask to run one
    outside, where ``excluded`` commands, patterns as in rules, run by themselves. ``hooks`` and
    ``servers`` say that the commands of hooks, and MCP servers, run inside too. ``off`` says who
    has switched it off, ``backend`` which of the operating system's means is wanted, None for the
    best. ``hidden`` names environment variables that commands do not get, ``passed`` those that
    they do although they seem to hold secrets.
    """

    enabled: bool = True
    off: str = ""
    backend: str | None = None
    required: bool = False
    unasked: bool | None = None
    escapes: bool = True
    excluded: tuple[str, ...] = ()
    allow_write: tuple[str, ...] = ()
    deny_write: tuple[str, ...] = ()
    deny_read: tuple[str, ...] = ()
    allow_read: tuple[str, ...] = ()
    allowed_domains: tuple[str, ...] = ()
    denied_domains: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    passed: tuple[str, ...] = ()
    hooks: bool = False
    servers: bool = False


@frozen
class ServerPolicy:
    """The MCP servers that may be used: entries as in Claude Code's settings.

    Each has a ``serverName``, a ``serverCommand`` or a ``serverUrl``. ``allowed`` is None where
    nothing bounds them; ``only_plugins`` lets nobody bring some but plugins and the administrator.
    """

    allowed: tuple[Mapping[str, Any], ...] | None = None
    denied: tuple[Mapping[str, Any], ...] = ()
    only_plugins: bool = False


class Proposals(Protocol):
    """Extensions that are put into use while Crow runs, by whoever has the user's consent."""

    def folder(self) -> Path:
        """Where the user's own extensions lie, which are in use whenever Crow starts."""
        ...

    def refusal(self, session: Session, path: Path) -> str:
        """Why the extension of a file cannot be put into use now; empty where it can."""
        ...

    def in_use(self, path: Path) -> str | None:
        """The text that is in use by the name of this file, or would be replaced; None for none."""
        ...

    def load(self, path: Path, text: str, *, keep: bool) -> Awaitable[Found]:
        """Use a text as the extension of this file, in the place of the one of its name.

        ``keep`` writes it to the user's own. Raises `ExtensionError` where it is broken or refused;
        what was in use stays then.
        """
        ...


def nothing(project: Path) -> Sequence[Path]:
    """No files, wherever one is."""
    del project
    return ()


@frozen
class ProjectSettings:
    """The settings of a project, for an extension with a class method ``options_from``.

    ``options_from(settings, own)`` returns the options that it is made with; ``own`` is its table.
    ``project`` is a directory, ``plugins`` are those in use and ``mcp_servers`` the settings' and
    theirs; ``brought`` is what the user and a trusted project have for other agents, ``others`` the
    names of those whose things are read, and ``instructions`` gives their files for a project;
    ``fallback_models`` are to be asked where the first one cannot be had; ``server_policy`` says
    which MCP servers may be used.
    ``scripts`` gives the project's files that hooks and servers run. ``keep_rule`` writes a
    permission rule down, None where that would not last; ``drop_rule`` takes one out again, False
    where it was not there. ``prompted`` gives the extensions that are to begin a sub-agent's
    requests with a prompt, none where no extension can. ``proposals`` puts extensions into use
    while Crow runs. ``sandbox`` is what the settings say of it, ``cleanup_period_days`` after how
    many days without use sessions go, None for never.
    """

    project: str
    trusted: bool
    plugins: Sequence[Plugin]
    mcp_servers: Mapping[str, Any]
    rules: Rules
    hooks: HookSettings
    scripts: Callable[[], Iterable[str]]
    keep_rule: Callable[[str, Behaviour], None] | None
    drop_rule: Callable[[str], bool] | None
    prompted: Callable[[str], Sequence[object]]
    proposals: Callable[[], Proposals]
    sandbox: SandboxSettings = SandboxSettings()
    cleanup_period_days: int | None = None
    brought: Sequence[Brought] = ()
    others: frozenset[str] = frozenset()
    instructions: Callable[[Path], Sequence[Path]] = nothing
    fallback_models: Sequence[str] = ()
    server_policy: ServerPolicy = ServerPolicy()
