"""Secrets that the agent knows, kept from programs and taken out of what tools say.

As they are, and as programs print them: in Base64 (of ``user:key`` as well), in hexadecimal digits,
as parts of an address, and in JSON. Who wants to hide one from this can.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, cast

from crow.core.tools import Diff, ToolResult

STEERING = frozenset(
    "BASH_ENV ENV CDPATH GLOBIGNORE EXECIGNORE SHELLOPTS BASHOPTS BASH_COMPAT BASH_XTRACEFD "
    "PS4".split()
)
"""Variables that make a shell run, or understand, more than what the command says."""
SHORTEST = 8
"""Characters of a secret that is taken out of texts: what is shorter could be any word."""
HIDDEN = "(hidden)"
_FOR_ADDRESSES = str.maketrans("+/", "-_")
_WIDTHS = (76, 64)  # characters of a line, as `base64` and `openssl` print it


def variables() -> Mapping[str, str]:
    """The variables of this process, which are decoded anew only once one of them has changed."""
    raw: Any = getattr(os.environ, "_data", os.environ)
    return _decoded(tuple(raw.items()))


@lru_cache(1)
def _decoded(raw: tuple[tuple[Any, Any], ...]) -> Mapping[str, str]:
    return {os.fsdecode(name): os.fsdecode(text) for name, text in raw}


def for_programs(withheld: Collection[str]) -> dict[str, str]:
    """The variables for programs that are started: none that is withheld or steers a shell."""
    left_out = STEERING.union(withheld)
    return {name: text for name, text in variables().items() if name not in left_out}


def values_of(names: Iterable[str]) -> list[str]:
    """What stands in these variables, where they are set."""
    now = variables()
    return [now[name] for name in names if name in now]


def longest_first(values: Iterable[str]) -> list[str]:
    """Those that are long enough to be secrets, the longest first."""
    return sorted((each for each in values if len(each) >= SHORTEST), key=len, reverse=True)


# taken out of texts


def scrubbed(value: Any, secrets: Sequence[str]) -> Any:
    """A text, JSON, or a result of a tool without them."""
    return _without(value, spellings(secrets))


def spellings(secrets: Iterable[str]) -> list[str]:
    """All that secrets look like, the longest first."""
    found = {spelling for secret in secrets for spelling in _spellings(secret)}
    return sorted(found, key=len, reverse=True)


@lru_cache(64)
def _spellings(secret: str) -> frozenset[str]:
    from json import dumps
    from urllib.parse import quote, quote_plus

    data = secret.encode("utf-8", "surrogateescape")
    found = {secret, data.hex(), data.hex().upper(), quote(data), quote(data, ""), quote_plus(data)}
    found |= {dumps(secret)[1:-1], dumps(secret, ensure_ascii=False)[1:-1]}
    return frozenset(found | {*_in_base64(data)})


def _in_base64(data: bytes) -> Iterator[str]:
    """What of it does not depend on what stands before and behind it, at each place of three."""
    from base64 import b64encode

    for before in range(3):
        whole = b64encode(bytes(before) + data).decode().rstrip("=")
        is_cut = (before + len(data)) % 3
        inner = whole[(0, 2, 3)[before] : len(whole) - bool(is_cut)]
        for text in {inner, inner.translate(_FOR_ADDRESSES)}:
            yield text
            for width in _WIDTHS if not before else ():
                lines = (text[at : at + width] for at in range(0, len(text), width))
                yield "\n".join(lines)


def _without(value: Any, spelled: Sequence[str]) -> Any:
    match value:
        case str():
            for each in spelled:
                if each in value:
                    value = value.replace(each, HIDDEN)
            return value
        case dict():
            table = cast("dict[str, Any]", value)
            return {name: _without(each, spelled) for name, each in table.items()}
        case list():
            return [_without(each, spelled) for each in cast("list[Any]", value)]
        case ToolResult(content, _, data, diffs):
            content, data, diffs = _without([content, data, list(diffs)], spelled)
            return replace(value, content=content, data=data, diffs=tuple(diffs))
        case Diff(_, old, new):
            return replace(value, old=_without(old, spelled), new=_without(new, spelled))
        case _:
            return value


class Scrubber:
    """Takes secrets out of bytes that come in pieces.

    What may be the beginning of one is kept back until the next piece has come.
    """

    def __init__(self, secrets: Iterable[str]) -> None:
        spelled = spellings(secrets)
        self._secrets = [each.encode("utf-8", "surrogateescape") for each in spelled]
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
