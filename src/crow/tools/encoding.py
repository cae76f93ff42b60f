"""Bytes of a file as text and back, so that what was not edited stays byte for byte."""

from __future__ import annotations

import codecs

from crow.core.support.frozen import frozen
from crow.tools.errors import ToolError

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_CONTROLS = bytes(set(range(32)) - set(b"\t\n\r\f\b\x1b"))
_PROBE = 8192


@frozen
class Encoding:
    """The encoding of a file: a codec's name, and the byte order mark in front."""

    codec: str = "utf-8"
    mark: bytes = b""

    def encode(self, text: str) -> bytes:
        """The bytes of a text. Raises `ToolError` where the codec has no such character."""
        try:
            return self.mark + text.encode(self.codec)
        except UnicodeEncodeError as error:
            wrong = text[error.start]
            raise ToolError(
                f"the text has a character that {self.codec} cannot hold: U+{ord(wrong):04X}"
            ) from error


def decode(data: bytes) -> tuple[str, Encoding] | None:
    """The text and its encoding; None where the bytes are no text."""
    for mark, codec in _MARKS:
        if data.startswith(mark):
            return _strict(data[len(mark) :], Encoding(codec, mark))
    if b"\0" in data[:_PROBE]:
        return None
    return _strict(data, Encoding()) or _single_bytes(data)


def _strict(data: bytes, encoding: Encoding) -> tuple[str, Encoding] | None:
    try:
        return data.decode(encoding.codec), encoding
    except UnicodeDecodeError:
        return None


def _single_bytes(data: bytes) -> tuple[str, Encoding] | None:
    """Latin-1, which gives every byte back as it was, unless there are control characters."""
    probe = data[:_PROBE]
    if len(probe) != len(probe.translate(None, _CONTROLS)):
        return None
    return data.decode("latin-1"), Encoding("latin-1")
