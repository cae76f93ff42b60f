"""Checks once a session is over: answers that count for nothing, state that is no JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from crow.cli.ext_check.finding import Finding
from crow.cli.ext_check.source_lines import NOWHERE, Place, where_called, where_kept
from crow.core.hooks.output import is_result
from crow.core.hooks.points import POINTS
from crow.core.session import Session
from crow.core.trace import Record
from crow.core.verdicts import Stop

WIDTH = 60
JSON = (
    "keep texts, numbers, booleans, None, lists and dicts with texts for keys; else use ctx.cache"
)
DECIDE = "return nothing there; what decides is a before_ hook, a fold or a wrap (docs/hooks.md)"


def unheard(told: Iterable[tuple[Record, Place]]) -> Iterator[Finding]:
    """Answers of hooks that only look on; a `Stop` and a `HookResult` are heard there."""
    watched = {point.name for point in POINTS if point.kind == "watch"}
    for record, place in told:
        answer = record.answer
        if record.event not in watched or answer is None or is_result(answer):
            continue
        if not isinstance(answer, Stop):
            what = f"{record.hook} answers {_short(answer)} at {record.event}, and nobody hears it"
            yield Finding(what, DECIDE, *place)


def unstored(
    session: Session | None, used: Iterable[str], files: Iterable[str]
) -> Iterator[Finding]:
    """What of an extension's state is no JSON, so that the session cannot be stored."""
    states = {} if session is None else session.state
    for name in {*used} & states.keys():
        for path, value in _no_json(states[name], "ctx.state"):
            key = path.partition("['")[2].partition("']")[0]
            place = where_kept(files, key)
            if place == NOWHERE:
                place = where_called(files, ["update"])
            yield Finding(f"{path} is {_short(value)}, which is no JSON", JSON, *place)


def _no_json(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """The parts of a value that JSON does not have, or would bring back as something else."""
    match value:
        case dict():
            for key, each in value.items():  # pyright: ignore[reportUnknownVariableType]
                if isinstance(key, str):
                    yield from _no_json(each, f"{path}[{key!r}]")
                else:
                    yield f"a key of {path}", key
        case list() | tuple():
            for number, each in enumerate(value):  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
                yield from _no_json(each, f"{path}[{number}]")
        case str() | int() | float() | None:
            yield from ([] if _is_plain(value) else [(path, value)])
        case _:
            yield path, value


def _is_plain(value: object) -> bool:
    """False for texts and numbers that JSON cannot hold."""
    try:
        json.dumps(value, allow_nan=False).encode()
    except ValueError:
        return False
    return True


def _short(value: object) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= WIDTH else f"{text[:WIDTH]}…"
