"""Fingerprints of tools in use: a definition that has changed is asked about again.

Without this, a server could have a harmless tool allowed for ever and then make another one of it.
"""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

from crow.project import state_directory, write_atomically

MOST = 2000
VERSIONS = 8


def fingerprint(definition: dict[str, Any]) -> str:
    """A hash of all that a model is told of a tool."""
    text = json.dumps(definition, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


class Definitions:
    """The definitions that were accepted, in a file of the user's.

    These are the fingerprints of a tool, by its server and raw name, and which tools had a name.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._known: dict[str, list[str]] | None = None

    def has_changed(self, server: str, tool: str, found: str) -> bool:
        """True for a tool that was in use, and was another one then."""
        accepted = self._load().get(_key(server, tool))
        return accepted is not None and found not in accepted

    def has_moved(self, name: str, server: str, tool: str) -> bool:
        """True where the model's name for a tool was in use, and meant another one."""
        accepted = self._load().get(name)
        return accepted is not None and _key(server, tool) not in accepted

    def accept(self, name: str, server: str, tool: str, found: str) -> None:
        """This definition was used under this name, or the user has allowed it."""
        key = _key(server, tool)
        added = {key: found, name: key}
        if all(value in self._load().get(each, ()) for each, value in added.items()):
            return
        known = self._read()  # another process may have added some meanwhile
        for each, value in added.items():
            before = [old for old in known.pop(each, []) if old != value]
            known[each] = [*before, value][-VERSIONS:]
        self._known = dict(list(known.items())[-MOST:])
        with suppress(OSError):
            self._write(self._known)

    @property
    def file(self) -> Path:
        """Where they are kept."""
        return self._path or state_directory() / "mcp-tools.json"

    def _load(self) -> dict[str, list[str]]:
        if self._known is None:
            self._known = self._read()
        return self._known

    def _read(self) -> dict[str, list[str]]:
        try:
            found: Any = json.loads(self.file.read_text("utf-8"))
        except (OSError, ValueError):
            return dict(self._known or {})
        table = cast("dict[str, list[str]]", found) if isinstance(found, dict) else {}
        return {**(self._known or {}), **table}

    def _write(self, known: dict[str, list[str]]) -> None:
        write_atomically(self.file, json.dumps(known, indent=1), private=True)


def _key(server: str, tool: str) -> str:
    return json.dumps([server, tool], ensure_ascii=False)
