"""Secrets that the agent knows, taken out of what tools say before anybody hears of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, cast

from crow.core.tools import Diff, ToolResult

HIDDEN = "(hidden)"


def scrubbed(value: Any, secrets: Sequence[str]) -> Any:
    """A text, JSON, or a result of a tool without them."""
    match value:
        case str():
            for secret in secrets:
                if secret in value:
                    value = value.replace(secret, HIDDEN)
            return value
        case dict():
            table = cast("dict[str, Any]", value)
            return {name: scrubbed(each, secrets) for name, each in table.items()}
        case list():
            return [scrubbed(each, secrets) for each in cast("list[Any]", value)]
        case ToolResult(content, _, data, diffs):
            content, data, diffs = scrubbed([content, data, list(diffs)], secrets)
            return replace(value, content=content, data=data, diffs=tuple(diffs))
        case Diff(_, old, new):
            return replace(value, old=scrubbed(old, secrets), new=scrubbed(new, secrets))
        case _:
            return value


class Scrubber:
    """Takes secrets out of bytes that come in pieces.

    What may be the beginning of one is kept back until the next piece has come.
    """

    def __init__(self, secrets: Iterable[str]) -> None:
        self._secrets = [secret.encode("utf-8", "surrogateescape") for secret in secrets]
        self._longest = max(map(len, self._secrets), default=0)
        self._kept = b""

    def feed(self, piece: bytes) -> bytes:
        """What can be told by now."""
        if not self._secrets:
            return piece
        told = self._kept + piece
        for secret in self._secrets:
            told = told.replace(secret, HIDDEN.encode())
        place = self._beginning(told)
        self._kept = told[place:]
        return told[:place]

    def end(self) -> bytes:
        """What was kept back: nothing comes any more."""
        told, self._kept = self._kept, b""
        return told

    def _beginning(self, told: bytes) -> int:
        """Where a secret may begin that is not whole yet."""
        for place in range(max(0, len(told) - self._longest + 1), len(told)):
            if any(secret.startswith(told[place:]) for secret in self._secrets):
                return place
        return len(told)
