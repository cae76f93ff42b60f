"""Settings files as one typed object, every value with the file that it came from.

Read from, the stronger later: the user's, the project's, the project's local, the command line's,
the managed ones; in each place ``.claude`` before ``.crow``. Of a project that the user has not
trusted only deny and ask rules are taken.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal, cast

from crow.core.errors import CrowError
from crow.trust import is_trusted, project_of

Layer = Literal["user", "project", "local", "command line", "managed"]
Table = dict[str, Any]

KEYS: Mapping[str, tuple[type, str]] = {
    "$schema": (str, "text"),
    "model": (str, "text"),
    "models": (list, "a list"),
    "base_url": (str, "text"),
    "api_key": (str, "text"),
    "headers": (dict, "a table"),
    "params": (dict, "a table"),
    "context_window": (int, "a number"),
    "providers": (dict, "a table"),
    "permissions": (dict, "a table"),
    "extensions": (dict, "a table"),
    "env": (dict, "a table"),
    "limits": (dict, "a table"),
    "hooks": (dict, "a table"),
}
CLAUDES = frozenset({"permissions", "env", "hooks"})
"""What is taken from ``.claude``: a model or an endpoint named there is not meant for Crow."""
SWITCHES = ("disableAllHooks", "allowManagedHooksOnly")
"""True or false: no hooks of settings files but the administrator's; the second is only theirs."""
TEXT_ONLY = ("headers", "env")
RULES = ("allow", "ask", "deny")
LISTS = (*RULES, "additionalDirectories", "trusted")
PERMISSIONS = (*LISTS, "defaultMode", "denyInsteadOfPrompting", "disableBypassPermissionsMode")
BYPASS = "bypassPermissions"
MANAGED = (Path("/etc/claude-code"), Path("/etc/crow"))


class SettingsError(CrowError):
    """A settings file that was asked for by name cannot be used."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where a setting came from. ``root`` is what its rules' paths that begin with ``/`` mean."""

    layer: Layer
    path: str = ""
    root: str = ""

    def __str__(self) -> str:
        return self.path or self.layer


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of a list that all files add to: a permission rule, a directory, a name."""

    text: str
    source: Source


@dataclass(frozen=True, slots=True)
class Permissions:
    """The lists of all files joined, the strongest file's first, and the mode to begin with."""

    allow: tuple[Entry, ...] = ()
    ask: tuple[Entry, ...] = ()
    deny: tuple[Entry, ...] = ()
    directories: tuple[Entry, ...] = ()
    trusted: tuple[Entry, ...] = ()
    mode: str | None = None


@dataclass(frozen=True, slots=True)
class Settings:
    """What all settings files and the command line's options say together.

    ``models`` are names to choose from. ``extensions`` maps names to options; ``hooks`` are the
    tables of every file as they stand there. ``origins`` maps a dotted path such as
    ``extensions.limits.max_turns`` to the file that it came from. ``problems`` are lines for a
    person, ``unread`` those of them about files that could not be read at all; ``withheld`` says
    what an untrusted project wanted.
    """

    model: str | None = None
    models: tuple[Entry, ...] = ()
    base_url: str | None = None
    api_key: str | None = field(default=None, repr=False)
    headers: Mapping[str, str] = field(default_factory=Table, repr=False)
    params: Mapping[str, Any] = field(default_factory=Table)
    context_window: int | None = None
    providers: Mapping[str, Table] = field(default_factory=Table, repr=False)
    permissions: Permissions = Permissions()
    extensions: Mapping[str, Table] = field(default_factory=Table)
    disabled: tuple[Entry, ...] = ()
    env: Mapping[str, str] = field(default_factory=Table, repr=False)
    limits: Mapping[str, Any] = field(default_factory=Table)
    hooks: tuple[tuple[Source, Table], ...] = ()
    project: str = ""
    trusted: bool = True
    origins: Mapping[str, Source] = field(default_factory=dict[str, Source])
    sources: tuple[Source, ...] = ()
    problems: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()
    withheld: tuple[str, ...] = ()


@dataclass(slots=True)
class _Reading:
    """What has been read so far, weakest first."""

    values: Table = field(default_factory=Table)
    origins: dict[str, Source] = field(default_factory=dict[str, Source])
    lists: dict[str, list[Entry]] = field(default_factory=dict[str, list[Entry]])
    hooks: list[tuple[Source, Table]] = field(default_factory=list[tuple[Source, Table]])
    switches: dict[str, tuple[bool, Source]] = field(default_factory=dict[str, tuple[bool, Source]])
    sources: list[Source] = field(default_factory=list[Source])
    problems: list[str] = field(default_factory=list[str])
    unread: list[str] = field(default_factory=list[str])
    withheld: list[str] = field(default_factory=list[str])

    def take(self, source: Source, table: Mapping[str, Any], *, trusted: bool) -> None:
        """Put one file's settings over those of the weaker ones."""
        self.sources.append(source)
        checked = dict(self._checked(source, table))
        if not trusted:
            checked = self._harmless(source, checked)
        permissions = checked.pop("permissions", {})
        extensions = dict(checked.pop("extensions", {}))
        for name in LISTS:
            self._extend(f"permissions.{name}", permissions.pop(name, None), source)
        self._extend("extensions.disable", extensions.pop("disable", None), source)
        self._extend("models", checked.pop("models", None), source)
        if trusted:
            self._switch(source, table)
        if "hooks" in checked:
            self.hooks.append((source, checked.pop("hooks")))
        checked.update(permissions=permissions, extensions=self._tables(source, extensions))
        self._merge(self.values, checked, source)

    def _switch(self, source: Source, table: Mapping[str, Any]) -> None:
        for name in SWITCHES:
            value = table.get(name)
            if isinstance(value, bool):
                self.switches[name] = value, source
            elif value is not None:
                self.complain(source, f"{name!r} must be true or false, not {_short(value)}")

    def hooks_in_force(self) -> Iterator[tuple[Source, Table]]:
        """The tables of hooks that no switch turns off; the administrator's only their own does."""
        off, by = self.switches.get("disableAllHooks", (False, None))
        only, theirs = self.switches.get("allowManagedHooksOnly", (False, None))
        all_off = off and by is not None and by.layer == "managed"
        others_off = off or (only and theirs is not None and theirs.layer == "managed")
        for source, table in self.hooks:
            if not (all_off if source.layer == "managed" else others_off):
                yield source, table

    def _checked(self, source: Source, table: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
        claudes = ".claude" in source.path or "claude-code" in source.path
        for key, value in table.items():
            if (claudes and key not in CLAUDES) or key in SWITCHES:
                continue
            if key not in KEYS:
                self.complain(source, f"there is no setting {key!r}{_near(key, KEYS)}")
            elif not isinstance(value, KEYS[key][0]) or isinstance(value, bool):
                self.complain(source, f"{key!r} must be {KEYS[key][1]}, not {_short(value)}")
            elif key == "permissions":
                yield key, self._known(source, value, quiet=claudes)
            elif key in TEXT_ONLY:
                yield key, self._texts(source, key, value)
            else:
                yield key, value

    def _known(self, source: Source, table: Table, *, quiet: bool) -> Table:
        for key in [key for key in table if key not in PERMISSIONS]:
            if not quiet:
                hint = _near(key, PERMISSIONS)
                self.complain(source, f"there is no setting 'permissions.{key}'{hint}")
        return {key: value for key, value in table.items() if key in PERMISSIONS}

    def _texts(self, source: Source, name: str, table: Table) -> Table:
        for key, value in table.items():
            if not isinstance(value, str):
                self.complain(source, f"'{name}.{key}' must be text, not {_short(value)}")
        return {key: value for key, value in table.items() if isinstance(value, str)}

    def _tables(self, source: Source, extensions: Table) -> Table:
        for name, options in extensions.items():
            if not isinstance(options, dict):
                text = f"'extensions.{name}' must be a table, not {_short(options)}"
                self.complain(source, text)
        return {name: value for name, value in extensions.items() if isinstance(value, dict)}

    def _harmless(self, source: Source, table: Table) -> Table:
        """What may be taken from a project that nobody has trusted."""
        permissions: Table = table.get("permissions", {})
        kept = {key: value for key, value in permissions.items() if key in ("deny", "ask")}
        names = [key for key in table if key != "permissions"]
        names += [f"permissions.{key}" for key in permissions if key not in kept]
        if names:
            self.withheld.append(f"{source}: {', '.join(names)}")
        return {"permissions": kept}

    def _extend(self, name: str, entries: Any, source: Source) -> None:
        if entries is None:
            return
        if not isinstance(entries, list):
            self.complain(source, f"{name!r} must be a list, not {_short(entries)}")
            return
        known = self.lists.setdefault(name, [])
        fresh: list[Entry] = []
        for entry in cast(list[object], entries):
            if not isinstance(entry, str) or not entry.strip():
                self.complain(source, f"{name!r} holds {_short(entry)}, which is no text")
            elif entry not in [other.text for other in fresh]:
                fresh.append(Entry(entry, source))
        known[:0] = fresh

    def _merge(self, into: Table, more: Table, source: Source, prefix: str = "") -> None:
        for key, value in more.items():
            if isinstance(value, dict):
                inner = into.get(key)
                into[key] = dict(cast(Table, inner)) if isinstance(inner, dict) else {}
                self._merge(into[key], cast(Table, value), source, f"{prefix}{key}.")
            else:
                into[key] = value
                self.origins[f"{prefix}{key}"] = source

    def complain(self, source: Source, text: str) -> None:
        """Keep a line for a person."""
        self.problems.append(f"{source}: {text}")

    def listed(self, name: str) -> tuple[Entry, ...]:
        """A list that all files add to."""
        return tuple(self.lists.get(name, ()))


def load(
    cwd: str | os.PathLike[str] = ".",
    *,
    file: str | None = None,
    flags: Mapping[str, Any] | None = None,
    home: Path | None = None,
    managed: tuple[Path, ...] = MANAGED,
) -> Settings:
    """The settings that hold in a directory.

    ``file`` is one more settings file (or a JSON object), ``flags`` are the command line's options
    in the shape of a settings file. Raises `SettingsError` where ``file`` cannot be read; what is
    wrong in the others is said in ``problems``.
    """
    home = home or Path.home()
    project = project_of(Path(cwd).absolute(), home)
    own = _sources(project, home, managed)
    found = [(source, path) for source, path in own if path.is_file()]
    of_project = [path for source, path in found if source.layer in ("project", "local")]
    trusted = project == home or is_trusted(project)
    reading = _Reading()
    for source, path in found:
        if source.layer == "managed":
            continue
        safe = trusted or path not in of_project
        reading.take(source, _read(source, path, reading), trusted=safe)
    if file is not None:
        reading.take(*_asked_for(file), trusted=True)
    if flags:
        reading.take(Source("command line", root=str(project)), flags, trusted=True)
    for source, path in found:
        if source.layer == "managed":
            reading.take(source, _read(source, path, reading), trusted=True)
    return _settings(reading, project, trusted)


def _sources(project: Path, home: Path, managed: tuple[Path, ...]) -> Iterator[tuple[Source, Path]]:
    """Every file that may be there, weakest first."""
    for folder in (home / ".claude", home / ".crow"):
        yield from _files(folder, "settings", "user", folder)
    if project != home:
        for stem, layer in (("settings", "project"), ("settings.local", "local")):
            for folder in (project / ".claude", project / ".crow"):
                yield from _files(folder, stem, layer, project)
    for folder in managed:
        yield from _files(folder, "managed-settings", "managed", Path("/"))


def _files(folder: Path, stem: str, layer: Any, root: Path) -> Iterator[tuple[Source, Path]]:
    for suffix in (".json",) if "claude" in folder.name else (".json", ".toml"):
        path = folder / f"{stem}{suffix}"
        yield Source(layer, str(path), str(root)), path


def _read(source: Source, path: Path, reading: _Reading) -> Table:
    try:
        return parse(path.read_text("utf-8-sig"), toml=path.suffix == ".toml")
    except (OSError, ValueError, SettingsError) as error:
        reading.complain(source, _why(error))
        reading.unread.append(reading.problems[-1])
        return {}


def _asked_for(file: str) -> tuple[Source, Table]:
    """The file of ``--settings``, or the JSON object that stands in its place."""
    inline = file.lstrip().startswith("{")
    path = Path(file).expanduser()
    try:
        text = file if inline else path.read_text("utf-8-sig")
        table = parse(text, toml=not inline and path.suffix == ".toml")
    except (OSError, ValueError, SettingsError) as error:
        named = "--settings" if inline else file
        raise SettingsError(f"{named}: {_why(error)}") from None
    if inline:
        return Source("command line", root=str(Path.cwd())), table
    return Source("command line", str(path.absolute()), str(path.absolute().parent)), table


def parse(text: str, *, toml: bool = False) -> Table:
    """A settings file's table. Raises `SettingsError` or ``ValueError``."""
    if toml:
        import tomllib

        return tomllib.loads(text)
    table: object = json.loads(text) if text.strip() else {}
    if not isinstance(table, dict):
        raise SettingsError(f"must be a JSON object, not {_short(table)}")
    return cast(Table, table)


def _why(error: Exception) -> str:
    match error:
        case OSError():
            return f"cannot be read: {error.strerror or error}"
        case json.JSONDecodeError():
            return f"line {error.lineno}: no JSON ({error.msg})"
        case UnicodeDecodeError():
            return "is no UTF-8 text"
        case _:
            return " ".join(str(error).split())


def _short(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 40 else f"{text[:37]}..."


def _near(word: str, known: Any) -> str:
    near = get_close_matches(word, list(known), n=1)
    return f"; did you mean {near[0]!r}?" if near else ""


def _settings(reading: _Reading, project: Path, trusted: bool) -> Settings:
    values = reading.values
    mode = values.get("permissions", {}).get("defaultMode")
    set_by = reading.origins.get("permissions.defaultMode")
    if mode == BYPASS and set_by is not None and set_by.layer in ("project", "local"):
        reading.complain(set_by, f"a project cannot choose the mode {BYPASS}; it is left out")
        mode = None
    permissions = Permissions(
        reading.listed("permissions.allow"),
        reading.listed("permissions.ask"),
        reading.listed("permissions.deny"),
        reading.listed("permissions.additionalDirectories"),
        reading.listed("permissions.trusted"),
        mode,
    )
    plain = ("model", "base_url", "api_key", "headers", "params", "context_window", "providers")
    given = {key: values[key] for key in (*plain, "extensions", "env", "limits") if key in values}
    return Settings(
        **given,
        permissions=permissions,
        models=reading.listed("models"),
        disabled=reading.listed("extensions.disable"),
        hooks=tuple(reading.hooks_in_force()),
        project=str(project),
        trusted=trusted,
        origins=reading.origins,
        sources=tuple(reading.sources),
        problems=tuple(reading.problems),
        unread=tuple(reading.unread),
        withheld=tuple(reading.withheld),
    )
