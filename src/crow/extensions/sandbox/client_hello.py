"""The ClientHello of TLS: the name of the host that a client asks for."""

from __future__ import annotations

_HANDSHAKE, _CLIENT_HELLO, _SERVER_NAME = 22, 1, 0
_RECORD = 5  # bytes before what is in a record


def is_begun(first: bytes) -> bool:
    """True for a first record of TLS of which some is missing."""
    if not first.startswith(bytes([_HANDSHAKE])):
        return False
    return len(first) < _RECORD or len(first) < _RECORD + _number(first, 3)


def server_name(first: bytes) -> str | None:
    """The name in a ClientHello, "" where it cannot be read; None for what is not TLS."""
    if not first.startswith(bytes([_HANDSHAKE])):
        return None
    try:
        return _name(first) if first[_RECORD] == _CLIENT_HELLO else ""
    except (IndexError, UnicodeDecodeError):
        return ""


def _name(first: bytes) -> str | None:
    at = 9 + 2 + 32  # behind the heads of record and message, version and random
    at += 1 + first[at]  # session
    at += 2 + _number(first, at)  # ciphers
    at += 1 + first[at]  # compressions
    end = at + 2 + _number(first, at)
    at += 2
    while at < end:
        kind, size = _number(first, at), _number(first, at + 2)
        if kind == _SERVER_NAME:
            return first[at + 9 : at + 9 + _number(first, at + 7)].decode("ascii").lower()
        at += 4 + size
    return None


def _number(data: bytes, at: int) -> int:
    """Two bytes; `IndexError` where they are not there."""
    return data[at] << 8 | data[at + 1]
