"""The stored sessions as a person chooses one: with what they began, cost and are used by."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any

from crow.dataclasses import frozen
from crow.extensions.persistence.points import said_in
from crow.extensions.persistence.session_rows import find_session
from crow.storage import SessionInfo

if TYPE_CHECKING:
    from crow.extensions.persistence.sql import Connection


@frozen
class Overview:
    """A session in a list. ``prompt`` is the first of ``turns``; ``cost`` is in dollars.

    ``state`` is what extensions have stored with it, as JSON text by name. ``used_by`` is empty
    where nobody has the session open. ``snippet`` is where a text was found that was searched for.
    ``outcome`` says how it ended so far: ``answered``, ``interrupted`` amid its calls, or
    ``unanswered`` since the last prompt; empty where nothing was said.
    """

    session: SessionInfo
    prompt: str = ""
    turns: int = 0
    cost: float | None = None
    state: dict[str, str] = field(default_factory=dict[str, str])
    used_by: str = ""
    snippet: str = ""
    outcome: str = ""


def overviews(
    connection: Connection, infos: Sequence[tuple[SessionInfo, str]], user_of: Callable[[str], str]
) -> list[Overview]:
    """What there is to be said about sessions; ``infos`` has each with its snippet."""
    return [_overview(connection, info, snippet, user_of(info.id)) for info, snippet in infos]


def _overview(connection: Connection, info: SessionInfo, snippet: str, used_by: str) -> Overview:
    prompts = said_in(connection, info.id, answers=False)
    stored: Any = find_session(connection, info.id) or {"usage": {}, "states": {}}
    total: dict[str, Any] = stored["usage"].get("total") or {}
    return Overview(
        info,
        prompts[0].text if prompts else "",
        len(prompts),
        total.get("cost"),
        stored["states"],
        used_by,
        snippet,
        _outcome(connection, info.id),
    )


def _outcome(connection: Connection, session_id: str) -> str:
    rows = connection.execute(
        "SELECT kind, data FROM log WHERE kind IN ('message', 'answer', 'started', 'result')"
        " AND session = (SELECT key FROM sessions WHERE id = ?1) ORDER BY seq DESC LIMIT 1",
        (session_id,),
    )
    for kind, data in rows:
        try:
            message: Any = json.loads(data) if kind == "message" else {}
            if message.get("role") == "user":
                return "unanswered"
            is_over = message.get("role") == "assistant" and not message.get("tool_calls")
        except (ValueError, AttributeError):  # a damaged row
            return ""
        return "answered" if is_over else "interrupted"
    return ""
