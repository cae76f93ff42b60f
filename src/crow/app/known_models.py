"""A cache of the models of providers, for lists that are wanted before they are asked."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

NOWHERE: Mapping[str, str | None] = MappingProxyType({})
PLACES = 8
"""How many sets of endpoints are kept, the last used ones."""


class KnownModels:
    """The names that were found behind the endpoints of settings, environment and client.

    They stand in a file; ``routed`` are the URLs of a client's providers.
    """

    def __init__(
        self,
        settings: Mapping[str, Any],
        env: Mapping[str, str],
        routed: Mapping[str, str | None] = NOWHERE,
    ) -> None:
        self._settings = settings
        self._env = env
        self._routed = routed

    def names(self) -> Sequence[str]:
        """The names; none where these endpoints were never asked."""
        return self._read().get(self._place, ())

    def keep(self, names: Iterable[str]) -> None:
        """Keep what was found; a file that cannot be written is no matter."""
        from crow.project import write_atomically

        found, kept = list(names), self._read()
        if not found or kept.get(self._place) == found:
            return
        kept.pop(self._place, None)
        text = json.dumps(dict([*kept.items(), (self._place, found)][-PLACES:]))
        with suppress(OSError):
            write_atomically(self._file, text, private=True)

    @property
    def _file(self) -> Path:
        from crow.project import state_directory

        return state_directory() / "models.json"

    @property
    def _place(self) -> str:
        """What is one and the same for the same endpoints: where they are, and who has a key."""
        from crow.llm.presets import KEY_NAMES

        providers: dict[str, Any] = self._settings.get("providers", {})
        urls = {
            name: url for name, url in self._env.items() if name.endswith(("_BASE_URL", "_HOST"))
        }
        keys = [name for name in KEY_NAMES if self._env.get(name)]
        named = [[name, table.get("base_url")] for name, table in providers.items()]
        told = [self._settings.get("base_url"), sorted(named), sorted(urls.items()), sorted(keys)]
        told += [sorted(self._routed.items(), key=str)] if self._routed else []
        return hashlib.sha256(json.dumps(told).encode()).hexdigest()[:16]

    def _read(self) -> dict[str, list[str]]:
        try:
            found: Any = json.loads(self._file.read_text("utf-8"))
        except (OSError, ValueError):
            return {}
        kept = cast("dict[str, Any]", found) if isinstance(found, dict) else {}
        return {place: names for place, names in kept.items() if _are_names(names)}


def _are_names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in cast("Any", value))
