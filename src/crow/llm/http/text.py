"""JSON values, and text that can be stored and sent: no half of a surrogate pair, no NUL."""

from __future__ import annotations

from typing import Any, TypeGuard

REPLACEMENT = "�"


def is_object(value: object) -> TypeGuard[dict[str, Any]]:
    """True for a JSON object."""
    return isinstance(value, dict)


def is_array(value: object) -> TypeGuard[list[Any]]:
    """True for a JSON array."""
    return isinstance(value, list)


def clean(text: str) -> str:
    """The text with pairs of surrogates joined; lone ones and NUL become U+FFFD."""
    if text.isascii():
        return text.replace("\0", REPLACEMENT)
    try:
        text.encode()
    except UnicodeEncodeError:
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text.replace("\0", REPLACEMENT)


def clean_value(value: Any) -> Any:
    """A JSON value with every text in it cleaned, keys included."""
    if isinstance(value, str):
        return clean(value)
    if is_object(value):
        return {clean(str(key)): clean_value(item) for key, item in value.items()}
    return [clean_value(item) for item in value] if is_array(value) else value


def merged(known: Any, more: Any) -> Any:
    """Two pieces of an object as one; the later one counts where they differ."""
    if more is None:
        return known
    if not (is_object(known) and is_object(more)):
        return more
    return {**known, **{name: merged(known.get(name), value) for name, value in more.items()}}


def is_dirty_json(raw: str) -> bool:
    """True where JSON text may hold a surrogate or a NUL, as characters or as escapes."""
    if "\\u" in raw and ("\\ud" in raw or "\\uD" in raw or "\\u0000" in raw):
        return True
    return not is_clean(raw)


def is_clean(text: str) -> bool:
    """True where nothing has to be cleaned."""
    if "\0" in text:
        return False
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


class TextFlow:
    """A text that comes in pieces; half of a surrogate pair waits for the other half."""

    __slots__ = ("_half",)

    def __init__(self) -> None:
        self._half = ""

    def take(self, piece: str) -> str:
        """What can be shown of what came so far."""
        if not self._half and is_clean(piece):
            return piece
        piece = self._half + piece
        self._half = piece[-1] if "\ud800" <= piece[-1] <= "\udbff" else ""
        return clean(piece[:-1] if self._half else piece)

    def end(self) -> str:
        """What was still waiting."""
        half, self._half = self._half, ""
        return clean(half)
