"""The settings files, and what they say; the last good text where one is broken."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Any, cast

from crow.core.support.frozen import mutable
from crow.project.files import Stamp, stamp
from crow.settings.values import Dialect, SettingsError, Source, Table

DROP_INS = "managed-settings.d"


def machine() -> tuple[Path, ...]:
    """The administrator's folders, or what ``CROW_MANAGED`` names in their place."""
    return chosen(*of_machine(), named=os.environ.get("CROW_MANAGED"))


def chosen(*own: Path, named: str | None) -> tuple[Path, ...]:
    """The machine's folders; another one only where the machine has none of them.

    So nobody gets around an administrator's settings by setting a variable.
    """
    if named and not any(is_there(folder) for folder in own):
        return (Path(os.path.expanduser(named)).absolute(),)
    return own


def of_machine() -> tuple[Path, Path]:
    """Where administrators put settings on this system: Claude Code's place, and Crow's."""
    if sys.platform == "darwin":
        base = Path("/Library/Application Support")
        return base / "ClaudeCode", base / "Crow"
    if os.name == "nt":
        base = Path(os.environ.get("PROGRAMFILES") or "C:\\Program Files")
        return base / "ClaudeCode", base / "Crow"
    return Path("/etc/claude-code"), Path("/etc/crow")


@mutable
class Memory:
    """The files as they could be read last, and what stands in for some of them.

    ``stamps`` are of the moment before a file was read. ``held`` is for files whose change was
    refused: what they said before, None for nothing.
    """

    good: dict[str, Table] = field(default_factory=dict[str, Table])
    held: dict[str, Table | None] = field(default_factory=dict[str, "Table | None"])
    stamps: dict[str, Stamp | None] = field(default_factory=dict[str, "Stamp | None"])

    def copy(self) -> Memory:
        """Another memory of the same."""
        return Memory(dict(self.good), dict(self.held), dict(self.stamps))

    def look(self, path: str) -> bool:
        """True where a file has something to say; remembers how it looked."""
        self.stamps[path] = stamp(path)
        if path in self.held:
            return self.held[path] is not None
        there = is_there(Path(path))
        if not there:
            self.good.pop(path, None)
        return there

    def read(self, path: str) -> Table:
        """What a file says. Raises ``OSError``, ``ValueError`` or `SettingsError`."""
        if path in self.held:
            return self.held[path] or {}
        self.good[path] = table = parse_file(Path(path))
        return table

    def known(self, path: str) -> Table | None:
        """What counts as the file's text; None for nothing."""
        return self.held[path] if path in self.held else self.good.get(path)

    @property
    def changed(self) -> list[str]:
        """The files that do not look as they did when they were read."""
        return [path for path, before in self.stamps.items() if stamp(path) != before]


def places(project: Path, home: Path, managed: tuple[Path, ...]) -> list[Source]:
    """Every file that may be there, weakest first."""
    found: list[Source] = []
    for folder in (home / ".claude", home / ".crow"):
        found += _files(folder, "settings", "user", folder)
    if project != home:
        found += _of_project(project, home)
    for folder in managed:
        found += _files(folder, "managed-settings", "managed", Path("/"))
        drop_ins = folder / DROP_INS
        for path in sorted(drop_ins.glob("*.json")) if drop_ins.is_dir() else ():
            if not path.name.startswith("."):
                found.append(Source("managed", str(path), "/", dialect_of(folder)))
    return found


def _of_project(project: Path, home: Path) -> list[Source]:
    found: list[Source] = []
    if (shared := shared_rules(project, home)) is not None:
        found.append(Source("local", str(shared), str(project), "claude"))
    for stem, layer in (("settings", "project"), ("settings.local", "local")):
        for folder in (project / ".claude", project / ".crow"):
            found += _files(folder, stem, layer, project)
    return found


def shared_rules(project: Path, home: Path) -> Path | None:
    """The local settings of the main worktree, whose rules count in all worktrees of it."""
    if not (project / ".git").is_file():
        return None
    from crow.project.worktree import main_worktree

    main = main_worktree(project)
    return None if main is None or main == home else main / ".claude" / "settings.local.json"


def _files(folder: Path, stem: str, layer: Any, root: Path) -> list[Source]:
    dialect, path = dialect_of(folder), str(folder / stem)
    found = [Source(layer, f"{path}.json", str(root), dialect)]
    if dialect == "crow":
        found.append(Source(layer, f"{path}.toml", str(root), dialect))
    return found


def dialect_of(folder: Path) -> Dialect:
    """Whom a folder of settings is for."""
    return "claude" if folder.name in (".claude", "claude-code", "ClaudeCode") else "crow"


def is_there(path: Path) -> bool:
    """False for nothing at all; what cannot even be looked at is there."""
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return path.is_symlink()
    except OSError:
        return True
    return True


def asked_for(file: str) -> Source:
    """The file of ``--settings``, or the JSON object that stands in its place."""
    if file.lstrip().startswith("{"):
        return Source("command line", root=str(Path.cwd()))
    path = Path(os.path.expanduser(file)).absolute()
    return Source("command line", str(path), str(path.parent), dialect_of(path.parent))


def parse_file(path: Path) -> Table:
    """A settings file's table. Raises `SettingsError`, ``OSError`` or ``ValueError``."""
    return parse(path.read_text("utf-8-sig"), toml=path.suffix == ".toml")


def parse(text: str, *, toml: bool = False) -> Table:
    """A settings text's table. Raises `SettingsError` or ``ValueError``."""
    if toml:
        import tomllib

        return tomllib.loads(text)
    table: object = json.loads(text) if text.strip() else {}
    if not isinstance(table, dict):
        from crow.settings.schema import short

        raise SettingsError(f"must be a JSON object, not {short(table)}")
    return cast(Table, table)


def why(error: Exception) -> str:
    """Why a file cannot be read, in a line."""
    match error:
        case OSError():
            return f"cannot be read: {error.strerror or error}"
        case json.JSONDecodeError():
            return f"line {error.lineno}: no JSON ({error.msg})"
        case UnicodeDecodeError():
            return "is no UTF-8 text"
        case _:
            return " ".join(str(error).split())


def merge(into: Table, more: Mapping[str, Any], mark: Any, prefix: str = "") -> None:
    """Lay a table over another one; ``mark`` is called with the path of every value."""
    for key, value in more.items():
        if isinstance(value, dict):
            inner = into.get(key)
            into[key] = dict(cast(Table, inner)) if isinstance(inner, dict) else {}
            merge(into[key], cast(Table, value), mark, f"{prefix}{key}.")
        else:
            into[key] = value
            mark(f"{prefix}{key}")
