"""The filters of a search: a tool, a file, a hook, what was denied or failed.

``tool:Bash file:app.py is:denied`` is one call that is all of this; ``hook:guard`` is a hook, or
the extension that has it, where it answered or changed something.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, cast

from crow.storage import SessionInfo

if TYPE_CHECKING:
    from crow.extensions.persistence.sql import Connection

Data = Mapping[str, Any]
Wanted = list[tuple[str, str]]
PATHS = ("file_path", "path", "notebook_path")
NAMES = ("tool", "file", "hook", "is")
STATES: Mapping[str, Callable[[Data], bool]] = {
    "denied": lambda data: data.get("outcome") == "denied",
    "error": lambda data: data.get("outcome") == "error",
}
"""What a call can be."""
COLUMNS = "s.id, s.cwd, s.title, s.updated, s.messages, s.archived, log.seq, log.data"


def split(text: str) -> tuple[Wanted, str]:
    """The filters of a search, and its words."""
    wanted: Wanted = []
    words: list[str] = []
    for word in text.split():
        name, _, value = word.partition(":")
        if name in NAMES and value and (name != "is" or value in STATES):
            wanted.append((name, value.casefold()))
        else:
            words.append(word)
    return wanted, " ".join(words)


def matches(
    connection: Connection, wanted: Wanted, cwd: str | None
) -> dict[str, tuple[SessionInfo, str, int]]:
    """The sessions with a call, and with a hook, that is what is wanted; the latest used first.

    Each with that call or hook in a line, and the number of its record.
    """
    of_calls = [each for each in wanted if each[0] != "hook"]
    found: dict[str, tuple[SessionInfo, str, int]] | None = None
    for kind, some in (("result", of_calls), *(("hooks", [e]) for e in wanted if e[0] == "hook")):
        if not some:
            continue
        here: dict[str, tuple[SessionInfo, str, int]] = {}
        for row in _rows(connection, kind, some, cwd):
            told = next(_told(kind, row[7], some), "")
            if told and row[0] not in here:
                info = SessionInfo(*row[:5], archived=bool(row[5]))
                here[row[0]] = info, told, row[6]
        found = here if found is None else {key: here[key] for key in found if key in here}
    return found or {}


def _rows(
    connection: Connection, kind: str, wanted: Wanted, cwd: str | None
) -> Iterator[tuple[Any, ...]]:
    """Records that may be what is wanted: all words of it stand in them.

    SQLite knows large and small letters of ASCII alone, so others are looked at here.
    """
    values = [value for name, value in wanted if name != "is" and value.isascii()]
    like = "".join(" AND lower(log.data) LIKE ? ESCAPE '!'" for _ in values)
    escaped = [f"%{_escaped(json.dumps(value)[1:-1])}%" for value in values]
    cwds = (cwd,) if cwd is not None else ()
    yield from connection.execute(
        f"SELECT {COLUMNS} FROM log JOIN sessions s ON s.key = log.session"  # noqa: S608
        f" WHERE log.kind = ?{' AND s.cwd = ?' if cwds else ''}{like}"
        " ORDER BY s.touched DESC, log.seq",
        (kind, *cwds, *escaped),
    )


def _escaped(text: str) -> str:
    for each in "!%_":
        text = text.replace(each, f"!{each}")
    return text


def _told(kind: str, text: str, wanted: Wanted) -> Iterator[str]:
    """What of a record is wanted, in a line each."""
    try:
        data: Any = json.loads(text)
    except ValueError:
        return
    if kind == "result" and all(_is(cast(Data, data), *each) for each in wanted):
        yield f"{data.get('name')}: {data.get('title')} ({data.get('outcome')})"
    if kind == "hooks":
        ((_, name),) = wanted
        for record in data.get("records", ()):
            called = {str(record.get(key, "")).casefold() for key in ("owner", "hook")}
            did = any(record.get(key) for key in ("answer", "changed", "error"))
            if did and name in called:
                yield f"{record.get('owner')}.{record.get('hook')} at {record.get('event')}"


def _is(data: Data, name: str, value: str) -> bool:
    match name:
        case "tool":
            return str(data.get("name", "")).casefold() == value
        case "is":
            return STATES[value](data)
        case _:
            return any(path.casefold().endswith(value) for path in _paths(data))


def _paths(data: Data) -> Iterator[str]:
    given: Any = data.get("args")
    if isinstance(given, dict):
        args = cast(Data, given)
        yield from (str(args[key]) for key in PATHS if key in args)
    for each in (*data.get("diffs", ()), *data.get("locations", ()), *data.get("places", ())):
        yield str(each.get("path", ""))
