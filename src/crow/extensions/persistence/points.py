"""The points where a conversation can go on: its prompts and answers, and those of its forks."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from crow.dataclasses import frozen
from crow.extensions.persistence.record import Row
from crow.messages import is_prompt, text_of

if TYPE_CHECKING:
    from crow.extensions.persistence.sql import Connection

Spoken = Literal["prompt", "answer"]
HEAD = 64
"""Letters of a message's record in which its role stands."""


@frozen
class Point:
    """A prompt, or the last thing that was answered to it, in a session.

    A fork ``before`` this record ends there: in front of a prompt, behind an answer; None is the
    session's end. ``depth`` is how many forks lead here, ``is_here`` whether the session that was
    asked about has it, ``at`` when it was said, in seconds of the epoch.
    """

    session_id: str
    kind: Spoken
    text: str
    before: int | None
    depth: int = 0
    is_here: bool = True
    at: float = 0.0


@frozen
class Said:
    """A record of what was said. Copies keep the number and the time of what they copy."""

    seq: int
    at: float
    kind: Spoken
    text: str


@dataclass(slots=True)
class Node:
    """Something that was said, with what came next in one session or another."""

    said: Said
    following: list[Node] = field(default_factory=list["Node"])
    sessions: list[str] = field(default_factory=list[str])
    after: dict[str, int | None] = field(default_factory=dict[str, "int | None"])


def said_in(
    connection: Connection, session_id: str, tail: Sequence[Row] = (), *, answers: bool = True
) -> list[Said]:
    """The prompts of a session in order, and the last answer to each."""
    rows = connection.execute(
        "SELECT seq, at, data FROM log WHERE kind = 'message'"
        " AND session = (SELECT key FROM sessions WHERE id = ?1)"
        ' AND (instr(substr(data, 1, ?2), \'"role":"user"\') > 0'
        '  OR ?3 = 1 AND instr(substr(data, 1, ?2), \'"role":"assistant"\') > 0) ORDER BY seq',
        (session_id, HEAD, answers),
    )
    found = {seq: (seq, at, data) for seq, at, data in rows}
    for row in tail:
        if row.kind == "message":
            found.setdefault(row.seq, (row.seq, row.at, row.data))
    told = [each for row in sorted(found.values()) if (each := _said(*row)) is not None]
    return [
        each
        for number, each in enumerate(told, 1)
        if each.kind == "prompt" or number == len(told) or told[number].kind == "prompt"
    ]


def _said(seq: int, at: float, data: str) -> Said | None:
    try:
        message = json.loads(data)
        if message["role"] == "assistant":
            return Said(seq, at, "answer", text_of(message.get("content")))
        return Said(seq, at, "prompt", text_of(message["content"])) if is_prompt(message) else None
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def family(connection: Connection, session_id: str) -> list[str]:
    """A session, all that it was forked from and all that was forked from these, oldest first."""
    rows = connection.execute(
        "WITH RECURSIVE up (id, origin) AS ("
        "  SELECT id, forked_from FROM sessions WHERE id = ?"
        "  UNION SELECT s.id, s.forked_from FROM sessions s JOIN up ON s.id = up.origin"
        "), down (id) AS ("
        "  SELECT id FROM up UNION SELECT s.id FROM sessions s JOIN down ON s.forked_from = down.id"
        ") SELECT s.id FROM down JOIN sessions s ON s.id = down.id ORDER BY s.key",
        (session_id,),
    )
    return [row[0] for row in rows]


def tree(conversations: Iterable[tuple[str, list[Said]]], here: str) -> list[Point]:
    """The points of some sessions as a tree, from the top to the bottom.

    What forks share stands once. What was said first after a point follows it without a step to
    the side.
    """
    root = Node(Said(-1, 0.0, "prompt", ""))
    for session_id, told in conversations:
        node = root
        for number, said in enumerate(told):
            same = (each for each in node.following if _is_copy(each.said, said))
            found = next(same, None)
            if found is None:
                found = Node(said)
                node.following.append(found)
            node = found
            node.sessions.append(session_id)
            node.after[session_id] = told[number + 1].seq if number + 1 < len(told) else None
    return list(_points(root, here))


def _is_copy(one: Said, other: Said) -> bool:
    return (one.seq, one.at) == (other.seq, other.at)


def _points(root: Node, here: str) -> Iterator[Point]:
    """The points below a node: the forks of each stand before what followed it first."""
    waits = [(root, 0)]
    while waits:
        node, depth = waits.pop()
        if node is not root:
            yield _point(node, here, depth)
        waits += [(each, depth + (number > 0)) for number, each in enumerate(node.following)]


def _point(node: Node, here: str, depth: int) -> Point:
    is_here = here in node.sessions
    whose, said = here if is_here else node.sessions[0], node.said
    before = said.seq if said.kind == "prompt" else node.after[whose]
    return Point(whose, said.kind, said.text, before, depth, is_here, said.at)
