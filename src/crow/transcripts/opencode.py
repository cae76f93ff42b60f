"""opencode's sessions: rows of messages and their parts, in a database and in what it exports.

The database is ``~/.local/share/opencode/opencode.db``; it is read as ``opencode export`` has it.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, cast

from crow.core.messages import Usage
from crow.transcripts.transcript import (
    DAMAGES,
    Object,
    Transcript,
    as_object,
    as_objects,
    text_in,
)

PROGRAM = "opencode"
SESSIONS = "select id, time_updated from session where parent_id is null"
SESSION = "select title, directory, revert, time_updated from session where id = ?"
MESSAGES = "select id, data from message where session_id = ? order by time_created, id"
PARTS = "select message_id, data from part where session_id = ? order by id"


def sessions(database: Path) -> Iterator[tuple[str, float]]:
    """The ids of the sessions of a database, and when they were used last."""
    with suppress(sqlite3.Error, OSError), closing(_opened(database)) as opened:
        for id_, updated in opened.execute(SESSIONS).fetchall():
            yield str(id_), float(updated) / 1000


def exported(database: Path, session_id: str) -> str:
    """A session as ``opencode export`` has it. Raises ``OSError`` where it cannot be read."""
    try:
        with closing(_opened(database)) as opened:
            title, directory, revert, updated = opened.execute(SESSION, (session_id,)).fetchone()
            parts: dict[str, list[Any]] = {}
            for message, data in opened.execute(PARTS, (session_id,)):
                parts.setdefault(message, []).append(json.loads(data))
            messages = [
                {"info": {**json.loads(data), "id": id_}, "parts": parts.get(id_, [])}
                for id_, data in opened.execute(MESSAGES, (session_id,))
            ]
    except (sqlite3.Error, ValueError, TypeError) as error:
        raise OSError(None, f"its database cannot be read: {error}") from error
    info: Object = {"id": session_id, "title": title, "directory": directory}
    info |= {"time": {"updated": updated}, "revert": json.loads(revert or "null")}
    return json.dumps({"info": info, "messages": messages})


def _opened(database: Path) -> sqlite3.Connection:
    """Its database, which is not written: no file beside it is made."""
    is_in_use = database.with_name(f"{database.name}-wal").exists()
    how = "mode=ro" if is_in_use else "mode=ro&immutable=1"
    return sqlite3.connect(f"{database.absolute().as_uri()}?{how}", uri=True)


def is_opencode(value: Any) -> bool:
    """True for an exported session."""
    told = as_object(value)
    return "directory" in as_object(told.get("info")) and isinstance(told.get("messages"), list)


def read(value: Any) -> Transcript:
    """The conversation of an exported session, without what its user took back."""
    info = as_object(value["info"])
    made = Transcript(PROGRAM, text_in(info.get("id")), text_in(info.get("directory")))
    made.title = text_in(info.get("title"))
    until = as_object(info.get("revert")).get("messageID")
    at = 0.0
    for message in as_objects(value["messages"]):
        told = as_object(message.get("info"))
        if until is not None and told.get("id") == until:
            break
        with suppress(*DAMAGES):  # a damaged message is passed over
            at = _time(told, "created", at)
            parts = as_objects(message.get("parts"))
            if told.get("role") == "user":
                _prompt(made, parts, at)
            else:
                made.model = text_in(told.get("modelID")) or made.model
                _answer(made, told, parts, at)
    return made


def _time(told: Object, name: str, otherwise: float) -> float:
    given = as_object(told.get("time")).get(name)
    return given / 1000 if isinstance(given, int | float) else otherwise


def _prompt(made: Transcript, parts: list[Object], at: float) -> None:
    texts = [each for each in parts if each.get("type") == "text" and not each.get("ignored")]
    said = "\n".join(str(each["text"]) for each in texts if not each.get("synthetic"))
    files = [each for each in parts if each.get("type") == "file"]
    pictures = [str(each["url"]) for each in files if str(each.get("mime")).startswith("image/")]
    if said or pictures:
        made.prompt(said, at, pictures)
    if told := "\n".join(str(each["text"]) for each in texts if each.get("synthetic")):
        made.context(told, at)


def _answer(made: Transcript, told: Object, parts: list[Object], at: float) -> None:
    if told.get("summary") is True:
        text = "\n".join(str(each["text"]) for each in parts if each.get("type") == "text")
        made.compacted(text, "auto", at)
        return
    for part in parts:
        match part.get("type"):
            case "text":
                made.answer(str(part["text"]), _time(part, "end", at))
            case "reasoning":
                made.answer("", _time(part, "end", at), thought=str(part["text"]))
            case "tool":
                _call(made, part, at)
            case "step-finish":
                made.spent(_usage(as_object(part.get("tokens"))), at)
            case _:
                pass


def _call(made: Transcript, part: Object, at: float) -> None:
    state, call_id = as_object(part.get("state")), str(part["callID"])
    called = {"id": call_id, "name": str(part["tool"]), "args": as_object(state.get("input"))}
    made.answer("", _time(state, "start", at), calls=[called])
    if state.get("status") in ("completed", "error"):
        text = str(state.get("output") or state.get("error") or "")
        failed = state["status"] == "error" or bool(as_object(state.get("metadata")).get("exit"))
        made.result(call_id, text, _time(state, "end", at), failed=failed)


def _usage(tokens: Object) -> Usage:
    cache = as_object(tokens.get("cache"))
    read, written = int(cache.get("read") or 0), int(cache.get("write") or 0)
    given = int(tokens.get("input") or 0) + read + written
    more = {"output_tokens": int(tokens.get("output") or 0), "cached_tokens": read}
    thought = {"reasoning_tokens": int(tokens.get("reasoning") or 0)}
    return cast(Usage, {"input_tokens": given, **more, **thought})
