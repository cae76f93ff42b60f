"""The list of messages in a request: user and assistant by turns, marked for a cache."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import cast

from crow.llm.http.encoding import Piece, encode_clean
from crow.llm.messages.blocks import text_block
from crow.llm.messages.serialization import Turn

GO_ON = encode_clean(text_block("Go on."))
"""What the user says where a history has nothing of the user's."""

Item = tuple[str, list[bytes]]
"""A message of the request: its role, and its blocks."""


def system_of(pieces: Sequence[Piece]) -> int:
    """How many messages in front are the system's."""
    turns = (cast(Turn, turn).role for _, turn in pieces)
    return next((at for at, role in enumerate(turns) if role != "system"), len(pieces))


def items_of(pieces: Iterable[Piece], *, late_system: bool, prefill: bool) -> list[Item]:
    """The messages of a request. All results of a turn stand first in the user's message after it.

    What the system says in between is a message of its own where the model takes one there
    (``late_system``), right after the user's, else the user's. Between two messages of the
    assistant's stands a word of the user's, and behind the last one, unless the model takes a
    ``prefill``.
    """
    items: list[Item] = []
    between: list[Piece] = []
    is_paused = False
    for piece in pieces:
        if piece[1].role != "assistant":
            between.append(piece)
        elif piece[0]:
            _answer(items, between, late_system=late_system)
            between = []
            if items and items[-1][0] == "assistant":
                items.append(("user", [GO_ON]))
            items.append(("assistant", [piece[0]]))
            is_paused = piece[1].is_paused
    _answer(items, between, late_system=late_system)
    if items and items[-1][0] == "assistant" and not (prefill or is_paused):
        items.append(("user", [GO_ON]))
    return items


def _answer(items: list[Item], pieces: Sequence[Piece], *, late_system: bool) -> None:
    """Add what stands between two messages of the assistant's."""
    results = [piece for piece in pieces if piece[1].role == "result"]
    others = [piece for piece in pieces if piece[1].role != "result"]
    for encoded, turn in (*results, *others):
        is_late = late_system and turn.role == "system" and items and items[-1][0] != "assistant"
        if encoded:
            _say(items, "system" if is_late else "user", encoded)


def _say(items: list[Item], role: str, encoded: bytes) -> None:
    """Add blocks, to the last message where it has this role."""
    if items and items[-1][0] == role:
        items[-1][1].append(encoded)
    else:
        items.append((role, [encoded]))


def mark_last(items: Sequence[Item], mark: bytes) -> None:
    """Mark the user's last message, and the one that was last in the request before."""
    ends = [at for at, (role, _) in enumerate(items) if role == "user"]
    answers = [at for at, (role, _) in enumerate(items) if role == "assistant"]
    before = [at for at in ends if answers and at < answers[-1]]
    for at in {*ends[-1:], *before[-1:]}:
        blocks = items[at][1]
        blocks[-1] = marked(blocks[-1], mark)


def marked(encoded: bytes, mark: bytes) -> bytes:
    """Encoded objects, with more in the last of them."""
    return encoded[:-1] + mark + b"}" if encoded else encoded


def encode(items: Iterable[Item]) -> bytes:
    """The messages as JSON, without brackets."""
    return b",".join(
        b'{"role":"%b","content":[%b]}' % (role.encode(), b",".join(blocks))
        for role, blocks in items
    )
